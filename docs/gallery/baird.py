"""Q-learning diverges where Greedy-GQ does not

Baird's star: seven states and no reward, so Q = 0 is the answer. From the usual start off-policy Q-learning
runs away from it, however small its steps. Greedy-GQ descends a gradient: its error falls, and stays down.
"""

import gqlab as gq
import matplotlib.pyplot as plt

plt.style.use("gqlab.plots.gqlab")
problem = gq.baird()
start = dict(n_samples=20_000, n_runs=20, theta0=[1, 1, 1, 1, 1, 1, 10], record_every=100)
results = {
    "Q-learning": gq.run(problem, gq.QLearning(0.02), **start),
    "Greedy-GQ": gq.run(problem, gq.GreedyGQ(0.02, 0.05), **start),
    "VR-Greedy-GQ": gq.run(problem, gq.VRGreedyGQ(0.02, 0.05, batch_size=1000), **start),
}
ax = gq.compare_plot(results, "mspbe")
ax.set(title="Baird's star: the exact error J(θ)", ylim=(1e-5, 1e9))
ax.figure.savefig("baird.png")
