"""What was learned, in pictures: values and greedy actions over one or two numbers of an observation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gqlab.plots.style import PALETTE, axes_of, styled
from gqlab.support.checks import FloatArray

#: Actions that a legend can name.
MOST_NAMED = 12


def draw_line(x: FloatArray, q: FloatArray, name: str, actions: Sequence[str], ax: Any) -> Any:
    """The values of all actions over one number; the best is drawn thick."""
    with styled():
        axes = axes_of(ax)
        best = q.argmax(axis=1)
        for a, label in enumerate(actions):
            colour = PALETTE[a % len(PALETTE)]
            axes.plot(x, q[:, a], color=colour, linewidth=0.9, alpha=0.6, label=f"action {label}")
            axes.plot(x, np.where(best == a, q[:, a], np.nan), color=colour, linewidth=2.6)
        axes.set(xlabel=name, ylabel="learned value")
        if len(actions) <= MOST_NAMED:
            axes.legend()
        return axes


def draw_surface(
    sides: tuple[FloatArray, FloatArray], q: FloatArray, names: tuple[str, str], actions: Sequence[str], axes: Any
) -> NDArray[Any]:
    """The largest value over two numbers on the left, the action that has it on the right; q is (n_y, n_x, A)."""
    import matplotlib.pyplot as plt
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    with styled():
        if axes is None:
            axes = plt.subplots(1, 2, figsize=(8.6, 3.6), layout="constrained")[1]
        left, right = np.ravel(axes)
        x, y = sides
        image = left.pcolormesh(x, y, q.max(axis=-1), cmap="cividis", shading="nearest", rasterized=True)
        left.figure.colorbar(image, ax=left, label="learned value")
        colours = [PALETTE[a % len(PALETTE)] for a in range(len(actions))]
        best = q.argmax(axis=-1)
        limits = {"vmin": -0.5, "vmax": len(actions) - 0.5}
        right.pcolormesh(x, y, best, cmap=ListedColormap(colours), shading="nearest", rasterized=True, **limits)
        if len(actions) <= MOST_NAMED:
            seen = [Patch(color=colours[a], label=f"action {actions[a]}") for a in np.unique(best)]
            right.legend(handles=seen, loc="upper left", bbox_to_anchor=(1.02, 1.0), borderaxespad=0.0)
        for each, title in ((left, "value"), (right, "greedy action")):
            each.set(xlabel=names[0], ylabel=names[1], title=title)
            each.grid(False)
        return np.array([left, right])
