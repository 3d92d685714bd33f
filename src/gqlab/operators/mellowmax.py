"""Mellowmax: V̄ = log(mean exp(κq))/κ (Asadi and Littman, 2017)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import softmax

from gqlab.operators.base import (
    LEAST_EXPONENT,
    MOST_INVERSE_TEMPERATURE,
    Operator,
    Smoothness,
    below_top,
    check_extent,
)
from gqlab.rules.boltzmann import boltzmann, boltzmann_policy
from gqlab.rules.dispatch import rule
from gqlab.rules.numbers import expm1
from gqlab.support import checks
from gqlab.support.checks import FloatArray

#: Bisections of the interval that holds the policy's inverse temperature: enough for full precision.
HALVINGS = 60

#: Where Σ (exp x − 1) is closer to 0 than this, mellowmax equals the mean of q to full precision, even in float32.
TINY = 1e-30


@rule
def mellowmax_gap(q, kappa, w, A):
    """V̄ − max q, and exp(κ(q_a − max q)) into ``w``; returns 1/Σw, too.

    log(mean exp x)/κ loses its digits as x = κ(q − max q) nears 0: there log1p(mean expm1 x)/κ is used, and in the
    end mean q.
    """
    top, over_Z, _ = boltzmann(q, kappa, w, A)
    below_1 = q.dtype.type(0)  # Σ (exp x − 1)
    below_top = q.dtype.type(0)  # Σ (q − max q)
    for a in range(A):
        below_1 += expm1(kappa * (q[a] - top))
        below_top += q[a] - top
    n = q.dtype.type(A)
    if below_1 < -n / 2:
        gap = -math.log(over_Z * n) / kappa
    elif below_1 < -TINY:
        gap = math.log1p(below_1 / n) / kappa
    else:
        gap = below_top / n
    return top, gap, over_Z


class MellowmaxRule(NamedTuple):
    kappa: float

    def improve(self, row, q, w, A):
        """V̄ = log(mean exp(κq))/κ,  w = softmax(κq)."""
        top, gap, over_Z = mellowmax_gap(q, self.kappa, w, A)
        for a in range(A):
            w[a] *= over_Z
        return top + gap

    def act(self, row, q, p, A):
        """The softmax whose value Σπq is V̄; its inverse temperature lies in [0, κ]."""
        _, gap, _ = mellowmax_gap(q, self.kappa, p, A)
        low, high = q.dtype.type(0), self.kappa
        for _ in range(HALVINGS):
            sigma = (low + high) / 2
            _, _, mean = boltzmann(q, sigma, p, A)
            if mean < gap:
                low = sigma
            else:
                high = sigma
        boltzmann_policy(q, high, p, A)


@dataclass(frozen=True)
class Mellowmax(Operator):
    """V̄ = log(mean exp(κq))/κ, a smooth non-expansion (Asadi and Littman, 2017).

    The policy, which is needed for acting but never for updates, is the softmax whose inverse temperature makes Σπq
    equal V̄.

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> operator, q = gq.Mellowmax(2.0), np.array([[0.0, 1.0]])
    >>> bool(np.isclose((operator.policy(q) * q).sum(), operator.value(q)[0]))
    True
    """

    compiled: ClassVar[type] = MellowmaxRule
    kappa: float = 5.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "kappa", checks.number("kappa", self.kappa, above=0, most=MOST_INVERSE_TEMPERATURE))

    def value(self, q: FloatArray) -> FloatArray:
        top, g, x = below_top(q, self.kappa)
        m = np.expm1(x).mean(axis=-1)  # of exp x, less 1
        logarithm = np.where(m < -0.5, np.log(np.exp(x).mean(axis=-1)), np.log1p(m))
        return np.asarray(top + np.where(m < -TINY, logarithm / self.kappa, g.mean(axis=-1)))

    def weights(self, q: FloatArray) -> FloatArray:
        return np.asarray(softmax(below_top(q, self.kappa)[2], axis=-1))

    def curvature(self, q: FloatArray, v: FloatArray) -> FloatArray:
        w = self.weights(q)
        return self.kappa * w * (v - (w * v).sum(axis=-1, keepdims=True))

    def smoothness(self, n_actions: int, radius: float, diameter: float = 2.0) -> Smoothness:
        """φ̂ is a mean of features, and its derivative κ times their covariance."""
        n_actions, radius, diameter = check_extent(n_actions, radius, diameter)
        return Smoothness(None, None, 1.0, self.kappa * diameter**2 / 4, ("1", "κD²/4"))

    def policy(self, q: FloatArray) -> FloatArray:
        # κ V̄ is the integral over [0, κ] of the softmax value, which rises with the inverse temperature:
        # so the root lies in [0, κ].
        from scipy.optimize import elementwise

        gap = q - self.value(q)[..., None]

        def surplus(sigma: FloatArray, *columns: FloatArray) -> FloatArray:
            g = np.stack(columns, axis=-1)
            with np.errstate(over="ignore"):
                x = np.maximum(sigma[..., None] * (g - g.max(axis=-1, keepdims=True)), LEAST_EXPONENT)
            return np.asarray((softmax(x, axis=-1) * g).sum(axis=-1))

        columns = tuple(np.moveaxis(gap, -1, 0))
        bracket = np.zeros(gap.shape[:-1]), np.full(gap.shape[:-1], self.kappa)
        # Where all values are equal, rounding can give an end of the interval the wrong sign; any root is right there.
        flat = (surplus(bracket[0], *columns) >= 0) | (surplus(bracket[1], *columns) <= 0)
        sigma = np.asarray(elementwise.find_root(surplus, bracket, args=columns).x)
        return np.asarray(softmax(below_top(q, np.where(flat, self.kappa, sigma)[..., None])[2], axis=-1))
