"""The baselines for logged data: fitted Q iteration, least-squares policy iteration; and least squares on J itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from gqlab import checks
from gqlab.checks import FloatArray
from gqlab.learn.empirical import MOST_DENSE, Empirical

#: The largest number A·K of features for the methods that solve for all of them at once.
MOST_JOINT = 6000

#: A search for a least J begins with this damping μ, relative to the largest singular value squared.
FIRST_DAMPING, LEAST_DAMPING = 1e-6, 1e-15

#: The factors of μ that are tried until J falls: shorter steps, then longer ones, for at a kink no short step may do.
TRIALS = (*(4.0**k for k in range(16)), *(4.0**-k for k in range(1, 11)))

#: A |Q| as large as this counts as diverged: squares of it are still finite.
TOO_LARGE = 1e150

#: A search on J is over when it no longer falls by this share.
ENOUGH = 1e-10


def _check(solver: Any) -> None:
    """What both solvers are given."""
    object.__setattr__(solver, "ridge", checks.number("ridge", solver.ridge, least=0))
    object.__setattr__(solver, "n_iterations", checks.integer("n_iterations", solver.n_iterations, least=1))


@dataclass(frozen=True)
class FittedQ:
    """Fitted Q iteration: θ ← the ridge regression of r + γ V̄_{s'}(θ) on φ(s,a), again and again.

    With a given policy as the target it is fitted Q evaluation. Nothing keeps it from diverging: a ridge helps.

    Parameters
    ----------
    ridge : float
        λ of (C + λI) θ = mean φ (r + γV̄), with C = mean φφᵀ.
    n_iterations : int

    Examples
    --------
    >>> import gqlab as gq
    >>> gq.FittedQ(ridge=1e-3)
    FittedQ(ridge=0.001, n_iterations=200)
    """

    ridge: float = 1e-4
    n_iterations: int = 200

    def __post_init__(self) -> None:
        _check(self)

    def fit(self, data: Empirical, theta: FloatArray, report: Callable[[FloatArray], bool]) -> tuple[FloatArray, bool]:
        """Iterate from θ; ``report`` gets every iterate, and ends it by False. The last, and whether it diverged."""
        factors = [_factor(block, self.ridge) for block in _blocks(data)]
        for _ in range(self.n_iterations):
            y = data.log.reward + data.log.discount * data.bootstrap(theta).V
            new = np.stack([solve(mean) for solve, mean in zip(factors, data.block_means(y), strict=True)])
            if not data.largest_q(new) < TOO_LARGE:
                return theta, True
            theta = new
            if not report(theta):
                break
        return theta, False


@dataclass(frozen=True)
class LSPI:
    """Least-squares policy iteration: θ ← the solution of mean δφ = 0 with the weights w of the last θ.

    Parameters
    ----------
    ridge : float
        λ of (mean φ(φ − γφ̂)ᵀ + λI) θ = mean rφ.
    n_iterations : int
        At most; it ends where θ no longer changes.

    Examples
    --------
    >>> import gqlab as gq
    >>> gq.LSPI(ridge=1e-3)
    LSPI(ridge=0.001, n_iterations=30)
    """

    ridge: float = 1e-4
    n_iterations: int = 30

    def __post_init__(self) -> None:
        _check(self)

    def fit(self, data: Empirical, theta: FloatArray, report: Callable[[FloatArray], bool]) -> tuple[FloatArray, bool]:
        """Iterate from θ; ``report`` gets every iterate, and ends it by False. The last, and whether it diverged."""
        _check_joint(data, "LSPI")
        for _ in range(self.n_iterations):
            matrix, b = linearised(data, theta)
            matrix[np.diag_indices(data.d)] += self.ridge
            new = np.asarray(np.linalg.lstsq(matrix, b, rcond=None)[0], dtype=np.float64).reshape(theta.shape)
            if not data.largest_q(new) < TOO_LARGE:
                return theta, True
            same, theta = np.allclose(theta, new, rtol=1e-9, atol=1e-12), new
            if not report(theta) or same:
                break
        return theta, False


def descend(data: Empirical, theta: FloatArray, most: int, report: Callable[[FloatArray], bool]) -> FloatArray:
    """Levenberg and Marquardt's search for a least J: one pass for each evaluation, O(d²) memory.

    Near θ, mean δφ = b − Aθ', and J is half its squared length in the norm of C⁺: with B Bᵀ = C⁺ a step minimises
    ‖Bᵀ(b − Aθ')‖² + μ‖θ' − θ‖². Where J does not fall other μ are tried: a maximum has kinks, and a longer step
    may go over one that stops a short step.
    """
    _check_joint(data, "LeastSquaresGreedyGQ")
    roots = scipy.linalg.block_diag(*data._roots)  # type: ignore[misc]
    J, mu = data.mspbe(theta), FIRST_DAMPING
    for _ in range(most):
        matrix, b = linearised(data, theta)
        U, S, Vt = np.linalg.svd(roots.T @ matrix, full_matrices=False)
        left = U.T @ (roots.T @ (b - matrix @ theta.reshape(-1)))
        found, trial = J, theta
        for factor in TRIALS:
            damping = mu * factor * S[0] ** 2
            trial = theta + (Vt.T @ (S / (S**2 + damping) * left)).reshape(theta.shape)
            found = data.mspbe(trial)
            if found < J:
                break
        if not found < J:
            break
        fell, theta, J, mu = J - found, trial, found, max(mu * factor / 3, LEAST_DAMPING)
        if not report(theta) or fell <= ENOUGH * J:
            break
    return theta


def linearised(data: Empirical, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """mean δφ = b − matrix·θ' for θ' near θ: V̄(θ') ≈ V̄(θ) + wᵀ(q(θ') − q(θ))."""
    V, w = data.bootstrap(theta)
    log, K = data.log, data.K
    offset = V - (w * data.q_next(theta)).sum(axis=1)
    b = data.block_means(log.reward + log.discount * offset).reshape(-1)
    matrix = np.zeros((data.d, data.d))
    for a, (rows, x) in enumerate(zip(data.rows, data._first, strict=True)):
        block = slice(a * K, (a + 1) * K)
        matrix[block, block] += _dense(x.T @ x)
        for other in range(data.A):
            weight = log.discount[rows] * w[rows, other]
            matrix[block, other * K : (other + 1) * K] -= _dense(x.T @ _scaled(data._next[rows], weight))
    return matrix / data.n, b


def _scaled(x: Any, weight: FloatArray) -> Any:
    """The rows of x, each times its weight."""
    return x.multiply(weight[:, None]).tocsr() if hasattr(x, "multiply") else x * weight[:, None]


def _dense(product: Any) -> FloatArray:
    return product.toarray() if hasattr(product, "toarray") else product


def _blocks(data: Empirical) -> list[FloatArray]:
    if data.K > MOST_DENSE:
        raise ValueError(f"encoder makes {data.K} features of a state; FittedQ solves for at most {MOST_DENSE}")
    return [_dense(x.T @ x) / data.n for x in data._first]


def _factor(block: FloatArray, ridge: float) -> Callable[[FloatArray], FloatArray]:
    """v ↦ (block + ridge·I)⁺ v."""
    values, vectors = scipy.linalg.eigh(block)
    values = values + ridge
    kept = values > 1e-13 * max(float(values[-1]), np.finfo(float).tiny)
    vectors, values = vectors[:, kept], values[kept]
    return lambda v: vectors @ ((vectors.T @ v) / values)


def _check_joint(data: Empirical, name: str) -> None:
    if data.K > MOST_DENSE:
        raise ValueError(f"encoder makes {data.K} features of a state; {name} solves for at most {MOST_DENSE}")
    if data.d > MOST_JOINT:
        raise ValueError(f"encoder and actions make {data.d} features; {name} solves for at most {MOST_JOINT}")
