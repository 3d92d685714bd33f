"""STORM (Cutkosky and Orabona, 2019): a running estimate v of the mean of F_x, corrected by each sample at two points.

    v ← F_x(z) + (1 − a_t)(v − F_x(z_before))          z ← Π_R[z − η_t v]          a_t = min(1, a t^−power)

with t counted from 1; the first v is F_x(z). a_t = 1/t is ROOT-SGD (Li et al., 2022); a = 1 with power 0 is Greedy-GQ.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gqlab.estimators.lagged_forms import LaggedSTORM
from gqlab.estimators.needs import Needs
from gqlab.rules.gradient import evaluate, scatter
from gqlab.rules.memory import Array, Sizes, near
from gqlab.rules.point import descend_along
from gqlab.samples.streams import draw


class STORM(NamedTuple):
    """4d numbers."""

    a: float
    power: float
    G: Any  # (d,)  v, the part of θ
    H: Any  # (d,)  v, the part of ω
    theta_before: Any  # (d,)
    omega_before: Any  # (d,)
    q: Any  # (A,)
    w: Any  # (A,)
    c: Any  # (A + 2,)

    @staticmethod
    def needs() -> Needs:
        return frozenset()

    @staticmethod
    def sparse_form() -> type:
        return LaggedSTORM

    @staticmethod
    def memory(n: Sizes) -> dict[str, Array]:
        kept = dict.fromkeys(("G", "H", "theta_before", "omega_before"), near(n.d, kept=True))
        return {**kept, "q": near(n.A), "w": near(n.A), "c": near(n.A + 2)}

    def step(self, world, point, cursor, u, rates, d, A):
        samples, one = world.samples, point.theta.dtype.type(1)
        x, cursor = draw(world.stream, world.run, cursor, u)
        t = point.theta.dtype.type(u + 1)
        a = min(one, self.a / t if self.power == one else self.a * t ** (-self.power))
        if u > 0:  # v ← v − F_x(z_before)
            evaluate(samples, x, self.theta_before, self.omega_before, self.q, self.w, self.c, d, A)
            scatter(samples, x, self.c, -one, -one, self.G, self.H, d, A)
        for i in range(d):
            self.G[i] *= one - a
            self.H[i] *= one - a
            self.theta_before[i] = point.theta[i]
            self.omega_before[i] = point.omega[i]
        evaluate(samples, x, point.theta, point.omega, self.q, self.w, self.c, d, A)
        scatter(samples, x, self.c, one, one, self.G, self.H, d, A)
        return descend_along(point, self.G, self.H, rates, d), cursor
