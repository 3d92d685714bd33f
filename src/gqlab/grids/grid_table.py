"""A grid at a glance: what ``repr`` and notebooks show of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gqlab.support.words import counted

#: The most cells that a table shows: of more, the first and the last ones.
MOST_ROWS = 12


def summary(grid: Any) -> tuple[str, list[str], list[str], list[list[str]]]:
    """A grid in brief: its size, the labels that do not vary, in lines, and a table of those that do."""
    n = len(grid)
    known = {name: values_of(column) for name, column in grid.labels.items()}
    varied = varied_labels(grid)
    fixed = {name: f"{name}={_short(found[0])}" for name, found in known.items() if found and name not in varied}
    partial = {name for name in fixed if any(str(value) == "nan" for value in grid.labels[name])}
    same = [
        f"{words}: {listed}"
        for words, part in (("all", set(fixed) - partial), ("where they have it", partial))
        if (listed := ", ".join(text for name, text in fixed.items() if name in part))
    ]
    lost = diverged_counts(grid.results)
    size = f"GridResult: {n} {'cell' if n == 1 else 'cells'}"
    if lost is not None and n:
        n_runs = sum(len(result.theta) for result in _in_memory(grid.results) or [])
        size += f", {counted(n_runs, 'run')}, {int(lost.sum())} diverged"
    shown = list(range(n)) if n <= MOST_ROWS else [*range(MOST_ROWS // 2), *range(n - MOST_ROWS // 2, n)]
    header = varied
    rows = [[_short(grid.labels[name][k]) for name in varied] for k in shown]
    if lost is not None and lost.any():
        header = [*varied, "diverged"]
        rows = [[*row, str(lost[k])] for row, k in zip(rows, shown, strict=True)]
    if n > MOST_ROWS:
        rows.insert(MOST_ROWS // 2, ["…"] * len(header))
    return size, same, header, rows if header else []


def values_of(column: NDArray[Any]) -> list[Any]:
    """The different values of a label, without the NaN of algorithms that have no such parameter."""
    return list({str(value): value for value in column if str(value) != "nan"}.values())


def varied_labels(grid: Any) -> list[str]:
    """The names of the labels with several values; NaN counts as a value if the same algorithm has others."""
    return [
        name for name, column in grid.labels.items() if len(values_of(column)) > 1 or _is_set_for_some(grid, column)
    ]


def _is_set_for_some(grid: Any, column: NDArray[Any]) -> bool:
    """Whether some cells of an algorithm have a value and others NaN."""
    if column.dtype.kind not in "fO" or "algorithm" not in grid.labels:
        return False
    missing = column != column  # only NaN differs from itself
    algorithms = grid.labels["algorithm"]
    return bool(np.isin(algorithms[missing], algorithms[~missing]).any())


def _in_memory(results: Any) -> Sequence[Any] | None:
    """The results, if looking at all of them loads nothing."""
    source = getattr(results, "source", results)
    return results if isinstance(source, list | tuple) else None


def diverged_counts(results: Any) -> NDArray[np.int64] | None:
    """How many runs of each cell diverged; None where the results would have to be loaded to tell."""
    present = _in_memory(results)
    return None if present is None else np.array([int(result.diverged.sum()) for result in present], dtype=np.int64)


def text_table(grid: Any) -> str:
    """What ``repr`` shows of a grid."""
    size, same, header, rows = summary(grid)
    widths = [max(len(cell) for cell in column) for column in zip(header, *rows, strict=True)]
    lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in [header, *rows]]
    return "\n".join([size, *(f"  {line}" for line in same), *(f"  {line}" for line in lines if line)])


def html_table(grid: Any) -> str:
    """What notebooks show of a grid."""
    size, same, header, rows = summary(grid)
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if header else ""
    constant = "".join(f"<div>{escape(line)}</div>" for line in same)
    return f"<div><strong>{escape(size)}</strong>{constant}{table}</div>"


def _short(value: Any) -> str:
    if str(value) == "nan":
        return "–"
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)


def labels_text(label: Mapping[str, Any]) -> str:
    """Labels in a legend."""
    return ", ".join(f"{name}={_short(value)}" for name, value in label.items())
