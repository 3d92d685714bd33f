"""Nested loops (Wang, Zhou and Zou, 2024): ω approaches ω*(θ) before each step of θ, which uses a small batch.

ω ← Π_R[ω − η_ω H_x(θ, ω)]  for each of ``inner_steps`` samples,  then
θ ← Π_R[θ − η_θ · mean of G_x(θ, ω)]  over the next ``batch_size`` samples
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gqlab.estimators.needs import Need, Needs
from gqlab.rules.gradient import evaluate, scatter
from gqlab.rules.memory import Array, Sizes, near
from gqlab.rules.point import Rates, descend, descend_along
from gqlab.samples.streams import STOP_LOOK, draw


class Nested(NamedTuple):
    inner_steps: int
    batch_size: int
    G: Any  # (d,)
    H: Any  # (d,)
    q: Any  # (A,)
    w: Any  # (A,)
    c: Any  # (A + 2,)

    @staticmethod
    def needs() -> Needs:
        return frozenset({Need.SEVERAL})

    @staticmethod
    def memory(n: Sizes) -> dict[str, Array]:
        return {"G": near(n.d), "H": near(n.d), "q": near(n.A), "w": near(n.A), "c": near(n.A + 2)}

    def step(self, world, point, cursor, u, rates, d, A):
        samples, zero, one = world.samples, point.theta.dtype.type(0), point.theta.dtype.type(1)
        of_omega = Rates(zero, rates.eta_omega, rates.radius, rates.radius_omega, rates.beta)
        of_theta = Rates(rates.eta_theta, zero, rates.radius, rates.radius_omega, rates.beta)
        t = u * (self.inner_steps + self.batch_size)
        finite = True
        for k in range(self.inner_steps):
            x, cursor = draw(world.stream, world.run, cursor, t + k)
            evaluate(samples, x, point.theta, point.omega, self.q, self.w, self.c, d, A)
            finite = finite and descend(point, samples, x, self.c, of_omega, d, A)
            if k & (STOP_LOOK - 1) == 0 and world.stop[0] != 0:
                break
        for i in range(d):
            self.G[i] = self.H[i] = zero
        for k in range(self.batch_size):
            x, cursor = draw(world.stream, world.run, cursor, t + self.inner_steps + k)
            evaluate(samples, x, point.theta, point.omega, self.q, self.w, self.c, d, A)
            scatter(samples, x, self.c, one, zero, self.G, self.H, d, A)
            if k & (STOP_LOOK - 1) == 0 and world.stop[0] != 0:
                break
        for i in range(d):
            self.G[i] /= point.theta.dtype.type(self.batch_size)
        return finite and descend_along(point, self.G, self.H, of_theta, d), cursor
