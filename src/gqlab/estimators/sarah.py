"""SARAH (Nguyen et al., 2017): SVRG's epochs, with a direction that follows the iterates.

    v ← the mean of F_x(z) over the batch, when an epoch begins;  then, for each of its updates,
    v ← v + F_x(z) − F_x(z_before)          z ← Π_R[z − η_t v]

x is drawn from the batch; in the first update of an epoch z_before = z, and v stays the mean.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gqlab.estimators.epochs import epoch_from
from gqlab.estimators.lagged_forms import LaggedSARAH
from gqlab.estimators.needs import Need, Needs
from gqlab.estimators.svrg import batch_memory, new_batch
from gqlab.rules.gradient import evaluate, scatter
from gqlab.rules.memory import Array, Sizes, near
from gqlab.rules.point import descend_along
from gqlab.samples.random import BATCH_INDEX, below, word
from gqlab.samples.streams import key


class SARAH(NamedTuple):
    batch_size: int  # M
    growth_units: int  # growth, in units of 2⁻³²
    keeps_all: int  # 1: the batch is all samples so far
    theta_tilde: Any  # (d,)  z_before
    omega_tilde: Any  # (d,)
    G_tilde: Any  # (d,)  v
    H_tilde: Any  # (d,)
    q: Any  # (A,)
    w: Any  # (A,)
    c: Any  # (A + 2,)
    batch: Any  # (n_batch,)  the samples
    n_batch: Any  # (1,)
    n_visited: Any  # (1,)  this and the rest: see new_batch
    visited: Any
    slot: Any
    V: Any
    w_tilde: Any
    correction: Any

    @staticmethod
    def needs() -> Needs:
        return frozenset({Need.BATCH})

    @staticmethod
    def sparse_form() -> type:
        return LaggedSARAH

    @staticmethod
    def memory(n: Sizes) -> dict[str, Array]:
        return {
            **dict.fromkeys(("theta_tilde", "omega_tilde", "G_tilde", "H_tilde"), near(n.d)),
            **{"q": near(n.A), "w": near(n.A), "c": near(n.A + 2)},
            **batch_memory(n),
        }

    def next_begin(self, u):
        return epoch_from(self.batch_size, self.growth_units, u)[0]

    def begin(self, world, point, cursor, u, d, A):
        return new_batch(self, world, point, cursor, u, d, A)

    def step(self, world, point, cursor, u, rates, d, A):
        samples, one = world.samples, point.theta.dtype.type(1)
        x = self.batch[below(word(key(world.run, BATCH_INDEX), u), self.n_batch[0])]
        evaluate(samples, x, self.theta_tilde, self.omega_tilde, self.q, self.w, self.c, d, A)
        scatter(samples, x, self.c, -one, -one, self.G_tilde, self.H_tilde, d, A)
        evaluate(samples, x, point.theta, point.omega, self.q, self.w, self.c, d, A)
        scatter(samples, x, self.c, one, one, self.G_tilde, self.H_tilde, d, A)
        for i in range(d):
            self.theta_tilde[i], self.omega_tilde[i] = point.theta[i], point.omega[i]
        return descend_along(point, self.G_tilde, self.H_tilde, rates, d), cursor
