"""Pictures of decisions: gains with their bounds against zero, and where the log hardly holds what a policy does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gqlab.plots.style import BLUE, GREY, INK, VERMILION, axes_of, styled
from gqlab.support import checks
from gqlab.support.checks import FloatArray
from gqlab.support.printable import printable

#: The colour of a verdict.
COLOURS = {"better": BLUE, "worse": VERMILION, "cannot say": GREY}

#: Bins along each axis of the state space, and the observations that a bin needs to be drawn.
BINS, LEAST_PLACES = 24, 2

#: Shares below this are not drawn.
NOTHING = 1e-3

#: How far the axis of gains reaches, as a multiple of the widest bounds of policies that are not thin.
REACH = 4.0


class Gain(NamedTuple):
    """What is drawn of one policy."""

    name: str
    gain: float
    low: float
    high: float
    verdict: str
    thin: bool  # the log holds too little of what it does


def draw(
    gains: Sequence[Gain],
    baseline: str,
    confidence: float,
    support: tuple[str, FloatArray, FloatArray, Sequence[str] | None] | None,
    axes: Any = None,
) -> Any:
    """Both panels; ``support``: a policy's name, observations (n, size), what is missing there (n,), their names."""
    with styled():
        left, right = _axes(axes, len(gains))
        _draw_gains(left, gains, baseline, confidence)
        _draw_support(right, support)
    return np.array([left, right])


def _axes(axes: Any, n: int) -> tuple[Any, Any]:
    from matplotlib.axes import Axes

    if axes is not None:
        given = checks.several("axes", axes)
        if len(given) != 2 or not all(isinstance(one, Axes) for one in given):
            raise ValueError(f"axes is {checks.shown(axes)}, expected two Axes of Matplotlib")
        return given[0], given[1]
    first = axes_of(None, (10.4, max(3.4, 1.6 + 0.5 * n)))
    figure = first.figure
    grid = figure.add_gridspec(1, 2, width_ratios=(1.25, 1))
    first.set_subplotspec(grid[0])
    return first, figure.add_subplot(grid[1])


def _draw_gains(ax: Any, gains: Sequence[Gain], baseline: str, confidence: float) -> None:
    """One line for each policy, the first on top; what reaches beyond the axis ends in an arrow."""
    low, high = _limits(gains)
    ax.axvline(0, color=INK, linewidth=1.2, zorder=1)
    for k, one in enumerate(gains):
        colour = COLOURS[one.verdict]
        left, right = (float(np.clip(end, low, high)) for end in (one.low, one.high))
        bar: dict[str, Any] = {"hatch": "////", "facecolor": "none"} if one.thin else {"facecolor": colour}
        ax.barh(k, right - left, left=left, height=0.42, edgecolor=colour, alpha=0.55, linewidth=1.0, zorder=2, **bar)
        for beyond, at, marker in ((one.low < low, left, "<"), (one.high > high, right, ">")):
            if beyond:
                ax.plot(at, k, marker, color=colour, markersize=7, clip_on=False, zorder=4)
        if low <= one.gain <= high:
            ax.plot(one.gain, k, "o", color=colour, markersize=6, zorder=3)
        ax.annotate(one.verdict, (1.0, k), (10, 0), xycoords=("axes fraction", "data"), textcoords="offset points",
                    va="center", fontsize=9, color=colour)  # fmt: skip
    ax.set(yticks=range(len(gains)), yticklabels=[printable(one.name) for one in gains], xlim=(low, high))
    ax.set_ylim(len(gains) - 0.5, -0.5)
    ax.grid(visible=False, axis="y")
    ax.tick_params(axis="y", length=0, pad=9, labelsize=10, labelcolor=INK)
    ax.set_title(f"Gain over {baseline}")
    hatched = "; hatched: the log is too thin" if any(one.thin for one in gains) else ""
    ax.set_xlabel(f"bounds at {100 * confidence:g} % each{hatched}")


