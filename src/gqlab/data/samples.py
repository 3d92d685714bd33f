"""How much the rows are worth: behaviour probabilities, importance weights, correlation in time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gqlab.data.assemble import Chunk
from gqlab.data.findings import Finding
from gqlab.data.transitions import Transitions
from gqlab.operators import FixedPolicy
from gqlab.support import checks
from gqlab.support.files import one_line

#: Probabilities of all actions, (n, n_actions), for observations (n, dim).
Target = Callable[[NDArray[Any]], NDArray[np.float64]]


def target_of(target: Any, n_actions: int, size: int) -> Target | None:
    """A target policy as a function of a batch of observations."""
    if target is None:
        return None
    if isinstance(target, FixedPolicy):
        table = np.asarray(target.table)
        if size != 1 or table.shape[1] != n_actions:
            raise ValueError(
                f"target is a table of shape {table.shape}: the data have {n_actions} actions and observations of "
                f"{size} "
                "numbers, expected one number, the state"
            )
        return lambda observations: _looked_up(table, observations)
    if not callable(target):
        raise ValueError(
            f"target is {checks.shown(target)}, expected a FixedPolicy, or a function from observations (n, dim) to "
            "the "
            f"probabilities of all actions (n, {n_actions})"
        )
    return lambda observations: asked(target, observations, n_actions)


def _looked_up(table: NDArray[np.float64], observations: NDArray[Any]) -> NDArray[np.float64]:
    states = observations[:, 0].astype(np.int64)
    bad = np.flatnonzero((states != observations[:, 0]) | (states < 0) | (states >= len(table)))
    if len(bad):
        raise ValueError(
            f"target has {len(table)} states, and an observation of the data is {observations[bad[0], 0]:g}"
        )
    return table[states]


def asked(target: Callable[[Any], Any], observations: NDArray[Any], n_actions: int) -> NDArray[np.float64]:
    """The probabilities that a user's own policy answers, (n, n_actions)."""
    try:
        answer = target(observations)
    except Exception as error:  # the user's own
        raise ValueError(f"target failed: {type(error).__name__}: {one_line(error)[:200]}") from error
    p = checks.array("target, its answer", answer, (len(observations), n_actions))
    checks.probabilities("target, its answer", p)
    return p


class Importance:
    """Behaviour probabilities, and the weights ρ = π(a|s)/b(a|s) of a target policy."""

    def __init__(self, data: Transitions, target: Any) -> None:
        self.target = target_of(target, data.n_actions, data.observation_size)
        self.total = self.squares = 0.0
        self.least, self.largest, self.known, self.n = 1.0, 0.0, True, 0

    def add(self, chunk: Chunk) -> None:
        self.n += len(chunk)
        if chunk.probability is None:
            self.known = False
            return
        self.least = min(self.least, float(chunk.probability.min()))
        if self.target is not None:
            chosen = self.target(chunk.observations)[np.arange(len(chunk)), chunk.actions]
            weights = chosen / chunk.probability
            self.total, self.squares = self.total + float(weights.sum()), self.squares + float((weights**2).sum())
            self.largest = max(self.largest, float(weights.max()))

    def findings(self) -> Iterator[Finding]:
        if not self.known:
            yield Finding(
                "behaviour probabilities", "note", None,
                "They are not recorded. Greedy-GQ, Q-learning and fitted Q do not need them; importance sampling does.",
            )  # fmt: skip
            return
        yield Finding(
            "behaviour probabilities", "ok", {"least": self.least}, "Recorded: importance sampling can be used."
        )
        if self.target is not None:
            size = self.total**2 / self.squares if self.squares else 0.0
            yield Finding(
                "effective sample size of the target", "ok" if size > self.n / 10 else "warning", size,
                f"(Σρ)²/Σρ² of {self.n:,} one-step weights, the largest {self.largest:.3g}: as if the target policy "
                "itself had made so many rows.",
            )  # fmt: skip


class Correlated:
    """Effective sample size of correlated rows, by means of batches of √n rows: n var(x) / (B var(batch means))."""

    def __init__(self, data: Transitions) -> None:
        self.size = max(int(data.n_rows**0.5), 1)
        self.batches = data.n_rows // self.size
        self.sums = np.zeros((self.batches, data.observation_size + 1))
        self.total, self.squares = np.zeros((2, data.observation_size + 1))
        self.origin: NDArray[np.float64] | None = None

    def add(self, chunk: Chunk) -> None:
        x = np.column_stack([chunk.rewards, chunk.observations]).astype(np.float64)
        self.origin = x[0].copy() if self.origin is None else self.origin
        x -= self.origin  # else the squares of a column far from 0 lose its variance
        x = x[: max(self.batches * self.size - chunk.first_row, 0)]
        if not len(x):
            return
        batch = (chunk.first_row + np.arange(len(x))) // self.size
        first = np.flatnonzero(np.diff(batch, prepend=-1))
        self.sums[batch[first]] += np.add.reduceat(x, first)
        self.total += x.sum(axis=0)
        self.squares += (x**2).sum(axis=0)

    def sizes(self) -> NDArray[np.float64]:
        """Of the rewards and of every number of the observation; NaN where one never changes."""
        n = self.batches * self.size
        variance = self.squares / n - (self.total / n) ** 2
        means = (self.sums / self.size).var(axis=0, ddof=1) if self.batches > 1 else np.full(len(variance), np.nan)
        with np.errstate(all="ignore"):
            sizes = np.minimum(n * variance / (self.size * means), n)
        return np.where(variance > 1e-12 * self.squares / n, sizes, np.nan)

    def findings(self) -> Iterator[Finding]:
        sizes = self.sizes()
        name = "effective sample size of the rows"
        if np.isnan(sizes).all() or self.batches < 10:
            yield Finding(name, "note", None, "Too few rows, or nothing that varies, to tell how correlated they are.")
            return
        slowest = int(np.nanargmin(sizes))
        what = "the rewards" if slowest == 0 else f"number {slowest - 1} of the observation"
        yield Finding(
            name, "warning" if sizes[slowest] < 100 else "ok", float(sizes[slowest]),
            f"As if {what} had been seen so often independently, and everything else more often; by means of "
            f"{self.batches:,} batches of {self.size:,} rows.",
        )  # fmt: skip
