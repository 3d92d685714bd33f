"""Policy-improvement operators: one state's action values q ↦ V̄(q), its gradient w, and the policy π(·; q).

    V̄(q) = Σ_a π(a; q) q_a        w(q) = ∂V̄/∂q

==============  =======================================  ================================
operator        V̄(q)                                     w_a
==============  =======================================  ================================
Softmax         Σ p_a q_a,  p = softmax(σq)              p_a (1 + σ(q_a − V̄))
Mellowmax       log(mean exp(κq)) / κ                    softmax(κq)_a
Greedy          max q                                    1 at the first maximiser
EpsilonGreedy   (1−ε) max q + ε mean q                   the same mixture
FixedPolicy     Σ π(a|s) q_a                             π(a|s)
==============  =======================================  ================================

This is the NumPy face, batched over leading axes of ``q`` (..., S, A). The compiled updates use the scalar form in
:mod:`gqlab.rules`; the tests hold the two against each other. ``code`` and ``parameter`` name an operator there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp, softmax

from gqlab import checks
from gqlab.checks import FloatArray


@dataclass(frozen=True)
class Smoothness:
    """How smooth an operator is on the ball of radius R, for ‖φ‖ ≤ 1 and actions whose features lie within D.

    Attributes
    ----------
    k1, k2 : float or None
        θ ↦ π_θ(a|s) is k₁-Lipschitz with a k₂-Lipschitz gradient (the paper's Assumption 2); None where unknown.
    phi_hat : float
        sup ‖φ̂_s(θ)‖.
    L_phi_hat : float
        The Lipschitz constant of θ ↦ φ̂_s(θ).
    formulas : tuple of str
        How ``phi_hat`` and ``L_phi_hat`` come about.
    """

    k1: float | None
    k2: float | None
    phi_hat: float
    L_phi_hat: float
    formulas: tuple[str, str]


class Operator(ABC):
    """A policy-improvement operator."""

    code: ClassVar[int]

    @property
    @abstractmethod
    def parameter(self) -> float:
        """The one number that the compiled form needs."""

    @abstractmethod
    def policy(self, q: FloatArray) -> FloatArray:
        """π(a; q), the same shape as ``q`` (..., S, A)."""

    def value(self, q: FloatArray) -> FloatArray:
        """V̄(q), (..., S)."""
        return (self.policy(q) * q).sum(axis=-1)

    @abstractmethod
    def weights(self, q: FloatArray) -> FloatArray:
        """w = ∂V̄/∂q, the same shape as ``q``."""

    def smoothness(self, n_actions: int, radius: float, diameter: float = 2.0) -> Smoothness | None:
        """Its smoothness constants on the ball of this radius; None: the operator is not smooth.

        ``diameter`` is max ‖φ(s,a) − φ(s,b)‖ over the states and the pairs of their actions.
        """
        return None

    def check(self, n_states: int, n_actions: int) -> None:  # noqa: B027 - most operators fit every problem
        """Raise ``ValueError`` if the operator does not fit a problem of this size."""


@dataclass(frozen=True)
class Softmax(Operator):
    """π(a) ∝ exp(σ q_a), σ the inverse temperature.

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> gq.Softmax(1.0).policy(np.log([[1.0, 3.0]])).round(12)
    array([[0.25, 0.75]])
    """

    code: ClassVar[int] = 0
    sigma: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", checks.number("sigma", self.sigma, least=0))

    @property
    def parameter(self) -> float:
        return float(self.sigma)

    def policy(self, q: FloatArray) -> FloatArray:
        return np.asarray(softmax(self.sigma * q, axis=-1))

    def weights(self, q: FloatArray) -> FloatArray:
        p = self.policy(q)
        return p * (1 + self.sigma * (q - (p * q).sum(axis=-1, keepdims=True)))

    def smoothness(self, n_actions: int, radius: float, diameter: float = 2.0) -> Smoothness:
        """k₁ = σ/2, k₂ = σ²; sup‖φ̂‖ and L_φ̂ do not grow with the radius (derived in docs/theory.md).

        Examples
        --------
        >>> import gqlab as gq
        >>> smooth = gq.Softmax(1.0).smoothness(n_actions=2, radius=100.0)
        >>> round(smooth.phi_hat, 4), smooth.L_phi_hat
        (1.1997, 2.0)
        """
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


@dataclass(frozen=True)
class Mellowmax(Operator):
    """V̄ = log(mean exp(κq))/κ, a smooth non-expansion (Asadi and Littman, 2017).

    The policy, needed to act and never to update, is the softmax whose inverse temperature makes Σπq equal V̄.

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> operator, q = gq.Mellowmax(2.0), np.array([[0.0, 1.0]])
    >>> bool(np.isclose((operator.policy(q) * q).sum(), operator.value(q)[0]))
    True
    """

    code: ClassVar[int] = 1
    kappa: float = 5.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "kappa", checks.number("kappa", self.kappa, above=0))

    @property
    def parameter(self) -> float:
        return float(self.kappa)

    def value(self, q: FloatArray) -> FloatArray:
        return np.asarray(logsumexp(self.kappa * q, axis=-1) - np.log(q.shape[-1])) / self.kappa

    def weights(self, q: FloatArray) -> FloatArray:
        return np.asarray(softmax(self.kappa * q, axis=-1))

    def smoothness(self, n_actions: int, radius: float, diameter: float = 2.0) -> Smoothness:
        """φ̂ is a mean of features, and its derivative κ times their covariance."""
        return Smoothness(None, None, 1.0, self.kappa * diameter**2 / 4, ("1", "κD²/4"))

    def policy(self, q: FloatArray) -> FloatArray:
        # κ V̄ is the integral over [0, κ] of the softmax value, which rises with the inverse temperature:
        # so the root lies in [0, κ].
        from scipy.optimize import elementwise

        gap = q - self.value(q)[..., None]

        def surplus(sigma: FloatArray, *columns: FloatArray) -> FloatArray:
            g = np.stack(columns, axis=-1)
            return np.asarray((softmax(sigma[..., None] * g, axis=-1) * g).sum(axis=-1))

        columns = tuple(np.moveaxis(gap, -1, 0))
        bracket = np.zeros(gap.shape[:-1]), np.full(gap.shape[:-1], self.kappa)
        # Rounding can put the sign of an end on the wrong side where all values are equal: any root is right there.
        flat = (surplus(bracket[0], *columns) >= 0) | (surplus(bracket[1], *columns) <= 0)
        sigma = np.asarray(elementwise.find_root(surplus, bracket, args=columns).x)
        return np.asarray(softmax(np.where(flat, self.kappa, sigma)[..., None] * q, axis=-1))


@dataclass(frozen=True)
class Greedy(Operator):
    """V̄ = max q; ties go to the first maximiser.

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> gq.Greedy().policy(np.array([[1.0, 3.0, 3.0]]))
    array([[0., 1., 0.]])
    """

    code: ClassVar[int] = 2

    @property
    def parameter(self) -> float:
        return 0.0

    def policy(self, q: FloatArray) -> FloatArray:
        return np.eye(q.shape[-1])[q.argmax(axis=-1)]

    weights = policy


@dataclass(frozen=True)
class EpsilonGreedy(Operator):
    """Greedy with probability 1 − ε, else uniform.

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> gq.EpsilonGreedy(0.5).policy(np.array([[1.0, 3.0]]))
    array([[0.25, 0.75]])
    """

    code: ClassVar[int] = 3
    epsilon: float = 0.1

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checks.number("epsilon", self.epsilon, least=0, most=1))

    @property
    def parameter(self) -> float:
        return float(self.epsilon)

    def policy(self, q: FloatArray) -> FloatArray:
        n = q.shape[-1]
        return (1 - self.epsilon) * np.eye(n)[q.argmax(axis=-1)] + self.epsilon / n

    weights = policy


class FixedPolicy(Operator):
    """A given target policy π(a|s), (S, A): control becomes off-policy evaluation (TDC in action values).

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> gq.FixedPolicy([[0.25, 0.75]]).value(np.array([[0.0, 4.0]]))
    array([3.])
    """

    code: ClassVar[int] = 4

    def __init__(self, table: ArrayLike) -> None:
        pi = checks.array("table", table, (None, None))
        checks.probabilities("table", pi)
        self.table: FloatArray = checks.frozen(pi)

    @property
    def parameter(self) -> float:
        return 0.0

    def __repr__(self) -> str:
        return f"FixedPolicy({self.table.shape[0]} states, {self.table.shape[1]} actions)"

    def policy(self, q: FloatArray) -> FloatArray:
        return np.broadcast_to(self.table, q.shape)

    weights = policy

    def smoothness(self, n_actions: int, radius: float, diameter: float = 2.0) -> Smoothness:
        """φ̂ does not depend on θ."""
        return Smoothness(0.0, 0.0, 1.0, 0.0, ("1", "0"))

    def check(self, n_states: int, n_actions: int) -> None:
        if self.table.shape != (n_states, n_actions):
            raise ValueError(
                f"target: the policy's table has shape {self.table.shape}, expected ({n_states}, {n_actions})"
            )


def _boltzmann_extremes(n_actions: int, widest: float) -> tuple[float, float]:
    """max_P (1−P)(P·X(P) − 1)⁺ and max_P 2P(1−P)X(P), with X(P) = min(widest, log(P/(1−P)) + log(n_actions − 1)).

    They bound E(−1−y)⁺ and E|y| for y_a = σ(q_a − V̄) under p = softmax(σq): see docs/theory.md. Each function of
    P has one peak, found on a grid that is refined around its best point; the last width is added to stay above it.
    """

    def spread(P: FloatArray) -> FloatArray:
        return np.minimum(widest, np.log(P / (1 - P)) + np.log(n_actions - 1))

    def peak(function: Callable[[FloatArray], FloatArray]) -> float:
        low, high = 1e-12, 1 - 1e-12
        for _ in range(12):
            P = np.linspace(low, high, 1001)
            k = int(function(P).argmax())
            low, high = P[max(k - 1, 0)], P[min(k + 1, 1000)]
        return max(0.0, float(function(P).max()) * (1 + 1e-12))

    return peak(lambda P: (1 - P) * (P * spread(P) - 1)), peak(lambda P: 2 * P * (1 - P) * spread(P))


#: The operators that the compiled rules know.
OPERATORS: tuple[type[Operator], ...] = (Softmax, Mellowmax, Greedy, EpsilonGreedy, FixedPolicy)
