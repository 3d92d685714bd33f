"""Curves of metrics over runs: the median, and a band that holds most runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gqlab.plots.style import PALETTE, SOFT, axes_of, label_powers, short, styled
from gqlab.support import checks
from gqlab.support.checks import FloatArray

#: J and ‖∇J‖² are drawn on a logarithmic axis; so is another positive metric, or a parameter, that spans a larger
#: factor.
SPAN = 5.0

#: Lines that can be told apart: eight colours, each solid and dashed.
DASHES = "-", (0, (4, 1.5))
MOST_LINES = len(PALETTE) * len(DASHES)


class Line(NamedTuple):
    """What is drawn for one name."""

    label: str | None
    x: NDArray[Any]  # (n,)
    values: FloatArray  # (n_runs, n)


#: Low end, median and high end over the runs, (n,) each.
CurveBand = tuple[FloatArray, FloatArray, FloatArray]


def quantiles(values: FloatArray, band: float) -> CurveBand:
    """Low end, median and high end over the runs, (n,) each; infinite values count, NaN does not."""
    out = np.full((3, values.shape[1]), np.nan)
    for j, column in enumerate(values.T):
        seen = np.sort(column[~np.isnan(column)])
        if len(seen):
            last = len(seen) - 1
            out_of_band = math.floor((1 - band) / 2 * last + 1e-9)  # runs on either side
            below, above = seen[last // 2], seen[(last + 1) // 2]
            out[:, j] = seen[out_of_band], below if below == above else (below + above) / 2, seen[last - out_of_band]
    return out[0], out[1], out[2]


def draw(
    lines: Sequence[Line],
    titles: tuple[str, str],
    band: float,
    ax: Any,
    *,
    falling: bool,
    points: bool = False,
) -> Any:
    """The lines with their bands; where the median is infinite there is a cross at the upper edge.

    ``titles`` are those of the two axes; ``falling``: the values fall by powers of ten; ``points``: x is a parameter
    instead of a count.
    """
    with styled():
        return _draw(lines, titles, band, ax, falling, points)


def _draw(lines: Sequence[Line], titles: tuple[str, str], band: float, ax: Any, falling: bool, points: bool) -> Any:
    share = checks.number("band", band, least=0, below=1)
    axes = axes_of(ax)
    start = len(axes.lines)  # a second call on the same axes continues with the next colours
    over = [(line, quantiles(line.values, share)) for line in lines]
    _set_scales(axes, over, points, falling)
    colours = [PALETTE[(start + k) % len(PALETTE)] for k in range(len(lines))]
    for k, (line, (_, middle, _)) in enumerate(over):
        dash, seen = DASHES[(start + k) // len(PALETTE) % len(DASHES)], np.isfinite(middle)
        marker = "o" if points else ""
        axes.plot(line.x[seen], middle[seen], color=colours[k], linestyle=dash, marker=marker, label=line.label)
        _mark_lost(axes, line.x[np.isinf(middle)], 0.98 - 0.04 * k, colours[k], points)
    if share:
        _draw_bands(axes, over, colours)
    if axes.get_yscale() == "log":
        label_powers(axes)
    axes.set(xlabel=titles[0], ylabel=titles[1])
    if any(line.label for line in lines):
        axes.legend()
    return axes


def _draw_bands(axes: Any, over: Sequence[tuple[Line, CurveBand]], colours: Sequence[str]) -> None:
    """Draw finite bands first, which set the limits of the axes; then infinite ones, up to their edge."""
    for edge in (False, True):
        limits = axes.get_ylim()
        for colour, (line, (low, middle, high)) in zip(colours, over, strict=True):
            whole = np.isfinite(low) & np.isfinite(high)
            seen = np.isfinite(middle) & (~whole if edge else whole)
            if len(line.values) > 1 and seen.any():
                ends = np.clip((low, high), *limits) if edge else (low, high)
                axes.fill_between(line.x, *ends, where=seen, color=colour, alpha=0.16, linewidth=0)
        if edge:
            axes.set_ylim(limits)


def _set_scales(axes: Any, over: Sequence[tuple[Line, CurveBand]], points: bool, falling: bool) -> None:
    """A logarithmic axis where the metric falls by powers of ten or the values span several, else a linear one."""
    from matplotlib.ticker import FuncFormatter

    every = np.concatenate([middle[np.isfinite(middle)] for _, (_, middle, _) in over])
    if len(every) and every.min() > 0 and (falling or every.max() / every.min() > SPAN):
        axes.set_yscale("log", nonpositive="mask")
    places = np.concatenate([line.x for line, _ in over]).astype(float)
    if points and len(places) and places.min() > 0 and places.max() / places.min() > SPAN:
        axes.set_xscale("log")
    if not points:
        axes.xaxis.set_major_formatter(FuncFormatter(short))


def _mark_lost(axes: Any, lost: NDArray[Any], height: float, colour: str, points: bool) -> None:
    """Crosses near the upper edge: at every lost point, or at the first one of a curve."""
    shown = lost if points else lost[:1]
    if len(shown):
        top = axes.get_xaxis_transform()  # x in the data, y from 0 to 1
        axes.plot(
            shown, np.full(len(shown), height), "x", color=colour, transform=top, clip_on=False, markeredgewidth=2
        )


def draw_seeds(
    steps: NDArray[Any], curves: FloatArray, band: Any, ax: Any, label: str | None, threshold: float | None, n: int
) -> Any:
    """Returns against steps: a middle with its band, the seeds in thin lines, and the return that counts as solved."""
    from matplotlib.ticker import FuncFormatter

    with styled():
        axes = axes_of(ax)
        colour = PALETTE[sum(line.get_label()[:1] != "_" for line in axes.lines) % len(PALETTE)]
        low, middle, high = band
        for curve in curves:
            axes.plot(steps, curve, color=colour, linewidth=0.6, alpha=0.35, label="_seed")
        axes.fill_between(steps, low, high, color=colour, alpha=0.2, linewidth=0)
        axes.plot(steps, middle, color=colour, label=label or f"interquartile mean of {n} seeds, 95 % interval")
        if threshold is not None and ax is None:
            axes.axhline(threshold, color=SOFT, linestyle="--", linewidth=1, label="_solved", zorder=0)
        axes.xaxis.set_major_formatter(FuncFormatter(short))
        axes.set(xlabel="steps", ylabel="mean return of the greedy policy")
        axes.legend()
        return axes
