"""SAGA, STORM and SARAH on sparse features: the same updates on lagged vectors, at the cost of a sample's entries.

What these estimators move along is a vector that changes with every sample where its features are not zero, and else by
a factor. That is the drift of a lagged vector, and the point before the last move is the vector with other numbers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gqlab.estimators.epochs import epoch_from
from gqlab.estimators.needs import Need, Needs
from gqlab.estimators.svrg import batch_memory, new_batch
from gqlab.rules.dispatch import rule
from gqlab.rules.gradient import evaluate
from gqlab.rules.lagged import as_it_was, descend_and_sum, note_place, steer
from gqlab.rules.memory import COUNT, MOST, Array, Sizes, far, near
from gqlab.rules.vectors import N_NUMBERS
from gqlab.samples.random import BATCH_INDEX, below, word
from gqlab.samples.streams import draw, key


class LaggedSAGA(NamedTuple):
    """As :class:`gqlab.estimators.saga.SAGA`; Σ/n is the drift."""

    T: Any  # (K · (A + 2),)
    count: Any  # (K,)  c_x
    q: Any  # (A,)
    w: Any  # (A,)
    c: Any  # (A + 2,)
    change: Any  # (A + 2,)

    @staticmethod
    def needs() -> Needs:
        return frozenset({Need.NUMBERED})

    @staticmethod
    def drifts() -> bool:
        return True

    @staticmethod
    def memory(n: Sizes) -> dict[str, Array]:
        return {
            "T": far(n.samples * (n.A + 2), kept=True),
            "count": far(n.samples, COUNT, kept=True, within=(0, MOST)),
            **{"q": near(n.A), "w": near(n.A), "c": near(n.A + 2), "change": near(n.A + 2)},
        }

    def step(self, world, point, cursor, u, rates, d, A):
        samples = world.samples
        x, cursor = draw(world.stream, world.run, cursor, u)
        evaluate(samples, x, point.theta, point.omega, self.q, self.w, self.c, d, A)  # f
        k = np.int64(x) - samples.first_sample
        known = self.count[k] > 0
        self.count[k] += 1
        for j in range(A + 2):
            f = self.c[j]
            T = self.T[k * (A + 2) + j] if known else f
            self.c[j] = (f - T) + T / (u + 1)
            self.change[j] = T + self.count[k] * (f - T)
            self.T[k * (A + 2) + j] = f
        return descend_and_sum(point, samples, x, self.c, self.change, u + 1, rates, d, A), cursor


class LaggedSTORM(NamedTuple):
    """As :class:`gqlab.estimators.storm.STORM`; v is the drift."""

    a: float
    power: float
    theta_before: Any  # (9,)  the numbers of θ before the last move
    omega_before: Any  # (9,)
    q: Any  # (A,)
    w: Any  # (A,)
    c: Any  # (A + 2,)
    c_before: Any  # (A + 2,)

    @staticmethod
    def needs() -> Needs:
        return frozenset()

    @staticmethod
    def drifts() -> bool:
        return True

    @staticmethod
    def memory(n: Sizes) -> dict[str, Array]:
        before = dict.fromkeys(("theta_before", "omega_before"), near(N_NUMBERS, kept=True))
        return {**before, "q": near(n.A), "w": near(n.A), **dict.fromkeys(("c", "c_before"), near(n.A + 2))}

    def begin(self, world, point, cursor, u, d, A):
        note_place(point.theta, self.theta_before)
        note_place(point.omega, self.omega_before)
        return cursor

    def step(self, world, point, cursor, u, rates, d, A):
        x, cursor = draw(world.stream, world.run, cursor, u)
        t = point.answer.dtype.type(u + 1)
        a = min(1.0, self.a / t if self.power == 1.0 else self.a * t ** (-self.power))
        share = 1.0 - a if u > 0 else 0.0
        return follow_sample(self, world.samples, x, point, share, rates, d, A), cursor


class LaggedSARAH(NamedTuple):
    """As :class:`gqlab.estimators.sarah.SARAH`; v is the drift."""

    batch_size: int  # M
    growth_units: int  # growth, in units of 2⁻³²
    keeps_all: int  # 1: the batch is all samples so far
    theta_before: Any  # (9,)  the numbers of θ before the last move
    omega_before: Any  # (9,)
    c_before: Any  # (A + 2,)
    theta_tilde: Any  # (d,)  where the means of the batch are taken; this and the rest: see new_batch
    omega_tilde: Any  # (d,)
    G_tilde: Any  # (d,)
    H_tilde: Any  # (d,)
    q: Any  # (A,)
    w: Any  # (A,)
    c: Any  # (A + 2,)
    batch: Any  # (n_batch,)  the samples
    n_batch: Any  # (1,)
    n_visited: Any  # (1,)
    visited: Any
    slot: Any
    V: Any
    w_tilde: Any
    correction: Any

    @staticmethod
    def needs() -> Needs:
        return frozenset({Need.BATCH})

    @staticmethod
    def drifts() -> bool:
        return True

    @staticmethod
    def memory(n: Sizes) -> dict[str, Array]:
        return {
            **dict.fromkeys(("theta_tilde", "omega_tilde", "G_tilde", "H_tilde"), near(n.d)),
            **dict.fromkeys(("theta_before", "omega_before"), near(N_NUMBERS)),
            **{"q": near(n.A), "w": near(n.A), "c": near(n.A + 2), "c_before": near(n.A + 2)},
            **batch_memory(n),
        }

    def next_begin(self, u):
        return epoch_from(self.batch_size, self.growth_units, u)[0]

    def begin(self, world, point, cursor, u, d, A):
        cursor = new_batch(self, world, point, cursor, u, d, A)
        note_place(point.theta, self.theta_before)
        note_place(point.omega, self.omega_before)
        return cursor

    def step(self, world, point, cursor, u, rates, d, A):
        x = self.batch[below(word(key(world.run, BATCH_INDEX), u), self.n_batch[0])]
        return follow_sample(self, world.samples, x, point, 1.0, rates, d, A), cursor


@rule
def follow_sample(part, samples, x, point, share, rates, d, A):
    """v ← F_x(z) + share·(v − F_x(z_before)), and a move along it."""
    theta, omega = as_it_was(point.theta, part.theta_before), as_it_was(point.omega, part.omega_before)
    evaluate(samples, x, theta, omega, part.q, part.w, part.c_before, d, A)
    evaluate(samples, x, point.theta, point.omega, part.q, part.w, part.c, d, A)
    for j in range(A + 2):
        part.c[j] -= share * part.c_before[j]
    return steer(point, part.theta_before, part.omega_before, samples, x, part.c, share, rates, d, A)
