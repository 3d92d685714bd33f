"""The rows of a log as they are judged: in parts of a fixed order, encoded, with their place in their episode.

Sums over parts are added in the order of the parts, which follow from the data alone: whoever makes them, and however
many at a time, the digits are the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gqlab.data.assemble import ARRAYS, Chunk, arrays_of
from gqlab.data.parquet import ParquetFiles, opened
from gqlab.data.parts import Part, chunks_of, parts_of
from gqlab.data.transitions import Transitions
from gqlab.judge.features import Features
from gqlab.support.checks import FloatArray

#: Rows that are summed at a time, and numbers of their features, at most.
BLOCK_ROWS, BLOCK_NUMBERS = 2**15, 2**23

#: Trees, the misfit test and λ learn from at most so many rows, of whole episodes; the sums go over all rows.
MOST_LEARNED = 200_000


class Piece(NamedTuple):
    """Consecutive rows, with where they stand among all episodes."""

    chunk: Chunk
    episode: NDArray[np.int64]  # (n,)  numbered over the whole log
    first_time: int  # of its first row, in its episode
    continues: bool  # its last episode goes on behind it


class LogBlock(NamedTuple):
    """Encoded rows. Row k of ``x`` and of ``observations`` belongs to one observation, which rows share."""

    x: NDArray[Any]  # (n_observations, n_active) places or (n_observations, K) numbers
    observations: FloatArray  # (n_observations, size)
    first: NDArray[np.int64]  # (n,)  where a row begins,
    after: NDArray[np.int64]  # (n,)  and where it leads to
    action: NDArray[np.int64]
    reward: FloatArray
    live: NDArray[np.bool_]  # it did not terminate
    probability: FloatArray | None
    episode: NDArray[np.int64]
    time: NDArray[np.int64]  # from 0, in its episode
    cut: NDArray[np.bool_]  # the last of its episode, which goes on unseen

    @property
    def starts(self) -> NDArray[np.intp]:
        """The rows that begin an episode."""
        return np.flatnonzero(self.time == 0)


class LogLook(NamedTuple):
    """What a first look at the log finds."""

    n_rows: int
    n_episodes: int
    n_terminated: int
    longest: int  # rows of the longest episode
    flagged: bool  # some row terminated, or was truncated
    has_probabilities: bool
    reward_sum: float
    least: float  # reward
    most: float
    sample: Chunk  # rows of whole episodes, to learn from
    firsts: list[tuple[int, int]]  # of every part: the episode and the time of its first row


def parts(data: Transitions) -> list[Part | None]:
    """The parts of Parquet files whose rows can be read alone; other data are one part, in chunks of their own."""
    files = data._source
    if isinstance(files, ParquetFiles) and files.reading.as_it_stands:
        return list(parts_of(files))
    return [None]


def pieces(data: Transitions, part: Part | None, first: tuple[int, int], goes_on: bool = False) -> Iterator[Piece]:
    """The rows of a part; ``first``: the episode and the time of its first row; ``goes_on``: behind its last row."""
    episode, time = first
    chunks = data.chunks() if part is None else chunks_of(data._source, part)  # type: ignore[arg-type]
    waiting: Chunk | None = None
    for chunk in chunks:
        if waiting is not None:
            same = bool(chunk.episode[0] == waiting.episode[-1])
            yield Piece(waiting, episode + waiting.episode, time, same)
            time = _time_behind(waiting, time) if same else 0
        waiting = chunk
    if waiting is not None:
        yield Piece(waiting, episode + waiting.episode, time, goes_on)


def _time_behind(chunk: Chunk, time: int) -> int:
    """The time of the row behind a chunk whose last episode goes on."""
    n = len(chunk) - int(np.searchsorted(chunk.episode, chunk.episode[-1]))
    return n + time if n == len(chunk) else n


class Looker:
    """What a first look gathers."""

    def __init__(self, n_rows: int, seed: int) -> None:
        self.random = np.random.default_rng([seed, 0])
        self.share = min(MOST_LEARNED / n_rows, 1.0)
        self.kept: list[dict[str, NDArray[Any]]] = []
        self.room = MOST_LEARNED
        self.spare: dict[str, NDArray[Any]] = {}  # where no whole episode is kept: the first rows
        self.keeps: dict[int, bool] = {}  # whether the episode that goes on is kept
        self.n_rows = self.n_terminated = self.longest = self.n_episodes = 0
        self.flagged, self.known = False, True
        self.total, self.least, self.most = 0.0, np.inf, -np.inf

    def add(self, piece: Piece) -> None:
        chunk = piece.chunk
        self.n_rows += len(chunk)
        self.n_terminated += int(chunk.terminated.sum())
        self.flagged |= bool(chunk.terminated.any() or chunk.truncated.any())
        self.known &= chunk.probability is not None
        self.total += float(chunk.rewards.sum())
        self.least, self.most = min(self.least, float(chunk.rewards.min())), max(self.most, float(chunk.rewards.max()))
        number, lengths = np.unique(piece.episode, return_counts=True)
        self.n_episodes = int(number[-1]) + 1
        self.longest = max(self.longest, int(lengths.max()), int(lengths[0]) + piece.first_time)
        self._keep(piece, number, lengths)

    def _keep(self, piece: Piece, number: NDArray[Any], lengths: NDArray[Any]) -> None:
        """Keep episodes, as many as there is room for."""
        drawn = self.random.random(len(number)) < self.share
        if int(number[0]) in self.keeps:
            drawn[0] = self.keeps[int(number[0])]
        fits = np.cumsum(np.where(drawn, lengths, 0)) <= self.room
        chosen = drawn & fits
        self.keeps = {int(number[-1]): bool(chosen[-1])} if piece.continues else {}
        rows = np.repeat(chosen, lengths)
        self.room -= int(rows.sum())
        arrays = {**arrays_of(piece.chunk), "episode": piece.episode}
        if not self.spare:
            self.spare = {name: value[:MOST_LEARNED] for name, value in arrays.items()}
        if rows.any():
            self.kept.append({name: value[rows] for name, value in arrays.items()})

    def sample(self) -> Chunk:
        kept = self.kept or [self.spare]
        whole = {name: np.concatenate([part[name] for part in kept]) for name in self.spare}
        return Chunk(**{name: whole.get(name) for name in ARRAYS}, first_row=0)  # type: ignore[arg-type]


def look(data: Transitions, seed: int) -> LogLook:
    """Read the log once: what there is of it, and episodes to learn from, drawn where there are too many."""
    found, firsts = Looker(data.n_rows, seed), []
    behind, last_time = 0, 0  # the episode and the time of the row behind
    before: Part | None = None
    last: Chunk | None = None
    for part in parts(data):
        if last is not None and (_ended(last) or _other(data._source, before, part)):
            behind, last_time = behind + 1, 0
        firsts.append((behind, last_time))
        for piece in pieces(data, part, firsts[-1], goes_on=True):
            found.add(piece)
            last, behind = piece.chunk, int(piece.episode[-1])
            last_time = _time_behind(last, piece.first_time)
        before = part
    return LogLook(
        found.n_rows, found.n_episodes, found.n_terminated, found.longest, found.flagged, found.known, found.total,
        found.least, found.most, found.sample(), firsts,
    )  # fmt: skip


def _ended(chunk: Chunk) -> bool:
    """Whether its last row ended its episode."""
    return bool(chunk.terminated[-1] or chunk.truncated[-1])


def _other(files: Any, before: Part | None, part: Part | None) -> bool:
    """Whether a part begins with another episode than the part before ended with, by the files' own column."""
    if before is None or part is None or "episode" not in files.plan:
        return False
    column = files.plan["episode"]
    with opened(before.path) as file:
        *_, (last, _) = files.batches(file, before.path, column, row_groups=[before.groups[1] - 1])
    with opened(part.path) as file:
        following, _ = next(files.batches(file, part.path, column, size=1, row_groups=[part.groups[0]]))
    return bool(last.column(0)[-1].as_py() != following.column(0)[0].as_py())


