"""Rows as a source has them, checked: a bad value gets one message with the column, the row and the value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gqlab.data.wording import mapped, option
from gqlab.support import checks

#: Actions, at most: a larger number is an identifier, a price or a mistake, and every one of them would take memory.
MOST_ACTIONS = 2**16


@dataclass(frozen=True)
class RowPlace:
    """How a message names a value: ``observations[3, 1]``, or ``df: column 'obs_1', row 3``."""

    names: Mapping[str, tuple[str, ...]]  #: by role: the argument, or the columns
    source: str = ""  #: the data frame or the file; nothing for arrays
    first: int = 0  #: the number of the first row
    rows: NDArray[np.int64] | None = None  #: the numbers of the rows, where they do not follow each other

    def row(self, row: int) -> int:
        """The number of a row in the source."""
        if self.rows is None:
            return row + self.first
        return int(self.rows[row + self.first])

    def of(self, rows: NDArray[np.intp]) -> RowPlace:
        """The place of some of the rows."""
        kept = rows.astype(np.int64) + self.first
        return replace(self, first=0, rows=kept if self.rows is None else self.rows[kept])

    def text(self, role: str, row: int, component: int | None = None) -> str:
        names = self.names[role]
        row = self.row(row)
        if not self.source:
            return f"{names[0]}[{row}]" if component is None else f"{names[0]}[{row}, {component}]"
        inside = "" if component is None or len(names) > 1 else f", component {component}"
        return f"{self.column(role, component)}, row {row}{inside}"

    def column(self, role: str, component: int | None = None) -> str:
        names = self.names[role]
        if not self.source:
            return names[0]
        return f"{self.source}: column {names[component if component is not None and len(names) > 1 else 0]!r}"


@dataclass(frozen=True)
class Rows:
    """Consecutive rows of a source. An array that the source does not have is None."""

    observations: NDArray[Any]  # (n, dim)
    actions: NDArray[np.int64]
    rewards: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    next_observations: NDArray[Any] | None = None
    last: NDArray[np.bool_] | None = None  # RLDS: the row holds the last observation of an episode, and no action
    episodes: NDArray[Any] | None = None
    probabilities: NDArray[np.float64] | None = None
    times: NDArray[np.float64] | None = None
    begins: NDArray[np.bool_] | None = None  # the row does not follow the one before: what was between them is left out
    place: RowPlace = field(default_factory=lambda: RowPlace({}))

    def __len__(self) -> int:
        return len(self.actions)

    def each(self, change: Callable[[NDArray[Any]], NDArray[Any]], place: RowPlace) -> Rows:
        """The same rows with every array changed alike."""
        arrays = {name: value for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        return Rows(**{name: change(value) for name, value in arrays.items()}, place=place)

    def join(self, more: Rows) -> Rows:
        """These rows and ``more`` behind them; the place is that of ``more``, with its rows where they were."""
        place = replace(more.place, first=more.place.first - len(self))
        arrays = {name: value for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        return Rows(
            **{name: np.concatenate([value, getattr(more, name)]) for name, value in arrays.items()}, place=place
        )


def checked(values: Mapping[str, NDArray[Any]], place: RowPlace, n_actions: int | None = None) -> Rows:
    """Rows of arrays by role, each value checked; without an observation (a scan of the rest) it has no components."""
    n = len(values["action"])
    for role, value in values.items():
        if len(value) != n:
            raise ValueError(f"{place.column(role)} has {len(value)} rows, expected {n} as of {place.column('action')}")
    last = flags(place, "last", values["last"]) if "last" in values else None
    terminated, truncated = _ends(place, values, n, last)
    explicit = values.get("next_observation")
    if explicit is not None:
        last = None  # then every row has an action
    observations = finite(place, "observation", values["observation"]) if "observation" in values else np.empty((n, 0))
    following = None if explicit is None else finite(place, "next_observation", explicit)
    if following is not None and following.shape != observations.shape:
        raise ValueError(
            f"{place.column('next_observation')} has rows of {following.shape[1]} numbers, "
            f"and {place.column('observation')} of {observations.shape[1]}"
        )
    void = np.zeros(n, bool) if last is None else last
    return Rows(
        observations,
        whole(place, _where(void, values["action"]), n_actions),
        _rewards(place, _where(void, values["reward"]) if "reward" in values else np.zeros(n)),
        terminated,
        truncated,
        following,
        last,
        values.get("episode"),
        _probabilities(place, _where(void, values["probability"], 1.0)) if "probability" in values else None,
        _times(place, values["time"]) if "time" in values else None,
        place=place,
    )


def _where(void: NDArray[np.bool_], value: NDArray[Any], instead: float = 0) -> NDArray[Any]:
    """A column, with another value where a row has no action: what stands there means nothing."""
    return np.where(void, value.dtype.type(instead), value) if void.any() and value.ndim == 1 else value


def _ends(
    place: RowPlace, values: Mapping[str, NDArray[Any]], n: int, last: NDArray[np.bool_] | None
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Where episodes terminated, and where they were cut off."""
    terminated = flags(place, "terminated", values["terminated"]) if "terminated" in values else np.zeros(n, bool)
    truncated = flags(place, "truncated", values["truncated"]) if "truncated" in values else np.zeros(n, bool)
    both = np.flatnonzero(terminated & truncated)
    if len(both):
        raise ValueError(
            f"{place.text('terminated', both[0])} is True, and {place.text('truncated', both[0])} too: an episode that "
            "terminated was not cut off; give truncated & ~terminated, or, where the first only says that the episode "
            f"ended, {mapped('done')} for it"
        )
    done = flags(place, "done", values["done"]) if "done" in values else np.zeros(n, bool)
    if "terminated" in values:
        truncated = truncated | (done & ~terminated)
    else:
        terminated = done & ~truncated
    if last is not None and "next_observation" in values:
        truncated = truncated | (last & ~terminated)
    return terminated, truncated


