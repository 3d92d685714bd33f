"""Stationary points of J: a Newton method that descends, and the fixed point of a linear problem.

With m(θ) = E[δφ] = b + K V̄(θ) − Cθ, ω = C⁻¹m and A(θ) = C − Σ_s K_s φ̂_s(θ)ᵀ, so that ∂m/∂θ = −A,

    J = ½ mᵀC⁻¹m          ∇J = −Aᵀω          ∇²J = AᵀC⁻¹A + Σ_s (Kᵀω)_s ∇²V̄_s(θ)

The second term can have negative eigenvalues: a step uses the absolute values of all of them, raised by λ,

    θ ← θ − U (|e| + λ)⁻¹ Uᵀ ∇J          ∇²J = U diag(e) Uᵀ

so that it goes down for every λ that is large enough, and is Newton's own near a minimum, with λ = 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gqlab.checks import FloatArray
from gqlab.operators import FixedPolicy, Operator

if TYPE_CHECKING:
    from gqlab.problem import Problem

#: ‖∇J‖ at which a point is stationary.
TOLERANCE = 1e-12

#: Steps after which the search gives up.
MOST_STEPS = 500

#: The λ that one step tries, in units of the largest |e|.
DAMPING = np.concatenate([[0.0], np.geomspace(1e-12, 1e12, 49)])

#: The step of central differences of w along directions whose largest entry is 1: the cube root of float64's rounding.
DIFFERENCE = 6e-6


class Found(NamedTuple):
    """Where a search ended."""

    theta: FloatArray  # (d,)
    gradient_norm: float
    rounding: float  # what float64 leaves unknown of that norm
    steps: int

    @property
    def stationary(self) -> bool:
        return self.gradient_norm <= max(TOLERANCE, self.rounding)


def stationary_point(problem: Problem, theta0: FloatArray) -> FloatArray:
    """A zero of ∇J, (d,), found from θ_0 (d,); ``ValueError`` where the search ends at none."""
    found = descend(problem, theta0)
    if not found.stationary:
        entries = ", ".join(f"{x:.6g}" for x in found.theta[:6]) + (", …" if len(found.theta) > 6 else "")
        smooth = problem.target.smoothness(problem.mdp.n_actions, 1.0) is not None
        raise ValueError(
            f"theta0: no stationary point was reached from it: the search stopped after {found.steps} steps at "
            f"theta = [{entries}], where ‖∇J‖ = {found.gradient_norm:.3g}; another theta0 may lead to one"
            + ("" if smooth else f", but under {problem.target!r}, which is not known to be smooth, none need exist")
        )
    return found.theta


def fixed_point(problem: Problem) -> FloatArray:
    """The θ with E[δφ] = b − Aθ = 0, (d,), of a problem with a :class:`FixedPolicy`."""
    if not isinstance(problem.target, FixedPolicy):
        raise ValueError(f"target is {problem.target!r}: only a FixedPolicy has a fixed point; see stationary_point")
    C, b, _ = problem.exact.moments
    A = linear_part(problem, np.zeros(problem.dim))
    rank = int(np.linalg.matrix_rank(A, tol=len(A) * np.finfo(float).eps * np.linalg.norm(C, 2)))  # A is as exact as C
    if rank < len(A):
        raise ValueError(
            f"features: A = E[φ(φ − γφ̂)ᵀ] is singular (rank {rank} of {len(A)}): there is no one fixed point"
        )
    return np.asarray(np.linalg.solve(A, b), dtype=np.float64)


def linear_part(problem: Problem, theta: FloatArray) -> FloatArray:
    """A(θ) = E[φ(φ − γφ̂_{s'})ᵀ] = C − Σ_s K_s φ̂_sᵀ, (..., d, d)."""
    C, _, K = problem.exact.moments
    return np.asarray(C - K @ problem.exact.phi_hat(theta))


def hessian(problem: Problem, theta: FloatArray) -> FloatArray:
    """∇²J of θ (n, d), (n, d, d)."""
    exact, phi = problem.exact, problem.features
    C, _, K = exact.moments
    A = linear_part(problem, theta)
    q = np.einsum("ni,sai->nsa", theta, phi)
    along = curvature(problem.target, q[:, None], np.moveaxis(phi, -1, 0))  # ∇²V̄ φ_i, (n, d, S, A)
    weight = exact.omega_star(theta) @ K  # (Kᵀω)_s, (n, S)
    second = np.einsum("nisa,saj->nij", weight[:, None, :, None] * along, phi, optimize=True)
    out = np.swapaxes(A, -1, -2) @ np.linalg.solve(C, A) + second
    return np.asarray(0.5 * (out + np.swapaxes(out, -1, -2)))


def curvature(operator: Operator, q: FloatArray, v: FloatArray) -> FloatArray:
    """(∇²V̄(q)) v, (..., S, A): the operator's own ``curvature`` where it has one, else differences of w = ∇V̄."""
    q, v = np.broadcast_arrays(q, v)
    own = getattr(operator, "curvature", None)
    if own is not None:
        return np.asarray(own(q, v))
    h = DIFFERENCE / max(float(np.abs(v).max()), np.finfo(float).tiny)
    wide, narrow = ((operator.weights(q + k * v) - operator.weights(q - k * v)) / (2 * k) for k in (h, h / 4))
    # Where w jumps (a tie of two actions under a maximum) the quotient grows like 1/h: on either side w is constant.
    return np.where(np.abs(narrow) > 2 * np.abs(wide), 0.0, wide)


def descend(problem: Problem, theta: FloatArray) -> Found:
    """Newton steps from θ (d,) to ‖∇J‖ ≤ ``TOLERANCE``, or to where none of them leads further down."""
    exact = problem.exact
    for step in range(MOST_STEPS + 1):
        J, gradient = float(exact.mspbe(theta)), exact.gradient(theta)
        norm = float(np.linalg.norm(gradient))
        blur, rounding = _rounding(problem, theta)
        if norm <= TOLERANCE or step == MOST_STEPS:
            break
        e, U = np.linalg.eigh(hessian(problem, theta[None])[0])
        e = np.maximum(np.abs(e), np.finfo(float).eps * np.abs(e).max())
        tries = theta - ((U.T @ gradient) / (e + DAMPING[:, None] * e.max())) @ U.T
        values = exact.mspbe(tries)
        if values[0] <= J + blur and np.linalg.norm(exact.gradient(tries[0])) <= 0.5 * norm:
            theta = tries[0]  # Newton's own step; so near the end J no longer tells two points apart
        elif values.min() < J - blur:
            theta = tries[values.argmin()]
        else:
            break
    return Found(theta, norm, rounding, step)


def _rounding(problem: Problem, theta: FloatArray) -> tuple[float, float]:
    """What the rounding of m = E[δφ], a sum of terms as large as b and Cθ, leaves unknown of J and of ‖∇J‖."""
    C, b, _ = problem.exact.moments
    unknown = 16 * np.finfo(float).eps * float(np.linalg.norm(b) + np.linalg.norm(C @ theta))
    passed_on = float(np.linalg.norm(np.linalg.solve(C, linear_part(problem, theta)), 2))  # ∇J = −Aᵀ C⁻¹ m
    return unknown * float(np.linalg.norm(problem.exact.omega_star(theta))), float(unknown * passed_on)
