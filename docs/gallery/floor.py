"""How far from the statistical floor

The floor is what the samples of a run allow: ‖∇J‖² at the stationary point of the objective that they make. All
algorithms saw the same 300,000 samples, with their default step sizes; those that reuse or average them reach
the floor.
"""

import gqlab as gq
import matplotlib.pyplot as plt

plt.style.use("gqlab.plots.gqlab")
mdp = gq.garnet(seed=0)
problem = gq.Problem(mdp, gq.random_features(mdp, dim=4))
family = gq.GreedyGQ, gq.VRGreedyGQ, gq.AveragedGreedyGQ, gq.StreamingGreedyGQ, gq.SAGAGreedyGQ
runs = {kind.__name__: gq.run(problem, kind(), n_samples=300_000, n_runs=8) for kind in family}
multiples = {name: result.floor_multiple() for name, result in runs.items()}
fig, ax = plt.subplots(figsize=(6.4, 3.0), layout="constrained")
ax.hlines(list(multiples), 1, list(multiples.values()), linewidth=3)
ax.plot(list(multiples.values()), list(multiples), "o", markersize=9)
for name, multiple in multiples.items():
    ax.annotate(f"{multiple:.3g} ×", (multiple, name), (10, 0), textcoords="offset points", va="center")
ax.axvline(1, color="#d55e00", zorder=0)
ax.margins(y=0.15)
ax.set(title="‖∇J‖² in multiples of the floor", xscale="log", xlim=(0.7, 5 * max(multiples.values())))
fig.savefig("floor.png")
