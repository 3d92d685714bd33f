"""Arrays with one entry for each row, as rows and as transitions in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gqlab.data.arrow import numbers_of
from gqlab.data.assemble import ARRAYS, Assembler, Chunk, arrays_of
from gqlab.data.order import Order, cut
from gqlab.data.reading import Reading, check_gap
from gqlab.data.rows import RowPlace, Rows, as_array, checked
from gqlab.data.schema import Label, listed
from gqlab.support import checks


def rows_of_arrays(
    given: Mapping[str, tuple[str, Any]], reading: Reading, n_actions: int | None
) -> tuple[Rows, tuple[Label, ...] | None]:
    """Rows of arguments by role, and the labels of their actions, where these have some."""
    place = RowPlace({role: (name,) for role, (name, _) in given.items()})
    for role in ("observation", "action", "reward"):
        if given[role][1] is None:
            raise ValueError(f"{given[role][0]} is None, expected an array")
    labels = reading.labels
    values: dict[str, NDArray[Any]] = {}
    for role, (name, value) in given.items():
        if role == "action":
            values[role], labels = _actions(value, labels, place)
        elif value is not None:
            values[role] = _array(role, name, value)
    if labels is not None and n_actions is not None and n_actions != len(labels):
        raise ValueError(f"n_actions is {n_actions}, and there are {len(labels)} labels of actions: {listed(labels)}")
    times = values.get("time")
    check_gap(reading, None if times is None else "times", times is not None and times.dtype.kind in "Mm")
    rows = checked(values, place, n_actions if labels is None else len(labels))
    return (_sorted(rows) if reading.sort is True else rows), labels


def _array(role: str, name: str, value: Any) -> NDArray[Any]:
    """An argument as an array; episodes may be named by anything."""
    if role not in ("episode", "time"):
        return as_array(name, value)
    out = checks.plain_array(name, value)
    if out.ndim != 1:
        raise ValueError(f"{name} has shape {out.shape}, expected one entry for each row")
    if role == "time" and out.dtype.kind not in "Mm":
        return as_array(name, value)
    return out


def _actions(
    value: Any, labels: tuple[Label, ...] | None, place: RowPlace
) -> tuple[NDArray[Any], tuple[Label, ...] | None]:
    """Actions as numbers, and their labels, where they are text or some are given."""
    out = checks.plain_array("actions", value)
    texts = out.dtype.kind in "UT" or (out.dtype == object and out.size and isinstance(out.reshape(-1)[0], str))
    if not texts:
        numbers = as_array("actions", value)
        if labels is None:
            return numbers, None
        if isinstance(labels[0], str) or numbers.ndim != 1:
            raise ValueError(
                f"actions holds {numbers.dtype} of shape {numbers.shape}, expected one of {listed(labels)}"
            )
        return numbers_of(numbers, labels, place), labels
    if out.ndim != 1:
        raise ValueError(f"actions has shape {out.shape}, expected one label in each row")
    names = list(value) if isinstance(value, list | tuple) else out.tolist()  # an array would make text of numbers
    bad = next((row for row, name in enumerate(names) if not isinstance(name, str)), None)
    if bad is not None:
        raise ValueError(f"actions[{bad}] is {checks.shown(names[bad])}, expected text as in the rows before")
    known = tuple(sorted(set(names))) if labels is None else labels
    code = {label: number for number, label in enumerate(known)}
    bad = next((row for row, name in enumerate(names) if name not in code), None)
    if bad is not None:
        raise ValueError(f"actions[{bad}] is {checks.shown(names[bad])}, expected one of {listed(known)}")
    return np.array([code[name] for name in names], np.int64), known


def _sorted(rows: Rows) -> Rows:
    """By episode and time; rows that agree in them stay in their order."""
    if rows.episodes is None and rows.times is None:
        raise ValueError("sort is True, and there are neither episodes nor times to sort by")
    keys: list[NDArray[Any]] = [] if rows.times is None else [rows.times]
    if rows.episodes is not None:
        try:
            keys.append(np.unique(rows.episodes, return_inverse=True)[1].reshape(-1))
        except TypeError:
            raise ValueError("sort is True, and episodes hold values of several kinds, which have no order") from None
    order = np.lexsort(keys)
    return rows.each(lambda values: values[order], rows.place.of(order))


def chunk_of(rows: Rows, reading: Reading) -> tuple[Chunk, int]:
    """The transitions of rows, and how many of these are left out."""
    if reading.sort is not False:
        Order().add(rows)
    assembler = Assembler()
    [block] = cut([rows], reading) if len(rows) else [rows]
    parts = [part for part in (assembler.add(block), assembler.finish()) if part is not None]
    if not parts:
        name = rows.place.column("observation")
        raise ValueError(f"{name} has {len(rows)} rows, and no transition is left of them, expected at least one")
    return joined(parts), assembler.left_out


def joined(chunks: list[Chunk]) -> Chunk:
    """Chunks joined to one, closed for writing."""
    parts = [arrays_of(chunk) for chunk in chunks]
    whole = {
        name: checks.frozen(np.concatenate([part[name] for part in parts]) if len(parts) > 1 else parts[0][name])
        for name in parts[0]
    }
    return Chunk(**{name: whole.get(name) for name in ARRAYS}, first_row=0)  # type: ignore[arg-type]
