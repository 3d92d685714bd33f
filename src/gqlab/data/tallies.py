"""What one pass over data counts: each tally takes the chunks in order and gives its findings at the end."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gqlab.data.assemble import Chunk
from gqlab.data.findings import Finding
from gqlab.data.paths import printable
from gqlab.data.transitions import Transitions


class Tally(Protocol):
    """Something that is counted in one pass."""

    def add(self, chunk: Chunk) -> None: ...

    def findings(self) -> Iterator[Finding]: ...


class Ends:
    """Episodes: how many, how long, and how they end."""

    #: A share of episodes that terminate at the very same, largest length: more is hardly chance.
    SUSPICIOUS, LEAST = 0.1, 10

    def __init__(self, data: Transitions) -> None:
        self.left_out = data.n_left_out
        self.terminated = self.truncated = self.unflagged = self.episodes = 0
        self.lengths: Counter[tuple[int, bool]] = Counter()  # (length, terminated)
        self._length = 0
        self._last = (-1, True, False)  # episode, flagged, terminated of the row before

    def add(self, chunk: Chunk) -> None:
        self.terminated += int(chunk.terminated.sum())
        self.truncated += int(chunk.truncated.sum())
        begins = np.flatnonzero(np.diff(chunk.episode, prepend=self._last[0]))
        flagged = chunk.terminated | chunk.truncated
        self.episodes += len(begins)
        if len(begins):
            self._close(self._length + int(begins[0]), flagged, chunk.terminated, int(begins[0]) - 1)
            for first, last in itertools.pairwise(begins):
                self._close(int(last - first), flagged, chunk.terminated, int(last) - 1)
            self._length = len(chunk) - int(begins[-1])
        else:
            self._length += len(chunk)
        self._last = (int(chunk.episode[-1]), bool(flagged[-1]), bool(chunk.terminated[-1]))

    def _close(self, length: int, flagged: NDArray[np.bool_], terminated: NDArray[np.bool_], row: int) -> None:
        """An episode of ``length`` rows ended in ``row`` of the chunk, or in the row before it."""
        if not length:
            return
        _, was_flagged, was_terminated = self._last
        self.unflagged += not (flagged[row] if row >= 0 else was_flagged)
        self.lengths[length, bool(terminated[row] if row >= 0 else was_terminated)] += 1

    def findings(self) -> Iterator[Finding]:
        lengths = self.lengths.copy()
        lengths[self._length, self._last[2]] += 1
        open_end = self.unflagged + (not self._last[1])
        yield Finding(
            "episodes",
            "ok",
            self.episodes,
            "Rows of one episode are correlated: more episodes say more than more rows.",
        )
        n = sum(lengths.values())
        longest = max(length for length, _ in lengths)
        summary = {
            "least": min(length for length, _ in lengths),
            "mean": sum(length * count for (length, _), count in lengths.items()) / n,
            "most": longest,
        }
        yield Finding("episode lengths", "ok", summary, "In rows.")
        yield from self._ends(open_end, n, lengths[longest, True], longest)
        if self.left_out:
            yield Finding(
                "rows left out", "note", self.left_out,
                "They were cut off and their next observation is unknown; the rows before them are the truncated "
                "ones now.",
            )  # fmt: skip

    def _ends(self, open_end: int, n: int, at_longest: int, longest: int) -> Iterator[Finding]:
        if self.terminated:
            yield Finding(
                "terminations",
                "ok",
                self.terminated,
                "There the value of what follows is 0, and nothing is bootstrapped.",
            )
        else:
            yield Finding(
                "terminations", "warning", 0,
                "No episode terminates: all values rest on bootstrapping. Right for a task that never ends; else "
                "nobody reached the end, or the ends are not marked, and nothing can be learned of them.",
            )  # fmt: skip
        if not self.truncated and n >= self.LEAST and at_longest >= self.SUSPICIOUS * n and longest > 1:
            yield Finding(
                "truncations", "warning", 0,
                f"{at_longest:,} of {n:,} episodes terminate after exactly {longest:,} rows, the longest of all: "
                "that looks like a time limit recorded as termination, which makes good states look bad. Give it as "
                "truncated.",
            )  # fmt: skip
        else:
            yield Finding(
                "truncations",
                "ok",
                self.truncated,
                "There the value of what follows is bootstrapped as in any other row.",
            )
        if open_end:
            yield Finding(
                "episodes without an end", "note", open_end,
                "Their last rows are neither terminated nor truncated. Each row has its next observation, so "
                "nothing is lost; but if the environment ended them, the values there are wrong.",
            )  # fmt: skip


class Rewards:
    """Their range, and what it says of the values."""

    def __init__(self, data: Transitions, discount: float) -> None:
        self.discount = discount
        self.low, self.high, self.total, self.n = np.inf, -np.inf, 0.0, 0

    def add(self, chunk: Chunk) -> None:
        self.low, self.high = min(self.low, chunk.rewards.min()), max(self.high, chunk.rewards.max())
        self.total, self.n = self.total + float(chunk.rewards.sum()), self.n + len(chunk)

    def findings(self) -> Iterator[Finding]:
        summary = {"least": float(self.low), "mean": self.total / self.n, "most": float(self.high)}
        if self.low == self.high == 0:
            yield Finding("rewards", "problem", summary, "All rewards are 0: every policy is as good as every other.")
        elif self.low == self.high:
            yield Finding(
                "rewards", "note", summary,
                "All rewards are alike: only the ends of episodes tell good actions from bad ones, so they must be "
                "marked right.",
            )  # fmt: skip
        else:
            yield Finding(
                "rewards", "ok", summary, "Step sizes of ω and θ are independent of this scale; θ grows with it."
            )
        largest = max(abs(self.low), abs(self.high))
        yield Finding(
            "largest |Q|", "ok", float(largest / (1 - self.discount)),
            f"r_max/(1−γ) at γ = {self.discount:g}: an estimate above it is wrong, and one that keeps growing "
            "diverges.",
        )  # fmt: skip


class Columns:
    """Observation columns that never change."""

    def __init__(self, data: Transitions) -> None:
        self.low, self.high = np.full(data.observation_size, np.inf), np.full(data.observation_size, -np.inf)

    def add(self, chunk: Chunk) -> None:
        np.minimum(self.low, chunk.observations.min(axis=0), out=self.low)
        np.maximum(self.high, chunk.observations.max(axis=0), out=self.high)

    def findings(self) -> Iterator[Finding]:
        constant = [int(j) for j in np.flatnonzero(self.low == self.high)]
        every = len(constant) == len(self.low)
        meaning = (
            "All states look alike: only a bandit can be learned."
            if every
            else "These numbers of the observation never change: they carry nothing, and fitted bounds are empty."
            if constant
            else "Every number of the observation changes."
        )
        yield Finding("constant columns", "problem" if every else "note" if constant else "ok", constant, meaning)


class ActionTallies:
    """How often each action was taken."""

    RARE = 0.01

    def __init__(self, data: Transitions) -> None:
        self.counts = np.zeros(data.n_actions, np.int64)
        self.labels = data.action_labels

    def _names(self, actions: NDArray[np.intp]) -> str:
        return ", ".join(str(a) if self.labels is None else repr(self.labels[a]) for a in actions)

    def add(self, chunk: Chunk) -> None:
        self.counts += np.bincount(chunk.actions, minlength=len(self.counts))

    def findings(self) -> Iterator[Finding]:
        never, share = np.flatnonzero(self.counts == 0), self.counts / self.counts.sum()
        rare = np.flatnonzero((share < self.RARE) & (self.counts > 0))
        counts: Any = [int(count) for count in self.counts]
        if self.labels is not None:
            counts = {printable(str(label)): count for label, count in zip(self.labels, counts, strict=True)}
        if len(self.counts) == 1:
            yield Finding("actions", "problem", counts, "There is one action only: nothing to choose.")
        elif len(never):
            yield Finding(
                "actions", "problem", counts,
                f"Never taken: {self._names(never)}. Its values stay where they start, and a greedy target "
                "may choose it.",
            )  # fmt: skip
        elif len(rare):
            yield Finding(
                "actions", "warning", counts,
                f"Taken in less than 1 % of the rows: {self._names(rare)}. Its values are noisy, and max "
                "picks noise.",
            )  # fmt: skip
        else:
            first = ", action 0 first" if self.labels is None else ""
            yield Finding("actions", "ok", counts, f"How often each was taken{first}: every one has its share.")


class Following:
    """Whether a row's next observation is the observation of the row after it."""

    #: Single precision: a column that was stored as float32 and read as float64 still follows.
    TOLERANCE = 1e-5

    def __init__(self, data: Transitions) -> None:
        self.pairs = self.broken = 0
        self._last: tuple[int, Any] | None = None

    def add(self, chunk: Chunk) -> None:
        if self._last is not None and self._last[0] == chunk.episode[0]:
            self._compare(self._last[1][None], chunk.observations[:1])
        inside = (np.diff(chunk.episode) == 0) & ~(chunk.terminated | chunk.truncated)[:-1]
        differ = (chunk.next_observations[:-1] != chunk.observations[1:]).any(axis=1) & inside
        self.pairs += int(inside.sum() - differ.sum())
        self._compare(chunk.next_observations[:-1][differ], chunk.observations[1:][differ])
        ended = chunk.terminated[-1] or chunk.truncated[-1]
        self._last = None if ended else (int(chunk.episode[-1]), chunk.next_observations[-1])

    def _compare(self, following: NDArray[Any], observations: NDArray[Any]) -> None:
        scale = np.abs(observations).max(axis=0, initial=0)  # of each number by itself: a time beside a share
        close = np.isclose(following, observations, self.TOLERANCE, self.TOLERANCE * scale)
        self.pairs, self.broken = self.pairs + len(following), self.broken + int((~close.all(axis=1)).sum())

    def findings(self) -> Iterator[Finding]:
        name = "next observations that do not follow"
        if not self.broken:
            yield Finding(name, "ok", 0, "Within an episode each next observation is the observation of the next row.")
        elif self.broken > self.pairs / 2:
            yield Finding(
                name, "note", self.broken,
                f"Of {self.pairs:,} pairs: the rows are not in the order of time. One-step methods do not mind; "
                "traces, returns and importance sampling over episodes cannot be used.",
            )  # fmt: skip
        else:
            yield Finding(
                name, "warning", self.broken,
                f"Of {self.pairs:,} pairs: rows are missing inside episodes, ends are not marked, or columns do not "
                "belong together.",
            )  # fmt: skip


