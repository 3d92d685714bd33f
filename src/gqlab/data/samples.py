"""How much the rows are worth: behaviour probabilities, importance weights, correlation in time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gqlab.data.assemble import Chunk
from gqlab.data.findings import Finding
from gqlab.data.transitions import Transitions
from gqlab.policies import as_policy


class Importance:
    """Behaviour probabilities, and the weights ρ = π(a|s)/b(a|s) of a target policy."""

    def __init__(self, data: Transitions, target: Any) -> None:
        sizes = data.n_actions, data.observation_size
        self.target = None if target is None else as_policy("target", target, *sizes)
        self.total = self.squares = 0.0
        self.least, self.largest, self.known, self.n = 1.0, 0.0, True, 0

    def add(self, chunk: Chunk) -> None:
        self.n += len(chunk)
        if chunk.probability is None:
            self.known = False
            return
        self.least = min(self.least, float(chunk.probability.min()))
        if self.target is not None:
            pi = self.target.probabilities(np.asarray(chunk.observations, dtype=np.float64))
            weights = pi[np.arange(len(chunk)), chunk.actions] / chunk.probability
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
