"""Curves of a grid: metrics against samples or updates, or against a parameter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gqlab.grids.grid_result import GridResult
from gqlab.grids.grid_table import labels_text, varied_labels
from gqlab.lab import metrics
from gqlab.lab.curves import TITLES, curve
from gqlab.lab.frames import COUNTS
from gqlab.lab.metrics import Metric
from gqlab.plots.curves import MOST_LINES, Line, draw
from gqlab.support import checks
from gqlab.support.checks import FloatArray


def grid_plot(
    grid: GridResult,
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
            f"by: that makes {len(groups)} lines, expected at most {MOST_LINES}; give fewer labels, or select cells"
        )
    line = _side_by_side if x in COUNTS else _sensitivity
    lines = [line(grid, cells, metric, x, _name(grid, cells[0], by)) for cells in groups.values()]
    titles = TITLES.get(x, x), metrics.title(metric, grid.results[0])
    return draw(lines, titles, band, ax, falling=metrics.is_falling(metric), points=x not in COUNTS)


def _name(grid: GridResult, k: int, by: Sequence[str]) -> str | None:
    """The name of a line: the algorithm's name, and its labels."""
    label = {name: grid.labels[name][k] for name in by}
    words = [str(label.pop("algorithm"))] if "algorithm" in label else []
    own = {name: value for name, value in label.items() if str(value) != "nan"}
    return ", ".join([*words, *([labels_text(own)] if own else [])]) or None


def _side_by_side(grid: GridResult, cells: list[int], metric: Metric, x: str, name: str | None) -> Line:
    """The runs of several cells, side by side; their records must be the same."""
    places: list[NDArray[Any]] = []
    runs: list[FloatArray] = []
    for k in cells:
        at, found = curve(grid.results[k], metric, x)
        if places and not np.array_equal(at, places[0]):
            raise ValueError(
                f"by: cells of the line {name!r} were recorded at different {x}; add the labels in which they differ"
            )
        places.append(at)
        runs.append(found)
    return Line(name, places[0], np.concatenate(runs))


def _sensitivity(grid: GridResult, cells: list[int], metric: Metric, x: str, name: str | None) -> Line:
    """The runs of several cells at their ends, by the value of a label."""
    found: dict[float, list[FloatArray]] = {}
    for k in cells:
        value = float(grid.labels[x][k])
        if not np.isnan(value):
            found.setdefault(value, []).append(metrics.final(grid.results[k], metric))
    order = sorted(found)
    columns = [np.concatenate(found[value]) for value in order]
    runs = np.full((max(map(len, columns), default=0), len(order)), np.nan)
    for j, column in enumerate(columns):
        runs[: len(column), j] = column
    return Line(name, np.array(order), runs)