class Duplicates:
    """Rows that occur more than once, by a hash of their bytes; the first million is enough to see them."""

    MOST = 10**6

    def __init__(self, data: Transitions) -> None:
        self._rows: list[NDArray[np.uint64]] = []
        self._states: list[NDArray[np.uint64]] = []
        self._n = 0
        self._keys = np.random.default_rng(0).integers(
            2**64, size=2 * data.observation_size + 2, dtype=np.uint64
        ) | np.uint64(1)

    def add(self, chunk: Chunk) -> None:
        n = min(len(chunk), self.MOST - self._n)
        if n <= 0:
            return
        size = chunk.observations.shape[1]
        states = self._hash(chunk.observations[:n], self._keys[:size])
        other = self._hash(chunk.next_observations[:n], self._keys[size : 2 * size])
        rest = self._hash(np.stack([chunk.actions[:n].astype(np.float64), chunk.rewards[:n]], axis=1), self._keys[-2:])
        self._states.append(states)
        self._rows.append(states + np.uint64(3) * other + np.uint64(5) * rest)
        self._n += n

    @staticmethod
    def _hash(values: NDArray[Any], keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
        bits = values.astype(np.float64).view(np.uint64)
        bits ^= bits >> np.uint64(29)
        out: NDArray[np.uint64] = (bits * keys).sum(axis=1, dtype=np.uint64)  # modulo 2⁶⁴
        return out

    def findings(self) -> Iterator[Finding]:
        copies = self._n - _different(self._rows)
        states = _different(self._states)
        few = states < self._n / 2
        if not copies:
            level, meaning = "ok", "Every row is there once."
        elif few:
            level, meaning = "ok", f"There are only {states:,} different observations: the same transition comes again."
        else:
            level = "warning" if copies > self._n / 1000 else "note"
            meaning = "Observations hardly ever repeat, but these rows do: parts of the data may be there twice."
        first = f" (of the first {self._n:,} rows)" if self._n == self.MOST else ""
        yield Finding("duplicated rows", level, copies, meaning + first)


def _different(parts: list[NDArray[np.uint64]]) -> int:
    """How many different numbers there are; sorting is ten times as quick here as the hash of np.unique."""
    whole = np.sort(np.concatenate(parts))
    return 1 + int(np.count_nonzero(whole[1:] != whole[:-1]))
