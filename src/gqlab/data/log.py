"""A log: tables of rows that follow each other, with what their columns mean and how they are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gqlab.data.arrow import rows_of
from gqlab.data.assemble import Assembler, Chunk, NoEndError
from gqlab.data.columns import ColumnPlan
from gqlab.data.nulls import ENDS, Counted, Drop, count
from gqlab.data.order import Order, cut
from gqlab.data.reading import Reading
from gqlab.data.rows import RowPlace, Rows
from gqlab.data.schema import Schema

#: What a scan reads: enough to count the transitions, and quick.
NARROW = ("action", "terminated", "truncated", "done", "last", "episode", "time")


class Scan(NamedTuple):
    """What one look at all rows tells."""

    n_rows: int  #: transitions
    left_out: int  #: rows that were cut off, and whose next observation is unknown
    top: int  #: the largest action
    dropped: int  #: rows left out for their nulls


@dataclass(frozen=True)
class Log:
    """Where rows come from, and how they are read.

    Attributes
    ----------
    plan : dict
        The columns of each role.
    reading : Reading
    n_actions : int or None
        None where the largest action tells.
    schema : Schema
        What the numbers stand for.
    decoding : Schema
        How columns become these numbers; empty where they are numbers already.
    null_columns : tuple of str
        Columns with nulls, whose rows are left out.
    bad : array or None
        The episodes that are left out, by number; None where rows are.
    numbered_anew : bool
        Whether the episodes of each file have numbers of its own, from 0.
    """

    plan: ColumnPlan
    reading: Reading = field(default_factory=Reading)
    n_actions: int | None = None
    schema: Schema = field(default_factory=Schema)
    decoding: Schema = field(default_factory=Schema)
    null_columns: tuple[str, ...] = ()
    bad: NDArray[np.int64] | None = None
    numbered_anew: bool = False

    # --- What a kind of log must know -------------------------------------------------------------------------------

    def tables(self, names: Sequence[str]) -> Iterator[tuple[Any, RowPlace]]:
        """These columns as Arrow tables, a part of the rows at a time, with their places."""
        raise NotImplementedError

    def types(self, names: Sequence[str]) -> dict[str, Any]:
        """The Arrow types of columns."""
        raise NotImplementedError

    def nulls(self, names: Sequence[str]) -> Counted:
        """The nulls of columns; where they are to be left out, what is not a number counts as well."""
        return count(self.tables(self.with_flags(names)), names, self.plan, self.reading.drop_nulls is not None)

    @property
    def where(self) -> str:
        """How a message names the source."""
        raise NotImplementedError

    # --- Rows and transitions ---------------------------------------------------------------------------------------

    def with_flags(self, names: Iterable[str]) -> list[str]:
        """These columns, and those that say where episodes end."""
        more = [name for role in (*ENDS, "episode") for name in self.plan.get(role, ())]
        return list(dict.fromkeys([*names, *more]))

    def decoded(self, table: Any, plan: ColumnPlan, place: RowPlace) -> Rows:
        """The rows of a table, checked."""
        return rows_of(table, plan, place, self.n_actions, self.decoding)

    def rows(self, plan: ColumnPlan, drop: Drop | None = None) -> Iterator[Rows]:
        """All rows, checked; those with nulls left out."""
        names = [name for columns in plan.values() for name in columns]
        if drop is not None:
            names = self.with_flags([*names, *self.null_columns])
        for table, place in self.tables(list(dict.fromkeys(names))):
            if drop is None:
                yield self.decoded(table, plan, place)
            else:
                kept, place, begins = drop(table, place)
                yield replace(self.decoded(kept, plan, place), begins=begins)

    def drop(self) -> Drop | None:
        """What leaves out the rows with nulls, found in one pass; None if there are no nulls."""
        return Drop(self.plan, self.null_columns, self.bad) if self.null_columns else None

    def chunks(self) -> Iterator[Chunk]:
        """The transitions, a part of the rows at a time."""
        drop = self.drop()
        rows = cut(self.rows(self.plan, drop), self.reading, lambda: drop is not None and drop.waiting)
        return assembled(rows, Assembler())

    def scan(self) -> Scan:
        """Look at all rows once, by the narrow columns alone."""
        plan = {role: names for role, names in self.plan.items() if role in NARROW}
        drop, assembler, top, n = self.drop(), Assembler(), -1, 0
        rows = self._in_order(self.rows(plan, drop))
        if "next_observation" in self.plan:
            for block in rows:
                n, top = n + len(block), max(top, int(block.actions.max(initial=-1)))
            return Scan(n, 0, top, 0 if drop is None else drop.rows)
        try:
            blocks = cut(rows, self.reading, lambda: drop is not None and drop.waiting)
            for chunk in assembled(blocks, assembler):
                top = max(top, int(chunk.actions.max(initial=-1)))
        except NoEndError:
            for _ in rows:  # rows further below may show that episodes are mixed, which explains it
                pass
            raise
        return Scan(assembler.n_rows, assembler.left_out, top, 0 if drop is None else drop.rows)

    def _in_order(self, blocks: Iterable[Rows]) -> Iterator[Rows]:
        """The rows, or one line where those of several episodes are mixed."""
        order, source = Order(self.reading.sort_names), ""
        for rows in blocks:
            if self.numbered_anew and rows.place.source != source:
                order, source = Order(), rows.place.source
            if self.reading.sort is not False:
                order.add(rows)
            yield rows


def assembled(blocks: Iterable[Rows], assembler: Assembler, ends: bool = True) -> Iterator[Chunk]:
    """The transitions of rows; where these do not end with the data, the last row only lends its observation."""
    width: int | None = None
    for rows in blocks:
        size = rows.observations.shape[1]
        if width is not None and len(rows) and size != width:
            raise ValueError(
                f"{rows.place.text('observation', 0)} has {size} numbers, and the rows before have {width}"
            )
        width = size if len(rows) else width
        chunk = assembler.add(rows)
        if chunk is not None:
            yield chunk
    chunk = assembler.finish() if ends else None
    if chunk is not None:
        yield chunk


@dataclass(frozen=True)
class TableLog(Log):
    """A table in memory."""

    table: Any = None
    place: RowPlace = field(default_factory=lambda: RowPlace({}))

    def tables(self, names: Sequence[str]) -> Iterator[tuple[Any, RowPlace]]:
        """The whole table at once."""
        yield self.table.select(list(names)), self.place

    @property
    def where(self) -> str:
        """The data frame, or the files that the table was made of."""
        return self.place.source if self.place.source == "df" else f"path: {self.place.source}"

    def types(self, names: Sequence[str]) -> dict[str, Any]:
        """Of its schema."""
        return {name: self.table.schema.field(name).type for name in names}
