"""How much log a policy takes

CartPole learned from nothing but a log of random actions, which last about 22 steps each: how long the policies of two
methods keep the pole up, by the length of the log. Lines are medians over five logs, bands go from the worst to the best.
"""

import gqlab as gq
import matplotlib.pyplot as plt
import numpy as np

plt.style.use("gqlab.plots.gqlab")
encoder = gq.Fourier(2, low=[-2.4, -3, -0.21, -3], high=[2.4, 3, 0.21, 3])
sizes = np.geomspace(200, 6400, 6).astype(int)
logs = {n: [gq.collect("CartPole-v1", n_steps=n, seed=seed) for seed in range(5)] for n in sizes}
fig, ax = plt.subplots(layout="constrained")
for name, method in {"fitted Q": gq.FittedQ(ridge=1e-3), "LSPI": gq.LSPI(ridge=1e-3)}.items():
    models = [[gq.fit(log, encoder, method, discount=0.95) for log in logs[n]] for n in sizes]
    steps = np.array([[m.evaluate("CartPole-v1", n_episodes=5).mean for m in row] for row in models])
    ax.plot(sizes, np.median(steps, axis=1), "o-", label=name)
    ax.fill_between(sizes, steps.min(axis=1), steps.max(axis=1), alpha=0.16, linewidth=0)
ax.set(title="CartPole from a log alone", xscale="log", xlabel="logged steps", ylabel="steps until it falls")
ax.legend()
fig.savefig("log.png")