def blocks(piece: Piece, features: Features) -> Iterator[LogBlock]:
    """The rows of a piece, encoded, so many at a time."""
    chunk, n = piece.chunk, len(piece.chunk)
    new = np.append(True, np.diff(piece.episode) != 0)
    begin = np.maximum.accumulate(np.where(new, np.arange(n), 0))
    time = np.arange(n) - begin + np.where(begin == 0, piece.first_time, 0)
    ends = np.append(new[1:], not piece.continues)
    rows = min(BLOCK_ROWS, max(BLOCK_NUMBERS // max(features.n_active, 1), 1))
    for at in range(0, n, rows):
        part = slice(at, at + rows)
        yield _block(chunk, part, features, piece.episode[part], time[part], ends[part] & ~chunk.terminated[part])


def _block(chunk: Chunk, part: slice, features: Features, episode: Any, time: Any, cut: Any) -> LogBlock:
    first, after = (np.asarray(v[part], dtype=np.float64) for v in (chunk.observations, chunk.next_observations))
    terminated, n = chunk.terminated[part], len(first)
    after = np.where(terminated[:, None], first, after)  # nothing follows from there
    extra = np.flatnonzero(~np.append((after[:-1] == first[1:]).all(axis=1), False))
    leads_to = np.arange(1, n + 1)
    leads_to[extra] = n + np.arange(len(extra))
    observations = np.concatenate([first, after[extra]])
    return LogBlock(
        x=features.encode(observations), observations=observations, first=np.arange(n), after=leads_to,
        action=np.asarray(chunk.actions[part]), reward=np.asarray(chunk.rewards[part], dtype=np.float64),
        live=~terminated, probability=None if chunk.probability is None else chunk.probability[part],
        episode=episode, time=time, cut=cut,
    )  # fmt: skip


def sample_piece(sample: Chunk) -> Piece:
    """The rows of a sample, whose episodes are numbered anew."""
    number = np.cumsum(np.append(False, np.diff(sample.episode) != 0))
    return Piece(sample, number, 0, False)
