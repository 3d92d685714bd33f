"""Softmax: V̄ = Σ p_a q_a with p = softmax(σq)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from gqlab.operators.base import MOST_INVERSE_TEMPERATURE, Operator, Smoothness, below_top, check_extent
from gqlab.rules.boltzmann import boltzmann, boltzmann_policy
from gqlab.rules.numbers import minus
from gqlab.support import checks
from gqlab.support.checks import FloatArray


class SoftmaxRule(NamedTuple):
    sigma: float

    def improve(self, row, q, w, A):
        """V̄ = Σ p_a q_a,  w_a = p_a (1 + σ(q_a − V̄)),  p = softmax(σq)."""
        top, over_Z, mean = boltzmann(q, self.sigma, w, A)
        for a in range(A):
            p = w[a] * over_Z
            w[a] = p + p * (self.sigma * minus(q[a] - top, mean))
        return top + mean

    def act(self, row, q, p, A):
        boltzmann_policy(q, self.sigma, p, A)


@dataclass(frozen=True)
class Softmax(Operator):
    """π(a) ∝ exp(σ q_a), σ the inverse temperature.

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> gq.Softmax(1.0).policy(np.log([[1.0, 3.0]])).round(12)
    array([[0.25, 0.75]])
    """

    compiled: ClassVar[type] = SoftmaxRule
    sigma: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", checks.number("sigma", self.sigma, least=0, most=MOST_INVERSE_TEMPERATURE))

    def policy(self, q: FloatArray) -> FloatArray:
        return _softmax(below_top(q, self.sigma)[2])

    def value(self, q: FloatArray) -> FloatArray:
        top, g, x = below_top(q, self.sigma)
        return np.asarray(top + (_softmax(x) * g).sum(axis=-1))

    def weights(self, q: FloatArray) -> FloatArray:
        p, surplus = self._surplus(q)
        return p * surplus

    def _surplus(self, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        """p and 1 + σ(q − V̄), from differences to max q: σ would make an error of q's last digit large."""
        x = below_top(q, self.sigma)[2]
        p = _softmax(x)
        return p, 1 + (x - (p * x).sum(axis=-1, keepdims=True))

    def curvature(self, q: FloatArray, v: FloatArray) -> FloatArray:
        p, surplus = self._surplus(q)
        p_v = self.sigma * p * (v - (p * v).sum(axis=-1, keepdims=True))  # the derivative of p along v
        V_v = (p * surplus * v).sum(axis=-1, keepdims=True)  # and of V̄
        return p_v * surplus + self.sigma * p * (v - V_v)

    def smoothness(self, n_actions: int, radius: float, diameter: float = 2.0) -> Smoothness:
        """k₁ = σ/2, k₂ = σ²; sup‖φ̂‖ and L_φ̂ do not grow with the radius (derived in docs/theory_proofs.md).

        Examples
        --------
        >>> import gqlab as gq
        >>> smooth = gq.Softmax(1.0).smoothness(n_actions=2, radius=100.0)
        >>> round(smooth.phi_hat, 4), smooth.L_phi_hat
        (1.1997, 2.0)
        """
        n_actions, radius, diameter = check_extent(n_actions, radius, diameter)
        k1, k2 = self.sigma / 2, self.sigma**2
        if n_actions == 1:
            return Smoothness(k1, k2, 1.0, 0.0, ("1 (one action)", "0 (one action)"))
        overshoot, deviation = _boltzmann_extremes(n_actions, self.sigma * radius * diameter)
        curvature = 2.0 if n_actions == 2 else 8 / (4 - deviation) if deviation <= 2 else 2 * deviation
        formulas = (
            "1 + 2 max_P (1−P)(P·X(P) − 1)⁺,  X(P) = min(σRD, log(P(|A|−1)/(1−P)))",
            "σ(D²/4)·2"
            if n_actions == 2
            else "σ(D²/4)·h(m),  m = max_P 2P(1−P)X(P),  h(m) = 8/(4−m) for m ≤ 2, else 2m",
        )
        return Smoothness(k1, k2, 1 + 2 * overshoot, self.sigma * diameter**2 / 4 * curvature, formulas)


def _boltzmann_extremes(n_actions: int, widest: float) -> tuple[float, float]:
    """max_P (1−P)(P·X(P) − 1)⁺ and max_P 2P(1−P)X(P), with X(P) = min(widest, log(P/(1−P)) + log(n_actions − 1)).

    They bound E(−1−y)⁺ and E|y| for y_a = σ(q_a − V̄) under p = softmax(σq): see docs/theory_proofs.md, which also
    shows that each has one peak where X > 0. It is found on a grid that is refined around its best point, and a
    generous allowance for rounding is added.
    """

    def spread(P: FloatArray) -> FloatArray:
        return np.minimum(widest, np.log(P / (1 - P)) + np.log(n_actions - 1))

    def peak(function: Callable[[FloatArray], FloatArray], most: float) -> float:
        low, high = 1e-12, 1 - 1e-12
        for _ in range(12):
            P = np.linspace(low, high, 1001)
            k = int(function(P).argmax())
            low, high = P[max(k - 1, 0)], P[min(k + 1, 1000)]
        return min(most, max(0.0, float(function(P).max()) + 1e-12))

    return (
        peak(lambda P: (1 - P) * (P * spread(P) - 1), max(0.0, widest - 1)),
        peak(lambda P: 2 * P * (1 - P) * spread(P), widest / 2),
    )


def _softmax(x: FloatArray) -> FloatArray:
    """exp(x) / Σ exp(x), for x whose largest number is 0."""
    p = np.exp(x)
    return np.asarray(p / p.sum(axis=-1, keepdims=True))
