"""SAGA by transition: each possible sample x remembers its last pseudo-gradient T_x, and how often it was drawn.

A remembered gradient is its A + 2 coefficients. With Σ = Σ_x c_x T_x over the n samples so far, this one included,

    f = F_x(z)          z ← Π_R[z − η_t (f − T_x + Σ/n)]          Σ ← Σ + c_x (f − T_x),  T_x ← f

where T_x = f the first time that x is drawn.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gqlab.estimators.kept import SAGAKept
from gqlab.estimators.lagged_forms import LaggedSAGA
from gqlab.estimators.needs import Need, Needs
from gqlab.rules.gradient import evaluate, scatter
from gqlab.rules.memory import COUNT, MOST, Array, Sizes, far, near
from gqlab.rules.point import descend_from
from gqlab.samples.streams import draw


class SAGA(NamedTuple):
    """K (A + 3) numbers for K transitions, and 2d for their sum."""

    G_sum: Any  # (d,)  Σ, the part of θ
    H_sum: Any  # (d,)  Σ, the part of ω
    T: Any  # (K · (A + 2),)
    count: Any  # (K,)  c_x
    G_mean: Any  # (d,)
    H_mean: Any  # (d,)
    q: Any  # (A,)
    w: Any  # (A,)
    c: Any  # (A + 2,)
    change: Any  # (A + 2,)

    @staticmethod
    def needs() -> Needs:
        return frozenset({Need.NUMBERED})

    @staticmethod
    def kept_form() -> Any:
        return SAGAKept

    @staticmethod
    def sparse_form() -> type:
        return LaggedSAGA

    @staticmethod
    def memory(n: Sizes) -> dict[str, Array]:
        return {
            **dict.fromkeys(("G_sum", "H_sum"), near(n.d, kept=True)),
            "T": far(n.samples * (n.A + 2), kept=True),
            "count": far(n.samples, COUNT, kept=True, within=(0, MOST)),
            **dict.fromkeys(("G_mean", "H_mean"), near(n.d)),
            **{"q": near(n.A), "w": near(n.A), "c": near(n.A + 2), "change": near(n.A + 2)},
        }

    def step(self, world, point, cursor, u, rates, d, A):
        samples, one = world.samples, point.theta.dtype.type(1)
        x, cursor = draw(world.stream, world.run, cursor, u)
        evaluate(samples, x, point.theta, point.omega, self.q, self.w, self.c, d, A)  # f
        k = np.int64(x) - samples.first_sample
        row = k * (A + 2)
        known = self.count[k] > 0
        self.count[k] += 1
        c_x = one * self.count[k]
        over_n = one / point.theta.dtype.type(u + 1)
        for i in range(d):
            self.G_mean[i] = self.G_sum[i] * over_n
            self.H_mean[i] = self.H_sum[i] * over_n
        for j in range(A + 2):  # this sample's own T_x is not yet in Σ: it joins the step here, and Σ below
            f = self.c[j]
            T = self.T[row + j] if known else f
            self.c[j] = (f - T) + T * over_n
            self.change[j] = T + c_x * (f - T)
            self.T[row + j] = f
        scatter(samples, x, self.change, one, one, self.G_sum, self.H_sum, d, A)
        return descend_from(point, samples, x, self.c, (self.G_mean, self.H_mean), rates, d, A), cursor
