"""ε-greedy, and greedy where ε = 0: V̄ = (1−ε) max q + ε mean q."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from gqlab.operators.base import Operator
from gqlab.rules.gradient import improve
from gqlab.support import checks
from gqlab.support.checks import FloatArray


class EpsilonGreedyRule(NamedTuple):
    epsilon: float

    def improve(self, row, q, w, A):
        """V̄ = (1−ε) max q + ε mean q,  w the same mixture, with the first maximiser."""
        best = 0
        top = q[0]
        for a in range(A):
            if q[a] > top:
                best = a
                top = q[a]
        each = self.epsilon / q.dtype.type(A)
        rest = q.dtype.type(1) - self.epsilon
        V = rest * top
        for a in range(A):  # no index that is known only at run time: it would force w out of the registers
            w[a] = each + rest if a == best else each
            V += each * q[a]
        return V

    def act(self, row, q, p, A):
        """The policy is w itself."""
        improve(self, row, q, p, A)


@dataclass(frozen=True)
class Greedy(Operator):
    """V̄ = max q; ties go to the first maximiser.

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> gq.Greedy().policy(np.array([[1.0, 3.0, 3.0]]))
    array([[0., 1., 0.]])
    """

    #: Greedy is ε-greedy with ε = 0.
    compiled: ClassVar[type] = EpsilonGreedyRule
    epsilon: ClassVar[float] = 0.0

    def policy(self, q: FloatArray) -> FloatArray:
        return np.eye(q.shape[-1])[q.argmax(axis=-1)]

    def value(self, q: FloatArray) -> FloatArray:
        return q.max(axis=-1)

    weights = policy

    def curvature(self, q: FloatArray, v: FloatArray) -> FloatArray:
        return np.zeros(np.broadcast_shapes(q.shape, v.shape))  # w is constant between the ties


@dataclass(frozen=True)
class EpsilonGreedy(Operator):
    """Greedy with probability 1 − ε, else uniform.

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> gq.EpsilonGreedy(0.5).policy(np.array([[1.0, 3.0]]))
    array([[0.25, 0.75]])
    """

    compiled: ClassVar[type] = EpsilonGreedyRule
    epsilon: float = 0.1

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checks.number("epsilon", self.epsilon, least=0, most=1))

    def policy(self, q: FloatArray) -> FloatArray:
        n = q.shape[-1]
        return (1 - self.epsilon) * np.eye(n)[q.argmax(axis=-1)] + self.epsilon / n

    def value(self, q: FloatArray) -> FloatArray:
        return np.asarray((1 - self.epsilon) * q.max(axis=-1) + self.epsilon * q.mean(axis=-1))

    weights = policy

    def curvature(self, q: FloatArray, v: FloatArray) -> FloatArray:
        return np.zeros(np.broadcast_shapes(q.shape, v.shape))  # w is constant between the ties
