"""J of given means, in NumPy: the exact ones of a problem, or those of the samples of a run.

With C = E[φφᵀ], b = E[rφ] and K = E[γ φ 1{s'}ᵀ] (d, S),

    m(θ) = E[δφ] = b + K V̄(θ) − Cθ      ω(θ) = C⁺m      J = ½ mᵀω      ∇J = Σ_s (Kᵀω)_s φ̂_s(θ) − m

and with A(θ) = C − Σ_s K_s φ̂_s(θ)ᵀ, so that ∂m/∂θ = −A and ∇J = −Aᵀω,

    ∇²J = AᵀC⁺A + Σ_s (Kᵀω)_s ∇²V̄_s(θ)
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gqlab.exact.moments import FeatureMoments, as_dense
from gqlab.operators.base import Operator
from gqlab.support import checks
from gqlab.support.checks import FloatArray

#: Eigenvalues of C below this fraction of the largest belong to directions about which the means say nothing.
CUTOFF = 1e-13


def action_values(rows: Any, theta: FloatArray) -> FloatArray:
    """φ(s,a)ᵀθ, (..., S·A), for rows of features, dense or sparse, and θ (..., d)."""
    if not sparse.issparse(rows):
        return np.asarray(theta @ rows.T)
    return np.asarray((rows @ theta.reshape(-1, theta.shape[-1]).T).T.reshape(*theta.shape[:-1], -1))


class ProjectedBellmanError:
    """J for each of n sets of means: C (n, d, d), b (n, d), K (n, d, S). θ is (n, k, d), k points for each of them."""

    def __init__(self, rows: Any, target: Operator, means: FeatureMoments) -> None:
        self.rows, self.target, self.means = rows, target, means  # φ(s,a), (S·A, d), dense or sparse
        self._shape = means.K.shape[-1], rows.shape[0] // means.K.shape[-1]  # S, A

    @property
    def n_actions(self) -> int:
        """A."""
        return int(self._shape[1])

    @cached_property
    def features(self) -> FloatArray:
        """φ(s,a), (S, A, d)."""
        checks.memory("features", "sparse, needed as a dense array", self.rows.shape[0] * self.rows.shape[1])
        return as_dense(self.rows).reshape(*self._shape, -1)

    def take(self, which: NDArray[np.intp]) -> ProjectedBellmanError:
        """The objective for some of the sets of means."""
        return ProjectedBellmanError(self.rows, self.target, FeatureMoments(*(moment[which] for moment in self.means)))

    @cached_property
    def _inverse(self) -> tuple[FloatArray, FloatArray]:
        """C⁺ = U diag(e) Uᵀ: e (n, d), U (n, d, d)."""
        e, U = np.linalg.eigh(self.means.C)
        known = e > CUTOFF * e[:, -1:]
        return np.where(known, 1 / np.where(known, e, 1.0), 0.0), U

    def solve(self, m: FloatArray) -> FloatArray:
        """C⁺m, the shape of m (n, k, d)."""
        e, U = self._inverse
        return np.asarray(((m @ U) * e[:, None]) @ np.swapaxes(U, -1, -2))

    def q(self, theta: FloatArray) -> FloatArray:
        """φ(s,a)ᵀθ, (n, k, S, A)."""
        return action_values(self.rows, theta).reshape(*theta.shape[:-1], *self._shape)

    def mean_delta_phi(self, theta: FloatArray, q: FloatArray | None = None) -> FloatArray:
        """m(θ), (n, k, d)."""
        C, b, K = self.means
        V = self.target.value(self.q(theta) if q is None else q)
        return np.asarray(b[:, None] + V @ np.swapaxes(K, -1, -2) - theta @ C)

    def omega(self, theta: FloatArray) -> FloatArray:
        """ω(θ), (n, k, d)."""
        return self.solve(self.mean_delta_phi(theta))

    def value(self, theta: FloatArray) -> FloatArray:
        """J(θ), (n, k)."""
        m = self.mean_delta_phi(theta)
        return np.asarray(0.5 * (m * self.solve(m)).sum(axis=-1))

    def correction(self, q: FloatArray, omega: FloatArray) -> FloatArray:
        """Σ_s (Kᵀω)_s φ̂_s, (n, k, d),  φ̂_s = Σ_a w_a φ(s,a)."""
        weights = (omega @ self.means.K)[..., None] * self.target.weights(q)
        weights = weights.reshape(*omega.shape[:-1], -1)
        if not sparse.issparse(self.rows):
            return np.asarray(weights @ self.rows)
        return np.asarray((self.rows.T @ weights.reshape(-1, weights.shape[-1]).T).T.reshape(omega.shape))

    def gradient(self, theta: FloatArray) -> FloatArray:
        """∇J(θ), (n, k, d)."""
        q = self.q(theta)
        m = self.mean_delta_phi(theta, q)
        return self.correction(q, self.solve(m)) - m

    def phi_hat(self, theta: FloatArray) -> FloatArray:
        """φ̂_s(θ), (n, k, S, d)."""
        return np.einsum("nksa,sai->nksi", self.target.weights(self.q(theta)), self.features)

    def linear_part(self, theta: FloatArray) -> FloatArray:
        """A(θ), (n, k, d, d)."""
        return np.asarray(self.means.C[:, None] - self.means.K[:, None] @ self.phi_hat(theta))

    def hessian(self, theta: FloatArray) -> FloatArray:
        """∇²J(θ), (n, k, d, d)."""
        phi, q = self.features, self.q(theta)
        along = self.target.curvature(*np.broadcast_arrays(q[:, :, None], np.moveaxis(phi, -1, 0)))  # (n, k, d, S, A)
        weight = self.omega(theta) @ self.means.K  # (Kᵀω)_s, (n, k, S)
        second = np.einsum("nkisa,saj->nkij", weight[:, :, None, :, None] * along, phi, optimize=True)
        A = self.linear_part(theta)
        e, U = self._inverse
        root = np.sqrt(e)[:, None, :, None] * (np.swapaxes(U, -1, -2)[:, None] @ A)
        out = np.swapaxes(root, -1, -2) @ root + second
        return np.asarray(0.5 * (out + np.swapaxes(out, -1, -2)))
