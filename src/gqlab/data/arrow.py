"""Arrow tables as rows: data frames of pandas and polars, and the batches of Parquet files, all come this way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gqlab.data.columns import ColumnPlan
from gqlab.data.rows import RowPlace, Rows, checked
from gqlab.data.schema import Column, Schema, listed
from gqlab.support import checks

#: Extension types that hold numbers as they are; what others store, such as the months since 1970 of a period, is code.
TENSORS = ("arrow.fixed_shape_tensor",)


#: What a row without an action (RLDS's last) need not have.
VOID = ("action", "reward", "probability")


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


# --- Kinds of columns -----------------------------------------------------------------------------------------------


def kind_of(kind: Any) -> str | None:
    """What a column of this Arrow type becomes in an observation; None for what cannot be one."""
    pa = needed("pyarrow", "reading a table")
    types = pa.types
    if types.is_dictionary(kind):
        return kind_of(kind.value_type)
    if types.is_fixed_size_list(kind) or types.is_list(kind) or types.is_large_list(kind):
        return "number" if kind_of(kind.value_type) in ("number", "boolean") else None
    if isinstance(kind, pa.ExtensionType):
        return "number" if kind.extension_name in TENSORS else None
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_null(kind):
        return "number"
    if types.is_boolean(kind):
        return "boolean"
    if types.is_temporal(kind) and not types.is_interval(kind):
        return "date"
    return "category" if is_text(kind) else None


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is text, or text in a dictionary."""
    types = needed("pyarrow", "reading a table").types
    if types.is_dictionary(kind):
        return is_text(kind.value_type)
    views = getattr(types, "is_string_view", None)  # newer than the oldest pyarrow
    return bool(types.is_string(kind) or types.is_large_string(kind) or (views is not None and views(kind)))


# --- Rows -----------------------------------------------------------------------------------------------------------


def rows_of(
    table: Any, plan: ColumnPlan, place: RowPlace, n_actions: int | None = None, schema: Schema | None = None
) -> Rows:
    """The rows of a table or a batch; only the roles of ``plan`` are read, as ``schema`` says."""
    schema = Schema() if schema is None else schema
    if "last" in plan and "next_observation" not in plan:
        table = _without_void(table, plan, schema)
    values = {role: _values(table, role, names, place, schema) for role, names in plan.items()}
    return checked(values, widened(place, schema), n_actions)


def _without_void(table: Any, plan: ColumnPlan, schema: Schema) -> Any:
    """The table with a placeholder in rows without an action: it is never used."""
    pa = needed("pyarrow", "reading a table")
    pc = needed("pyarrow.compute", "reading a table")
    last = pa.array(flag_of(table, plan["last"][0]))
    for role in VOID:
        if role in plan:
            column = column_of(table, plan[role][0])
            anything = schema.action_labels[0] if role == "action" and schema.action_labels else 1
            if column.null_count or role == "action":
                made = pc.if_else(last, pa.scalar(anything).cast(column.type), column)
                table = table.set_column(table.schema.get_field_index(plan[role][0]), plan[role][0], made)
    return table


