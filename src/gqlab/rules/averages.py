"""Vectors that are followed by a slow average of themselves, at the cost of their own moves.

    v̄ ← (1 − ρ) v̄ + ρ v          v = a (u + c g)

is kept as v̄ = b (u + c g) + m (s + k g): b, m and k are numbers, s is an array. A shift of u, a step along g, a change
of g and a projection leave v̄ where it is, and each changes s at the same entries as v, or a number; the average's own
step changes b and m alone. So neither costs O(d).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gqlab.rules.dispatch import by_type, rule
from gqlab.rules.vectors import (
    DRIFT_SCALE,
    LAG,
    LEAST_MEAN_SCALE,
    SCALE,
    N,
    P,
    entry_of,
    move_lagged,
    shift_lagged,
    shift_scaled,
    write_lagged,
    write_scaled,
)

#: The numbers of an average: ρ, b, m, k.
RATE, WEIGHT_OF_V, FADED, AVERAGE_LAG = range(4)
N_PACE = 4

#: Below this m, s is written out anew.
LEAST_FADED = 1e-100


@by_type
def average_entry(self, i):
    """Vector: entry i of its average; of a vector without one, its own."""
    return entry_of(self, i)


@by_type
def step_average(self, d):
    """Vector: v̄ ← (1 − ρ) v̄ + ρ v, where there is an average."""


@by_type
def acting(self):
    """Vector: what an agent acts by: the average, where there is one."""
    return self


class FollowedScaled(NamedTuple):
    """v = a u, and v̄ = b u + m s."""

    u: Any  # (d,)
    numbers: Any  # (9,)
    s: Any  # (d,)
    pace: Any  # (4,)

    def entry_of(self, i):
        return self.numbers[SCALE] * self.u[i]

    def raw_entry(self, i):
        return self.u[i]

    def scale_of(self):
        return self.numbers[SCALE]

    def note(self, first, second):
        self.numbers[N] += first

    def move_along_drift(self, step):
        pass

    def shift(self, i, amount):
        self.s[i] -= self.pace[WEIGHT_OF_V] / self.pace[FADED] * amount
        return shift_scaled(self, i, amount)

    def write_out(self, d):
        more = rest_of_average(self)
        for i in range(d):
            self.s[i] += more * self.u[i]
        write_scaled(self, d)

    def least_scale(self):
        return LEAST_MEAN_SCALE

    def average_entry(self, i):
        return self.pace[WEIGHT_OF_V] * self.u[i] + self.pace[FADED] * self.s[i]

    def step_average(self, d):
        if fade_average(self):
            for i in range(d):
                self.s[i] *= self.pace[FADED]
            self.pace[FADED] = 1.0

    def acting(self):
        return AverageOf(self)


class FollowedLagged(NamedTuple):
    """v = a (u + c g), and v̄ = b (u + c g) + m (s + k g)."""

    u: Any  # (d,)
    g: Any  # (d,)
    numbers: Any  # (9,)
    s: Any  # (d,)
    pace: Any  # (4,)

    def entry_of(self, i):
        return self.numbers[SCALE] * (self.u[i] + self.numbers[LAG] * self.g[i])

    def raw_entry(self, i):
        return self.u[i] + self.numbers[LAG] * self.g[i]

    def scale_of(self):
        return self.numbers[SCALE]

    def note(self, first, second):
        self.numbers[N] += first
        self.numbers[P] += second

    def shift(self, i, amount):
        self.s[i] -= self.pace[WEIGHT_OF_V] / self.pace[FADED] * amount
        return shift_lagged(self, i, amount)

    def move_along_drift(self, step):
        e = step * self.numbers[DRIFT_SCALE]
        self.pace[AVERAGE_LAG] -= self.pace[WEIGHT_OF_V] / self.pace[FADED] * e
        move_lagged(self, e)

    def drift_shifted(self, i, amount):
        self.s[i] -= self.pace[AVERAGE_LAG] * amount

    def write_out(self, d):
        write_average(self, 1.0, d)
        more = rest_of_average(self)
        for i in range(d):
            self.s[i] += more * (self.u[i] + self.numbers[LAG] * self.g[i])
        write_lagged(self, d)

    def least_scale(self):
        return LEAST_MEAN_SCALE

    def average_entry(self, i):
        raw = self.u[i] + self.numbers[LAG] * self.g[i]
        lagged = self.s[i] + self.pace[AVERAGE_LAG] * self.g[i]
        return self.pace[WEIGHT_OF_V] * raw + self.pace[FADED] * lagged

    def step_average(self, d):
        if fade_average(self):
            write_average(self, self.pace[FADED], d)
            self.pace[FADED] = 1.0

    def acting(self):
        return AverageOf(self)


@rule
def rest_of_average(v):
    """v is written out with a = 1, and so b = 1: how much of u + c g is left for s.

    Were b to become b/a, it would grow with every projection, and b u and m s would be large and cancel.
    """
    more = (v.pace[WEIGHT_OF_V] - v.numbers[SCALE]) / v.pace[FADED]
    v.pace[WEIGHT_OF_V] = 1.0
    return more


@rule
def fade_average(v):
    """The average's own step; whether s should be written out anew."""
    kept = 1.0 - v.pace[RATE]
    v.pace[WEIGHT_OF_V] = kept * v.pace[WEIGHT_OF_V] + v.pace[RATE] * v.numbers[SCALE]
    v.pace[FADED] *= kept
    return v.pace[FADED] < LEAST_FADED


@rule
def write_average(v, factor, d):
    """s ← factor (s + k g), k = 0."""
    for i in range(d):
        v.s[i] = factor * (v.s[i] + v.pace[AVERAGE_LAG] * v.g[i])
    v.pace[AVERAGE_LAG] = 0.0


class AverageOf(NamedTuple):
    """The average of a vector, to be read."""

    vector: Any

    def entry_of(self, i):
        return average_entry(self.vector, i)

    def raw_entry(self, i):
        return average_entry(self.vector, i)

    def scale_of(self):
        return 1.0
