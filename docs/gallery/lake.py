"""A policy for the frozen lake

What two methods with constant steps learned from the same million random moves on slippery ice. The colours are
exact values of their policies. The variance-reduced one has found an optimal policy: near a hole it is best to
walk away from it, and let the ice do the rest.
"""

import gqlab as gq
import matplotlib.pyplot as plt

plt.style.use("gqlab.plots.gqlab")
mdp = gq.FiniteMDP.from_gymnasium("FrozenLake-v1", discount=0.95)
problem = gq.Problem(mdp, gq.tabular_features(mdp), target=gq.Greedy())
fig, axes = plt.subplots(1, 2, figsize=(8.2, 3.9), layout="constrained")
for ax, algorithm in zip(axes, (gq.QLearning(0.2), gq.SAGAGreedyGQ())):
    theta = gq.run(problem, algorithm, n_samples=1_000_000).theta[0, -1]
    problem.plot(theta, ax=ax)
    value, best = problem.exact.value(theta)[0], problem.exact.optimal_value[0]
    ax.set_title(f"{type(algorithm).__name__}: {value / best:.0%} of the best")
fig.savefig("lake.png")
