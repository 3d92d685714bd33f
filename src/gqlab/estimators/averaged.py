"""Averaging (Polyak and Ruppert): the plain estimator's steps, and the mean of its iterates as the answer."""

from __future__ import annotations

from typing import Any, NamedTuple

from gqlab.rules.gradient import evaluate
from gqlab.rules.memory import Array, Sizes, near
from gqlab.rules.point import descend
from gqlab.samples.streams import draw


class Averaged(NamedTuple):
    """z ← Π_R[z − η_t F_x(z)],  θ̄ ← θ̄ + (θ − θ̄)/(t + 1);  the answer is θ̄."""

    theta_bar: Any  # (d,)
    q: Any  # (A,)
    w: Any  # (A,)
    c: Any  # (A + 2,)

    @staticmethod
    def memory(n: Sizes) -> dict[str, Array]:
        return {"theta_bar": near(n.d, kept=True), "q": near(n.A), "w": near(n.A), "c": near(n.A + 2)}

    def begin(self, world, point, cursor, u, d, A):
        for i in range(d):
            self.theta_bar[i] = point.theta[i]
        return cursor

    def step(self, world, point, cursor, u, rates, d, A):
        x, cursor = draw(world.stream, world.run, cursor, u)
        evaluate(world.samples, x, point.theta, point.omega, self.q, self.w, self.c, d, A)
        moved = descend(point, world.samples, x, self.c, rates, d, A)
        share = point.theta.dtype.type(1) / point.theta.dtype.type(u + 1)
        for i in range(d):
            self.theta_bar[i] += (point.theta[i] - self.theta_bar[i]) * share
        return moved, cursor

    def answer(self, point, out, d):
        for i in range(d):
            out[i] = self.theta_bar[i]