# --- Values ---------------------------------------------------------------------------------------------------------


def finite(place: RowPlace, role: str, value: NDArray[Any]) -> NDArray[Any]:
    """Observations (n, dim): finite float32, or float64."""
    if value.dtype.kind not in "biuf":
        raise ValueError(f"{place.column(role)} holds {value.dtype}, expected numbers")
    dtype = np.float32 if value.dtype in (np.float16, np.float32) else np.float64
    out = np.ascontiguousarray(value.reshape(len(value), -1) if len(value) else value.reshape(0, 0), dtype)
    fine = np.isfinite(out)
    if not fine.all():
        row, component = np.argwhere(~fine)[0]
        raise ValueError(
            f"{place.text(role, int(row), int(component))} is {out[row, component]}, expected a finite number"
        )
    return out


def whole(place: RowPlace, value: NDArray[Any], n_actions: int | None) -> NDArray[np.int64]:
    """Actions: whole numbers from 0, below ``n_actions`` where that is known."""
    role = "action"
    if value.ndim == 2 and value.shape[1] == 1:
        value = value[:, 0]
    if value.ndim != 1:
        raise ValueError(
            f"{place.column(role)} has shape {value.shape}: continuous actions, or several at once; "
            "expected one whole number in each row"
        )
    if value.dtype.kind not in "biuf":
        raise ValueError(f"{place.column(role)} holds {value.dtype}, expected whole numbers")
    with np.errstate(invalid="ignore"):
        out = value.astype(np.int64)
    bad = np.flatnonzero(out != value)
    if len(bad):
        raise ValueError(
            f"{place.text(role, int(bad[0]))} is {value[bad[0]]}, expected a whole number: continuous actions are not "
            f"supported; where these are a few fixed values, {option('action_labels', '[...]')} lists them"
        )
    top = MOST_ACTIONS if n_actions is None else n_actions
    bad = np.flatnonzero((out < 0) | (out >= top))
    if len(bad):
        more = f"; where actions are other numbers, {option('action_labels', '[...]')} lists them" * (n_actions is None)
        raise ValueError(
            f"{place.text(role, int(bad[0]))} is {value[bad[0]]}, expected a whole number from 0 to {top - 1}{more}"
        )
    return out


def flags(place: RowPlace, role: str, value: NDArray[Any]) -> NDArray[np.bool_]:
    """Truth values, or 0 and 1."""
    if value.ndim == 2 and value.shape[1] == 1:
        value = value[:, 0]
    if value.ndim != 1 or value.dtype.kind not in "biuf":
        raise ValueError(f"{place.column(role)} holds {value.dtype} of shape {value.shape}, expected true or false")
    out = value.astype(bool)
    bad = np.flatnonzero(out != value)
    if len(bad):
        raise ValueError(f"{place.text(role, int(bad[0]))} is {value[bad[0]]}, expected true or false")
    return out


def _column(place: RowPlace, role: str, value: NDArray[Any]) -> NDArray[np.float64]:
    if value.ndim == 2 and value.shape[1] == 1:
        value = value[:, 0]
    if value.ndim != 1 or value.dtype.kind not in "biuf":
        raise ValueError(
            f"{place.column(role)} holds {value.dtype} of shape {value.shape}, expected one number in each row"
        )
    return value.astype(np.float64)


def _rewards(place: RowPlace, value: NDArray[Any]) -> NDArray[np.float64]:
    out = _column(place, "reward", value)
    bad = np.flatnonzero(~np.isfinite(out))
    if len(bad):
        raise ValueError(f"{place.text('reward', int(bad[0]))} is {out[bad[0]]}, expected a finite number")
    return out


def _probabilities(place: RowPlace, value: NDArray[Any]) -> NDArray[np.float64]:
    out = _column(place, "probability", value)
    bad = np.flatnonzero(~((out > 0) & (out <= 1)))
    if len(bad):
        raise ValueError(
            f"{place.text('probability', int(bad[0]))} is {out[bad[0]]}, expected a probability above 0 and at most 1: "
            "that of the action that was taken"
        )
    return out


def _times(place: RowPlace, value: NDArray[Any]) -> NDArray[np.float64]:
    """Numbers, or seconds since 1970-01-01."""
    if value.dtype.kind in "Mm":
        value = np.where(np.isnat(value), np.nan, value.astype(f"{value.dtype.kind}8[us]").astype(np.float64) / 1e6)
    out = _column(place, "time", value)
    bad = np.flatnonzero(~np.isfinite(out))
    if len(bad):
        raise ValueError(f"{place.text('time', int(bad[0]))} is {out[bad[0]]}, expected a finite number or a time")
    return out


def inhomogeneous(name: str, value: Any) -> str | None:
    """Where the rows of a nested list begin to differ in length."""
    if not isinstance(value, list | tuple):
        return None
    lengths = [np.size(row) if not isinstance(row, list | tuple) else len(row) for row in value]
    for row, length in enumerate(lengths):
        if length != lengths[0]:
            return f"{name}[{row}] has length {length}, expected {lengths[0]} as of {name}[0]"
    return None


def as_array(name: str, value: Any) -> NDArray[Any]:
    """A copy of ``value`` as an array of numbers with at least one axis."""
    uneven = inhomogeneous(name, value)
    if uneven:
        raise ValueError(uneven)
    out = checks.plain_array(name, value)
    if out.dtype.kind not in "biuf":
        out = checks.numbers(name, value)
    if out.ndim == 0:
        raise ValueError(f"{name} is {checks.shown(value)}, expected an array with one entry for each row")
    if out.dtype == np.longdouble:
        out = out.astype(np.float64)
    return out
