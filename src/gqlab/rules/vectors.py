"""Vectors that updates read and add to, entry by entry: arrays, and arrays with a scale and a lag.

    v = a (u + c g)

u and g are arrays, a and c numbers. g is a direction in which the vector drifts at every step, such as the mean G̃ of a
batch. A step along it changes c, a projection changes a, and a step along features changes u where these are not zero:
no step costs O(d). ‖v‖² = a² N is always known, because N = ‖u + c g‖² and P = (u + c g)ᵀg are kept up to date.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gqlab.rules.dispatch import by_type, rule

#: The numbers of a vector: a, c, N, P, ‖g‖²; the factor of g when it is moved along; b and n of a mean of iterates; the
#: steps since u was last written out.
SCALE, LAG, N, P, GG, DRIFT_SCALE, WEIGHT, COUNT, STEPS = range(9)
N_NUMBERS = 9

#: A vector longer than this counts as no longer finite; the square of its length still is.
TOO_LONG = 1e150

#: The least scale a: below, u is written out. With a mean of iterates digits are lost as a falls: see ``fold``.
LEAST_SCALE, LEAST_MEAN_SCALE = 1e-100, 1e-2

#: The least number of steps between two times that u is written out, which costs O(d) and refreshes N and P.
LEAST_STEPS = 4096


@by_type
def raw_entry(self, i):
    """Vector: its entry i before scaling."""
    return self[i]


@by_type
def scale_of(self):
    """Vector: the scale of all its entries."""
    return 1.0


@by_type
def shift(self, i, amount):
    """Vector: add to its entry i, in the units of ``raw_entry``; returns what that adds to the two numbers it keeps."""
    self[i] += amount
    return 0.0, 0.0


@by_type
def note(self, first, second):
    """Vector: take in what several shifts add to its two numbers."""


@by_type
def entry_of(self, i):
    """Vector: its entry i."""
    return self[i]


@by_type
def drift_shifted(self, i, amount):
    """Lagged vector: g_i has grown by so much, while the vector stayed where it is."""


@by_type
def least_scale(self):
    """Scaled or lagged vector: the least a with which u is not written out."""
    return LEAST_SCALE


class Scaled(NamedTuple):
    """v = a u."""

    u: Any  # (d,)
    numbers: Any  # (9,)

    def entry_of(self, i):
        return self.numbers[SCALE] * self.u[i]

    def raw_entry(self, i):
        return self.u[i]

    def scale_of(self):
        return self.numbers[SCALE]

    def shift(self, i, amount):
        return shift_scaled(self, i, amount)

    def note(self, first, second):
        self.numbers[N] += first

    def move_along_drift(self, step):
        pass

    def write_out(self, d):
        write_scaled(self, d)


@rule
def shift_scaled(v, i, amount):
    """u_i += amount; what that adds to N."""
    old = v.u[i]
    v.u[i] = old + amount
    return (old + old + amount) * amount, 0.0


@rule
def write_scaled(v, d):
    """u ← a u."""
    a = v.numbers[SCALE]
    total = 0.0
    for i in range(d):
        v.u[i] *= a
        total += v.u[i] * v.u[i]
    written(v.numbers, total)


class Lagged(NamedTuple):
    """v = a (u + c g)."""

    u: Any  # (d,)
    g: Any  # (d,)
    numbers: Any  # (9,)

    def entry_of(self, i):
        return self.numbers[SCALE] * (self.u[i] + self.numbers[LAG] * self.g[i])

    def raw_entry(self, i):
        return self.u[i] + self.numbers[LAG] * self.g[i]

    def scale_of(self):
        return self.numbers[SCALE]

    def shift(self, i, amount):
        return shift_lagged(self, i, amount)

    def note(self, first, second):
        self.numbers[N] += first
        self.numbers[P] += second

    def move_along_drift(self, step):
        move_lagged(self, step * self.numbers[DRIFT_SCALE])

    def write_out(self, d):
        write_lagged(self, d)


@rule
def shift_lagged(v, i, amount):
    """u_i += amount; what that adds to N and P."""
    old, g = v.u[i], v.g[i]
    v.u[i] = old + amount
    raw = old + v.numbers[LAG] * g
    return (raw + raw + amount) * amount, amount * g


@rule
def move_lagged(v, e):
    """c += e."""
    numbers = v.numbers
    numbers[LAG] += e
    numbers[N] += e * (2 * numbers[P] + e * numbers[GG])
    numbers[P] += e * numbers[GG]


@rule
def write_lagged(v, d):
    """u ← a (u + c g), with the same g."""
    drift_anew(v, v.g, d)


@rule
def drift_anew(v, g, d):
    """Write v out, and give it another drift."""
    a, c = v.numbers[SCALE], v.numbers[LAG]
    total = along = length = 0.0
    for i in range(d):
        entry, new = a * (v.u[i] + c * v.g[i]), g[i]
        v.u[i] = entry
        v.g[i] = new
        total += entry * entry
        along += entry * new
        length += new * new
    written(v.numbers, total)
    v.numbers[LAG] = 0.0
    v.numbers[P] = along
    v.numbers[GG] = length


class Drift(NamedTuple):
    """The g of a lagged vector. Adding to it leaves the vector itself unchanged: u is reduced by c times as much."""

    vector: Any

    def shift(self, i, amount):
        vector = self.vector
        g, c = vector.g[i], vector.numbers[LAG]
        raw = vector.u[i] + c * g
        vector.g[i] = g + amount
        vector.u[i] -= c * amount
        drift_shifted(vector, i, amount)
        return raw * amount, (g + g + amount) * amount

    def note(self, first, second):
        self.vector.numbers[P] += first
        self.vector.numbers[GG] += second


@by_type
def move_along_drift(self, step):
    """Scaled or lagged vector: v += a·step·g, with g times its factor."""


@by_type
def write_out(self, d):
    """Scaled or lagged vector: u ← v, with a = 1 and c = 0, and its numbers from scratch."""


@rule
def still(v, d):
    """Write a lagged vector out, with no drift from here on."""
    write_out(v, d)
    for i in range(d):
        v.g[i] = 0.0
    v.numbers[P] = v.numbers[GG] = 0.0


@rule
def written(numbers, total):
    """The numbers of a vector that was written out; b u is what it was."""
    if numbers[WEIGHT] != 0.0:
        numbers[WEIGHT] /= numbers[SCALE]
    numbers[SCALE] = 1.0
    numbers[N] = total
    numbers[STEPS] = 0.0
