"""A point whose moves cost as much as a sample has nonzero features: θ and ω as scaled, lagged vectors."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from gqlab.rules.dispatch import rule
from gqlab.rules.gradient import add, add_block
from gqlab.rules.point import descend, descend_from
from gqlab.rules.vectors import (
    COUNT,
    DRIFT_SCALE,
    GG,
    LAG,
    LEAST_MEAN_SCALE,
    LEAST_SCALE,
    LEAST_STEPS,
    SCALE,
    STEPS,
    TOO_LONG,
    WEIGHT,
    Drift,
    Lagged,
    N,
    P,
    drift_anew,
    entry_of,
    least_scale,
    move_along_drift,
    still,
    write_out,
    written,
)


class LaggedPoint(NamedTuple):
    """θ and ω as :class:`Scaled` or :class:`Lagged` vectors. They persist from call to call unchanged.

    The mean of the iterates is θ̄ = (b u + s)/n: a step of u by Δ takes b Δ from s, where Δ is not zero, and then b
    grows by a.
    """

    theta: Any
    omega: Any
    answer: Any  # (d,)  what the estimator offers as θ

    def put(self, runs, run, d):
        pass

    def take(self, runs, run, d):
        for i in range(d):
            runs.theta[run, i] = entry_of(self.theta, i)
            runs.omega[run, i] = entry_of(self.omega, i)

    def descend(self, samples, x, c, rates, d, A):
        if not can_move(self, c, A):
            return False
        scatter_lagged(self, samples, x, c, rates, d, A)
        settle_lagged(self, rates, d)
        return True

    def descend_from(self, samples, x, c, drift, rates, d, A):
        if not can_move(self, c, A):
            return False
        scatter_lagged(self, samples, x, c, rates, d, A)
        move_along_drift(self.theta, -rates.eta_theta / self.theta.numbers[SCALE])
        move_along_drift(self.omega, -rates.eta_omega / self.omega.numbers[SCALE])
        settle_lagged(self, rates, d)
        return True

    def follow(self, G, H, d):
        drift_anew(self.theta, G, d)
        drift_anew(self.omega, H, d)
        self.theta.numbers[DRIFT_SCALE] = 1.0
        self.omega.numbers[DRIFT_SCALE] = 1.0

    def add_to_mean(self, drift, samples, x, c, n, d, A):
        features, row = samples.features, samples.row[x]
        share = fade(self.theta.numbers, n)
        add(features, row, share * c[0], Drift(self.theta), d)
        add_block(features, samples.next_row[x], c, share, Drift(self.theta), d, A)
        add(features, row, fade(self.omega.numbers, n) * c[1], Drift(self.omega), d)

    def start_mean(self, theta_bar, d):
        self.theta.numbers[WEIGHT] = 0.0
        self.theta.numbers[COUNT] = 0.0
        for i in range(d):
            theta_bar[i] = 0.0

    def descend_and_average(self, theta_bar, samples, x, c, rates, n, d, A):
        numbers = self.theta.numbers
        if abs(numbers[SCALE]) < LEAST_MEAN_SCALE:
            fold(self.theta, theta_bar, d)
        back = rates.eta_theta * numbers[WEIGHT] / numbers[SCALE]
        if not descend(self, samples, x, c, rates, d, A):
            return False
        add(samples.features, samples.row[x], back * c[0], theta_bar, d)
        add_block(samples.features, samples.next_row[x], c, back, theta_bar, d, A)
        numbers[WEIGHT] += numbers[SCALE]
        numbers[COUNT] = n
        return True

    def mean_entry(self, theta_bar, i):
        numbers = self.theta.numbers
        if numbers[COUNT] == 0.0:
            return entry_of(self.theta, i)
        return (numbers[WEIGHT] * self.theta.u[i] + theta_bar[i]) / numbers[COUNT]


@rule
def fold(theta, theta_bar, d):
    """s += b u, b = 0, and u is written out: with a small scale, b u and s would be large and cancel."""
    b = theta.numbers[WEIGHT]
    for i in range(d):
        theta_bar[i] += b * theta.u[i]
    theta.numbers[WEIGHT] = 0.0
    write_out(theta, d)


@rule
def is_moderate(c, n):
    """Whether the first n numbers are finite, and not too large."""
    for j in range(n):  # noqa: SIM110 - compiled
        if not abs(c[j]) < TOO_LONG:
            return False
    return True


@rule
def length(v):
    """‖v‖; what rounding left below zero is zero."""
    return abs(v.numbers[SCALE]) * math.sqrt(max(v.numbers[N], 0.0))


@rule
def can_move(point, c, A):
    """Whether a move with the coefficients c stays among the finite numbers."""
    return is_moderate(c, A + 2) and length(point.theta) < TOO_LONG and length(point.omega) < TOO_LONG


@rule
def scatter_lagged(point, samples, x, c, rates, d, A):
    """θ −= η_θ G_x, ω ← (1 − η_ω β) ω − η_ω H_x."""
    features, row = samples.features, samples.row[x]
    step = -rates.eta_theta / point.theta.numbers[SCALE]
    add(features, row, step * c[0], point.theta, d)
    add_block(features, samples.next_row[x], c, step, point.theta, d, A)
    if rates.eta_omega > 0.0:
        rescale(point.omega, 1.0 - rates.eta_omega * rates.beta, d)
        add(features, row, -rates.eta_omega / point.omega.numbers[SCALE] * c[1], point.omega, d)


@rule
def rescale(v, factor, d):
    """v *= factor."""
    if factor != 1.0:
        v.numbers[SCALE] *= factor
        if abs(v.numbers[SCALE]) < least_scale(v):
            write_out(v, d)


@rule
def settle_lagged(point, rates, d):
    """Project θ and ω; write them out once enough steps have passed to make up for the cost."""
    settle_vector(point.theta, rates.radius, d)
    settle_vector(point.omega, rates.radius_omega, d)


@rule
def settle_vector(v, radius, d):
    norm = length(v)
    if norm > radius:
        rescale(v, radius / norm, d)
    v.numbers[STEPS] += 1.0
    if v.numbers[STEPS] >= max(d, LEAST_STEPS):
        write_out(v, d)


@rule
def add_to_sum(point, samples, x, c, share, has_omega, d, A):
    """Add ``share`` times (G, H) of sample x to the sums that θ and ω drift along the mean of."""
    features, row = samples.features, samples.row[x]
    add(features, row, share * c[0], Drift(point.theta), d)
    add_block(features, samples.next_row[x], c, share, Drift(point.theta), d, A)
    if has_omega:
        add(features, row, share * c[1], Drift(point.omega), d)


@rule
def drift_by_mean(point, n):
    """The drift is the sum over n."""
    point.theta.numbers[DRIFT_SCALE] = point.omega.numbers[DRIFT_SCALE] = 1.0 / n


@rule
def drift_from_zero(point, d):
    """θ and ω drift along sums that begin at 0."""
    still(point.theta, d)
    still(point.omega, d)


@rule
def fade(numbers, n):
    """The mean of n − 1 becomes that of n, but for the new one: its share in the units of the drift's array."""
    kept = 1.0 - 1.0 / n
    numbers[DRIFT_SCALE] = numbers[DRIFT_SCALE] * kept if n > 1 else 1.0
    return 1.0 / (n * numbers[DRIFT_SCALE])


