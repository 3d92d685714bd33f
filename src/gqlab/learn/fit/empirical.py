"""The objective of logged data: J(θ), its gradient and everything else that means over transitions make, in NumPy.

    C = mean φφᵀ        ω*(θ) = C⁺ mean δφ        J(θ) = ½ (mean δφ)ᵀ ω*        ∇J(θ) = −mean δφ + mean γ φ̂_{s'} φᵀω*

Nothing here comes from the compiled rules: each checks the other. φ(s,a) is x(s) in the block of a, so C is one K × K
block for each action, and ω* is a regression of δ on x for each of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg
from numpy.typing import NDArray

from gqlab.learn.fit.log_table import Encoded, Target
from gqlab.learn.fit.shrunk import constant, extremes
from gqlab.operators import Operator
from gqlab.support.checks import FloatArray

#: Up to so many features of a state the blocks of C are matrices; beyond, regressions are iterative.
MOST_DENSE = 2000

#: The largest number A·K of features for the methods that solve for all of them at once.
MOST_JOINT = 6000

#: Eigenvalues of a block of C below this share of its largest are zero.
RANK = 1e-10

#: When iterative regressions are done.
TOLERANCE, MOST_ITERATIONS = 1e-10, 1000


class Bootstrap(NamedTuple):
    """What follows from θ at the next observations."""

    V: FloatArray  # (n,)  V̄
    w: FloatArray  # (n, A)  its weights


class LinearSums(NamedTuple):
    """Σ δφ at θ; and, for θ' near θ, as offset + (after − Σ φφᵀ) θ', where V̄(θ') ≈ V̄(θ) + wᵀ(q(θ') − q(θ))."""

    delta_phi: FloatArray  # (A, K)
    after: FloatArray  # (d, d)  Σ γ φ φ̂ᵀ
    offset: FloatArray  # (d,)  Σ φ (r + γ(V̄ − wᵀq))


class LogSums:
    """Sums over logged transitions that are in memory: all, or a part of them."""

    def __init__(self, log: Encoded, encoder: Any, target: Target, n_actions: int) -> None:
        self.log, self.target, self.A, self.K = log, target, n_actions, encoder.n_features_out_
        self.n = len(log.action)
        self._whole = encoder.n_active_ * encoder.value_ if encoder.kind == "binary" else None  # Σ_k x_k of every state
        self.x: Any = _matrix(log.features, encoder)
        self.rows = [np.flatnonzero(log.action == a) for a in range(n_actions)]
        self._first = [self.x[log.observation[rows]] for rows in self.rows]
        self._next = self.x[log.next_observation]
        self._reach: float | None = None

    @property
    def d(self) -> int:
        """A · K."""
        return self.A * self.K

    def block_sums(self, values: FloatArray) -> FloatArray:
        """Σ values·φ over the transitions, (A, K)."""
        return np.stack([x.T @ values[rows] for x, rows in zip(self._first, self.rows, strict=True)])

    def grams(self) -> FloatArray:
        """Σ φφᵀ, a block for each action, (A, K, K)."""
        return np.stack([dense(x.T @ x) for x in self._first])

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

    def next_values(self, theta: FloatArray) -> FloatArray:
        """V̄ at the next observations, (n,), without its weights."""
        if self.log.policy is not None:
            return self.bootstrap(theta).V
        assert isinstance(self.target, Operator)
        return self.target.value(self.q_next(theta))

    def delta(self, theta: FloatArray, bootstrap: Bootstrap | None = None) -> FloatArray:
        """δ of every transition, (n,)."""
        V = (self.bootstrap(theta) if bootstrap is None else bootstrap).V
        return self.log.reward + self.log.discount * V - self.q_taken(theta)

    def linear_sums(self, theta: FloatArray) -> LinearSums:
        """What a step of a search for the least J is made of, but for Σ φφᵀ, which no θ changes."""
        V, w = bootstrap = self.bootstrap(theta)
        log = self.log
        offset = self.block_sums(log.reward + log.discount * (V - (w * self.q_next(theta)).sum(axis=1)))
        delta_phi = self.block_sums(self.delta(theta, bootstrap))
        return LinearSums(delta_phi, self.sums_ahead(w), offset.reshape(-1))

    def sums_ahead(self, w: FloatArray) -> FloatArray:
        """Σ γ φ φ̂ᵀ with the weights w of the next actions, (d, d)."""
        log, K = self.log, self.K
        after = np.zeros((self.d, self.d))
        for a, (rows, x) in enumerate(zip(self.rows, self._first, strict=True)):
            for other in range(self.A):
                weight = log.discount[rows] * w[rows, other]
                kept = np.flatnonzero(weight)  # of a maximum, one action of each row
                block = x[kept].T @ _scaled(self._next[rows[kept]], weight[kept])
                after[a * K : (a + 1) * K, other * K : (other + 1) * K] = dense(block)
        return after

    def largest_q(self, theta: FloatArray) -> float:
        """max |Q| over all observations and actions."""
        return float(np.abs(self.x @ theta.T).max())

    def too_large(self, theta: FloatArray, limit: float) -> bool:
        """Whether max |Q| is beyond a limit; as long as Σ|x| max|θ| is below it, Q is not computed."""
        if self._reach is None:
            self._reach = float(abs(self.x).sum(axis=1).max())
        with np.errstate(over="ignore", invalid="ignore"):
            return not (self._reach * np.abs(theta).max() < limit or self.largest_q(theta) < limit)


class Empirical(LogSums):
    """The means over logged transitions that are in memory, and J of them."""

    def __init__(self, log: Encoded, encoder: Any, target: Target, n_actions: int) -> None:
        super().__init__(log, encoder, target, n_actions)
        self.blocks = self.grams() / self.n if self.K <= MOST_DENSE else None
        self.roots = None if self.blocks is None else roots(self.blocks)
        self._seen = [_seen(block) for block in self._first] if self.roots is None else []

    def constant(self) -> FloatArray:
        """c of one action, (K,), with cᵀx ≈ 1."""
        assert self.blocks is not None
        total = np.asarray(self.x[self.log.observation].sum(axis=0)).reshape(-1)
        return constant(self.K, self._whole, self.blocks.sum(axis=0) * self.n, total)

    def worth(self) -> tuple[float, float]:
        """The least and the most that rewards allow an action to be worth."""
        discount, reward = self.log.discount, self.log.reward
        length = 1 / (1 - float(discount.max(initial=0.0)))
        return extremes(float(reward.min()), float(reward.max()), length, bool((discount == 0).any()))

    def block_means(self, values: FloatArray) -> FloatArray:
        """mean of values·φ over the transitions, (A, K)."""
        return self.block_sums(values) / self.n

    def regress(self, values: FloatArray) -> FloatArray:
        """C⁺ mean values·φ, (A, K): the regression of values on the features."""
        if self.roots is not None:
            return solve_blocks(self.roots, self.block_means(values))
        out = np.zeros((self.A, self.K))
        for a, rows in enumerate(self.rows):
            if len(rows):
                columns, x = self._seen[a]
                how = {"atol": TOLERANCE, "btol": TOLERANCE, "maxiter": MOST_ITERATIONS}
                out[a, columns] = scipy.sparse.linalg.lsmr(x, values[rows], **how)[0]
        return out

    def mspbe(self, theta: FloatArray) -> float:
        """J(θ)."""
        delta = self.delta(theta)
        return 0.5 * float((self.block_means(delta) * self.regress(delta)).sum())

    def mspbes(self, thetas: list[FloatArray]) -> Iterator[float]:
        """J of several θ, one by one as they are asked for."""
        return map(self.mspbe, thetas)

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

    def linearised(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(matrix, b): mean δφ = b − matrix·θ' for θ' near θ."""
        assert self.blocks is not None
        sums = self.linear_sums(theta)
        return scipy.linalg.block_diag(*self.blocks) - sums.after / self.n, sums.offset / self.n