def _limits(gains: Sequence[Gain]) -> tuple[float, float]:
    """The axis of gains: it holds 0, all estimates, and the bounds unless these are those of rewards alone."""
    sure = [end for one in gains if not one.thin for end in (one.low, one.high) if np.isfinite(end)]
    all_ends = [end for one in gains for end in (one.low, one.high) if np.isfinite(end)]
    points = [0.0, *(one.gain for one in gains if np.isfinite(one.gain))]
    reach = REACH * max((abs(x) for x in (*sure, *points)), default=0.0)
    inside = [end for end in all_ends if abs(end) <= reach] if reach > 0 else all_ends
    low, high = min([*points, *inside]), max([*points, *inside])
    room = 0.06 * (high - low) or 1.0
    return low - room, high + room


def _draw_support(ax: Any, support: Any) -> None:
    """Where in the state space a policy does what the log hardly holds."""
    if support is None or not len(support[1]):
        ax.set_axis_off()
        return
    name, places, missing, labels = support
    names = [f"observation {j}" for j in range(places.shape[1])] if labels is None else list(map(printable, labels))
    ax.set_title(f"Where support for {printable(name)} is missing")
    if missing.max() < NOTHING:
        ax.text(0.5, 0.5, "nowhere", ha="center", va="center", transform=ax.transAxes, color=GREY)
        ax.set(xticks=[], yticks=[])
        ax.grid(visible=False)
        return
    telling = _telling(places, missing)
    if len(telling) == 1:
        _draw_line(ax, places[:, telling[0]], missing, names[telling[0]])
    else:
        _draw_map(ax, places[:, telling], missing, [names[j] for j in telling])


def _edges(column: FloatArray) -> FloatArray:
    """The edges of bins: one for each value, where there are few."""
    values = np.unique(column)
    if len(values) <= BINS:
        middle = (values[1:] + values[:-1]) / 2
        half = np.diff(values).min() / 2 if len(values) > 1 else 0.5
        return np.concatenate([[values[0] - half], middle, [values[-1] + half]])
    return np.linspace(values[0], values[-1], BINS + 1)


def _telling(places: FloatArray, missing: FloatArray) -> list[int]:
    """The one or two numbers of an observation that tell most about where support is missing."""
    gains = []
    for column in places.T:
        if column.min() == column.max():
            gains.append(-1.0)
            continue
        bins = np.clip(np.digitize(column, _edges(column)) - 1, 0, None)
        counts, sums = np.bincount(bins), np.bincount(bins, weights=missing)
        means = sums / np.maximum(counts, 1)
        gains.append(float(counts @ (means - missing.mean()) ** 2))
    order = np.argsort(-np.array(gains), kind="stable")[:2]
    return sorted(int(j) for j in order if gains[j] >= 0) or [0]


def _draw_line(ax: Any, column: FloatArray, missing: FloatArray, name: str) -> None:
    edges = _edges(column)
    count, _ = np.histogram(column, edges)
    total, _ = np.histogram(column, edges, weights=missing)
    share = np.where(count > 0, total / np.maximum(count, 1), 0.0)
    ax.bar(
        edges[:-1], share, np.diff(edges), align="edge", color=VERMILION, alpha=0.75, edgecolor="white", linewidth=0.6
    )
    ax.set(ylim=(0, 1), xlabel=name, ylabel="share of what it does that the log hardly holds")


def _draw_map(ax: Any, places: FloatArray, missing: FloatArray, names: Sequence[str]) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    edges = [_edges(column) for column in places.T]
    count, _ = np.histogramdd(places, edges)
    total, _ = np.histogramdd(places, edges, weights=missing)
    enough = count >= min(LEAST_PLACES, count.max())
    share = np.where(enough, total / np.maximum(count, 1), np.nan)
    colours = LinearSegmentedColormap.from_list("missing", ["#e6edf3", VERMILION]).with_extremes(bad=(0, 0, 0, 0))
    drawn = ax.pcolormesh(*edges, share.T, cmap=colours, vmin=0, vmax=1, rasterized=True)
    bar = ax.figure.colorbar(drawn, ax=ax, fraction=0.05, pad=0.02)
    bar.set_label("share of what it does that the log hardly holds", fontsize=9)
    bar.ax.tick_params(labelsize=8)
    bar.outline.set_visible(False)
    ax.grid(visible=False)
    ax.set(xlabel=names[0], ylabel=names[1])