# --- Directions that change with every sample -----------------------------------------------------------------------


@rule
def descend_and_sum(point, samples, x, c, change, n, rates, d, A):
    """Move along c of sample x and Σ/n, the drift; then Σ takes the coefficients ``change`` of that sample in."""
    features, row = samples.features, samples.row[x]
    of_theta, of_omega = fade(point.theta.numbers, n), fade(point.omega.numbers, n)
    if not is_moderate(change, A + 2) or not descend_from(point, samples, x, c, (0.0, 0.0), rates, d, A):
        return False
    add(features, row, of_theta * change[0], Drift(point.theta), d)
    add_block(features, samples.next_row[x], change, of_theta, Drift(point.theta), d, A)
    add(features, row, of_omega * change[1], Drift(point.omega), d)
    return True


@rule
def steer(point, theta_before, omega_before, samples, x, c, share, rates, d, A):
    """v ← share·v + Σ of the coefficients c of sample x, then z ← Π_R[z − η v]; v is the drift.

    The two arrays of numbers, with u and g of the vectors, become z as it was before the move: see :func:`as_it_was`.
    """
    if not can_move(point, c, A):
        return False
    features, row = samples.features, samples.row[x]
    shrink_drift(point.theta, share, d)
    shrink_drift(point.omega, share, d)
    scale = 1.0 / point.theta.numbers[DRIFT_SCALE]
    add(features, row, scale * c[0], Drift(point.theta), d)
    add_block(features, samples.next_row[x], c, scale, Drift(point.theta), d, A)
    add(features, row, c[1] / point.omega.numbers[DRIFT_SCALE], Drift(point.omega), d)
    step_along_drift(point.theta, theta_before, rates.eta_theta, 1.0, rates.radius, d)
    step_along_drift(
        point.omega, omega_before, rates.eta_omega, 1.0 - rates.eta_omega * rates.beta, rates.radius_omega, d
    )
    return True


@rule
def as_it_was(v, before):
    """A vector before its last step along its drift."""
    return Lagged(v.u, v.g, before)


@rule
def note_place(v, before):
    """Remember where a vector stands, until its u or its g changes."""
    before[SCALE] = v.numbers[SCALE]
    before[LAG] = v.numbers[LAG]


@rule
def shrink_drift(v, share, d):
    """g ← share·g. When the factor has become small it is written out: else digits would be lost to it."""
    numbers = v.numbers
    numbers[DRIFT_SCALE] *= share
    if abs(numbers[DRIFT_SCALE]) >= LEAST_MEAN_SCALE:
        return
    factor, a, c = numbers[DRIFT_SCALE], numbers[SCALE], numbers[LAG]
    total = along = length_squared = 0.0
    for i in range(d):
        entry, new = a * (v.u[i] + c * v.g[i]), factor * v.g[i]
        v.u[i] = entry
        v.g[i] = new
        total += entry * entry
        along += entry * new
        length_squared += new * new
    written(numbers, total)
    numbers[DRIFT_SCALE] = 1.0
    numbers[LAG] = 0.0
    numbers[P] = along
    numbers[GG] = length_squared


@rule
def step_along_drift(v, before, eta, shrink, radius, d):
    """v ← Π[shrink·v − η g], and ``before`` is where it was: with the u and g that v has now."""
    numbers = v.numbers
    if numbers[STEPS] >= max(d, LEAST_STEPS) or abs(numbers[SCALE] * shrink) < LEAST_SCALE:
        write_out(v, d)
    note_place(v, before)
    numbers[SCALE] *= shrink
    if abs(numbers[SCALE]) < LEAST_SCALE:  # shrink is 0, or as good as that
        numbers[SCALE] = LEAST_SCALE
    move_along_drift(v, -eta / numbers[SCALE])
    norm = length(v)
    if norm > radius:
        numbers[SCALE] *= radius / norm
    numbers[STEPS] += 1.0
