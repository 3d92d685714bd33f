"""Values that are missing: counted in all columns before one is complained about, and left out where a user says so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gqlab.data.arrow import VOID, column_of, flag_of, needed
from gqlab.data.columns import ColumnPlan
from gqlab.data.rows import RowPlace
from gqlab.data.wording import option

#: Columns that a message lists.
LISTED = 12

#: What says that an episode ended.
ENDS = ("terminated", "truncated", "done", "last")


def missing(table: Any, name: str, plan: ColumnPlan, nan: bool) -> NDArray[np.bool_]:
    """The rows in which a column is null, or has a null in its list; with ``nan`` also those that are not a number."""
    out = _is_null(column_of(table, name), nan)
    if "last" in plan and "next_observation" not in plan and any(plan.get(role) == (name,) for role in VOID):
        out &= ~flag_of(table, plan["last"][0])
    return out


def _is_null(column: Any, nan: bool) -> NDArray[np.bool_]:
    pa = needed("pyarrow", "reading a table")
    out = np.array(column.is_null(nan_is_null=nan), bool)
    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        pc = needed("pyarrow.compute", "reading a table")
        inner = _is_null(pc.list_flatten(column), nan)
        out[np.asarray(pc.list_parent_indices(column))[inner]] = True
    return out


@dataclass
class Counted:
    """How many nulls each column has, and where the first is."""

    counts: dict[str, int] = field(default_factory=dict)
    first: dict[str, str] = field(default_factory=dict)
    source: str = ""

    def add(self, name: str, n: int, place: RowPlace, row: int) -> None:
        """So many nulls of a column, the first of them in a row of the place."""
        if n:
            self.counts[name] = self.counts.get(name, 0) + n
            other = f"of {place.source}, " if self.source and place.source != self.source else ""
            self.first.setdefault(name, f"{other}row {place.row(row)}")
        self.source = self.source or place.source

    def refusal(self) -> str:
        """The message of all nulls at once."""
        names = list(self.counts)
        each = [f"{self.counts[name]:,} in column {name!r} (first: {self.first[name]})" for name in names[:LISTED]]
        more = [f"{len(names) - LISTED:,} more columns"] if len(names) > LISTED else []
        rows, episodes = option("drop_nulls", "'rows'"), option("drop_nulls", "'episodes'")
        return f"{self.source}: nulls: {', '.join(each + more)}; fill them, or leave them out: {rows} or {episodes}"


def count(tables: Iterable[tuple[Any, RowPlace]], names: Sequence[str], plan: ColumnPlan, nan: bool) -> Counted:
    """The nulls of these columns, in one pass."""
    counted = Counted()
    for table, place in tables:
        for name in names:
            found = np.flatnonzero(missing(table, name, plan, nan))
            counted.add(name, len(found), place, int(found[0]) if len(found) else 0)
    counted.counts = {name: counted.counts[name] for name in names if name in counted.counts}
    return counted


class Drop:
    """Leaves out rows with nulls, or all rows of the episodes that have one."""

    def __init__(self, plan: ColumnPlan, names: Sequence[str], bad: NDArray[np.int64] | None) -> None:
        self.plan, self.names, self.bad = plan, names, bad  # ``bad``: the episodes; None for rows alone
        self.rows = 0  #: left out so far
        self.waiting = False  #: rows have been left out since the last that was kept
        self._episodes = Numbered(plan)

    def __call__(self, table: Any, place: RowPlace) -> tuple[Any, RowPlace, NDArray[np.bool_]]:
        """The rows that stay, where they stood, and which of them do not follow the one before."""
        out = self.missing(table)
        if self.bad is not None:
            out = np.isin(self._episodes.of(table), self.bad)
        kept = np.flatnonzero(~out)
        before = np.diff(kept, prepend=-1) > 1
        if len(kept):
            before[0] |= self.waiting
        self.waiting = bool(out[-1]) if len(kept) else self.waiting or bool(out.any())
        self.rows += int(out.sum())
        if self.bad is not None:  # whole episodes: what is left is whole, too
            before[:] = self.waiting = False
        if not out.any():
            return table, place, before
        return table.take(kept), place.of(kept), before

    def missing(self, table: Any) -> NDArray[np.bool_]:
        """The rows with a null."""
        out = np.zeros(table.num_rows, bool)
        for name in self.names:
            out |= missing(table, name, self.plan, True)
        return out


class Numbered:
    """The number of the episode of each row, whatever is missing in it."""

    def __init__(self, plan: ColumnPlan) -> None:
        self.plan = plan
        self._n = 0
        self._above: tuple[Any, bool] | None = None  # its name, and whether it ended

    def of(self, table: Any) -> NDArray[np.int64]:
        """Of the next rows."""
        ended = np.zeros(table.num_rows, bool)
        for role in ENDS:
            if role in self.plan:
                ended |= flag_of(table, self.plan[role][0])
        begins = np.append(False, ended[:-1]) if len(ended) else ended
        names: Any = None
        if "episode" in self.plan:
            column = column_of(table, self.plan["episode"][0])
            if column.null_count:
                name = self.plan["episode"][0]
                how = option("drop_nulls", "'rows'")
                raise ValueError(f"column {name!r} has nulls: which episodes these rows belong to is unknown; {how}")
            names = column.to_numpy(zero_copy_only=False)
            begins[1:] |= names[1:] != names[:-1]
        if self._above is not None and len(begins):
            begins[0] = self._above[1] or (names is not None and bool(names[0] != self._above[0]))
        numbers = self._n + np.cumsum(begins)
        if len(numbers):
            self._n = int(numbers[-1])
            self._above = (None if names is None else names[-1]), bool(ended[-1])
        return np.asarray(numbers, np.int64)


def bad_episodes(tables: Iterator[tuple[Any, RowPlace]], plan: ColumnPlan, names: Sequence[str]) -> NDArray[np.int64]:
    """The numbers of the episodes with nulls."""
    numbered, seen = Numbered(plan), Drop(plan, names, None)
    found = [numbered.of(table)[seen.missing(table)] for table, _ in tables]
    return np.unique(np.concatenate(found)) if found else np.zeros(0, np.int64)
