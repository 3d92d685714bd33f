"""A given target policy: V̄ = Σ π(a|s) q_a, and control becomes off-policy evaluation."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gqlab.operators.base import Operator, Smoothness, check_extent
from gqlab.rules.gradient import improve
from gqlab.support import checks
from gqlab.support.checks import FloatArray
from gqlab.support.words import counted


class FixedPolicyRule(NamedTuple):
    table: Any  # (n_rows,)  π(a|s)

    def improve(self, row, q, w, A):
        """V̄ = Σ π(a|s) q_a,  w = π(·|s)."""
        V = q.dtype.type(0)
        for a in range(A):
            w[a] = self.table[row + a]
            V += w[a] * q[a]
        return V

    def act(self, row, q, p, A):
        """The policy is w itself."""
        improve(self, row, q, p, A)


class FixedPolicy(checks.Frozen, Operator):
    """A given target policy π(a|s), (S, A): control becomes off-policy evaluation (TDC in action values).

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> gq.FixedPolicy([[0.25, 0.75]]).value(np.array([[0.0, 4.0]]))
    array([3.])
    """

    compiled: ClassVar[type] = FixedPolicyRule

    def __init__(self, table: ArrayLike) -> None:
        pi = checks.array("table", table, (None, None))
        checks.probabilities("table", pi)
        self.table: FloatArray = checks.frozen(pi)

    def __repr__(self) -> str:
        return f"FixedPolicy({counted(self.table.shape[0], 'state')}, {counted(self.table.shape[1], 'action')})"

    def policy(self, q: FloatArray) -> FloatArray:
        if q.shape[-2:] != self.table.shape:
            S, A = self.table.shape
            raise ValueError(f"q has shape {q.shape}, expected (..., {S}, {A})")
        return np.broadcast_to(self.table, q.shape)

    weights = policy

    def curvature(self, q: FloatArray, v: FloatArray) -> FloatArray:
        return np.zeros(np.broadcast_shapes(q.shape, v.shape))

    def smoothness(self, n_actions: int, radius: float, diameter: float = 2.0) -> Smoothness:
        """φ̂ does not depend on θ."""
        check_extent(n_actions, radius, diameter)
        return Smoothness(0.0, 0.0, 1.0, 0.0, ("1", "0"))

    def check(self, n_states: int, n_actions: int) -> None:
        if self.table.shape != (n_states, n_actions):
            raise ValueError(
                f"target: the policy's table has shape {self.table.shape}, expected ({n_states}, {n_actions})"
            )
