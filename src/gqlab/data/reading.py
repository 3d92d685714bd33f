"""What a user says about how rows are to be read, checked: their order, gaps between them, ends, nulls, labels."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gqlab.data.schema import Label, Schema, action_labels
from gqlab.data.wording import named, option
from gqlab.support import checks

#: A length of time of ISO 8601, without months and years, which are of different lengths.
DURATION = re.compile(
    r"P(?:(?P<weeks>\d+(?:\.\d+)?)W)?(?:(?P<days>\d+(?:\.\d+)?)D)?"
    r"(?:T(?:(?P<hours>\d+(?:\.\d+)?)H)?(?:(?P<minutes>\d+(?:\.\d+)?)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?"
)

#: The same in one unit: 36h.
SHORT = re.compile(r"(\d+(?:\.\d+)?) ?(w|d|h|min|s)")
UNITS = {"w": "weeks", "d": "days", "h": "hours", "min": "minutes", "s": "seconds"}


@dataclass(frozen=True)
class Reading:
    """How rows are read.

    Attributes
    ----------
    gap : float or None
        In units of the time, or in seconds where ``in_seconds``: what lies further apart is cut off.
    sort : None, bool or tuple of str
        None: rows must be in order. False: as they stand. True: by episode and time. Else by these columns.
    ends : {"terminated", "truncated"} or None
        How an episode ended whose last row does not say so.
    drop_nulls : {"rows", "episodes"} or None
    labels : tuple or None
        Of the actions.
    like : Schema or None
        Columns become the numbers that they became in other data.
    """

    gap: float | None = None
    in_seconds: bool = False
    sort: bool | tuple[str, ...] | None = None
    ends: str | None = None
    drop_nulls: str | None = None
    labels: tuple[Label, ...] | None = None
    like: Schema | None = None

    @property
    def sort_names(self) -> tuple[str, ...]:
        """The columns that a user names to sort by."""
        return self.sort if isinstance(self.sort, tuple) else ()

    def check_sort(self, available: Sequence[str]) -> None:
        """``ValueError`` where there is no such column."""
        for name in self.sort_names:
            if name not in available:
                raise ValueError(f"{named('sort')}: there is no column {name!r}")

    @property
    def as_it_stands(self) -> bool:
        """Whether rows are taken one by one, whatever stands around them: parts of a file can be read alone."""
        return self.gap is None and self.ends is None and self.drop_nulls is None


def reading_of(
    gap: Any = None, sort: Any = None, ends: Any = None, drop_nulls: Any = None, labels: Any = None, like: Any = None
) -> Reading:
    """The options of a call, checked."""
    length, in_seconds = _gap(gap)
    if ends is not None:
        checks.one_of(named("ends"), ends, ("terminated", "truncated"))
    if drop_nulls is not None:
        checks.one_of(named("drop_nulls"), drop_nulls, ("rows", "episodes"))
    schema = None if like is None else getattr(like, "schema", None)
    if like is not None and not isinstance(schema, Schema):
        raise ValueError(f"like is {checks.shown(like)}, expected Transitions, or a model that was fitted to them")
    given = None if labels is None else action_labels(labels)
    if schema is not None and schema.action_labels is not None:
        if given is not None and given != schema.action_labels:
            raise ValueError(
                f"action_labels is {checks.shown(labels)}, and like has {checks.shown(schema.action_labels)}"
            )
        given = schema.action_labels
    return Reading(length, in_seconds, _sort(sort), ends or ("truncated" if gap is not None else None), drop_nulls,
                   given, schema)  # fmt: skip


def _sort(sort: Any) -> bool | tuple[str, ...] | None:
    if sort is None or isinstance(sort, bool | np.bool_):
        return None if sort is None else bool(sort)
    names = (sort,) if isinstance(sort, str) else sort
    if not isinstance(names, list | tuple) or not names or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{named('sort')} is {checks.shown(sort)}, expected True, False, or names of columns")
    return tuple(names)


def _gap(gap: Any) -> tuple[float | None, bool]:
    """A number, or a length of time in seconds; and which of the two."""
    if gap is None:
        return None, False
    if isinstance(gap, np.timedelta64):
        gap = gap.astype("timedelta64[us]").astype(datetime.timedelta)  # None where it is not a time
    elif isinstance(gap, str):
        parts = _parts(gap)
        gap = _length(parts) if parts else gap
    if isinstance(gap, datetime.timedelta):
        seconds = gap.total_seconds()
        if not seconds > 0:  # NaT is not either
            raise ValueError(f"{named('gap')} is {checks.shown(gap)}, expected a length of time above 0")
        return seconds, True
    if isinstance(gap, str) or gap is None:
        raise ValueError(
            f"{named('gap')} is {checks.shown(gap)}, expected a number, a timedelta, or text such as '36h' or 'P1D'"
        )
    return checks.number(named("gap"), gap, above=0), False


def check_gap(reading: Reading, time: str | None, is_temporal: bool) -> None:
    """``ValueError`` where the gap is not in units of the time."""
    if reading.gap is None:
        return
    if time is None:
        raise ValueError(
            f"{named('gap')} is {reading.gap:g}, and no column is the time: {option('time', '...')} names it"
        )
    if is_temporal != reading.in_seconds:
        units = "dates or times: pass a timedelta, or text such as '36h'" if is_temporal else "numbers: pass a number"
        raise ValueError(
            f"{named('gap')} is {reading.gap:g}{' s' * reading.in_seconds}, and the time {time!r} holds {units}"
        )


def _parts(text: str) -> dict[str, float]:
    """A length of time as a number of each unit; empty if the text is not one."""
    match, short = DURATION.fullmatch(text), SHORT.fullmatch(text)
    if short:
        return {UNITS[short[2]]: float(short[1])}
    return {unit: float(value) for unit, value in match.groupdict().items() if value} if match else {}


def _length(parts: dict[str, float]) -> datetime.timedelta:
    try:
        return datetime.timedelta(**parts)
    except OverflowError:
        raise ValueError(f"{named('gap')} is {checks.shown(parts)}, expected a shorter time") from None
