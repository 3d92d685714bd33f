"""The baselines for logged data: fitted Q iteration, least-squares policy iteration; and least squares on J itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import singledispatch
from typing import Any, Protocol

import numpy as np
import scipy.linalg

from gqlab.algorithms import LSPI, FittedQ, LeastSquaresGreedyGQ
from gqlab.learn.fit.caution import Caution
from gqlab.learn.fit.empirical import MOST_DENSE, Empirical, check_joint
from gqlab.learn.fit.evaluated import evaluated
from gqlab.operators import FixedPolicy, Operator
from gqlab.support import checks
from gqlab.support.checks import FloatArray

#: A search for a least J begins with this damping μ, relative to the largest singular value squared.
FIRST_DAMPING, LEAST_DAMPING = 1e-6, 1e-15

#: The factors of μ that are tried until J falls: shorter steps, then longer ones, for at a kink no short step may do.
TRIALS = (*(4.0**k for k in range(16)), *(4.0**-k for k in range(1, 11)))

#: A |Q| as large as this counts as diverged: squares of it are still finite.
TOO_LARGE = 1e150

#: Steps of a search for the least J, at most.
MOST_STEPS = 100

#: A search on J is over when it no longer falls by this share, or where this share of the first J is left: what
#: remains is rounding.
ENOUGH, NOTHING = 1e-10, 1e-24


@singledispatch
def solve(
    algorithm: Any, data: Any, theta: FloatArray, report: Callable[[FloatArray], bool]
) -> tuple[FloatArray, bool]:
    """Solve for θ, from a first one; ``report`` gets every iterate, and ends it by False.

    Returns the last iterate, and whether the one behind it would have left the finite numbers.
    """
    raise ValueError(f"algorithm is {checks.shown(algorithm)}: gqlab.fit does not know how to solve it")


def check_goal(algorithm: Any, goal: Any, theta0: Any) -> None:
    """``ValueError`` where something is given that a solver cannot use: a policy is evaluated at once."""
    if not isinstance(algorithm, FittedQ | LSPI):
        return
    evaluates = not isinstance(goal, Operator) or isinstance(goal, FixedPolicy)
    if evaluates and algorithm.n_iterations is not None:
        raise ValueError(
            f"n_iterations is {algorithm.n_iterations}, but the target is a policy, whose values are solved for at once"
        )
    if evaluates and algorithm.pessimism:
        raise ValueError(
            f"pessimism is {algorithm.pessimism:g}, but the target is a policy, which is evaluated as it is"
        )
    if theta0 is not None and (evaluates or algorithm.pessimism):
        why = "the target is a policy, whose values are solved for at once"
        raise ValueError(
            f"theta0 is given, but {why if evaluates else 'a pessimistic fit begins with the least values'}"
        )


@solve.register
def fitted_q(
    algorithm: FittedQ, data: Empirical, theta: FloatArray, report: Callable[[FloatArray], bool]
) -> tuple[FloatArray, bool]:
    """θ ← the ridge regression of r + γ V̄_{s'}(θ) on φ(s,a), again and again; of a policy, its fixed point."""
    if data.log.policy is not None:
        return fixed_point(algorithm, data, report)
    blocks = _blocks(data)
    if algorithm.pessimism:
        return cautious_q(algorithm, data, report)
    factors = [_factor(block, algorithm.own_ridge) for block in blocks]
    for _ in range(algorithm.most_iterations):
        y = data.log.reward + data.log.discount * data.next_values(theta)
        new = np.stack([invert(mean) for invert, mean in zip(factors, data.block_means(y), strict=True)])
        if data.too_large(new, TOO_LARGE):
            return theta, True
        theta = new
        if not report(theta):
            break
    return theta, False


def fixed_point(
    algorithm: FittedQ | LSPI, data: Empirical, report: Callable[[FloatArray], bool]
) -> tuple[FloatArray, bool]:
    """The values of a policy: the fixed point of fitted Q evaluation, which is LSTD-Q's too."""
    check_joint(data.A, data.K, type(algorithm).__name__)
    theta = evaluated(data, algorithm.ridge)
    report(theta)
    return theta, False


def cautious_q(algorithm: FittedQ, data: Empirical, report: Callable[[FloatArray], bool]) -> tuple[FloatArray, bool]:
    """Fitted Q iteration with lower confidence values in the bootstrap, from the least values on."""
    caution = Caution(data, algorithm.pessimism, algorithm.ridge)
    theta, sd = caution.least, 0.0
    for _ in range(algorithm.most_iterations):
        y = caution.targets(theta, sd)
        new = caution.regress(y)
        if data.too_large(new, TOO_LARGE):
            return theta, True
        theta, sd = new, caution.deviation(y, new)
        if not report(theta):
            break
    return caution.folded(theta, sd), False


@solve.register
def lspi(
    algorithm: LSPI, data: Empirical, theta: FloatArray, report: Callable[[FloatArray], bool]
) -> tuple[FloatArray, bool]:
    """θ ← the solution of mean δφ = 0 with the weights w of the last θ."""
    if data.log.policy is not None:
        return fixed_point(algorithm, data, report)
    check_joint(data.A, data.K, "LSPI")
    if algorithm.pessimism:
        return cautious_lspi(algorithm, data, report)
    for _ in range(algorithm.most_iterations):
        matrix, b = data.linearised(theta)
        matrix[np.diag_indices(data.d)] += algorithm.own_ridge
        new = np.asarray(np.linalg.lstsq(matrix, b, rcond=None)[0], dtype=np.float64).reshape(theta.shape)
        if data.too_large(new, TOO_LARGE):
            return theta, True
        same, theta = np.allclose(theta, new, rtol=1e-9, atol=1e-12), new
        if not report(theta) or same:
            break
    return theta, False


def cautious_lspi(algorithm: LSPI, data: Empirical, report: Callable[[FloatArray], bool]) -> tuple[FloatArray, bool]:
    """The same with lower confidence values in the bootstrap: each step solves for the policy that is best by them."""
    caution = Caution(data, algorithm.pessimism, algorithm.ridge)
    theta, sd = caution.least, 0.0
    for _ in range(algorithm.most_iterations):
        new = caution.solve(theta, sd)
        if data.too_large(new, TOO_LARGE):
            return theta, True
        same, theta = np.allclose(theta, new, rtol=1e-9, atol=1e-12), new
        sd = caution.deviation(caution.targets(theta, sd), theta)
        if not report(theta) or same:
            break
    return caution.folded(theta, sd), False


@solve.register
def least_squares(
    algorithm: LeastSquaresGreedyGQ, data: Any, theta: FloatArray, report: Callable[[FloatArray], bool]
) -> tuple[FloatArray, bool]:
    """A search for the least J of all rows."""
    if algorithm.radius < math.inf:
        raise ValueError(f"radius is {algorithm.radius:g}, but gqlab.fit searches for the least J without a projection")
    return descend(data, theta, MOST_STEPS, report), False


class Objective(Protocol):
    """J as a search sees it: means over transitions, in memory or in parts of files."""

    A: int
    K: int
    roots: Any  # B_a with B_a B_aᵀ = C_a⁺, for the block of each action

    def mspbe(self, theta: FloatArray) -> float: ...
    def mspbes(self, thetas: list[FloatArray]) -> Iterator[float]: ...
    def linearised(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]: ...


def descend(data: Objective, theta: FloatArray, most: int, report: Callable[[FloatArray], bool]) -> FloatArray:
    """Levenberg and Marquardt's search for a least J: one pass for each evaluation, O(d²) memory.

    Near θ, mean δφ = b − Aθ', and J is half its squared length in the norm of C⁺: with B Bᵀ = C⁺ a step minimises
    ‖Bᵀ(b − Aθ')‖² + μ‖θ' − θ‖². Where J does not fall other μ are tried: a maximum has kinks, and a longer step
    may go over one that stops a short step.
    """
    check_joint(data.A, data.K, "LeastSquaresGreedyGQ")
    roots = scipy.linalg.block_diag(*data.roots)
    J = first = data.mspbe(theta)
    mu = FIRST_DAMPING
    for _ in range(most):
        matrix, b = data.linearised(theta)
        U, S, Vt = np.linalg.svd(roots.T @ matrix, full_matrices=False)
        left = U.T @ (roots.T @ (b - matrix @ theta.reshape(-1)))
        weights = [S / (S**2 + mu * factor * S[0] ** 2) * left for factor in TRIALS]
        trials = [theta + (Vt.T @ weight).reshape(theta.shape) for weight in weights]
        tried = zip(TRIALS, trials, data.mspbes(trials), strict=False)  # no more of them than needed
        factor, trial, found = next(((f, z, Jz) for f, z, Jz in tried if Jz < J), (1.0, theta, J))
        if not found < J:
            break
        fell, theta, J = J - found, trial, found
        mu = max(mu * factor / 3, LEAST_DAMPING)
        if not report(theta) or fell <= ENOUGH * J or first * NOTHING >= J:
            break
    return theta


def _blocks(data: Empirical) -> list[FloatArray]:
    if data.K > MOST_DENSE:
        raise ValueError(f"encoder makes {data.K} features of a state; FittedQ solves for at most {MOST_DENSE}")
    assert data.blocks is not None
    return list(data.blocks)


def _factor(block: FloatArray, ridge: float) -> Callable[[FloatArray], FloatArray]:
    """v ↦ (block + ridge·I)⁺ v."""
    values, vectors = scipy.linalg.eigh(block)
    values = values + ridge
    kept = values > 1e-13 * max(float(values[-1]), np.finfo(float).tiny)
    vectors, values = vectors[:, kept], values[kept]
    return lambda v: vectors @ ((vectors.T @ v) / values)
