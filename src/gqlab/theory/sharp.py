"""The constants of the sharper theorems, for two radii: ‖θ‖ ≤ R and ‖ω‖ ≤ R_ω with R_ω ≥ W = sup‖ω*(θ)‖.

With two radii ω*(θ) always lies in ω's ball, for every operator. What is tighter than in
:mod:`gqlab.theory.constants`: W, U, L₃, L_u and ℓ_ψ by enumeration (:mod:`gqlab.theory.uniform`), and L with them.
What is new: L₆, the Lipschitz constant of the derivative of ω*, which lets the noise of θ enter the tracking error by
its square.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from gqlab.problems.problem import Problem
from gqlab.support import checks
from gqlab.theory.constants import Basics, basics, signs_norm
from gqlab.theory.deviation import deviation, discounted_features, independent
from gqlab.theory.ergodicity import certify
from gqlab.theory.inputs import checked
from gqlab.theory.uniform import Norms, corners, norms, roots, uniform

#: The default R_ω in units of W: a margin for rounding.
ROOM = 1 + 1e-9


@dataclass(frozen=True)
class Sharp:
    """The numbers in the sharper theorems; ``formulas`` has one string for each."""

    R: float
    R_omega: float
    sampling: str
    r_max: float
    gamma: float
    lambda_C: float
    phi_hat: float
    L_phi_hat: float
    delta_max: float
    omega_star: float
    G: float
    H: float
    C_grad_J: float
    C1: float
    C2: float
    C3: float
    C4: float
    L1: float
    L2: float
    L3: float
    L4: float
    L5: float
    L6: float
    L: float
    parts: dict[str, float]
    formulas: dict[str, str]

    def least_J(self, radius: float) -> float:
        """A lower bound on J where ‖θ‖ ≥ ``radius``: ½λ_C‖ω*‖² with ‖ω*‖ ≥ (1 − sup‖C⁻¹B‖)‖θ‖ − ‖C⁻¹b‖, if positive."""
        slope = 1 - (self.parts["U"] - self.parts["C_inv_b"]) / self.R
        return 0.5 * self.lambda_C * max(0.0, slope * radius - self.parts["C_inv_b"]) ** 2

    @property
    def tracks(self) -> bool:
        """Whether ω*(θ) stays in ω's ball for every θ in θ's: W ≤ R_ω."""
        return self.omega_star <= self.R_omega


@checked
def sharp_constants(
    problem: Problem, radius: float, *, radius_omega: float | None = None, sampling: str = "markov"
) -> Sharp:
    """The constants; ``radius_omega`` None: the smallest that is proved to hold every ω*(θ).

    Examples
    --------
    One state, one action, φ = 1, r = −1, γ = 0.9, R = 2: ω* = −1 − 0.1θ.

    >>> import gqlab as gq
    >>> problem = gq.Problem(gq.FiniteMDP([[[1.0]]], [[-1.0]], discount=0.9), [[[1.0]]])
    >>> c = sharp_constants(problem, radius=2.0)
    >>> round(c.omega_star, 6), round(c.L3, 6), round(c.L, 6), c.tracks
    (1.2, 0.1, 0.01, True)
    """
    x = basics(problem, checks.number("radius", radius, above=0, infinite=True))
    R, gamma, phi_hat, L_phi_hat = x.R, x.gamma, x.smooth.phi_hat, x.smooth.L_phi_hat
    maps = _maps(problem, x)
    W, U, L_u, L3 = maps["W"], maps["U"], maps["L_u"], maps["L3"]
    R_omega = W * ROOM if radius_omega is None else checks.number("radius_omega", radius_omega, above=0)
    psi_max = min(x.delta_max, math.sqrt(x.lambda_max) * W)
    K = problem.exact.moments.K
    pair = None if sampling == "iid" else certify(problem)
    u = independent(problem) if pair is None else deviation(problem, pair)
    u_gamma = discounted_features(problem, pair)
    u_V, u_slope = (float(value) for value in next_state(problem, phi_hat, u.K, u_gamma))
    fit = roots(problem, pair, u)
    G_dev, H_dev = (math.inf, math.inf) if fit is None else uniform(problem, phi_hat, R, W, fit)
    C2 = min(u.B + U * u.C + R * u_V, float(H_dev)) ** 2
    return Sharp(
        R=R, R_omega=R_omega, sampling=sampling, r_max=x.r_max, gamma=gamma, lambda_C=x.lambda_C,
        phi_hat=phi_hat, L_phi_hat=L_phi_hat, delta_max=x.delta_max, omega_star=W,
        G=x.delta_max + gamma * phi_hat * R_omega,
        H=x.delta_max + R_omega,
        C_grad_J=maps["l_psi"] * psi_max,
        C1=min(u.B + R * u.C + R * u_V + W * u_slope, float(G_dev)) ** 2,
        C2=C2,
        C3=2 / x.lambda_C * ((R_omega + W) * u.C) ** 2,
        C4=2 / x.lambda_C * C2,
        L1=gamma * phi_hat,
        L2=1 + gamma * phi_hat + gamma * (phi_hat * L3 + L_phi_hat * W),
        L3=L3, L4=1.0, L5=gamma * phi_hat + L_u, L6=maps["n_K"] * L_phi_hat,
        L=maps["l_psi"] ** 2 + L_phi_hat * min(gamma * psi_max, W * signs_norm(K)),
        parts={
            "u_B": u.B, "u_C": u.C, "u_K": u.K, "u_gamma": u_gamma, "u_V": u_V, "u_slope": u_slope, "U": U,
            "l_psi": maps["l_psi"], "psi_max": psi_max, "G_fit": float(G_dev), "H_fit": float(H_dev),
            "C_inv_b": maps["C_inv_b"],
        },
        formulas=FORMULAS,
    )  # fmt: skip


def _maps(problem: Problem, x: Basics) -> dict[str, float]:
    """W, U, L_u, L₃, ℓ_ψ and n_K = sup_{|V|≤1}‖C⁻¹KV‖."""
    C, mean_reward, K = problem.exact.moments
    R, phi_hat, root = x.R, x.smooth.phi_hat, math.sqrt(x.lambda_C)
    reward_part = float(np.linalg.norm(np.linalg.solve(C, mean_reward)))  # ‖C⁻¹b‖
    n_K = min(signs_norm(np.linalg.solve(C, K)), x.gamma / root)
    U, L_u = reward_part + R * n_K, phi_hat * n_K
    L3, l_psi = 1 + L_u, math.sqrt(x.lambda_max) + x.gamma * phi_hat
    W = U + R
    fixed = x.smooth.L_phi_hat == 0
    values = _fixed(problem) if fixed else norms(problem)
    slopes = values if fixed else norms(problem, (phi_hat - 1) / 2)
    if values is not None:
        U, W = reward_part + R * values.towards, reward_part + R * values.away
    if slopes is not None:
        L_u, L3, l_psi = min(L_u, slopes.towards), min(L3, slopes.away), min(l_psi, slopes.whitened)
    W = min(W, x.delta_max / root)
    return {"W": W, "U": U, "L_u": L_u, "L3": L3, "l_psi": l_psi, "n_K": n_K, "C_inv_b": reward_part}


def next_state(problem: Problem, phi_hat: float, u_K: Any, u_gamma: Any) -> tuple[Any, Any]:
    """u_V and u_φ̂ with ‖ΔK V̄‖ ≤ R u_V and ‖Σ_t φ̂_t ΔK_tᵀω‖ ≤ ‖ω‖u_φ̂, from u_K ≥ Σ_t‖ΔK_t‖ and u_γ ≥ ‖Σ_t ΔK_t‖.

    ΔK V̄ = Σ_t ΔK_t⟨ψ_t, θ⟩ with ψ_t in the hull of φ(t, ·). Around any φ̄ it is (Σ_t ΔK_t)⟨φ̄, θ⟩ + Σ_t ΔK_t⟨ψ_t − φ̄, θ⟩,
    and likewise for φ̂_t: features that point the same way leave little for the second part.
    """
    features = problem.features
    centre = features.reshape(-1, problem.dim).mean(axis=0)
    size, wide = float(np.linalg.norm(centre)), float(np.linalg.norm(features - centre, axis=-1).max())
    ends = [corners(phi, (phi_hat - 1) / 2) for phi in features]
    wider = max(float(np.linalg.norm(end - centre, axis=-1).max()) for end in ends)
    return np.minimum(u_K, size * u_gamma + wide * u_K), np.minimum(phi_hat * u_K, size * u_gamma + wider * u_K)


def _fixed(problem: Problem) -> Norms:
    """The norms for the single X that exists where φ̂ does not depend on θ."""
    C, _, K = problem.exact.moments
    X = K @ problem.exact.phi_hat(np.zeros(problem.dim))
    towards = np.linalg.solve(C, X)
    whitened = np.linalg.solve(np.linalg.cholesky(C), X - C)
    sizes = (float(np.linalg.norm(matrix, 2)) for matrix in (towards, towards - np.eye(len(C)), whitened))
    return Norms(*sizes)


FORMULAS = {
    "R": "the radius of θ's projection",
    "R_omega": "the radius of ω's projection, at least W",
    "r_max": "max |r(s,a,s')| over what can happen",
    "gamma": "the largest discount",
    "lambda_C": "the least eigenvalue of C",
    "phi_hat": "the operator's own sup‖φ̂‖",
    "L_phi_hat": "the operator's own Lipschitz constant of φ̂",
    "delta_max": "r_max + (1+γ)R",
    "u_B": "√v of the batch mean of r φ (see gqlab.theory.deviation)",
    "u_C": "√v of the batch mean of φφᵀ",
    "u_K": "Σ_t √v of the batch mean of γ1{s'=t}φ",
    "u_gamma": "√v of the batch mean of γφ",
    "u_V": "min(u_K, ‖φ̄‖u_γ + max‖φ − φ̄‖u_K),  φ̄ the mean feature",
    "u_slope": "min(Φ̂u_K, ‖φ̄‖u_γ + sup‖φ̂ − φ̄‖u_K)",
    "omega_star": "‖C⁻¹b‖ + R max_π‖C⁻¹B_π − I‖ over deterministic policies π, B_π = E[γφφ_π(s')ᵀ]; at most δ_max/√λ_C",
    "C_inv_b": "‖C⁻¹b‖",
    "U": "sup‖ω*(θ) + θ‖ = ‖C⁻¹b‖ + R max_π‖C⁻¹B_π‖",
    "l_psi": "sup‖C^{−1/2}(B(θ) − C)‖, at the vertices of what φ̂ can be",
    "psi_max": "min(δ_max, √λ_max(C) W)",
    "G": "r_max + (1+γ)R + γ Φ̂ R_ω",
    "H": "r_max + (1+γ)R + R_ω",
    "C_grad_J": "ℓ_ψ ψ_max",
    "H_fit": "√M sup‖Ĥ(θ, ω*)‖ through the residuals of r + γV̄ fitted by φ (see gqlab.theory.uniform)",
    "G_fit": "H_fit + W min(Φ̂u_K + u_C, u_Y + sup‖φ̂ − φ̄‖u_K),  Y = (γφ̄ − φ)φᵀ",
    "C1": "min(u_B + R u_C + R u_V + W u_φ̂, G_fit)²",
    "C2": "min(u_B + U u_C + R u_V, H_fit)²",
    "C3": "(2/λ_C)((R_ω + W) u_C)²",
    "C4": "(2/λ_C) C₂",
    "L1": "γ Φ̂",
    "L2": "1 + γΦ̂ + γ(Φ̂ L₃ + L_φ̂ W)",
    "L3": "sup‖C⁻¹B(θ) − I‖, at the vertices of what φ̂ can be",
    "L4": "1",
    "L5": "γΦ̂ + sup‖C⁻¹B(θ)‖",
    "L6": "n_K L_φ̂,  n_K = min(sup_{|V|≤1}‖C⁻¹KV‖, γ/√λ_C): Lipschitz constant of the derivative of ω*",
    "L": "ℓ_ψ² + L_φ̂ min(γψ_max, W sup_{|V|≤1}‖KV‖)",
}
