"""Features of a state, in one block for each action: φ(s,a) is x(s) in the block of a, and zero elsewhere.

Row A·k + a of the features is φ of observation k and action a; with K features of a state, d = A·K. A row is read and
added to only where it is not zero, so that the cost of an update grows with the number of nonzero features and not with
d. Numbers are in double precision.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gqlab.rules.dispatch import by_type, rule
from gqlab.rules.memory import Sizes
from gqlab.rules.vectors import note, raw_entry, scale_of, shift


@by_type
def place_in_block(self, first, j):
    """Features in blocks: which of the K features number j of the observation that begins at ``first`` is."""


@by_type
def value_of(self, first, j):
    """Features in blocks: number j of that observation."""


class BinaryBlocks(NamedTuple):
    """The places of the nonzero features, which all have the same value: tile coding, one-hot."""

    places: Any  # (n_observations · n_active,)
    value: float
    n_active: int
    n_features: int  # K
    n_actions: int

    def ranges(self, n: Sizes) -> dict[str, tuple[float, float]]:
        return {"places": (0, n.d // n.A)}

    def dot(self, row, v, d):
        return dot_row(self, row, v)

    def add(self, row, c, out, d):
        add_row(self, row, c, out)

    def add_block(self, row, c, scale, out, d, A):
        add_rows(self, row, c, scale, out, A)

    def place_in_block(self, first, j):
        return np.int64(self.places[first + j])

    def value_of(self, first, j):
        return self.value


class DenseBlocks(NamedTuple):
    """All K features of a state."""

    value: Any  # (n_observations · K,)
    n_active: int  # K
    n_features: int  # K
    n_actions: int

    def dot(self, row, v, d):
        return dot_row(self, row, v)

    def add(self, row, c, out, d):
        add_row(self, row, c, out)

    def add_block(self, row, c, scale, out, d, A):
        add_rows(self, row, c, scale, out, A)

    def place_in_block(self, first, j):
        return j

    def value_of(self, first, j):
        return self.value[first + j]


@rule
def begins(features, row):
    """Where the numbers of a row begin in the table, and where its block begins in θ."""
    observation = np.uint32(row) // np.uint32(features.n_actions)
    action = np.uint32(row) - observation * np.uint32(features.n_actions)
    return np.int64(observation) * features.n_active, np.int64(action) * features.n_features


@rule
def dot_row(features, row, v):
    """φᵀv."""
    first, block = begins(features, row)
    out = 0.0
    for j in range(features.n_active):
        out += value_of(features, first, j) * raw_entry(v, block + place_in_block(features, first, j))
    return scale_of(v) * out


@rule
def add_row(features, row, c, out):
    """out += c φ, in the units of ``raw_entry``."""
    first, block = begins(features, row)
    one = two = 0.0
    for j in range(features.n_active):
        change = shift(out, block + place_in_block(features, first, j), c * value_of(features, first, j))
        one += change[0]
        two += change[1]
    note(out, one, two)


@rule
def add_rows(features, row, c, scale, out, A):
    """out += scale Σ_a c_{2+a} φ_{row+a}: of a maximum all but one are zero, and without a correction all."""
    for a in range(A):
        if c[2 + a] != 0.0:
            add_row(features, row + a, scale * c[2 + a], out)
