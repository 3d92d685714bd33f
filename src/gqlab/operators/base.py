"""What an operator is: V̄(q), its gradient w and the policy, in NumPy, and a compiled part that does the same.

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

The NumPy face is batched over leading axes of ``q`` (..., S, A) and serves the exact quantities; the compiled part, the
class in ``compiled``, serves the updates. Neither is derived from the other, so that each checks the other.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gqlab.rules.dispatch import is_parameter, parameters, require
from gqlab.rules.gradient import act, improve
from gqlab.support import checks
from gqlab.support.checks import FloatArray

#: The step of central differences of w along directions whose largest entry is 1: the cube root of float64's rounding.
DIFFERENCE = 6e-6


#: The largest σ and κ: beyond, their products with differences of q may overflow. At this size the operator is max.
MOST_INVERSE_TEMPERATURE = 1e100

#: Below this, adding exp x to 1 changes no digit.
LEAST_EXPONENT = -745.0


def below_top(q: FloatArray, sigma: float | FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """max q (...), g = q − max q, and x = σg, no lower than where exp x is 0: differences keep q's digits."""
    top = q.max(axis=-1, keepdims=True)
    with np.errstate(over="ignore"):
        return top[..., 0], q - top, np.maximum(sigma * (q - top), LEAST_EXPONENT)


def check_extent(n_actions: int, radius: float, diameter: float) -> tuple[int, float, float]:
    """The arguments of ``smoothness``, checked."""
    return (
        checks.integer("n_actions", n_actions, least=1),
        checks.number("radius", radius, least=0, infinite=True),
        checks.number("diameter", diameter, least=0, infinite=True),
    )


@dataclass(frozen=True)
class Smoothness:
    """How smooth an operator is on the ball of radius R, for ‖φ‖ ≤ 1 and actions whose features lie within D.

    Attributes
    ----------
    k1, k2 : float or None
        θ ↦ π_θ(a|s) is k₁-Lipschitz with a k₂-Lipschitz gradient (the paper's Assumption 2); None where unknown.
    phi_hat : float
        sup Σ_a |w_a| where φ̂_s(θ) = Σ_a w_a φ(s,a), Σ_a w_a = 1; at least sup ‖φ̂_s(θ)‖.
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


def _of_arrays(method: Callable[..., FloatArray]) -> Callable[..., FloatArray]:
    """Let a method of q, and of v, take anything that converts to an array of finite numbers."""
    names = list(inspect.signature(method).parameters)[1:]

    @functools.wraps(method)
    def checked(self: Operator, *values: Any, **named: Any) -> FloatArray:
        arrays = {name: _values(name, value) for name, value in (*zip(names, values, strict=False), *named.items())}
        try:
            np.broadcast_shapes(*(array.shape for array in arrays.values()))
        except ValueError:
            shapes = " and ".join(f"{name} has shape {array.shape}" for name, array in arrays.items())
            raise ValueError(f"{shapes}: they do not fit together") from None
        with np.errstate(all="ignore"):  # from numbers too large: reported below
            out = np.asarray(method(self, **arrays))
        if not np.isfinite(out).all():
            raise ValueError(f"{' and '.join(arrays)}: the result overflows: some entry is too large")
        return out

    return checked


def _values(name: str, value: Any) -> FloatArray:
    out = value if type(value) is np.ndarray and value.dtype == np.float64 else checks.numbers(name, value)
    if out.ndim == 0 or out.shape[-1] == 0:
        raise ValueError(f"{name} has shape {out.shape}, expected (..., A)")
    checks.finite(name, out)
    return out


class Operator(ABC):
    """A policy-improvement operator. To add one, see docs/extending.md: a class in your own file is enough."""

    #: The compiled part: a named tuple with ``improve(self, row, q, w, A)``, and ``act(self, row, q, p, A)`` where
    #: compiled walks are wanted. Its fields are attributes of the operator: a ``float`` or ``int`` each, or an (S, A)
    #: array, which it reads at ``row + a``.
    compiled: ClassVar[type]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in ("policy", "value", "weights", "curvature"):
            if name in vars(cls):
                setattr(cls, name, _of_arrays(vars(cls)[name]))
        if "compiled" in vars(cls):
            require(cls.compiled, [improve], f"operator {cls.__name__}", optional=[act])
        elif hasattr(cls, "compiled") and {"value", "weights", "policy"} & vars(cls).keys():
            raise ValueError(
                f"operator {cls.__name__}: it overrides what its base class does, and needs a compiled form too"
            )

    @abstractmethod
    def policy(self, q: FloatArray) -> FloatArray:
        """π(a; q), the same shape as ``q`` (..., S, A)."""

    def value(self, q: FloatArray) -> FloatArray:
        """V̄(q), (..., S)."""
        return (self.policy(q) * q).sum(axis=-1)

    @abstractmethod
    def weights(self, q: FloatArray) -> FloatArray:
        """w = ∂V̄/∂q, the same shape as ``q``."""

    def curvature(self, q: FloatArray, v: FloatArray) -> FloatArray:
        """∇²V̄(q) v, the shape of ``q`` and ``v``; by differences of w unless an operator has a closed form."""
        h = DIFFERENCE / max(float(np.abs(v).max()), np.finfo(float).tiny)
        wide, narrow = ((self.weights(q + k * v) - self.weights(q - k * v)) / (2 * k) for k in (h, h / 4))
        # Where w jumps (a tie of two actions under a maximum) the quotient grows like 1/h; elsewhere w is constant.
        return np.where(np.abs(narrow) > 2 * np.abs(wide), 0.0, wide)

    def smoothness(self, n_actions: int, radius: float, diameter: float = 2.0) -> Smoothness | None:
        """Its smoothness constants on the ball of this radius; None: the operator is not smooth.

        ``diameter`` is max ‖φ(s,a) − φ(s,b)‖ over the states and the pairs of their actions.
        """
        return None

    def check(self, n_states: int, n_actions: int) -> None:  # noqa: B027 - most operators fit every problem
        """Raise ``ValueError`` if the operator does not fit a problem of this size."""

    def numbers(self) -> list[float]:
        """The parameters of the compiled part."""
        return [getattr(self, name) for name in parameters(self.compiled)]

    def tables(self) -> list[FloatArray]:
        """The (S, A) arrays of the compiled part."""
        kind: Any = self.compiled
        return [getattr(self, name) for name in kind._fields if not is_parameter(kind, name)]

    @property
    def code(self) -> int:
        """The number of one of gqlab's own operators."""
        from gqlab.operators import OPERATORS

        warnings.warn("Operator.code is deprecated: compare types", DeprecationWarning, stacklevel=2)
        return OPERATORS.index(type(self))

    @property
    def parameter(self) -> float:
        """The first parameter, or 0."""
        warnings.warn("Operator.parameter is deprecated: use sigma, kappa or epsilon", DeprecationWarning, stacklevel=2)
        return float((*self.numbers(), 0.0)[0])
