"""What a mountain car has learned

The value of every position and speed after 50,000 steps of the preset agent, tile coding with Sarsa(λ). The
white line is an episode of its policy, a dot for every step: it rocks back and forth until it is fast enough.
The yellow corners were never visited.
"""

import gqlab as gq
import gymnasium
import matplotlib.pyplot as plt
import numpy as np

plt.style.use("gqlab.plots.gqlab")
agent = gq.Agent.preset("MountainCar-v0").learn(50_000)
x, v = np.meshgrid(np.linspace(-1.2, 0.5, 300), np.linspace(-0.07, 0.07, 300))
value = agent.model.q(np.stack([x.ravel(), v.ravel()], axis=1)).max(axis=1).reshape(x.shape)
env = gymnasium.make("MountainCar-v0")
path, over = [env.reset(seed=1)[0]], False
while not over:
    seen, _, terminated, truncated, _ = env.step(agent.predict(path[-1])[0])
    path, over = [*path, seen], terminated or truncated
fig, ax = plt.subplots(layout="constrained")
fig.colorbar(ax.pcolormesh(x, v, value, rasterized=True), label="discounted value")
ax.plot(*np.transpose(path), ".-", color="white", markersize=4, linewidth=0.8)
ax.set(title="MountainCar: the learned values", xlabel="position", ylabel="speed", xlim=(-1.2, 0.5))
fig.savefig("mountain_car.png")
