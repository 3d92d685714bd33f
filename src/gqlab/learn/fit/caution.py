"""Lower confidence values, for fits that are to be pessimistic about what the data hardly hold.

    h(s,a) = φᵀ(Σφφᵀ + κI)⁻¹φ        the leverage of a pair; κ counts ``FEW_ROWS``
    sd²    = Σ(y − φᵀθ)²/(n − Σh)     of y = r + γV̄, the values that were regressed
    q̃      = max(q_min, φᵀθ − β·sd·√h),  and q_min where h ≥ 1: no row of a log has such a leverage

q_min is the least that rewards allow, and what regressions are shrunk towards. The answer of a fit is q̃ of all
observations and actions, as near as the features hold it: exactly where every state has one feature.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from gqlab.learn.fit.empirical import Empirical, dense
from gqlab.learn.fit.shrunk import Gram
from gqlab.operators import Operator
from gqlab.support.checks import FloatArray

#: κ, in rows: a pair that was seen once has the leverage 0.99, one that was never seen has 100.
FEW_ROWS = 0.01

#: Observations whose leverage is computed at a time.
AT_A_TIME = 2**12


class Caution:
    """What the values of a log are lowered by; ``ridge`` is λ of regressions for each row, FEW_ROWS where not given."""

    def __init__(self, data: Empirical, beta: float, ridge: float | None) -> None:
        assert data.blocks is not None
        self.data, self.beta, log = data, beta, data.log
        square = float(np.einsum("akk->", data.blocks))  # mean ‖x‖²: rows of κ have this length
        few = FEW_ROWS * (square if square > 0 else 1.0)
        self.lam = few if ridge is None else max(ridge * data.n, 1e-6 * few)
        self.gram = Gram(data.blocks * data.n)
        self.inverse = self.gram.inverse(self.lam)
        self.degrees = self.gram.degrees(self.lam)
        self.q_min = data.worth()[0]
        self.least = np.tile(self.q_min * data.constant(), (data.A, 1))  # θ of q_min everywhere
        h = self._leverages(self.gram.inverse(few))
        self.root_h = np.where(h < 1, np.sqrt(np.minimum(h, 1.0)), np.inf)  # (n_observations, A)
        self.next_root_h = self.root_h[log.next_observation]

    def _leverages(self, inverse: FloatArray) -> FloatArray:
        out = np.empty((self.data.x.shape[0], self.data.A))
        for at in range(0, len(out), AT_A_TIME):
            part: Any = self.data.x[at : at + AT_A_TIME]
            for a, block in enumerate(inverse):
                squares = part * (part @ block)
                out[at : at + AT_A_TIME, a] = np.asarray(squares.sum(axis=1)).reshape(-1)
        return np.maximum(out, 0.0)

    def lowered(self, q: FloatArray, root_h: FloatArray, sd: float) -> FloatArray:
        """q̃."""
        below = np.multiply(self.beta * sd, root_h, where=root_h < np.inf, out=np.full_like(root_h, np.inf))
        return np.maximum(q - below, self.q_min)

    def targets(self, theta: FloatArray, sd: float) -> FloatArray:
        """y = r + γV̄(q̃) of every row, (n,)."""
        log, target = self.data.log, self.data.target
        assert isinstance(target, Operator)
        return np.asarray(log.reward + log.discount * target.value(self.lower_next(theta, sd)))

    def lower_next(self, theta: FloatArray, sd: float) -> FloatArray:
        """q̃ at the next observations, (n, A)."""
        return self.lowered(self.data.q_next(theta), self.next_root_h, sd)

    def regress(self, y: FloatArray) -> FloatArray:
        """θ = (Σφφᵀ + λI)⁻¹(Σφy + λ q_min c), (A, K)."""
        right = self.data.block_sums(y) + self.lam * self.least
        return np.stack([inverse @ sums for inverse, sums in zip(self.inverse, right, strict=True)])

    def solve(self, theta: FloatArray, sd: float) -> FloatArray:
        """θ' with q' = φᵀθ' and Σφ(r + γV̄' − q') + λ(q_min c − θ') = 0, V̄' being V̄(q̃) with its slope at θ."""
        log, data = self.data.log, self.data
        assert isinstance(data.target, Operator)
        lower = self.lower_next(theta, sd)
        w = data.target.weights(lower) * (lower > self.q_min)  # what is at q_min does not move with θ'
        V = data.target.value(lower) - (w * data.q_next(theta)).sum(axis=1)
        matrix = scipy.linalg.block_diag(*self.gram.blocks) - data.sums_ahead(w) + self.lam * np.eye(data.d)
        right = data.block_sums(log.reward + log.discount * V) + self.lam * self.least
        return np.asarray(np.linalg.solve(matrix, right.reshape(-1))).reshape(theta.shape)

    def deviation(self, y: FloatArray, theta: FloatArray) -> float:
        """sd of what θ leaves of y."""
        left = y - self.data.q_taken(theta)
        return float(np.sqrt(left @ left / max(self.data.n - self.degrees, 1.0)))

    def folded(self, theta: FloatArray, sd: float) -> FloatArray:
        """q̃ of all observations and actions, regressed on the features: the values of the model, (A, K)."""
        x = self.data.x
        lower = self.lowered(np.asarray(x @ theta.T), self.root_h, sd)
        second = dense(x.T @ x)
        tiny = 1e-10 * np.trace(second) / self.data.K
        right = np.asarray(x.T @ lower) + tiny * self.least.T
        return np.asarray(scipy.linalg.solve(second + tiny * np.eye(self.data.K), right, assume_a="pos")).T
