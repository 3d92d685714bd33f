"""Growing counts: epochs of M·growth^k updates, and the moments n = first·growth^k, both rounded."""

from __future__ import annotations

import numpy as np

from gqlab.rules.dispatch import rule

#: A growth factor is handed to compiled code in units of 2⁻³²: a whole number is the same in every precision.
GROWTH_UNIT = 1 << 32


@rule
def epoch_from(M, growth, u):
    """The first epoch that begins at update u or later: its first update, and how many it has."""
    if growth == GROWTH_UNIT:
        return (u + M - 1) // M * M, M
    first, size = 0, np.float64(M)
    while first < u:
        first += int(size + 0.5)
        size *= growth / GROWTH_UNIT
    return first, int(size + 0.5)


@rule
def moment_from(first, growth, n):
    """The smallest first·growth^k that is at least n; consecutive ones are at least 1 apart."""
    size = np.float64(first)
    while int(size + 0.5) < n:
        size = max(size * (growth / GROWTH_UNIT), size + 1.0)
    return int(size + 0.5)
