"""Traces: an update also moves the features seen before its sample, in proportion to the trace z.

    z ← γλ z + φ(s,a)
    G = −δ z + γ (1−λ) (ωᵀz) φ̂_{s'}          H = (φᵀω) φ − δ z

(GQ(λ): Maei and Sutton, 2010; with ω = 0 it is Q(λ), or Sarsa(λ).) When a feature is seen again, its entry never
exceeds the larger of the old and the new one: traces that accumulate without limit diverge where a state is visited
again and again. Where all features have one value, the entry is reset to that value (replacing traces: Singh and
Sutton, 1996). An entry of z below ``least`` is dropped, so that the cost of a step is the number of entries left.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gqlab.estimators.needs import Need, Needs
from gqlab.rules.dispatch import by_type, rule
from gqlab.rules.gradient import add, add_block, coefficients, next_value, td_terms
from gqlab.rules.lagged import can_move, rescale, settle_lagged
from gqlab.rules.memory import COUNT, INDEX, Array, Sizes, far, near
from gqlab.rules.vectors import SCALE, TOO_LONG, entry_of, note, shift
from gqlab.samples.streams import draw


class Entries(NamedTuple):
    """The z of one trajectory as a vector that features are added to; ``where`` lists its entries."""

    z: Any  # (d,)
    where: Any  # (d,)
    place: Any  # (d,)  1 + the place of an entry in ``where``; 0: it is not there
    n: Any  # (n_trajectories,)  the length of the list,
    k: Any  # and which trajectory this is

    def shift(self, i, amount):
        if self.place[i] == 0:
            self.where[self.n[self.k]] = i
            self.n[self.k] += 1
            self.place[i] = self.n[self.k]
        most = max(abs(self.z[i]), abs(amount))
        self.z[i] = min(max(self.z[i] + amount, -most), most)
        return 0.0, 0.0


class Traces(NamedTuple):
    """``fresh[k]`` says that the trace of trajectory k begins with its next sample."""

    trace: float  # λ
    gamma: float
    least: float
    q: Any  # (A,)
    w: Any  # (A,)
    c: Any  # (A + 2,)
    z: Any  # (n_trajectories · d,)
    where: Any  # (n_trajectories · d,)
    place: Any  # (n_trajectories · d,)
    n: Any  # (n_trajectories,)
    fresh: Any  # (n_trajectories,)

    @staticmethod
    def needs() -> Needs:
        return frozenset({Need.EPISODES})

    @staticmethod
    def drifts() -> bool:
        return False

    @staticmethod
    def memory(n: Sizes) -> dict[str, Array]:
        return {
            **{"q": near(n.A), "w": near(n.A), "c": near(n.A + 2), "z": far(n.trajectories * n.d)},
            "where": far(n.trajectories * n.d, INDEX, within=(0, n.d)),
            "place": far(n.trajectories * n.d, INDEX, within=(0, n.d + 1)),
            "n": far(n.trajectories, COUNT, within=(0, n.d + 1)),
            "fresh": far(n.trajectories, COUNT, within=(0, 2)),
        }

    def fault(self, n: Sizes) -> str:
        """``where`` and ``place`` are each other's inverse."""
        rows = len(self.n), -1
        for size, where, place in zip(self.n, self.where.reshape(rows), self.place.reshape(rows), strict=True):
            if np.count_nonzero(place) != size or not np.array_equal(place[where[:size]], np.arange(1, size + 1)):
                return "the list of a trace is not that of its entries"
        return ""

    def break_trace(self, e):
        self.fresh[e] = 1

    def step(self, world, point, cursor, u, rates, d, A):
        x, cursor = draw(world.stream, world.run, cursor, u)
        share = carried(world.stream, world.samples, x, point, self, d, A)
        return move_traced(self, world.samples, x, trajectory_of(world.stream, x), share, point, rates, d, A), cursor


@rule
def move_traced(traces, samples, x, k, share, point, rates, d, A):
    """The move for sample x of trajectory k, which carries this share of γλ z on."""
    gamma, row = samples.discount[x], samples.row[x]
    V = next_value(samples, x, point.theta, traces.q, traces.w, d, A)
    delta, phi_omega = td_terms(samples, x, V, point.theta, point.omega, d)
    entries = trace_of(traces, k, d)
    fade(entries, 0.0 if traces.fresh[k] else share * traces.gamma * traces.trace, traces.least)
    traces.fresh[k] = 0
    add(samples.features, row, 1.0, entries, d)  # z ← γλ z + φ
    omega_z = dot_entries(entries, point.omega) if rates.eta_omega > 0.0 else 0.0
    coefficients(delta, omega_z, gamma * (1.0 - traces.trace), traces.w, traces.c, A)
    if not can_move(point, traces.c, A) or not abs(phi_omega) < TOO_LONG:
        return False
    step = rates.eta_theta / point.theta.numbers[SCALE]
    add_entries(entries, step * delta, point.theta)
    add_block(samples.features, samples.next_row[x], traces.c, -step, point.theta, d, A)
    if rates.eta_omega > 0.0:
        rescale(point.omega, 1.0 - rates.eta_omega * rates.beta, d)
        step = rates.eta_omega / point.omega.numbers[SCALE]
        add(samples.features, row, -step * phi_omega, point.omega, d)
        add_entries(entries, step * delta, point.omega)
    settle_lagged(point, rates, d)
    return True


@by_type
def trajectory_of(self, x):
    """Stream: which trajectory sample x is the last of, where several are learned from side by side."""
    return 0


@by_type
def carried(self, samples, x, point, traces, d, A):
    """Stream: how much of the trace sample x carries on; 0 where a trajectory begins with it."""
    return 1.0


@rule
def trace_of(traces, k, d):
    """The trace of trajectory k."""
    first, end = k * d, (k + 1) * d
    return Entries(traces.z[first:end], traces.where[first:end], traces.place[first:end], traces.n, k)


@rule
def fade(entries, factor, least):
    """z *= factor, without the entries that fall below ``least``."""
    for j in range(entries.n[entries.k] - 1, -1, -1):
        i = entries.where[j]
        entries.z[i] *= factor
        if abs(entries.z[i]) < least or factor == 0.0:
            entries.z[i] = 0.0
            last = entries.where[entries.n[entries.k] - 1]  # it moves into the free place
            entries.where[j] = last
            entries.place[last] = j + 1
            entries.place[i] = 0
            entries.n[entries.k] -= 1


@rule
def dot_entries(entries, v):
    """zᵀv."""
    out = 0.0
    for j in range(entries.n[entries.k]):
        i = entries.where[j]
        out += entries.z[i] * entry_of(v, i)
    return out


@rule
def add_entries(entries, c, out):
    """out += c z, in the units of ``raw_entry``."""
    one = two = 0.0
    for j in range(entries.n[entries.k]):
        i = entries.where[j]
        change = shift(out, i, c * entries.z[i])
        one += change[0]
        two += change[1]
    note(out, one, two)
