"""Curves of metrics over runs: the median, and a band that holds most runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gqlab import checks, metrics
from gqlab.checks import FloatArray
from gqlab.frames import COUNTS
from gqlab.grid_result import GridResult
from gqlab.grid_table import labels_text, varied_labels
from gqlab.metrics import Metric
from gqlab.plots.style import PALETTE, axes_of, label_powers, short, styled
from gqlab.problem import Problem
from gqlab.results import RunResult

#: J and ‖∇J‖² are drawn on an axis of powers; so is another positive metric, or a parameter, that spans more than this.
SPAN = 5.0

#: What the x-axis says.
TITLES = {"samples": "samples", "updates": "updates", "gradient_evaluations": "gradient evaluations"}

#: Lines that can be told apart: eight colours, each whole and dashed.
DASHES = "-", (0, (4, 1.5))
MOST_LINES = len(PALETTE) * len(DASHES)


class Line(NamedTuple):
    """What is drawn for one name."""

    label: str | None
    x: NDArray[Any]  # (n,)
    values: FloatArray  # (n_runs, n)


#: Low end, median and high end over the runs, (n,) each.
Band = tuple[FloatArray, FloatArray, FloatArray]


def result_plot(
    result: RunResult, problem: Problem | None, metric: Any, *, x: str, band: float, label: str | None, ax: Any
) -> Any:
    """The curve of one result."""
    if label is not None:
        checks.instance("label", label, str, "a name")
    return _compare({label: result}, problem, metric, x, band, ax)


def compare_plot(
    results: Mapping[str, RunResult],
    problem: Problem | None = None,
    metric: Metric | None = None,
    *,
    x: str = "samples",
    band: float = 0.8,
    ax: Any = None,
) -> Any:
    """The curves of several results in one picture, with their names; the axes are returned.

    Parameters
    ----------
    results : mapping of str to RunResult
        By the names in the legend.
    problem, metric, x, band, ax
        As in :meth:`RunResult.plot`.

    Examples
    --------
    >>> import gqlab as gq
    >>> mdp = gq.garnet(seed=0)
    >>> problem = gq.Problem(mdp, gq.random_features(mdp, dim=4))
    >>> algorithms = {"Greedy-GQ": gq.GreedyGQ(), "VR-Greedy-GQ": gq.VRGreedyGQ(batch_size=100)}
    >>> results = {name: gq.run(problem, a, n_samples=1000, n_runs=5) for name, a in algorithms.items()}
    >>> ax = gq.compare_plot(results, problem, metric="mspbe")
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['Greedy-GQ', 'VR-Greedy-GQ']
    """
    if not isinstance(results, Mapping) or not results:
        raise ValueError(f"results is {checks.shown(results)}, expected a dictionary of results by their names")
    for name, result in results.items():
        checks.instance("results", name, str, "names as its keys")
        checks.instance(f"results[{name!r}]", result, RunResult, "a RunResult")
    return _compare(results, problem, metric, x, band, ax)


def _compare(
    results: Mapping[Any, RunResult], problem: Problem | None, metric: Any, x: str, band: float, ax: Any
) -> Any:
    for name, result in results.items():
        if problem is not None:
            metrics.check_problem(problem, result, "problem" if name is None else f"problem (for {name!r})")
    first = next(iter(results.values()))
    chosen = metrics.check_metric(metric, problem, list(first.watched))
    checks.one_of("x", x, COUNTS)
    lines = [Line(name, *_curve(r, chosen, problem, x)) for name, r in results.items()]
    with styled():
        return draw(lines, TITLES[x], chosen, problem, band, ax)


def _curve(result: RunResult, metric: Metric, problem: Problem | None, x: str) -> tuple[NDArray[Any], FloatArray]:
    """Where a curve has points, (n,), and what the runs are there, (n_runs, n).

    Of records with the same number of samples, those of an inner loop, the last counts.
    """
    found, at = metrics.values(result, metric, problem), getattr(result, x)
    if found.ndim != 2:
        raise ValueError(f"metric gives shape {found.shape}, expected one number for each record of each run")
    last = np.append(np.diff(at) > 0, True)
    return at[last], found[:, last]


def grid_plot(
    grid: GridResult,
    problems: Sequence[Problem] | None,
    metric: Metric,
    *,
    x: str,
    by: list[str] | None,
    band: float,
    ax: Any,
) -> Any:
    """Curves of a grid, or its last records against a label."""
    if not len(grid):
        raise ValueError("the grid has no cells")
    numeric = [name for name, column in grid.labels.items() if column.dtype.kind in "iuf"]
    checks.one_of("x", x, [*COUNTS, *numeric])
    if by is None:
        by = [name for name in varied_labels(grid) if name not in ("seed", "score", x)]
    groups: dict[tuple[str, ...], list[int]] = {}
    for k in range(len(grid)):
        groups.setdefault(tuple(str(grid.labels[name][k]) for name in by), []).append(k)
    if len(groups) > MOST_LINES:
        raise ValueError(
            f"by: that makes {len(groups)} lines, expected at most {MOST_LINES}; name fewer, or select cells"
        )
    line = _side_by_side if x in COUNTS else _sensitivity
    lines = [line(grid, cells, problems, metric, x, _name(grid, cells[0], by)) for cells in groups.values()]
    with styled():
        problem = None if problems is None else problems[0]
        return draw(lines, TITLES.get(x, x), metric, problem, band, ax, points=x not in COUNTS)


def _name(grid: GridResult, k: int, by: Sequence[str]) -> str | None:
    """What a line is called: the algorithm's name, and the labels that it has."""
    label = {name: grid.labels[name][k] for name in by}
    words = [str(label.pop("algorithm"))] if "algorithm" in label else []
    own = {name: value for name, value in label.items() if str(value) != "nan"}
    return ", ".join([*words, *([labels_text(own)] if own else [])]) or None


