"""Arrow tables as rows: data frames of pandas and polars, and the batches of Parquet files, all come this way."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gqlab.data.columns import Plan
from gqlab.data.rows import Place, Rows, checked
from gqlab.support import checks

#: Extension types that hold numbers as they are; what others store, such as the months since 1970 of a period, is code.
TENSORS = ("arrow.fixed_shape_tensor",)


def needed(name: str, what: str) -> Any:
    """An optional package, or one line on how to get it."""
    try:
        return import_module(name)
    except ImportError:
        package = name.partition(".")[0]
        extra = package if package == "minari" else "'gqlab[learn]'"
        raise ImportError(f"{what} needs {package}: pip install {extra}") from None


def names_of(df: Any) -> list[str]:
    """The names of a data frame's columns: pandas, polars or Arrow."""
    if hasattr(df, "collect_schema") and not hasattr(df, "to_arrow"):
        raise ValueError("df is a LazyFrame, expected a DataFrame: df.collect() makes one")
    names = getattr(df, "column_names", None) if hasattr(df, "schema") else None
    if names is None and hasattr(df, "columns") and (hasattr(df, "to_arrow") or hasattr(df, "iloc")):
        names = df.columns
    try:
        return [str(name) for name in names]  # type: ignore[union-attr]
    except TypeError:
        raise ValueError(
            f"df is {checks.shown(df)}, expected a data frame of pandas or polars, or an Arrow table"
        ) from None


def table_of(df: Any, names: list[str]) -> Any:
    """The columns ``names`` of a data frame as an Arrow table."""
    pa = needed("pyarrow", "reading a data frame")
    if isinstance(df, pa.Table):
        return df.select(names)
    if isinstance(df, pa.RecordBatch):
        return pa.Table.from_batches([df]).select(names)
    try:
        if hasattr(df, "to_arrow"):
            return df.select(names).to_arrow()
        chosen = df.loc[:, [name for name in df.columns if str(name) in names]]
        return pa.Table.from_pandas(chosen, preserve_index=False)
    except Exception as error:  # pyarrow's, of rows that do not fit together
        raise ValueError(f"df: {' '.join(str(error).split())[:300]}") from None


def rows_of(table: Any, plan: Plan, place: Place, n_actions: int | None = None) -> Rows:
    """The rows of a table or a batch; only the roles of ``plan`` are read."""
    return checked({role: _values(table, role, names, place) for role, names in plan.items()}, place, n_actions)


def _values(table: Any, role: str, names: tuple[str, ...], place: Place) -> NDArray[Any]:
    """One role as an array: (n,), or (n, dim) for lists and for several columns."""
    parts = []
    for component, name in enumerate(names):
        column = table.column(name)
        column = column.combine_chunks() if hasattr(column, "combine_chunks") else column
        _no_null(column, place, role, component)
        parts.append(_plain(column, place, role))
    if len(parts) == 1:
        return parts[0]
    for name, part in zip(names, parts, strict=True):
        if part.ndim != 1 or part.dtype.kind not in "biuf":
            kind = f"lists of {part.shape[1]}" if part.ndim > 1 else part.dtype
            raise ValueError(f"{place.source}: column {name!r} holds {kind}, expected one number in each row")
    out = np.empty((len(parts[0]), len(parts)), np.result_type(*parts))
    for component, part in enumerate(parts):
        out[:, component] = part
    return out


def _no_null(column: Any, place: Place, role: str, component: int) -> None:
    if column.null_count:
        row = int(np.flatnonzero(np.asarray(column.is_null()))[0])
        several = component if len(place.names[role]) > 1 else None
        raise ValueError(f"{place.text(role, row, several)} is null, expected a value")


def _plain(column: Any, place: Place, role: str) -> NDArray[Any]:
    """An Arrow array without nulls as (n,), or as (n, dim) where it holds lists of one length."""
    pa = needed("pyarrow", "reading a table")
    n, kind = len(column), column.type
    if isinstance(kind, pa.ExtensionType):
        if role != "episode" and getattr(kind, "extension_name", "") not in TENSORS:
            raise ValueError(f"{place.column(role)} holds {checks.shown(str(kind))}, expected numbers")
        column, kind = column.storage, column.storage.type
    if pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        _one_length(column, place, role)
        inner = column.flatten()
        if inner.null_count:
            at = int(np.flatnonzero(np.asarray(inner.is_null()))[0])
            width = max(len(inner) // max(n, 1), 1)
            raise ValueError(f"{place.text(role, at // width, at % width)} is null, expected a number")
        values = _plain(inner, place, role)
        return values.reshape(n, -1) if n else np.empty((0, 0))
    if pa.types.is_dictionary(kind):
        return _plain(column.dictionary_decode(), place, role)
    if role != "episode" and not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        raise ValueError(f"{place.column(role)} holds {str(kind)[:60]}, expected numbers")
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _one_length(column: Any, place: Place, role: str) -> None:
    """Lists of different lengths are no observations."""
    pa = needed("pyarrow", "reading a table")
    if pa.types.is_fixed_size_list(column.type):
        return
    lengths = np.diff(np.asarray(column.offsets))
    bad = np.flatnonzero(lengths != lengths[:1])
    if len(bad):
        raise ValueError(f"{place.text(role, int(bad[0]))} has length {lengths[bad[0]]}, expected {lengths[0]}")


def table_from(arrays: Mapping[str, NDArray[Any]]) -> Any:
    """Arrays as an Arrow table; (n, dim) becomes a column of lists."""
    pa = needed("pyarrow", "writing Parquet")
    columns = {}
    for name, value in arrays.items():
        flat = pa.array(np.ascontiguousarray(value).reshape(-1))
        columns[name] = flat if value.ndim == 1 else pa.FixedSizeListArray.from_arrays(flat, value.shape[1])
    return pa.table(columns)
