"""One linear system for the value of a policy: fitted Q evaluation at its fixed point, LSTD-Q and minimax weights.

With φ the features of (s, a) and φ̄' their mean over the policy's actions in the next state, 0 after a terminal one:

========  ============  ===========================================================================================
symbol    shape         meaning
========  ============  ===========================================================================================
A         (d, d)        Σ φ(φ − γφ̄')ᵀ over the rows of the log
b         (d,)          Σ φ r
C         (d, d)        Σ φφᵀ, a block of K × K for each action
c         (d,)          cᵀφ ≈ 1: the coefficients of a constant
v0        number        Σ r / Σ (1 − γ·live): the constant that the log itself suggests
λ         number        how many rows the constant v0 counts for
θ         (d,)          (A + λI)⁻¹ (b + λ v0 c): shrunk towards the constant, not towards 0
δ         (n,)          r + γφ̄'ᵀθ − φᵀθ
h         (n,)          φᵀ(C + λI)⁻¹φ, the leverage of a row
σ², τ²    numbers       Σδ²/(n − Σh), the noise; the variance that values are expected to have around v0
========  ============  ===========================================================================================

The data choose λ = σ²/τ² within ``LAMBDAS``, in ``ROUNDS`` rounds: θ gives σ² and τ², these give λ, and λ gives θ.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg
from numpy.typing import NDArray

from gqlab.support.checks import FloatArray

#: λ within these: below, a pair that was never seen makes the system singular; above, a row would count less than v0.
LAMBDAS = 1e-6, 1.0

#: The rounds of choosing λ: the third changes it by a few per cent, and the answer by less than rounding of a report.
ROUNDS = 3


class System(NamedTuple):
    """The sums that θ follows from."""

    n: int
    A: Any  # (d, d), dense or sparse
    b: FloatArray  # (d,)
    c: FloatArray  # (d,)
    v0: float
    spread: float  # max |r − r̄|


class Shrunk(NamedTuple):
    """The solution, with what the data chose."""

    theta: FloatArray  # (d,)
    lam: float
    sigma2: float
    tau2: float
    factor: Factor


class Factor:
    """(A + λI)⁻¹, from either side."""

    def __init__(self, A: Any, lam: float) -> None:
        d = A.shape[0]
        self.sparse = scipy.sparse.issparse(A)
        if self.sparse:
            self.lu = scipy.sparse.linalg.splu((A + lam * scipy.sparse.eye_array(d)).tocsc())
        else:
            matrix = A.copy()
            matrix[np.diag_indices(d)] += lam
            self.lu = scipy.linalg.lu_factor(matrix, overwrite_a=True, check_finite=False)

    def solve(self, b: FloatArray, transposed: bool = False) -> FloatArray:
        """(A + λI)⁻¹b, or (A + λI)⁻ᵀb."""
        if self.sparse:
            return np.asarray(self.lu.solve(b, "T" if transposed else "N"))
        return np.asarray(scipy.linalg.lu_solve(self.lu, b, trans=int(transposed), check_finite=False))


class Gram:
    """C, a block for each action: (A, K, K), or its diagonal (A, K) where every state has one feature."""

    def __init__(self, blocks: FloatArray) -> None:
        self.blocks = blocks
        self.diagonal = blocks if blocks.ndim == 2 else np.einsum("akk->ak", blocks)

    @property
    def seen(self) -> NDArray[np.bool_]:
        """The features that some row has, (d,)."""
        return (self.diagonal > 0).reshape(-1)

    @functools.cached_property
    def spectrum(self) -> tuple[FloatArray, FloatArray]:
        """Eigenvalues (A, K), and vectors (A, K, K), of the blocks."""
        values, vectors = np.linalg.eigh(self.blocks)
        return np.maximum(values, 0.0), vectors

    def inverse(self, lam: float) -> FloatArray:
        """(C + λI)⁻¹, as the blocks are."""
        if self.blocks.ndim == 2:
            return np.asarray(1 / (self.blocks + lam))
        values, vectors = self.spectrum
        return np.asarray((vectors / (values + lam)[:, None, :]) @ vectors.swapaxes(1, 2))

    def degrees(self, lam: float) -> float:
        """Σh = tr C(C + λI)⁻¹: the degrees of freedom that θ takes."""
        values = self.blocks if self.blocks.ndim == 2 else self.spectrum[0]
        return float((values / (values + lam)).sum())


def constant(K: int, whole: float | None, second: FloatArray, total: FloatArray) -> FloatArray:
    """c of one action, (K,): exact where Σ_k x_k is the same ``whole`` of all states, else by least squares of 1 on x.

    ``second`` is Σ xxᵀ and ``total`` Σ x over the rows.
    """
    if whole is not None:
        return np.full(K, 1 / whole)
    lifted = second + 1e-10 * np.trace(second) / K * np.eye(K)
    return np.asarray(scipy.linalg.solve(lifted, total, assume_a="pos"))


def shift(system: System, solution: Shrunk, u: FloatArray) -> float:
    """By how much λ moves an answer x₀ᵀθ, to first order: λ uᵀ(v0 c − θ), with u = (A + λI)⁻ᵀ x₀."""
    return solution.lam * float(u @ (system.v0 * system.c - solution.theta))


def extremes(least: float, most: float, length: float, ends: bool) -> tuple[float, float]:
    """The least and the most that an action may be worth: such rewards over ``length`` rows, or one, where it ends."""
    short = 1.0 if ends else length
    return min(least * length, least * short), max(most * length, most * short)


def shrunk(system: System, gram: Gram, squares: Callable[[FloatArray], float], lam: float | None = None) -> Shrunk:
    """Solve for θ; ``squares(θ)`` is Σδ² over n rows. λ is chosen by the data, where it is not given."""
    n, A, b, c, v0, spread = system
    given, lam = lam, LAMBDAS[1] if lam is None else lam
    for last in (*(False,) * (ROUNDS if given is None else 0), True):
        factor = Factor(A, lam)
        theta = factor.solve(b + lam * v0 * c)
        sigma2 = squares(theta) / max(n - gram.degrees(lam), 1.0)
        tau2 = max(float(np.mean((theta - v0 * c) ** 2)), spread**2)
        if last:
            break
        lam = float(np.clip(sigma2 / tau2, *LAMBDAS)) if tau2 > 0 else LAMBDAS[1]
    return Shrunk(theta, lam, sigma2, tau2, factor)
