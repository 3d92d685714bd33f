"""Variance reduction, at the same step sizes

Greedy-GQ stops falling where the noise of its samples carries it as far as the gradient does. VR-Greedy-GQ
compares every sample with a batch of them and gets further; with batches that grow it goes on. Lines are
medians of 40 runs, bands hold the middle 80 %, and ‖∇J‖² is exact.
"""

import gqlab as gq
import matplotlib.pyplot as plt

plt.style.use("gqlab.plots.gqlab")
mdp = gq.garnet(n_states=5, n_actions=3, branching=2, seed=0)
problem = gq.Problem(mdp, gq.random_features(mdp, dim=4))
algorithms = {
    "Greedy-GQ": gq.GreedyGQ(0.2, 0.2),
    "VR-Greedy-GQ, batches of 3,000": gq.VRGreedyGQ(0.2, 0.2, batch_size=3000),
    "VR-Greedy-GQ, growing batches": gq.VRGreedyGQ(0.2, 0.2, batch_size=300, growth=1.5),
}
results = {name: gq.run(problem, algorithm, n_samples=120_000, n_runs=40) for name, algorithm in algorithms.items()}
ax = gq.compare_plot(results, "gradient")
ax.set(title="The same steps, with and without the noise", ylim=(2e-7, None))
ax.figure.savefig("variance.png")
