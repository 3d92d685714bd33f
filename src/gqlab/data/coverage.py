"""What an encoder makes of the data: C = mean of φφᵀ, features that are never active, observations outside its bounds.

φ(s, a) holds the K features x(s) in the block of action a, so C has a block for each action:

    C_a = (1/n) Σ_{rows with action a} x xᵀ.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gqlab.data.assemble import Chunk
from gqlab.data.findings import Finding
from gqlab.data.transitions import Transitions

#: The largest d = n_actions K whose C is made.
LARGEST = 4000

#: Numbers of the features that are made at a time.
AT_A_TIME = 2**22


def bounded(encoder: Any) -> bool:
    """Whether the encoder has bounds that observations can be outside of."""
    return getattr(encoder, "low_", None) is not None and bool(np.any(np.asarray(encoder.low_) < encoder.high_))


class Bounds:
    """Observations outside the encoder's bounds."""

    def __init__(self, data: Transitions, encoder: Any) -> None:
        size = data.observation_size
        self.low = np.broadcast_to(np.asarray(encoder.low_, float), (size,))
        self.high = np.broadcast_to(np.asarray(encoder.high_, float), (size,))
        self.n = self.outside = 0
        self.columns = np.zeros(size, np.int64)

    def add(self, chunk: Chunk) -> None:
        out = (chunk.observations < self.low) | (chunk.observations > self.high)
        self.n, self.outside = self.n + len(chunk), self.outside + int(out.any(axis=1).sum())
        self.columns += out.sum(axis=0)

    def findings(self) -> Iterator[Finding]:
        name = "observations outside the bounds"
        if not self.outside:
            yield Finding(name, "ok", 0, "All observations are within the encoder's bounds.")
            return
        where = ", ".join(f"number {j}: {self.columns[j]:,}" for j in np.flatnonzero(self.columns))
        level = "warning" if self.outside > self.n / 100 else "note"
        yield Finding(
            name, level, self.outside,
            f"Rows of {self.n:,} ({where}): they are moved to the edge, where different states look alike. Widen "
            "the bounds.",
        )  # fmt: skip


class Coverage:
    """C and its eigenvalues, or its diagonal where it would be too large."""

    def __init__(self, data: Transitions, encoder: Any) -> None:
        self.encoder, self.A, self.K = encoder, data.n_actions, int(encoder.n_features_out_)
        self.d = self.A * self.K
        self.n = 0
        self.diagonal = np.zeros((self.A, self.K))
        self.C = np.zeros((self.A, self.K, self.K)) if self.d <= LARGEST else None

    def add(self, chunk: Chunk) -> None:
        self.n += len(chunk)
        rows = max(AT_A_TIME // (self.encoder.n_active_ if self.encoder.kind == "binary" else self.K), 1)
        for first in range(0, len(chunk), rows):
            block = slice(first, first + rows)
            x = self._features(chunk.observations[block])
            for a in range(self.A):
                of_a = x[np.flatnonzero(chunk.actions[block] == a)]
                self.diagonal[a] += (
                    np.asarray(of_a.multiply(of_a).sum(axis=0)).reshape(-1)
                    if sparse.issparse(of_a)
                    else (of_a**2).sum(axis=0)
                )
                if self.C is not None:
                    product = of_a.T @ of_a
                    self.C[a] += product.toarray() if sparse.issparse(product) else product

    def _features(self, observations: NDArray[Any]) -> Any:
        """(n, K): the features of the states, sparse where they are binary."""
        encoded = self.encoder.encode_batch(np.ascontiguousarray(observations, np.float64))
        if self.encoder.kind != "binary":
            return encoded
        n, active = encoded.shape
        values = np.full(n * active, float(self.encoder.value_))
        return sparse.csr_array((values, encoded.reshape(-1), np.arange(n + 1) * active), shape=(n, self.K))

    def findings(self) -> Iterator[Finding]:
        seen = self.diagonal > 0
        never = int(self.d - seen.sum())
        yield Finding(
            "features never active", "ok" if not never else "note", never,
            f"Of d = {self.d:,} ({self.K:,} features of the state for each of {self.A} actions)."
            + (" Their entries of θ stay where they start: there the values are a guess." if never else ""),
        )  # fmt: skip
        if self.encoder.kind == "binary":
            yield self._tried(seen)
        if self.n < 10 * self.d:
            yield Finding(
                "rows for each feature", "note", self.n / self.d,
                "Fewer than 10 rows for each entry of θ: least squares overfits; use fewer features, a ridge, or "
                "more data.",
            )  # fmt: skip
        yield from self._spectrum() if self.C is not None else self._diagonal()

    def _tried(self, seen: NDArray[np.bool_]) -> Finding:
        """Whether all actions were tried where the data have been."""
        regions = seen.any(axis=0)
        tried = float(seen[:, regions].all(axis=0).mean()) if regions.any() else 0.0
        return Finding(
            "features with every action tried", "ok" if tried > 0.9 else "warning" if tried < 0.5 else "note", tried,
            "The share of the features of visited states that were active with each action at least once: elsewhere "
            "a greedy target compares what was seen with what was not.",
        )  # fmt: skip

    def _spectrum(self) -> Iterator[Finding]:
        assert self.C is not None
        values = np.concatenate([np.linalg.eigvalsh(block / self.n) for block in self.C])
        top = float(values.max())
        positive = values[values > 10 * self.d * np.finfo(float).eps * top]
        rank, least = len(positive), float(positive.min(initial=np.inf)) if len(positive) else 0.0
        full = rank == self.d
        yield Finding(
            "rank of C", "ok" if full else "note", rank,
            f"Of d = {self.d:,}. " + ("Every direction of θ is seen." if full else
            f"In {self.d - rank:,} directions θ changes no value of the data: they stay where they start, and least "
            "squares needs a ridge. With tilings some always are: the tiles of each tiling add up to the same."),
        )  # fmt: skip
        smallest = least if full else 0.0
        yield Finding(
            "smallest eigenvalue of C", "ok" if full else "note", smallest,
            ("" if full else f"The smallest above 0 is {least:.3g}. ")
            + f"ω needs about 1/(η_ω λ) updates in the direction of an eigenvalue λ; the largest is {top:.3g}.",
        )  # fmt: skip
        if not positive.size:
            return
        condition = top / least
        yield Finding(
            "condition of C", "ok" if condition < 1e6 else "warning", condition,
            "Largest over smallest eigenvalue above 0: the slowest direction takes so many times the updates of the "
            "fastest, which bounds the step size. Scale or decorrelate the features where it is large.",
        )  # fmt: skip

    def _diagonal(self) -> Iterator[Finding]:
        active = self.diagonal[self.diagonal > 0] / self.n
        yield Finding(
            "diagonal of C", "note", {"least": float(min(active, default=0)), "most": float(active.max(initial=0))},
            f"Of the features that were active. d = {self.d:,} is above {LARGEST:,}: rank and eigenvalues are not "
            "computed.",
        )  # fmt: skip
