"""The figure of the leaderboard: ‖∇J‖² against samples, with the floor as the line under all curves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gqlab.plots import style
from gqlab.studies.compare.leaderboard import Comparison
from gqlab.support.checks import FloatArray

#: In the order of the table; then greys, dashed.
COLOURS = style.PALETTE[:6]
#: The least distance of two labels, as a part of the height.
LABEL_GAP = 0.052
#: The lowest place of a label: beneath the axis, but on the page.
LOWEST = -0.06


def write_figure(comparison: Comparison, folder: Path) -> str:
    """``compare.png`` and ``.svg`` in a folder; returns the text of the second."""
    return style.write_figure(lambda: draw(comparison), folder, "compare")


def draw(comparison: Comparison) -> Any:
    from matplotlib.figure import Figure

    page = Figure(figsize=(9.2, 5.6))
    axes = page.add_axes((0.085, 0.1, 0.65, 0.8))
    ends: list[tuple[str, float, str]] = []
    for k, row in enumerate(comparison.rows):
        seen = (row.samples >= comparison.moments[0] / 3) & np.isfinite(row.curve)
        if not seen.any():
            continue
        colour = COLOURS[k] if k < len(COLOURS) else style.SOFT
        dash = "-" if k < len(COLOURS) else (0, (4, 1.5 + 0.7 * (k - len(COLOURS))))
        axes.plot(row.samples[seen], row.curve[seen], color=colour, linestyle=dash, linewidth=1.4, zorder=3)
        ends.append((row.name, float(row.curve[seen][-1]), colour))
    floor = np.median(comparison.floor, axis=0)
    axes.plot(comparison.moments, floor, color=style.INK, linewidth=3.2, zorder=2, marker="o", markersize=5)
    ends.append(("the floor", float(floor[-1]), style.INK))
    axes.set(xscale="log", yscale="log", xlim=(comparison.moments[0] / 3, comparison.moments[-1]))
    axes.xaxis.set_major_formatter(style.short)
    style.label_powers(axes)
    axes.set(xlabel="samples", ylabel="‖∇J(θ)‖², median over problems", title=comparison.title)
    _label(axes, ends)
    return page


def _label(axes: Any, ends: list[tuple[str, float, str]]) -> None:
    """The names beside the ends of the curves, moved apart where they would cover one another."""
    ends = sorted(ends, key=lambda end: end[1])
    low, high = np.log(axes.get_ylim())
    wanted = np.array([(np.log(value) - low) / (high - low) for _, value, _ in ends])
    for (name, value, colour), y in zip(ends, apart(wanted, LABEL_GAP), strict=True):
        axes.annotate(
            name, (1.0, (np.log(value) - low) / (high - low)), (1.07, y), xycoords="axes fraction",
            textcoords="axes fraction", va="center", color=style.INK if colour == style.SOFT else colour,
            annotation_clip=False, fontweight="bold" if name == "the floor" else "normal",
            arrowprops={
                "arrowstyle": "-", "color": colour, "linewidth": 0.7, "shrinkA": 1, "shrinkB": 0, "relpos": (0, 0.5)
            },
        )  # fmt: skip


def apart(wanted: FloatArray, gap: float) -> FloatArray:
    """Rising places at least ``gap`` apart, near those that are wanted, which rise: groups are moved as a whole."""
    groups: list[tuple[float, int]] = []  # (the sum of wanted − offset, members)
    for k, place in enumerate(wanted):
        groups.append((float(place) - k * gap, 1))
        while len(groups) > 1 and groups[-2][0] / groups[-2][1] > groups[-1][0] / groups[-1][1]:
            total, n = groups.pop()
            groups[-1] = (groups[-1][0] + total, groups[-1][1] + n)
    level = np.concatenate([np.full(n, total / n) for total, n in groups])
    return np.asarray(np.maximum(level, LOWEST) + gap * np.arange(len(wanted)))