def flag_of(table: Any, name: str) -> NDArray[np.bool_]:
    """Where a flag is set; a null is not, and what is no flag is found later."""
    pa = needed("pyarrow", "reading a table")
    column = column_of(table, name)
    if not (pa.types.is_boolean(column.type) or pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        return np.zeros(len(column), bool)
    values = column.fill_null(pa.scalar(0).cast(column.type)).to_numpy(zero_copy_only=False)
    return np.asarray(values != 0, bool)


def widened(place: RowPlace, schema: Schema) -> RowPlace:
    """A place that names the column of each number, where a column became several."""
    if not any(column.kind == "category" for column in schema.columns):
        return place
    names = dict(place.names)
    for role in ("observation", "next_observation"):
        if role in names:
            pairs = zip(names[role], schema.columns, strict=True)
            names[role] = tuple(name for name, column in pairs for _ in range(max(len(column.labels), 1)))
    return replace(place, names=names)


def column_of(table: Any, name: str) -> Any:
    """A column as one array, decoded where it is a dictionary."""
    pa = needed("pyarrow", "reading a table")
    column = table.column(name)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if isinstance(column, pa.ChunkedArray):  # of an old version, or too much text for one
        column = pa.concat_arrays(column.chunks)
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _values(table: Any, role: str, names: tuple[str, ...], place: RowPlace, schema: Schema) -> NDArray[Any]:
    """One role as an array: (n,), or (n, dim) for lists and for several columns."""
    columns = schema.columns if role in ("observation", "next_observation") else ()
    parts = []
    for component, name in enumerate(names):
        column = column_of(table, name)
        _no_null(column, place, role, component)
        if role == "action" and schema.action_labels is not None:
            parts.append(_labelled(column, schema.action_labels, place, name))
        elif columns:
            parts.append(_part(column, columns[component], place, role, name))
        else:
            parts.append(_plain(column, place, role, name))
    if len(parts) == 1:
        return parts[0]
    for component, (name, part) in enumerate(zip(names, parts, strict=True)):
        several = part.ndim != 1 and not (columns and columns[component].kind == "category")
        if several or part.dtype.kind not in "biuf":
            kind = f"lists of {part.shape[1]}" if part.ndim > 1 else part.dtype
            raise ValueError(f"{place.source}: column {name!r} holds {kind}, expected one number in each row")
    out = np.empty((len(parts[0]), sum(1 if p.ndim == 1 else p.shape[1] for p in parts)), np.result_type(*parts))
    first = 0
    for part in parts:
        width = 1 if part.ndim == 1 else part.shape[1]
        out[:, first : first + width] = part.reshape(len(part), width)
        first += width
    return out


def _part(column: Any, about: Column, place: RowPlace, role: str, name: str) -> NDArray[Any]:
    """A column of an observation as numbers."""
    found = kind_of(column.type)
    if found != about.kind and not {found, about.kind} <= {"number", "boolean"}:
        raise ValueError(
            f"{place.source}: column {name!r} holds {checks.shown(str(column.type))}, expected {WORDS[about.kind]}"
        )
    if about.kind == "category":
        codes = codes_of(column, about.labels, place, name)
        return np.asarray(codes[:, None] == np.arange(len(about.labels)), np.uint8)
    if about.kind == "date":
        return times_of(column).astype("timedelta64[us]").astype(np.float64) / 86_400e6
    return _plain(column, place, role, name)


#: What a kind of column is called.
WORDS = {"number": "numbers", "boolean": "true and false", "date": "dates", "category": "text"}


def codes_of(column: Any, labels: Sequence[Any], place: RowPlace, name: str) -> NDArray[np.int64]:
    """Text as the numbers of its labels."""
    pa = needed("pyarrow", "reading a table")
    pc = needed("pyarrow.compute", "reading a table")
    text = column.cast(pa.large_string())
    codes = pc.index_in(text, value_set=pa.array(labels, pa.large_string()))
    if codes.null_count:
        row = int(np.flatnonzero(np.asarray(codes.is_null()))[0])
        raise ValueError(
            f"{place.source}: column {name!r}, row {place.row(row)} is {checks.shown(text[row].as_py())}, "
            f"expected one of {listed(labels)}"
        )
    return np.asarray(codes).astype(np.int64)


def _labelled(column: Any, labels: tuple[Any, ...], place: RowPlace, name: str) -> NDArray[np.int64]:
    """Actions as the numbers of their labels."""
    if isinstance(labels[0], str):
        if not is_text(column.type):
            raise ValueError(f"{place.source}: column {name!r} holds {column.type}, expected text: {listed(labels)}")
        return codes_of(column, labels, place, name)
    return numbers_of(_plain(column, place, "action", name), labels, place)


def numbers_of(values: NDArray[Any], labels: Sequence[Any], place: RowPlace) -> NDArray[np.int64]:
    """Actions that are numbers, as the numbers of their labels."""
    known = np.asarray(labels, np.float64)
    order = np.argsort(known)
    at = order[np.minimum(np.searchsorted(known[order], values), len(known) - 1)]
    bad = np.flatnonzero(known[at] != values)
    if len(bad):
        raise ValueError(f"{place.text('action', int(bad[0]))} is {values[bad[0]]}, expected one of {listed(labels)}")
    return np.asarray(at, np.int64)


def times_of(column: Any) -> NDArray[Any]:
    """Dates and times as times since 1970-01-01; times of day and lengths as lengths; in microseconds."""
    pa = needed("pyarrow", "reading a table")
    if pa.types.is_time(column.type):
        column = column.cast(pa.time64("us")).cast(pa.int64()).cast(pa.duration("us"))
    values = np.asarray(column.to_numpy(zero_copy_only=False))
    unit = f"{values.dtype.kind}8[us]"
    return values.astype(unit) - np.zeros((), unit)  # both kinds become lengths


def _no_null(column: Any, place: RowPlace, role: str, component: int) -> None:
    if column.null_count:
        row = int(np.flatnonzero(np.asarray(column.is_null()))[0])
        several = component if len(place.names[role]) > 1 else None
        raise ValueError(f"{place.text(role, row, several)} is null, expected a value")


def _plain(column: Any, place: RowPlace, role: str, name: str) -> NDArray[Any]:
    """An Arrow array without nulls as (n,), or as (n, dim) where it holds lists of one length."""
    pa = needed("pyarrow", "reading a table")
    n, kind = len(column), column.type
    if isinstance(kind, pa.ExtensionType):
        if role != "episode" and kind.extension_name not in TENSORS:
            raise ValueError(f"{place.source}: column {name!r} holds {checks.shown(str(kind))}, expected numbers")
        column, kind = column.storage, column.storage.type
    if pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        _one_length(column, place, role)
        inner = column.flatten()
        if inner.null_count:
            at = int(np.flatnonzero(np.asarray(inner.is_null()))[0])
            width = max(len(inner) // max(n, 1), 1)
            raise ValueError(f"{place.text(role, at // width, at % width)} is null, expected a number")
        values = _plain(inner, place, role, name)
        return values.reshape(n, -1) if n else np.empty((0, 0))
    if pa.types.is_decimal(kind):
        column, kind = column.cast(pa.float64()), pa.float64()
    if role == "time" and kind_of(kind) == "date":
        return times_of(column)
    if role != "episode" and not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        more = " or dates such as 2024-02-29" if role == "time" else ""
        raise ValueError(f"{place.source}: column {name!r} holds {str(kind)[:60]}, expected numbers{more}")
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _one_length(column: Any, place: RowPlace, role: str) -> None:
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