def roots(blocks: FloatArray) -> list[FloatArray]:
    """B with B Bᵀ = C_a⁺, for the block C_a of each action."""
    out = []
    for block in blocks:
        values, vectors = scipy.linalg.eigh(block)
        kept = values > RANK * max(float(values[-1]), np.finfo(float).tiny)
        out.append(vectors[:, kept] / np.sqrt(values[kept]))
    return out


def solve_blocks(roots: list[FloatArray], means: FloatArray) -> FloatArray:
    """C⁺ means, (A, K)."""
    return np.stack([root @ (root.T @ mean) for root, mean in zip(roots, means, strict=True)])


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


def _scaled(x: Any, weight: FloatArray) -> Any:
    """The rows of x, each times its weight."""
    return x.multiply(weight[:, None]).tocsr() if hasattr(x, "multiply") else x * weight[:, None]


def dense(product: Any) -> FloatArray:
    """A product of sparse or dense matrices as an array."""
    return product.toarray() if hasattr(product, "toarray") else product


def check_joint(A: int, K: int, name: str) -> None:
    """``ValueError`` where there are more features than can be solved for at once."""
    if K > MOST_DENSE:
        raise ValueError(f"encoder makes {K} features of a state; {name} solves for at most {MOST_DENSE}")
    if A * K > MOST_JOINT:
        raise ValueError(f"encoder and actions make {A * K} features; {name} solves for at most {MOST_JOINT}")
