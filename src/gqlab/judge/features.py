"""The features that policies are judged with: leaves of random trees, a table, or an encoder.

Never those that a policy was fitted with: what these cannot hold, its fit has already put into its claims.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gqlab.data.encoding import fit_encoder
from gqlab.data.transitions import Transitions
from gqlab.support import checks
from gqlab.support.checks import FloatArray

#: Random trees, and the leaves of each, at most: with them no verdict of a hundred was wrong, on policies that were
#: fitted with wrong features.
TREES, LEAVES = 8, 40

#: A leaf holds at least so many rows, and at least this share of all of them.
LEAST_ROWS, LEAST_SHARE = 5, 1e-3

#: Different observations that a table may have.
MOST_STATES = 50_000


@dataclass(frozen=True)
class Features:
    """x(s): ``n_active`` features of the same value, or K of any value; ‖x‖ is 1, or 1 in the mean square.

    ``encode`` gives places (n, n_active) where they are binary, else numbers (n, K).
    """

    kind: Literal["trees", "tabular", "encoder"]
    encoder: Any
    value: float  # of an active feature, or what numbers are multiplied by
    K: int

    @property
    def binary(self) -> bool:
        return bool(self.encoder.kind == "binary")

    @property
    def n_active(self) -> int:
        return int(self.encoder.n_active_) if self.binary else self.K

    def encode(self, observations: FloatArray) -> NDArray[Any]:
        encoded = self.encoder.encode_batch(observations)
        return encoded if self.binary else encoded * self.value


def features_of(spec: Any, data: Transitions, observations: FloatArray, seed: int) -> Features:
    """Features of "trees", of "tabular" or of an encoder; trees learn from ``observations``."""
    if isinstance(spec, str):
        kind = checks.one_of("features", spec, ("trees", "tabular"))
        made: Any = Leaves(observations, seed) if kind == "trees" else StateTable(data)
        return Features("trees" if kind == "trees" else "tabular", made, made.value_, made.n_features_out_)
    try:
        encoder = fit_encoder(spec, data)
    except ValueError as error:
        raise ValueError(f"features: {error}") from None
    if encoder.kind == "binary":
        return Features("encoder", encoder, encoder.value_, encoder.n_features_out_)
    square = float(np.mean(np.sum(encoder.encode_batch(observations) ** 2, axis=1)))
    return Features("encoder", encoder, 1 / np.sqrt(square) if square > 0 else 1.0, encoder.n_features_out_)


class Leaves:
    """One-hot leaves of random trees: each tree cuts the observations at random, wherever there are many."""

    kind = "binary"

    def __init__(self, observations: FloatArray, seed: int) -> None:
        from sklearn.ensemble import RandomTreesEmbedding

        rows = int(max(LEAST_ROWS, np.ceil(LEAST_SHARE * len(observations))))
        self.trees = RandomTreesEmbedding(
            TREES, max_depth=None, max_leaf_nodes=LEAVES, min_samples_leaf=rows, random_state=seed, sparse_output=True
        ).fit(observations)
        places = []
        n = 0
        for tree in self.trees.estimators_:
            leaf = tree.tree_.children_left < 0
            places.append(np.where(leaf, n + np.cumsum(leaf) - 1, -1))
            n += int(leaf.sum())
        self.places, self.n_features_out_ = places, n
        self.n_active_, self.value_ = TREES, float(1 / np.sqrt(TREES))

    def encode_batch(self, observations: FloatArray) -> NDArray[np.int32]:
        """The leaf of every tree, (n, TREES)."""
        single = np.ascontiguousarray(observations, dtype=np.float32)
        out = np.empty((len(single), TREES), np.int32)
        for k, (tree, places) in enumerate(zip(self.trees.estimators_, self.places, strict=True)):
            out[:, k] = places[tree.tree_.apply(single)]
        return out


class StateTable:
    """One feature for every observation that occurs."""

    kind = "binary"
    n_active_, value_ = 1, 1.0

    def __init__(self, data: Transitions) -> None:
        self.values = [np.empty(0)] * data.observation_size
        for part in _observations(data):
            self.values = [np.union1d(known, column) for known, column in zip(self.values, part.T, strict=True)]
            widest = max(map(len, self.values))
            if widest > MOST_STATES:
                raise ValueError(_too_many(widest))
        if np.prod([float(len(known)) for known in self.values]) >= 2**62:
            raise ValueError("features is 'tabular', but the observations have too many numbers; expected 'trees'")
        self.codes = np.empty(0, np.int64)
        for part in _observations(data):
            self.codes = np.union1d(self.codes, self._code(part))
            if len(self.codes) > MOST_STATES:
                raise ValueError(_too_many(len(self.codes)))
        self.n_features_out_ = len(self.codes)

    def _code(self, observations: FloatArray) -> NDArray[np.int64]:
        """A number for each observation: the places of its numbers among their values, as digits."""
        code = np.zeros(len(observations), np.int64)
        for known, column in zip(self.values, observations.T, strict=True):
            code = code * len(known) + np.minimum(np.searchsorted(known, column), len(known) - 1)
        return code

    def encode_batch(self, observations: FloatArray) -> NDArray[np.int32]:
        """The place of every observation, (n, 1)."""
        place = np.searchsorted(self.codes, self._code(observations))
        return np.minimum(place, len(self.codes) - 1).astype(np.int32)[:, None]


def _too_many(n: int) -> str:
    return (
        f"features is 'tabular', but there are {n:,} different observations or more, expected at most {MOST_STATES:,}; "
        "use 'trees'"
    )


def _observations(data: Transitions) -> Any:
    for chunk in data.chunks():
        yield np.asarray(chunk.observations, dtype=np.float64)
        yield np.asarray(chunk.next_observations, dtype=np.float64)[~chunk.terminated]
