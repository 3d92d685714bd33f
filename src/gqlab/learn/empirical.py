"""The objective of logged data: J(θ), its gradient and everything else that means over transitions make, in NumPy.

    C = mean φφᵀ        ω*(θ) = C⁺ mean δφ        J(θ) = ½ (mean δφ)ᵀ ω*        ∇J(θ) = −mean δφ + mean γ φ̂_{s'} φᵀω*

Nothing here comes from the compiled rules: each checks the other. φ(s,a) is x(s) in the block of a, so C is one K × K
block for each action, and ω* is a regression of δ on x for each of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg
from numpy.typing import NDArray

from gqlab.checks import FloatArray
from gqlab.learn.log_table import Encoded, Target
from gqlab.operators import Operator

#: Up to so many features of a state the blocks of C are matrices; beyond, regressions are iterative.
MOST_DENSE = 2000

#: Eigenvalues of a block of C below this share of its largest are zero.
RANK = 1e-10

#: When iterative regressions are done.
TOLERANCE, MOST_ITERATIONS = 1e-10, 1000


class Bootstrap(NamedTuple):
    """What follows from θ at the next observations."""

    V: FloatArray  # (n,)  V̄
    w: FloatArray  # (n, A)  its weights


class Empirical:
    """The means over logged transitions."""

    def __init__(self, log: Encoded, encoder: Any, target: Target, n_actions: int) -> None:
        self.log, self.target, self.A, self.K = log, target, n_actions, encoder.n_features_out_
        self.n = len(log.action)
        self.x: Any = _matrix(log.features, encoder)
        self.rows = [np.flatnonzero(log.action == a) for a in range(n_actions)]
        self._first = [self.x[log.observation[rows]] for rows in self.rows]
        self._next = self.x[log.next_observation]
        self._roots = [self._root(block) for block in self._first] if self.K <= MOST_DENSE else None
        self._seen = [_seen(block) for block in self._first] if self._roots is None else []

    @property
    def d(self) -> int:
        """A · K."""
        return self.A * self.K

    def block_means(self, values: FloatArray) -> FloatArray:
        """mean of values·φ over the transitions, (A, K)."""
        return np.stack([x.T @ values[rows] for x, rows in zip(self._first, self.rows, strict=True)]) / self.n

    def q_taken(self, theta: FloatArray) -> FloatArray:
        """φ(s,a)ᵀθ of every transition, (n,); theta is (A, K)."""
        out = np.empty(self.n)
        for a, rows in enumerate(self.rows):
            out[rows] = self._first[a] @ theta[a]
        return out

    def q_next(self, theta: FloatArray) -> FloatArray:
        """The action values at the next observations, (n, A)."""
        return np.asarray(self._next @ theta.T)

    def bootstrap(self, theta: FloatArray) -> Bootstrap:
        """V̄ and w at the next observations."""
        q = self.q_next(theta)
        if self.log.policy is not None:
            w = self.log.policy[self.log.next_observation]
            return Bootstrap((w * q).sum(axis=1), w)
        assert isinstance(self.target, Operator)
        return Bootstrap(self.target.value(q), self.target.weights(q))

    def delta(self, theta: FloatArray, bootstrap: Bootstrap | None = None) -> FloatArray:
        """δ of every transition, (n,)."""
        V = (self.bootstrap(theta) if bootstrap is None else bootstrap).V
        return self.log.reward + self.log.discount * V - self.q_taken(theta)

    def regress(self, values: FloatArray) -> FloatArray:
        """C⁺ mean values·φ, (A, K): the regression of values on the features."""
        if self._roots is not None:
            means = self.block_means(values)
            return np.stack([root @ (root.T @ mean) for root, mean in zip(self._roots, means, strict=True)])
        out = np.zeros((self.A, self.K))
        for a, rows in enumerate(self.rows):
            if len(rows):
                columns, x = self._seen[a]
                how = {"atol": TOLERANCE, "btol": TOLERANCE, "maxiter": MOST_ITERATIONS}
                out[a, columns] = scipy.sparse.linalg.lsmr(x, values[rows], **how)[0]
        return out

    def _root(self, x: Any) -> FloatArray:
        """B with B Bᵀ = C_a⁺, for the block of an action."""
        values, vectors = scipy.linalg.eigh(_gram(x) / self.n)
        kept = values > RANK * max(float(values[-1]), np.finfo(float).tiny)
        return vectors[:, kept] / np.sqrt(values[kept])

    def mspbe(self, theta: FloatArray) -> float:
        """J(θ)."""
        delta = self.delta(theta)
        return 0.5 * float((self.block_means(delta) * self.regress(delta)).sum())

    def gradient(self, theta: FloatArray) -> FloatArray:
        """∇J(θ), (A, K)."""
        return self.objective(theta)[1]

    def objective(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """J(θ) and ∇J(θ)."""
        bootstrap = self.bootstrap(theta)
        delta = self.delta(theta, bootstrap)
        means, omega = self.block_means(delta), self.regress(delta)
        phi_omega = self.log.discount * self.q_taken(omega)
        correction = np.asarray(self._next.T @ (phi_omega[:, None] * bootstrap.w)).T / self.n
        return 0.5 * float((means * omega).sum()), correction - means

    def largest_q(self, theta: FloatArray) -> float:
        """max |Q| over all observations and actions."""
        return float(np.abs(self.x @ theta.T).max())


def _matrix(features: Any, encoder: Any) -> Any:
    """The features of all observations, (n_observations, K): CSR where they are binary."""
    if encoder.kind == "dense":
        return features
    n, width = features.shape
    parts = np.full(n * width, encoder.value_), features.reshape(-1), np.arange(0, n * width + 1, width)
    return scipy.sparse.csr_array(parts, shape=(n, encoder.n_features_out_))


def _seen(x: Any) -> tuple[NDArray[np.intp], Any]:
    """The columns of x that are not zero everywhere, and x without the others."""
    columns = np.unique(x.indices) if scipy.sparse.issparse(x) else np.arange(x.shape[1])
    return columns, x[:, columns]


def _gram(x: Any) -> FloatArray:
    product = x.T @ x
    return product.toarray() if scipy.sparse.issparse(product) else product
