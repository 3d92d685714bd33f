"""Results as tables: pandas' long form, and xarray's arrays with named axes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gqlab.lab import metrics
from gqlab.measure.watch import Watched
from gqlab.support import checks

if TYPE_CHECKING:
    from gqlab.lab.results import RunResult

#: The counts of a record.
COUNTS = ("samples", "updates", "gradient_evaluations")

#: The padding of shorter cells.
PADDING = {"f": np.nan, "i": -1, "b": False}


def needed(package: str) -> Any:
    """A package that gqlab does not depend on."""
    try:
        return import_module(package)
    except ImportError:
        raise ImportError(f"{package} is missing; pip install 'gqlab[frames]'") from None


def chosen_metrics(result: RunResult, names: Any) -> list[str]:
    """Which exact quantities become columns."""
    several = (
        [names]
        if isinstance(names, str)
        else []
        if isinstance(names, tuple) and not names
        else checks.several("metrics", names)
    )
    chosen = [checks.one_of("metrics", name, metrics.EXACT) for name in several]
    if chosen:
        result.known_problem(f"metrics is {checks.shown(names)}, which")
    return chosen


def columns(result: RunResult, names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """The columns of every record of every run besides its iterates, (n_runs, n_records) each."""
    exact = {name: metrics.values(result, name) for name in names}
    watched = {
        f"{name}_{statistic}": getattr(seen, statistic)
        for name, seen in result.watched.items()
        for statistic in Watched._fields
    }
    return {**exact, **watched}


def long_form(result: RunResult, names: Sequence[str], iterates: bool) -> dict[str, NDArray[Any]]:
    """One entry for each record of each run, run by run."""
    n_runs, n_records, d = result.theta.shape
    checks.memory("iterates", iterates, n_runs * n_records * (2 * d * iterates + 8))
    out: dict[str, NDArray[Any]] = {"run": np.repeat(np.arange(n_runs), n_records)}
    out |= {name: np.tile(getattr(result, name), n_runs) for name in COUNTS}
    out["diverged"] = (result.diverged[:, None] & (result.updates > result.diverged_at[:, None])).ravel()
    out |= {name: values.ravel() for name, values in columns(result, names).items()}
    for name in ("theta", "omega") if iterates else ():
        array = getattr(result, name)
        out |= {f"{name}_{i}": array[:, :, i].ravel() for i in range(d)}
    return out


def dataframe(result: RunResult, names: Any, iterates: bool) -> Any:
    """A ``pandas.DataFrame``, one row for each record of each run."""
    pandas = needed("pandas")
    return pandas.DataFrame(long_form(result, chosen_metrics(result, names), flag("iterates", iterates)))


def dataset(result: RunResult, names: Any) -> Any:
    """An ``xarray.Dataset`` with the axes ``run``, ``record`` and ``feature``."""
    xarray = needed("xarray")
    chosen = chosen_metrics(result, names)
    return xarray.Dataset(
        {
            "theta": (("run", "record", "feature"), result.theta),
            "omega": (("run", "record", "feature"), result.omega),
            **{name: (("run", "record"), array) for name, array in columns(result, chosen).items()},
            "output": (("run", "feature"), result.output),
            "diverged": ("run", result.diverged),
        },
        coords={name: ("record", getattr(result, name)) for name in COUNTS},
        attrs={name: value if isinstance(value, str) else json.dumps(value) for name, value in result.metadata.items()},
    )


# --- Grids ----------------------------------------------------------------------------------------------------------


def grid_dataframe(grid: Any, names: Any, iterates: bool) -> Any:
    """One row for each record of each run of each cell, with the cell's labels."""
    pandas = needed("pandas")
    parts: list[Any] = []
    for k, (label, result) in enumerate(grid):
        long = long_form(result, chosen_metrics(result, names), flag("iterates", iterates))
        checks.memory("iterates", iterates, len(grid) * len(long) * len(long["run"]))
        shown = {name: _plain(value) for name, value in label.items()}
        parts.append(pandas.DataFrame({"cell": k, **shown, **long}, index=range(len(long["run"]))))
    return pandas.concat(parts, ignore_index=True) if parts else pandas.DataFrame()


def grid_dataset(grid: Any, names: Any) -> Any:
    """The cells' datasets along ``cell``; cells with fewer records are padded with NaN, −1 or False."""
    xarray = needed("xarray")
    parts: list[dict[str, tuple[tuple[str, ...], NDArray[Any]]]] = []
    for _, result in grid:
        one = dataset(result, names)
        checks.memory("grid", f"of {len(grid):,} cells", len(grid) * one.nbytes, 1)
        parts.append({str(name): (tuple(map(str, one[name].dims)), one[name].values) for name in one.variables})
    if not parts:
        raise ValueError("the grid has no cells")
    labels = {
        name: ("cell", column if column.dtype.kind != "O" else np.array([str(v) for v in column]))
        for name, column in grid.labels.items()
    }
    together = {
        name: (("cell", *dims), _stack([part[name][1] for part in parts])) for name, (dims, _) in parts[0].items()
    }
    counts = {name: together.pop(name) for name in COUNTS}
    return xarray.Dataset(together, coords={**labels, **counts})


def _stack(arrays: list[NDArray[Any]]) -> NDArray[Any]:
    shape = tuple(max(sizes) for sizes in zip(*(array.shape for array in arrays), strict=True))
    out = np.full((len(arrays), *shape), PADDING[arrays[0].dtype.kind], dtype=arrays[0].dtype)
    for row, array in zip(out, arrays, strict=True):
        row[tuple(slice(n) for n in array.shape)] = array
    return out


def _plain(value: Any) -> Any:
    """A label for a table: numbers and text unchanged, schedules as text."""
    return value if isinstance(value, np.generic | int | float | str) else str(value)


def flag(name: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} is {checks.shown(value)}, expected True or False")
    return value
