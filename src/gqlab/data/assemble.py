"""From rows to transitions: the next observation, the ends and the numbers of episodes, block by block.

Where rows hold their next observation, each is a transition. Else the rows of an episode follow each other, and the
next observation of row t is the observation of row t + 1. Then

* a row that terminated needs none: it gets its own observation, which is never used;
* a row that was cut off needs one that is not there: it is left out, and the row before it, whose next observation is
  known, becomes the one where the episode was cut off;
* RLDS's last row of an episode holds only that observation: it is the next observation of the row before.

The last row of a block waits for the first of the next: episodes may go over blocks and files.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gqlab.data.rows import RowPlace, Rows
from gqlab.data.wording import option


@dataclass(frozen=True)
class Chunk:
    """Consecutive transitions (s, a, r, s'), as arrays of n rows.

    Attributes
    ----------
    observations, next_observations : array, shape (n, dim)
        float32 or float64, as in the source. The next observation of a row that terminated may be its own observation.
    actions : array of int64, shape (n,)
    rewards : array, shape (n,)
    terminated, truncated : array of bool, shape (n,)
        Terminated: the environment ended the episode, there is nothing to bootstrap from. Truncated: somebody stopped
        watching. Never both.
    episode : array of int64, shape (n,)
        The number of the episode, from 0.
    probability : array, shape (n,), or None
        The behaviour policy's probability of the action.
    first_row : int
        The number of the first row among all transitions.
    """

    observations: NDArray[Any]
    actions: NDArray[np.int64]
    rewards: NDArray[np.float64]
    next_observations: NDArray[Any]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    episode: NDArray[np.int64]
    probability: NDArray[np.float64] | None
    first_row: int

    def __len__(self) -> int:
        return len(self.actions)


#: The arrays of a chunk.
ARRAYS = (
    "observations", "actions", "rewards", "next_observations", "terminated", "truncated", "episode", "probability",
)  # fmt: skip


def arrays_of(chunk: Chunk) -> dict[str, NDArray[Any]]:
    """The arrays that a chunk has, by name."""
    return {name: getattr(chunk, name) for name in ARRAYS if getattr(chunk, name) is not None}


class NoEndError(ValueError):
    """The rows of an episode stop, and none says how it ended."""


class Assembler:
    """Blocks of rows in, transitions out; what a block's last row needs of the next is kept until then."""

    def __init__(self) -> None:
        self.n_rows = 0  #: transitions so far
        self.left_out = 0  #: rows that were cut off and whose next observation is unknown
        self._waiting: Rows | None = None
        self._last_id: Any = None
        self._open = False  # the last row did not end its episode
        self._source_episode = 0  # counted over all rows, those that are left out too
        self._last_episode = -1
        self._number = -1

    def add(self, rows: Rows) -> Chunk | None:
        """The transitions that are complete with these rows."""
        if not len(rows):
            return None
        if rows.next_observations is not None:
            return self._emit(rows, np.ones(len(rows), bool), rows.next_observations, self._boundaries(rows))
        before = self._waiting
        joined = rows if before is None else before.join(rows)
        self._waiting = joined.each(lambda a: a[-1:].copy(), _moved(joined.place, len(joined) - 1))
        return None if len(joined) == 1 else self._consecutive(joined, before or rows)

    def finish(self) -> Chunk | None:
        """The last row, which must have ended its episode."""
        rows, self._waiting = self._waiting, None
        if rows is None:
            return None
        ended = rows.terminated | rows.truncated if rows.last is None else rows.last
        if not ended[0]:
            raise NoEndError(_no_end(rows.place, 0, "the last row of all"))
        if rows.last is not None:
            return None
        keep = rows.terminated
        self.left_out += int(not keep[0])
        return self._emit(rows, keep, rows.observations, ended)

    def _consecutive(self, rows: Rows, first: Rows) -> Chunk | None:
        """The transitions of all rows but the last, which lends its observation; ``first`` may be of another file."""
        head = rows.each(lambda a: a[:-1], rows.place)
        if rows.last is None:
            terminated, ended = head.terminated, head.terminated | head.truncated
            keep = ~head.truncated
            truncated = rows.truncated[1:] & ~ended  # the row before one that is left out
            following = np.where(terminated[:, None], head.observations, rows.observations[1:])
        else:
            assert head.last is not None
            ended, keep = head.last, ~head.last
            terminated = rows.last[1:] & rows.terminated[1:]
            truncated = rows.last[1:] & ~rows.terminated[1:]
            following = rows.observations[1:]
        if rows.episodes is not None:
            bad = np.flatnonzero((rows.episodes[1:] != rows.episodes[:-1]) & ~ended)
            if len(bad):
                place = rows.place if bad[0] else first.place
                raise NoEndError(_no_end(place, int(bad[0]), "the last row of its episode"))
        if rows.last is None:
            self.left_out += int(head.truncated.sum())
        ends = Rows(
            head.observations, head.actions, head.rewards, terminated, truncated, probabilities=head.probabilities
        )
        return self._emit(ends, keep, following, ended)

    def _boundaries(self, rows: Rows) -> NDArray[np.bool_]:
        """The rows after which another episode begins, where each row has its next observation."""
        ends = rows.terminated | rows.truncated
        if rows.episodes is not None:
            if self._open and rows.episodes[0] != self._last_id:
                self._source_episode += 1
            ends = ends | np.append(rows.episodes[1:] != rows.episodes[:-1], False)
            self._last_id = rows.episodes[-1]
        self._open = not ends[-1]
        return ends

    def _emit(
        self, rows: Rows, keep: NDArray[np.bool_], following: NDArray[Any], ends: NDArray[np.bool_]
    ) -> Chunk | None:
        """The rows to keep, with episodes numbered from 0 and without gaps."""
        source = self._source_episode + np.cumsum(ends) - ends
        self._source_episode = int(source[-1] + ends[-1])
        everything = bool(keep.all())

        def kept(value: NDArray[Any]) -> NDArray[Any]:
            return value if everything else value[keep]

        source = kept(source)
        if not len(source):
            return None
        number = self._number + np.cumsum(np.diff(source, prepend=self._last_episode) != 0)
        self._last_episode, self._number = int(source[-1]), int(number[-1])
        first, self.n_rows = self.n_rows, self.n_rows + len(source)
        return Chunk(
            kept(rows.observations), kept(rows.actions), kept(rows.rewards), kept(following), kept(rows.terminated),
            kept(rows.truncated), number, None if rows.probabilities is None else kept(rows.probabilities), first,
        )  # fmt: skip


def _moved(place: RowPlace, by: int) -> RowPlace:
    return replace(place, first=place.first + by)


def _no_end(place: RowPlace, row: int, which: str) -> str:
    return (
        f"{place.text('action', row)} is {which}, and neither terminated nor truncated: an episode without end; "
        f"where the recording just stopped, {option('ends', repr('truncated'))} marks all such rows, or give the next "
        "observations"
    )
