"""The least J over a ball: Newton steps whose model is minimised over the ball itself, so that none is rejected by it.

At θ with g = ∇J, the model of a step to x is g ᵀ(x − θ) + ½(x − θ)ᵀP(x − θ) with P = |∇²J| + λ, minimised over ‖x‖ ≤ R:

    x = (P + ν)⁻¹(Pθ − g)          ν ≥ 0 with ν(R − ‖x‖) = 0

On the sphere, where −g may point outwards, g + μθ and ∇²J + μ stand for g and ∇²J, with μ = max(0, −gᵀθ/R²) the
multiplier of the constraint: that is how J bends along the sphere, and Newton's step along it is tried first. A point
stays where it is exactly if θ = Π_R[θ − ηg] for one η > 0, and so for all.
"""

from __future__ import annotations

import numpy as np

from gqlab.exact.objective import ProjectedBellmanError
from gqlab.exact.stationary import DAMPING, MOST_STEPS
from gqlab.support.checks import FloatArray

#: ‖θ − Π_R[θ − ∇J]‖ at which a search ends.
TOLERANCE = 1e-12

#: A point within this part of R counts as one on the sphere.
ON_SPHERE = 1e-12

#: Steps of the search for ν, which converges quadratically from below.
MULTIPLIER_STEPS = 60


def least_in_ball(objective: ProjectedBellmanError, theta0: FloatArray, radius: float) -> tuple[FloatArray, FloatArray]:
    """Where n searches from θ (n, d), one for each set of means, end: θ, and ‖θ − Π_R[θ − ∇J]‖, (n,)."""
    with np.errstate(all="ignore"):
        return _search(objective, into_ball(theta0, radius), radius)


def into_ball(theta: FloatArray, radius: float) -> FloatArray:
    """Π_R[θ], (..., d)."""
    norm = np.linalg.norm(theta, axis=-1, keepdims=True)
    return np.asarray(theta * np.minimum(1.0, radius / np.maximum(norm, 1e-300)))


def residual(theta: FloatArray, gradient: FloatArray, radius: float) -> FloatArray:
    """‖θ − Π_R[θ − g]‖, (...): the size of the projected-gradient mapping with step 1."""
    return np.asarray(np.linalg.norm(theta - into_ball(theta - gradient, radius), axis=-1))


def _search(objective: ProjectedBellmanError, theta0: FloatArray, radius: float) -> tuple[FloatArray, FloatArray]:
    theta, left = theta0.copy(), np.full(len(theta0), np.inf)
    active = np.arange(len(theta))
    for _ in range(MOST_STEPS):
        J_of, here = objective.take(active), theta[active]
        J, g = J_of.value(here[:, None])[:, 0], J_of.gradient(here[:, None])[:, 0]
        left[active] = residual(here, g, radius)
        on = left[active] > TOLERANCE
        if not on.any():
            break
        active, here, J, g = active[on], here[on], J[on], g[on]
        J_of = objective.take(active)
        tries = _tries(J_of.hessian(here[:, None])[:, 0], here, g, radius)
        values = np.nan_to_num(J_of.value(tries), nan=np.inf)
        blur = 1e-14 * np.abs(J)
        newton = residual(tries[:, 0], J_of.gradient(tries[:, :1])[:, 0], radius) <= 0.5 * left[active]
        newton &= values[:, 0] <= J + blur
        best = np.where(newton, 0, values.argmin(axis=-1))
        moved = newton | (values.min(axis=-1) < J - blur)
        theta[active[moved]] = tries[np.arange(len(best)), best][moved]
        active = active[moved]
        if not len(active):
            break
    return theta, left


def _tries(H: FloatArray, theta: FloatArray, g: FloatArray, radius: float) -> FloatArray:
    """Where the model is least, for every λ, (n, k, d); first Newton's step, on the sphere the one along it."""
    outside = np.linalg.norm(theta, axis=-1) >= radius * (1 - ON_SPHERE)
    mu = np.where(outside, np.maximum(0.0, -(g * theta).sum(axis=-1)) / radius**2, 0.0)
    slope = g + mu[:, None] * theta
    curved = H + mu[:, None, None] * np.eye(H.shape[-1])
    e, U = _eigen(curved)
    P = e[:, None] + DAMPING[:, None] * e.max(axis=-1)[:, None, None]  # (n, k, d)
    rotated, pull = (np.einsum("nij,ni->nj", U, v)[:, None] for v in (theta, slope))
    x = _in_ball(P, P * rotated - pull, radius)
    step = np.where((np.linalg.norm(x, axis=-1) < radius * (1 - ON_SPHERE))[..., None], -pull / P, x - rotated)
    tries = into_ball(theta[:, None] + np.einsum("nij,nkj->nki", U, step), radius)
    first = np.where((mu > 0)[:, None], _along_sphere(curved, theta, slope, radius), tries[:, 0])
    return np.concatenate([first[:, None], tries], axis=1)


def _along_sphere(curved: FloatArray, theta: FloatArray, slope: FloatArray, radius: float) -> FloatArray:
    """Newton's step in the plane that touches the sphere at θ, brought back onto the sphere, (n, d)."""
    unit = theta / np.maximum(np.linalg.norm(theta, axis=-1, keepdims=True), 1e-300)
    Q = np.eye(theta.shape[-1]) - unit[:, :, None] * unit[:, None, :]
    scale = np.abs(curved).max(axis=(1, 2))[:, None, None]
    e, U = _eigen(Q @ curved @ Q + scale * unit[:, :, None] * unit[:, None, :])
    along = np.einsum("nij,nj->ni", Q, slope)
    moved = theta - np.einsum("nij,nj->ni", U, np.einsum("nji,nj->ni", U, along) / e)
    return np.asarray(radius * moved / np.linalg.norm(moved, axis=-1, keepdims=True))


def _eigen(M: FloatArray) -> tuple[FloatArray, FloatArray]:
    """|e| and U of M = U diag(e) Uᵀ, no |e| below rounding."""
    e, U = np.linalg.eigh(np.where(np.isfinite(M).all(axis=(1, 2), keepdims=True), M, np.eye(M.shape[-1])))
    size = np.abs(e)
    return np.maximum(size, np.finfo(float).eps * size.max(axis=-1, keepdims=True)), U


def _in_ball(P: FloatArray, right: FloatArray, radius: float) -> FloatArray:
    """(P + ν)⁻¹ right with the least ν ≥ 0 for which it lies in the ball; P is diagonal, (..., d)."""
    nu = np.zeros((*P.shape[:-1], 1))
    for _ in range(MULTIPLIER_STEPS):  # Newton's method on 1/‖x‖ − 1/R, which is concave in ν: it comes from below
        x = right / (P + nu)
        size = np.linalg.norm(x, axis=-1, keepdims=True)
        bend = (x**2 / (P + nu)).sum(axis=-1, keepdims=True)
        step = np.where(size > radius, size**2 / np.maximum(bend, 1e-300) * (size / radius - 1), 0.0)
        nu = nu + step
        if not (step > 1e-15 * nu).any():
            break
    return np.asarray(right / (P + nu))
