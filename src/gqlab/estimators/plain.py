"""The plain estimator (Greedy-GQ): one sample, its own pseudo-gradients."""

from __future__ import annotations

from typing import Any, NamedTuple

from gqlab.estimators.base import move
from gqlab.estimators.needs import Needs
from gqlab.rules.gradient import evaluate
from gqlab.rules.memory import Array, Sizes, near
from gqlab.rules.point import descend
from gqlab.samples.streams import draw


class Plain(NamedTuple):
    """θ ← Π_R[θ − η_θ G_x(θ, ω)],  ω ← Π_R[ω − η_ω H_x(θ, ω)]."""

    q: Any  # (A,)
    w: Any  # (A,)
    c: Any  # (A + 2,)

    @staticmethod
    def needs() -> Needs:
        return frozenset()

    @staticmethod
    def drifts() -> bool:
        return False

    @staticmethod
    def memory(n: Sizes) -> dict[str, Array]:
        return {"q": near(n.A), "w": near(n.A), "c": near(n.A + 2)}

    def step(self, world, point, cursor, u, rates, d, A):
        x, cursor = draw(world.stream, world.run, cursor, u)
        return move(self, world.samples, x, point, rates, d, A), cursor

    def move(self, samples, x, point, rates, d, A):
        evaluate(samples, x, point.theta, point.omega, self.q, self.w, self.c, d, A)
        return descend(point, samples, x, self.c, rates, d, A)
