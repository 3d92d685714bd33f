"""What a tile coder takes to be alike

What is learned in one state is known in others as far as they share tiles. For three states of a square, the
white dots: the share of their tiles that every other state lies in too, for 1, 4 and 16 tilings of the same
width.
"""

import gqlab as gq
import matplotlib.pyplot as plt
import numpy as np

plt.style.use("gqlab.plots.gqlab")
x, y = np.meshgrid(*2 * [np.linspace(0, 1, 200, endpoint=False)])
states, marked = np.stack([x.ravel(), y.ravel()], axis=1), np.array([[0.3, 0.65], [0.7, 0.8], [0.55, 0.3]])
fig, axes = plt.subplots(1, 3, figsize=(8.4, 3.1), layout="constrained")
for ax, n in zip(axes, (1, 4, 16)):
    coder = gq.TileCoder(n_tilings=n, bins=4, low=0.0, high=1.0).fit(states)
    tiles, own = coder.encode_batch(states), coder.encode_batch(marked)  # the tiles that each state lies in
    alike = (tiles[:, None, :] == own).mean(axis=2).max(axis=1)
    ax.pcolormesh(x, y, alike.reshape(x.shape), vmin=0, vmax=1, rasterized=True)
    ax.plot(*marked.T, "o", color="white", markeredgecolor="black")
    ax.set(title=f"{n} tiling{'s' * (n > 1)}", aspect="equal", xticks=[], yticks=[])
fig.savefig("tiles.png")
