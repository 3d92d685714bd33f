"""Stationary points of J: a Newton method that descends, and the fixed point of a linear problem.

∇²J can have negative eigenvalues: a step uses the absolute values of all of them, raised by λ,

    θ ← θ − U (|e| + λ)⁻¹ Uᵀ ∇J          ∇²J = U diag(e) Uᵀ

so that it descends for every sufficiently large λ, and is a plain Newton step near a minimum, with λ = 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gqlab.exact.objective import ProjectedBellmanError
from gqlab.operators import FixedPolicy, Operator
from gqlab.support.checks import FloatArray

#: ‖∇J‖ at which a point is stationary.
TOLERANCE = 1e-12

#: Steps after which the search gives up.
MOST_STEPS = 500

#: The values of λ that one step tries, in units of the largest |e|.
DAMPING = np.concatenate([[0.0], np.geomspace(1e-12, 1e12, 49)])


@dataclass(frozen=True)
class Found:
    """Where n searches ended."""

    theta: FloatArray  # (n, d)
    gradient_norm: FloatArray  # (n,)
    rounding: FloatArray  # (n,)  what float64 leaves unknown of that norm
    steps: NDArray[np.int64]  # (n,)

    @property
    def stationary(self) -> NDArray[np.bool_]:
        return self.gradient_norm <= np.maximum(TOLERANCE, self.rounding)


def stationary_point(objective: ProjectedBellmanError, theta0: FloatArray) -> FloatArray:
    """A zero of ∇J, (d,), found from θ_0 (d,); ``ValueError`` if the search finds none."""
    found, target = descend(objective, theta0[None]), objective.target
    if not np.isfinite(found.gradient_norm[0]):
        raise ValueError("theta0: J overflows there: some entry is too large")
    if not found.stationary[0]:
        theta = found.theta[0]
        entries = ", ".join(f"{x:.6g}" for x in theta[:6]) + (", …" if len(theta) > 6 else "")
        raise ValueError(
            f"theta0: no stationary point was reached from it: the search stopped after {found.steps[0]} steps at "
            f"theta = [{entries}], where ‖∇J‖ = {found.gradient_norm[0]:.3g}; another theta0 may lead to one"
            + ("" if is_smooth(target, objective.n_actions) else f", but {none_need_exist(target)}")
        )
    return np.asarray(found.theta[0])


def is_smooth(target: Operator, n_actions: int) -> bool:
    """Whether an operator is known to be smooth."""
    return target.smoothness(n_actions, 1.0) is not None


def none_need_exist(target: Operator) -> str:
    """Why a search under an operator that is not smooth may find nothing."""
    return f"under {target!r}, which is not known to be smooth, none need exist"


def fixed_point(objective: ProjectedBellmanError) -> FloatArray:
    """The θ with E[δφ] = b − Aθ = 0, (d,), of an objective with a :class:`FixedPolicy`."""
    if not isinstance(objective.target, FixedPolicy):
        raise ValueError(f"target is {objective.target!r}: only a FixedPolicy has a fixed point; see stationary_point")
    C, b = objective.means.C[0], objective.means.b[0]
    A = objective.linear_part(np.zeros((1, 1, len(b))))[0, 0]
    rank = int(
        np.linalg.matrix_rank(A, tol=len(A) * np.finfo(float).eps * np.linalg.norm(C, 2))
    )  # A is as accurate as C
    if rank < len(A):
        raise ValueError(
            f"features: A = E[φ(φ − γφ̂)ᵀ] is singular (rank {rank} of {len(A)}): there is no unique fixed point"
        )
    return np.asarray(np.linalg.solve(A, b), dtype=np.float64)


def descend(objective: ProjectedBellmanError, theta0: FloatArray) -> Found:
    """Newton steps from each θ (n, d) to ‖∇J‖ ≤ ``TOLERANCE``, or until no step leads further down.

    The objective has n sets of means, one for each θ. A search whose J overflows ends with a norm
    that is not finite.
    """
    with np.errstate(all="ignore"):
        return _descend(objective, theta0)


def _descend(objective: ProjectedBellmanError, theta0: FloatArray) -> Found:
    theta, n = theta0.copy(), len(theta0)
    norm, rounding, steps = np.empty(n), np.empty(n), np.zeros(n, dtype=np.int64)
    active = np.arange(n)  # the searches that are still running
    for step in range(MOST_STEPS + 1):
        J_of, here = objective.take(active), theta[active]
        J, gradient = J_of.value(here[:, None])[:, 0], J_of.gradient(here[:, None])[:, 0]
        norm[active] = np.where(np.isfinite(J), np.linalg.norm(gradient, axis=-1), np.nan)
        blur, rounding[active] = _rounding(J_of, here)
        steps[active] = step
        on = (norm[active] > TOLERANCE) & np.isfinite(norm[active])
        if step == MOST_STEPS or not on.any():
            break
        if not on.all():
            active, here, J, gradient, blur = active[on], here[on], J[on], gradient[on], blur[on]
            J_of = objective.take(active)
        H = J_of.hessian(here[:, None])[:, 0]
        e, U = np.linalg.eigh(np.where(np.isfinite(H).all(axis=(1, 2), keepdims=True), H, np.eye(H.shape[-1])))
        largest = np.abs(e).max(axis=-1, keepdims=True)
        e = np.maximum(np.abs(e), np.finfo(float).eps * largest)
        rotated = np.einsum("nik,ni->nk", U, gradient)
        tries = here[:, None] - np.einsum(
            "nik,njk->nji", U, rotated[:, None] / (e[:, None] + DAMPING[:, None] * largest[:, None])
        )
        values = np.nan_to_num(J_of.value(tries), nan=np.inf)
        norm_tried = np.linalg.norm(J_of.gradient(tries[:, :1])[:, 0], axis=-1)
        # Near the end J cannot tell two points apart any more, but a plain Newton step still halves the gradient.
        newton = (values[:, 0] <= J + blur) & (norm_tried <= 0.5 * norm[active])
        lower = values.min(axis=-1) < J - blur
        best = np.where(newton, 0, values.argmin(axis=-1))
        moved = newton | lower
        theta[active[moved]] = tries[np.arange(len(best)), best][moved]
        active = active[moved]
        if not len(active):
            break
    return Found(theta, norm, rounding, steps)


def _rounding(objective: ProjectedBellmanError, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What the rounding of m = E[δφ], a sum of terms like b and Cθ, leaves unknown of J and of ‖∇J‖, (n,) each."""
    C, b, _ = objective.means
    sizes = np.linalg.norm(b, axis=-1) + np.linalg.norm(np.einsum("nij,nj->ni", C, theta), axis=-1)
    unknown = 16 * np.finfo(float).eps * sizes
    A = objective.linear_part(theta[:, None])[:, 0]
    passed_on = np.linalg.norm(objective.solve(np.swapaxes(A, -1, -2)), 2, axis=(-2, -1))  # ∇J = −Aᵀ C⁺ m
    return unknown * np.linalg.norm(objective.omega(theta[:, None])[:, 0], axis=-1), unknown * passed_on
