"""The steps of Theorem 5 as left and right sides, for the adversary: a batch is given by its frequencies."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gqlab.support.checks import FloatArray
from gqlab.theory.points import Points, Ratio, into_ball

#: The κ at which the theorem is tried.
KAPPA = 0.5


class Plugged(NamedTuple):
    """What the empirical law of the batch gives, at n points; where λ_min(Ĉ) < κλ the first three are 0."""

    gradient_hat: FloatArray  # (n, d)  ∇Ĵ − ∇J
    deviation: FloatArray  # (n, d)  a
    correction: FloatArray  # (n, d)  B̂ᵀĈ⁻¹Ĥ*
    H_star: FloatArray  # (n,)  ‖Ĥ*‖
    least: FloatArray  # (n,)  λ_min(Ĉ)
    shift: FloatArray  # (n,)  ‖Ĉ − C‖, Frobenius


def plugged(p: Points) -> Plugged:
    """∇Ĵ from the sampled directions at ω̂, which shares nothing with the closed form of the proof."""
    exact, x = p.problem.exact, p.problem.exact.transitions
    C_hat = np.einsum("kn,ni,nj->kij", p.batch, x.phi, x.phi)
    least = np.linalg.eigvalsh(C_hat)[:, 0]
    usable = least >= KAPPA * p.c.lambda_C
    safe = np.where(usable[:, None, None], C_hat, np.eye(p.problem.dim))
    m_hat = p.mean(exact.delta(p.theta)[..., None] * x.phi)
    omega_hat = np.linalg.solve(safe, m_hat[..., None])[..., 0]
    gradient_hat = p.mean(exact.sample_gradients(p.theta, omega_hat)[0])
    G_star, H_star = (p.mean(values) for values in exact.sample_gradients(p.theta, p.star))
    B_hat = np.einsum("kn,ni,knj->kij", p.batch * x.gamma, x.phi, exact.phi_hat(p.theta)[:, x.s_next])
    correction = np.einsum("kij,ki->kj", B_hat, np.linalg.solve(safe, H_star[..., None])[..., 0])
    kept = usable[:, None]
    return Plugged(
        gradient_hat=np.where(kept, gradient_hat - p.gradient, 0.0),
        deviation=np.where(kept, G_star - p.gradient, 0.0),
        correction=np.where(kept, correction, 0.0),
        H_star=np.where(usable, np.linalg.norm(H_star, axis=1), 0.0),
        least=least,
        shift=np.linalg.norm(C_hat - exact.feature_covariance, axis=(1, 2)),
    )


def _identity(p: Points) -> Ratio:
    found = plugged(p)
    return _norm(found.gradient_hat), _norm(found.deviation - found.correction)


def _correction(p: Points) -> Ratio:
    """‖B̂ᵀĈ⁻¹Ĥ*‖ ≤ γΦ̂‖Ĥ*‖/√λ_min(Ĉ)."""
    found = plugged(p)
    root = np.sqrt(np.maximum(found.least, KAPPA * p.c.lambda_C))
    return _norm(found.correction), np.asarray(p.c.gamma * p.c.phi_hat * found.H_star / root)


def _eigenvalue(p: Points) -> Ratio:
    """‖B̂ᵀĈ⁻¹Ĥ*‖ ≤ γΦ̂‖Ĥ*‖/√(κλ), as the theorem has it."""
    found = plugged(p)
    return _norm(found.correction), p.c.gamma * p.c.phi_hat * found.H_star / np.sqrt(KAPPA * p.c.lambda_C)


def _mapping(p: Points) -> Ratio:
    """‖𝒢 − 𝒢̂‖ ≤ ‖∇J − ∇Ĵ‖, both with the step η_θ."""
    found, eta = plugged(p), p.steps[:, :1]
    with_J, with_J_hat = (into_ball(p.theta - eta * g, p.c.R) for g in (p.gradient, p.gradient + found.gradient_hat))
    return _norm(with_J - with_J_hat) / eta[:, 0], _norm(found.gradient_hat)


def _unlikely(p: Points) -> Ratio:
    """1{λ_min(Ĉ) < κλ} ≤ ‖Ĉ − C‖²/((1 − κ)λ)²."""
    found = plugged(p)
    happens = np.where(found.least < KAPPA * p.c.lambda_C, 1.0, 0.0)
    return happens, np.asarray((found.shift / ((1 - KAPPA) * p.c.lambda_C)) ** 2)


def _norm(v: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.norm(v, axis=-1))


#: By the names that the adversary prints.
PLUG_IN: dict[str, Callable[[Points], Ratio]] = {
    "plug-in: ∇Ĵ − ∇J": _identity,
    "plug-in: B̂ᵀĈ⁻¹Ĥ*": _correction,
    "plug-in: with √(κλ)": _eigenvalue,
    "plug-in: the mapping": _mapping,
    "plug-in: λ_min(Ĉ)": _unlikely,
}
