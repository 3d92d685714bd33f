"""A hundred random steps go a long way

CartPole learned from nothing but a log of random actions, with Fourier features and fitted Q. Every dot is a policy
from a log of its own: how long it keeps the pole up, by the length of the log.
"""

import gqlab as gq
import matplotlib.pyplot as plt
import numpy as np

plt.style.use("gqlab.plots.gqlab")
encoder = gq.Fourier(2, low=[-2.4, -3, -0.21, -3], high=[2.4, 3, 0.21, 3])
fig, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
for n in (25, 50, 100, 200):
    logs = [gq.collect("CartPole-v1", n_steps=n, seed=seed) for seed in range(12)]
    models = [gq.fit(log, encoder, gq.FittedQ(ridge=1e-3), discount=0.95) for log in logs]
    steps = [model.evaluate("CartPole-v1", n_episodes=2).mean for model in models]
    ax.plot(n * np.geomspace(0.85, 1.15, 12), steps, "o", color="#0072b2", alpha=0.7)
    ax.plot([0.8 * n, 1.2 * n], 2 * [np.median(steps)], color="#d55e00")
ax.set(title="CartPole from a log alone", xlabel="logged steps", ylabel="steps upright, at most 500", xscale="log")
ax.set_xticks([25, 50, 100, 200], ["25", "50", "100", "200"], minor=False)
ax.set_xticks([], minor=True)
fig.savefig("log.png")
