"""A grid as Parquet: a row for every record of every run of every cell, one cell in memory at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from gqlab.algorithms.schedules import Decay
from gqlab.grids.grid_result import GridResult
from gqlab.lab.frames import long_form
from gqlab.lab.results import RunResult
from gqlab.support import checks
from gqlab.support.files import check_writable, write_whole

#: Rows that are collected before they are written.
BLOCK = 2**16


def export_parquet(grid: GridResult, path: str | os.PathLike[str]) -> int:
    """Write the results of a grid to a Parquet file; see :meth:`gqlab.GridResult.to_parquet`."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ValueError(f"Parquet needs pyarrow ({error}); pip install 'gqlab[learn]'") from None
    if not len(grid):
        raise ValueError("the grid has no cells")
    target = Path(checks.path("path", path))
    check_writable(target.parent)
    labels = _plain_labels(grid.labels)
    written = 0

    def write(file: BinaryIO) -> None:
        nonlocal written
        writer: Any = None
        for table in _tables(pa, grid, labels):
            writer = writer or pq.ParquetWriter(file, table.schema)
            writer.write_table(table)
            written += table.num_rows
        writer.close()

    write_whole(target, write)
    return written


def _tables(pa: Any, grid: GridResult, labels: dict[str, NDArray[Any]]) -> Iterator[Any]:
    """The rows of the cells, in tables of about ``BLOCK``."""
    waiting: list[Any] = []
    for k in range(len(grid)):
        waiting.append(_table(pa, k, {name: column[k] for name, column in labels.items()}, grid.results[k]))
        if sum(table.num_rows for table in waiting) >= BLOCK or k == len(grid) - 1:
            yield pa.concat_tables(waiting)
            waiting = []


def _table(pa: Any, cell: int, labels: dict[str, Any], result: RunResult) -> Any:
    n_runs, n_records, d = result.theta.shape
    rows = n_runs * n_records
    columns: dict[str, Any] = {"cell": np.full(rows, cell)}
    columns |= {name: pa.array(np.full(rows, value)) for name, value in labels.items()}
    columns |= long_form(result, (), iterates=False)
    for name in ("theta", "omega"):
        flat = pa.array(np.ascontiguousarray(getattr(result, name)).reshape(-1))
        columns[name] = pa.ListArray.from_arrays(np.arange(0, d * (rows + 1), d, dtype=np.int32), flat)
    return pa.table(columns)


def _plain_labels(labels: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Labels as columns of numbers and text: a step size that decays becomes three."""
    out: dict[str, NDArray[Any]] = {}
    for name, column in labels.items():
        parts = (
            [asdict(value) if isinstance(value, Decay) else None for value in column] if column.dtype == object else []
        )
        if not any(parts):
            out[name] = column.astype(str) if column.dtype == object else column
            continue
        for part in dict.fromkeys(key for values in parts if values for key in values):
            numbers = [
                values[part] if values else value if part == "eta" else np.nan
                for value, values in zip(column, parts, strict=True)
            ]
            out[name if part == "eta" else f"{name}_{part}"] = np.array(numbers, dtype=float)
    return out
