"""Streaming SVRG: the reference's mean is over all samples so far, and is renewed as their number grows.

    f̃ = F_x(z̃),  F̃ ← F̃ + (f̃ − F̃)/n;     from n = ``first`` on: z ← Π_R[z − η_t (F_x(z) − f̃ + F̃)]
    when n has reached first·growth^k: z̃ ← z, and F̃ ← the mean of F_x(z̃) over all n samples

No sample is stored: the trajectory is drawn again from its random numbers, which are a function of time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gqlab.estimators.epochs import moment_from
from gqlab.estimators.needs import Need, Needs
from gqlab.estimators.svrg import move_corrected
from gqlab.rules.gradient import evaluate, scatter
from gqlab.rules.memory import Array, Sizes, near
from gqlab.rules.point import add_to_mean, follow
from gqlab.rules.vectors import entry_of
from gqlab.samples.streams import STOP_LOOK, draw, start


class Streaming(NamedTuple):
    """4d numbers, whatever n is."""

    first: int
    growth_units: int  # growth, in units of 2⁻³²
    theta_tilde: Any  # (d,)
    omega_tilde: Any  # (d,)
    G_tilde: Any  # (d,)  F̃, the part of θ
    H_tilde: Any  # (d,)  F̃, the part of ω
    q: Any  # (A,)
    w: Any  # (A,)
    c: Any  # (A + 2,)
    c_tilde: Any  # (A + 2,)

    @staticmethod
    def needs() -> Needs:
        return frozenset({Need.REPLAY})

    @staticmethod
    def drifts() -> bool:
        return True

    @staticmethod
    def memory(n: Sizes) -> dict[str, Array]:
        kept = dict.fromkeys(("theta_tilde", "omega_tilde", "G_tilde", "H_tilde"), near(n.d, kept=True))
        return {**kept, "q": near(n.A), "w": near(n.A), "c": near(n.A + 2), "c_tilde": near(n.A + 2)}

    def next_begin(self, u):
        return moment_from(self.first, self.growth_units, u) if u > 0 else 0

    def begin(self, world, point, cursor, u, d, A):
        """z̃ ← z, F̃ ← the mean over the u samples so far."""
        zero, one = self.G_tilde.dtype.type(0), self.G_tilde.dtype.type(1)
        for i in range(d):
            self.theta_tilde[i], self.omega_tilde[i] = entry_of(point.theta, i), entry_of(point.omega, i)
            self.G_tilde[i] = self.H_tilde[i] = zero
        again = start(world.stream, world.run)
        for t in range(u):
            x, again = draw(world.stream, world.run, again, t)
            evaluate(world.samples, x, self.theta_tilde, self.omega_tilde, self.q, self.w, self.c, d, A)
            scatter(world.samples, x, self.c, one, one, self.G_tilde, self.H_tilde, d, A)
            if t & (STOP_LOOK - 1) == 0 and world.stop[0] != 0:
                break
        for i in range(d):
            self.G_tilde[i] /= self.G_tilde.dtype.type(max(u, 1))
            self.H_tilde[i] /= self.H_tilde.dtype.type(max(u, 1))
        follow(point, self.G_tilde, self.H_tilde, d)
        return cursor

    def step(self, world, point, cursor, u, rates, d, A):
        samples = world.samples
        x, cursor = draw(world.stream, world.run, cursor, u)
        evaluate(samples, x, self.theta_tilde, self.omega_tilde, self.q, self.w, self.c_tilde, d, A)  # f̃
        add_to_mean(point, (self.G_tilde, self.H_tilde), samples, x, self.c_tilde, u + 1, d, A)
        if u + 1 < self.first:
            return True, cursor
        return move_corrected(self, samples, x, point, rates, d, A), cursor
