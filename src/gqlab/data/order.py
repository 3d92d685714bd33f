"""Whether rows are in the order of time, one episode after another; and cuts where rows are missing.

If the rows of an episode stop without an end and continue further down, the rows of several episodes are mixed: the row
below one is then not what followed it. After an end the same name begins a new episode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gqlab.data.reading import Reading
from gqlab.data.rows import Rows
from gqlab.data.wording import option
from gqlab.support import checks


def ends_of(rows: Rows) -> NDArray[np.bool_]:
    """Which rows say that their episode ended."""
    return (rows.terminated | rows.truncated) if rows.last is None else rows.last


class Order:
    """Reads the rows of a source once, and reports where an episode returns or its time goes back.

    It keeps eight bytes for each episode without an end, and nothing for the others.
    """

    def __init__(self, sorted_by: tuple[str, ...] = ()) -> None:
        self._sorted_by = sorted_by
        self._open: list[NDArray[np.uint64]] = []  # each sorted: the episodes whose rows stopped without an end
        self._last: tuple[Any, bool, float] | None = None  # episode, whether it ended, and the time of the row before

    def add(self, rows: Rows) -> None:
        """The next rows; ``ValueError`` where they are out of order."""
        if not len(rows) or (rows.episodes is None and rows.times is None):
            return
        n, ended = len(rows), ends_of(rows)
        begins, stopped = np.zeros(n, bool), np.append(False, ended[:-1])
        if rows.episodes is not None:
            begins[1:] = rows.episodes[1:] != rows.episodes[:-1]
        if self._last is not None:
            episode, stopped[0], time = self._last
            begins[0] = rows.episodes is not None and bool(rows.episodes[0] != episode)
            self._check_time(rows, begins | stopped, time)
        else:
            self._check_time(rows, begins | stopped, -np.inf)
        if rows.episodes is not None:
            self._check_names(rows, np.flatnonzero(begins), stopped)
        last = None if rows.episodes is None else rows.episodes[-1]
        self._last = last, bool(ended[-1]), -np.inf if rows.times is None else float(rows.times[-1])

    def _check_time(self, rows: Rows, new: NDArray[np.bool_], before: float) -> None:
        if rows.times is None:
            return
        back = np.flatnonzero((np.diff(rows.times, prepend=before) < 0) & ~new)
        if len(back):
            raise ValueError(
                f"{rows.place.text('time', int(back[0]))} is before that of the row above, in the same episode: "
                f"{self._remedy()}"
            )

    def _check_names(self, rows: Rows, begins: NDArray[np.intp], stopped: NDArray[np.bool_]) -> None:
        """``begins``: the rows whose episode differs from that of the row above, which stopped or is left open."""
        assert rows.episodes is not None
        if not len(begins):
            return
        coming = keys_of(rows.episodes[begins])
        above = self._last[0] if begins[0] == 0 and self._last is not None else rows.episodes[0]
        leaving = np.concatenate([keys_of(np.array([above])), coming[:-1]])
        left_open = ~stopped[begins]
        returns = np.zeros(len(begins), bool)
        for part in self._open:
            returns |= part[np.minimum(np.searchsorted(part, coming), len(part) - 1)] == coming
        if left_open.any():
            returns |= _again(leaving, left_open, coming)
            self._keep(np.unique(leaving[left_open]))
        if returns.any():
            row = int(begins[np.flatnonzero(returns)[0]])
            name = checks.shown(
                rows.episodes[row].item() if hasattr(rows.episodes[row], "item") else rows.episodes[row]
            )
            raise ValueError(
                f"{rows.place.text('episode', row)}: episode {name} returns, whose rows above have no end: "
                f"{self._remedy()}"
            )

    def _remedy(self) -> str:
        if self._sorted_by:
            return f"sorted by {', '.join(map(repr, self._sorted_by))}: sort by episode, then by time"
        return f"sort by episode and time, or pass {option('sort', 'True')}"

    def _keep(self, keys: NDArray[np.uint64]) -> None:
        """Store more keys; parts of similar size are merged."""
        self._open.append(keys)
        while len(self._open) > 1 and len(self._open[-2]) < 2 * len(self._open[-1]):
            last = self._open.pop()
            self._open[-1] = np.union1d(self._open[-1], last)


def _again(leaving: NDArray[np.uint64], left_open: NDArray[np.bool_], coming: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which of these episodes were left open earlier in the same block."""
    keys, places = np.unique(leaving[left_open], return_index=True)
    first = np.flatnonzero(left_open)[places]  # np.unique gives the first of each
    at = np.minimum(np.searchsorted(keys, coming), len(keys) - 1)
    out: NDArray[np.bool_] = (keys[at] == coming) & (first[at] < np.arange(len(coming)))
    return out


def keys_of(names: NDArray[Any]) -> NDArray[np.uint64]:
    """Names of episodes as numbers: whole numbers are themselves, others their hash."""
    if names.dtype.kind in "iub":
        return names.astype(np.int64).view(np.uint64)
    try:
        return np.array([hash(name) & (2**64 - 1) for name in names.tolist()], np.uint64)
    except TypeError:
        raise ValueError(
            f"episodes: {checks.shown(names[0])} is no name of an episode, expected text or numbers"
        ) from None


# --- Cutting --------------------------------------------------------------------------------------------------------


def cut(blocks: Iterable[Rows], reading: Reading, dropped: Callable[[], bool] = lambda: False) -> Iterator[Rows]:
    """The rows, with an end added before gaps, before rows that were left out, and where an episode stops without one.

    A block waits for the first row of the next. ``dropped`` says, after the last, whether rows behind it are left out.
    """
    if reading.as_it_stands:
        yield from blocks
        return
    held: Rows | None = None
    for rows in blocks:
        if not len(rows):
            continue
        if held is not None:
            yield _cut(held, reading, rows, False)
        held = rows
    if held is not None:
        yield _cut(held, reading, None, dropped())


def _cut(rows: Rows, reading: Reading, after: Rows | None, dropped: bool) -> Rows:
    """A block whose last row is followed by the first of ``after``, or by nothing."""
    unknown = _following(rows, after, "begins", lambda own, following: following)
    unknown[-1] |= dropped
    other = _following(rows, after, "episodes", lambda own, following: following != own)
    other[-1] |= after is None
    if reading.gap is not None:
        unknown |= ~other & _following(rows, after, "times", lambda own, following: following - own > reading.gap)
    open_ends = ~ends_of(rows)
    cut_off = unknown & open_ends
    stops = other & ~cut_off & open_ends & (reading.ends is not None)
    terminated = stops & (reading.ends == "terminated")
    truncated = cut_off | (stops & ~terminated)
    if rows.last is None:
        return replace(rows, terminated=rows.terminated | terminated, truncated=rows.truncated | truncated)
    # The row above what is missing lends its observation.
    return replace(
        rows, last=rows.last | terminated | truncated, terminated=(rows.terminated & ~truncated) | terminated
    )


def _following(
    rows: Rows, after: Rows | None, name: str, compare: Callable[[NDArray[Any], NDArray[Any]], Any]
) -> NDArray[np.bool_]:
    """A comparison of each row with the next; False where one of them is not known."""
    out, own = np.zeros(len(rows), bool), getattr(rows, name)
    if own is not None:
        following = own[1:] if after is None else np.concatenate([own[1:], getattr(after, name)[:1]])
        out[: len(following)] = compare(own[: len(following)], following)
    return out