def _problem(grid: GridResult, problems: Sequence[Problem] | None, k: int) -> Problem | None:
    return None if problems is None else problems[int(grid.labels["problem"][k])]


def _side_by_side(
    grid: GridResult, cells: list[int], problems: Sequence[Problem] | None, metric: Metric, x: str, name: str | None
) -> Line:
    """The runs of several cells, side by side; their records must be the same."""
    places: list[NDArray[Any]] = []
    runs: list[FloatArray] = []
    for k in cells:
        at, found = _curve(grid.results[k], metric, _problem(grid, problems, k), x)
        if places and not np.array_equal(at, places[0]):
            raise ValueError(f"by: cells of the line {name!r} were recorded at different {x}; name what they differ in")
        places.append(at)
        runs.append(found)
    return Line(name, places[0], np.concatenate(runs))


def _sensitivity(
    grid: GridResult, cells: list[int], problems: Sequence[Problem] | None, metric: Metric, x: str, name: str | None
) -> Line:
    """The runs of several cells at their ends, by the value of a label."""
    found: dict[float, list[FloatArray]] = {}
    for k in cells:
        value = float(grid.labels[x][k])
        if not np.isnan(value):
            found.setdefault(value, []).append(metrics.final(grid.results[k], metric, _problem(grid, problems, k)))
    order = sorted(found)
    columns = [np.concatenate(found[value]) for value in order]
    runs = np.full((max(map(len, columns), default=0), len(order)), np.nan)
    for j, column in enumerate(columns):
        runs[: len(column), j] = column
    return Line(name, np.array(order), runs)


# --- Drawing --------------------------------------------------------------------------------------------------------


def quantiles(values: FloatArray, band: float) -> Band:
    """Low end, median and high end over the runs, (n,) each; infinite ones count, NaN ones do not."""
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
    x_title: str,
    metric: Metric,
    problem: Problem | None,
    band: float,
    ax: Any,
    points: bool = False,
) -> Any:
    """The lines with their bands; where the median is infinite a cross stands at the upper edge."""
    share = checks.number("band", band, least=0, below=1)
    axes = axes_of(ax)
    start = len(axes.lines)  # a second call on the same axes goes on with the colours
    over = [(line, quantiles(line.values, share)) for line in lines]
    _set_scales(axes, over, points, metrics.is_falling(metric))
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
    axes.set(xlabel=x_title, ylabel=metrics.title(metric, problem))
    if any(line.label for line in lines):
        axes.legend()
    return axes


def _draw_bands(axes: Any, over: Sequence[tuple[Line, Band]], colours: Sequence[str]) -> None:
    """First what is finite, which the axes grow to; then, up to their edge, what is not."""
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


def _set_scales(axes: Any, over: Sequence[tuple[Line, Band]], points: bool, falling: bool) -> None:
    """Powers where the metric falls by them or the values span many, and plain numbers where not."""
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
    """Crosses near the upper edge: every lost point, or of a curve the first."""
    shown = lost if points else lost[:1]
    if len(shown):
        top = axes.get_xaxis_transform()  # x in the data, y from 0 to 1
        axes.plot(
            shown, np.full(len(shown), height), "x", color=colour, transform=top, clip_on=False, markeredgewidth=2
        )
