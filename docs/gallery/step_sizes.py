"""How much the step size matters

Three algorithms, twelve step sizes and twenty runs each, in one call; then the exact ‖∇J‖² where the runs end.
Lines are medians, bands hold the middle 80 %, and a cross says that most runs diverged.
"""

import gqlab as gq
import matplotlib.pyplot as plt
import numpy as np

plt.style.use("gqlab.plots.gqlab")
mdp = gq.garnet(seed=0)
problem = gq.Problem(mdp, gq.random_features(mdp, dim=4))
steps = np.geomspace(0.003, 10, 12)
algorithms = gq.vary(gq.GreedyGQ, eta_theta=steps, eta_omega=0.1)
algorithms += gq.vary(gq.VRGreedyGQ, eta_theta=steps, eta_omega=0.1, batch_size=1000)
algorithms += gq.vary(gq.QLearning, eta_theta=steps)
grid = gq.grid(problem, algorithms, n_samples=50_000, n_runs=20)
print(grid.best("gradient"))
ax = grid.plot("gradient", x="eta_theta", by="algorithm")
ax.set(title="After 50,000 samples of a Garnet", xlabel="step size of θ", ylim=(1e-5, 10))
ax.figure.savefig("step_sizes.png")
