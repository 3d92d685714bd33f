"""The constants of the proof, in two versions.

``printed``: as the paper's appendix writes them, with the loose building blocks that its assumptions give (derived in
docs/theory_proofs.md, since the paper refers to another one for L₁, L₂, L₃ and L). ``corrected``: what the repaired
proof needs, as tight as we can make it; each is a true bound for the problem at hand.

Notation: Φ̂ = sup‖φ̂‖, W = sup‖ω*(θ)‖, U = sup‖ω*(θ) + θ‖, δ_max = r_max + (1+γ)R, all over ‖θ‖ ≤ R; u_t = √v of the
batch means (:mod:`gqlab.theory.deviation`); ψ(θ) = C^{−1/2}E[δφ], so that J = ½‖ψ‖²; ℓ_ψ its Lipschitz constant.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gqlab.operators import Smoothness
from gqlab.problems.problem import Problem
from gqlab.support.checks import FloatArray
from gqlab.theory.deviation import deviation
from gqlab.theory.ergodicity import certify

#: ĉ, the bound on the coefficient c_t of the Lyapunov function.
C_HAT = 1 / 8

#: The most next states for which sup‖C⁻¹K V‖ over ‖V‖∞ ≤ 1 is computed over all sign vectors.
MOST_SIGNS = 12


@dataclass(frozen=True)
class Constants:
    """The numbers in the conditions and the bound. ``drift`` multiplies η_θ²/η_ω ‖g‖² in the tracking lemmas."""

    version: str
    R: float
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
    L: float
    drift: float
    parts: dict[str, float]
    formulas: dict[str, str]

    def D(self, eta_theta: float) -> float:
        """D, the coefficient of the tracking error divided by η_θ; as printed it has η_θ = 1."""
        if self.version == "printed":
            return 6 * self.L1 * (self.L / 2 + C_HAT) + self.L1 + self.L1 * C_HAT
        return self.L1**2 * (6 * (self.L / 2 + C_HAT) * eta_theta + 1 + C_HAT)


@dataclass(frozen=True)
class Basics:
    """What both versions take from the problem."""

    R: float
    r_max: float
    gamma: float
    lambda_C: float
    lambda_max: float
    n_actions: int
    diameter: float
    smooth: Smoothness

    @property
    def delta_max(self) -> float:
        return self.r_max + (1 + self.gamma) * self.R


def basics(problem: Problem, radius: float) -> Basics:
    """r_max, γ, λ_C and the operator's smoothness; ``ValueError`` where one of them does not exist."""
    if not math.isfinite(radius):
        raise ValueError(f"radius is {radius}: the constants need a finite radius R")
    phi = problem.features
    longest = float(np.linalg.norm(phi, axis=-1).max())
    if longest > 1 + 1e-9:
        raise ValueError(
            f"features: the longest has norm {longest:.6g}, above 1 (Assumption 1): divide all features by it first"
        )
    diameter = max(float(np.linalg.norm(phi - phi[:, [a]], axis=-1).max()) for a in range(phi.shape[1]))
    smooth = problem.target.smoothness(phi.shape[1], radius, min(diameter, 2.0))
    if smooth is None:
        raise ValueError(f"target is {problem.target!r}, not a smooth operator: the theorem does not apply")
    possible = possible_transitions(problem)
    eigenvalues = np.linalg.eigvalsh(problem.exact.feature_covariance)
    return Basics(
        R=radius,
        r_max=float(np.abs(problem.mdp.reward[possible]).max()),
        gamma=float(problem.mdp.discount[possible].max()),
        lambda_C=float(eigenvalues[0]),
        lambda_max=float(min(eigenvalues[-1], 1.0)),
        n_actions=phi.shape[1],
        diameter=diameter,
        smooth=smooth,
    )


def possible_transitions(problem: Problem) -> tuple[NDArray[np.intp], ...]:
    """The index arrays (s, a, s') of the samples that the behaviour policy can make."""
    x = problem.exact.transitions
    return x.s, x.a, x.s_next


def printed(problem: Problem, radius: float) -> Constants:
    """The constants as the appendix prints them; L₁, L₂, L₃, L and C_∇J from the loose building blocks."""
    x = basics(problem, radius)
    A, R, gamma, k1, k2 = x.n_actions, x.R, x.gamma, x.smooth.k1, x.smooth.k2
    if (
        k1 is None or k2 is None
    ):  # the paper's Φ̂ and L_φ̂ need k₁ and k₂; where they are unknown, the operator's own are used
        phi_hat, L_phi_hat = x.smooth.phi_hat, x.smooth.L_phi_hat
    else:
        phi_hat, L_phi_hat = 1 + A * R * k1, A * (k2 * R + 2 * k1)
    mixing = certify(problem).mixing
    L_delta = 1 + gamma * phi_hat
    W = x.delta_max / x.lambda_C
    L3 = L_delta / x.lambda_C
    G = x.r_max + (1 + gamma) * R + gamma * phi_hat * R
    H = (2 + gamma) * R + x.r_max
    C_grad_J = x.delta_max + gamma * phi_hat * W
    return Constants(
        version="printed", R=R, r_max=x.r_max, gamma=gamma, lambda_C=x.lambda_C,
        phi_hat=phi_hat, L_phi_hat=L_phi_hat, delta_max=x.delta_max, omega_star=W,
        G=G, H=H, C_grad_J=C_grad_J,
        C1=(1 + 2 * mixing) * (G + C_grad_J) ** 2,
        C2=H**2 * (1 + mixing),
        C3=8 * R**2 / x.lambda_C * (1 + mixing),
        C4=2 / x.lambda_C * (R * (2 + gamma) + x.r_max) ** 2 * (1 + mixing),
        L1=gamma * phi_hat,
        L2=L_delta + gamma * (phi_hat * L3 + L_phi_hat * W),
        L3=L3,
        L4=1.0,
        L5=gamma * (phi_hat - 1) + 2 + L3,
        L=L_delta + gamma * (phi_hat * L3 + L_phi_hat * W),
        drift=9 / x.lambda_C + 2 * L3**2,
        parts={"mixing": mixing} | ({} if k1 is None or k2 is None else {"k1": k1, "k2": k2}),
        formulas=PRINTED_FORMULAS,
    )  # fmt: skip


PRINTED_FORMULAS = {
    "mixing": "Λρ/(1−ρ)",
    "k1": "the operator's k₁",
    "k2": "the operator's k₂",
    "R": "the radius of the projection",
    "r_max": "max |r(s,a,s')| over what can happen",
    "gamma": "the largest discount",
    "lambda_C": "the least eigenvalue of C",
    "phi_hat": "1 + |A|R k₁ (an operator without k₁: its own sup‖φ̂‖)",
    "L_phi_hat": "|A|(k₂R + 2k₁) (an operator without k₁, k₂: its own)",
    "delta_max": "r_max + (1+γ)R",
    "omega_star": "(r_max + (1+γ)R)/λ_C",
    "G": "r_max + (1+γ)R + γ(|A|R k₁ + 1)R",
    "H": "(2+γ)R + r_max",
    "C_grad_J": "r_max + (1+γ)R + γ Φ̂ W",
    "C1": "(1 + 2Λρ/(1−ρ))(G + C_∇J)²",
    "C2": "H²(1 + Λρ/(1−ρ))",
    "C3": "(8R²/λ_C)(1 + Λρ/(1−ρ))",
    "C4": "(2/λ_C)(R(2+γ) + r_max)²(1 + Λρ/(1−ρ))",
    "L1": "γ Φ̂",
    "L2": "L_δ + γ(Φ̂ L₃ + L_φ̂ W),  L_δ = 1 + γΦ̂",
    "L3": "L_δ/λ_C",
    "L4": "1",
    "L5": "γ|A|k₁R + 2 + L₃",
    "L": "L_δ + γ(Φ̂ L₃ + L_φ̂ W)",
    "drift": "9/λ_C + 2L₃²",
    "D": "6L₁(L/2 + ĉ) + L₁ + L₁ĉ,  ĉ = 1/8",
}


def corrected(problem: Problem, radius: float) -> Constants:
    """The constants of the repaired proof, each a true bound for this problem."""
    x = basics(problem, radius)
    R, gamma, phi_hat, L_phi_hat = x.R, x.gamma, x.smooth.phi_hat, x.smooth.L_phi_hat
    U, L_u, L3, W, l_psi = _maps(problem, x)
    psi_max = min(x.delta_max, math.sqrt(x.lambda_max) * W)
    u = deviation(problem, certify(problem))
    C2 = (u.B + U * u.C + R * u.K) ** 2
    L_delta = 1 + gamma * phi_hat
    return Constants(
        version="corrected", R=R, r_max=x.r_max, gamma=gamma, lambda_C=x.lambda_C,
        phi_hat=phi_hat, L_phi_hat=L_phi_hat, delta_max=x.delta_max, omega_star=W,
        G=x.delta_max + gamma * phi_hat * R,
        H=x.delta_max + R,
        C_grad_J=l_psi * psi_max,
        C1=(u.B + R * u.C + (R + phi_hat * W) * u.K) ** 2,
        C2=C2,
        C3=2 / x.lambda_C * ((R + W) * u.C) ** 2,
        C4=2 / x.lambda_C * C2,
        L1=gamma * phi_hat,
        L2=L_delta + gamma * (phi_hat * L3 + L_phi_hat * W),
        L3=L3,
        L4=1.0,
        L5=gamma * phi_hat + L_u,
        L=l_psi**2 + gamma * L_phi_hat * psi_max,
        drift=L3**2 / x.lambda_C + 2 * L3**2,
        parts={"u_B": u.B, "u_C": u.C, "u_K": u.K, "U": U, "l_psi": l_psi, "psi_max": psi_max},
        formulas=LINEAR_FORMULAS if L_phi_hat == 0 else CORRECTED_FORMULAS,
    )  # fmt: skip


def _maps(problem: Problem, x: Basics) -> tuple[float, float, float, float, float]:
    """U, L_u, L₃, W and ℓ_ψ: the sizes and Lipschitz constants of ω* + θ, ω* and ψ."""
    R, gamma, phi_hat = x.R, x.gamma, x.smooth.phi_hat
    root = math.sqrt(x.lambda_C)
    C, mean_reward, K = moments(problem)
    reward_part = float(np.linalg.norm(np.linalg.solve(C, mean_reward)))  # ‖C⁻¹b‖
    if x.smooth.L_phi_hat == 0:  # φ̂ does not depend on θ: all maps are linear, and their norms are known exactly
        phi_hats = problem.target.weights(np.zeros(problem.features.shape[:2]))[..., None] * problem.features
        B = K @ phi_hats.sum(axis=1)  # E[γ φ φ̂ᵀ], (d, d)
        L_u = _norm(np.linalg.solve(C, B))
        U = reward_part + R * L_u
        L3 = _norm(np.linalg.solve(C, B) - np.eye(len(C)))
        W = reward_part + R * L3
        l_psi = _norm(np.linalg.solve(np.linalg.cholesky(C), B - C))
    else:
        spread = min(signs_norm(np.linalg.solve(C, K)), gamma / root)
        L_u = phi_hat * spread
        U = reward_part + R * spread
        L3 = 1 + L_u
        W = min(U + R, x.delta_max / root)
        l_psi = math.sqrt(x.lambda_max) + gamma * phi_hat
    return U, L_u, L3, W, l_psi


CORRECTED_FORMULAS = {
    **{name: PRINTED_FORMULAS[name] for name in ("R", "r_max", "gamma", "lambda_C", "delta_max")},
    "u_B": "√v of the batch mean of r φ (see gqlab.theory.deviation)",
    "u_C": "√v of the batch mean of φφᵀ",
    "u_K": "Σ_t √v of the batch mean of γ1{s'=t}φ",
    "U": "sup‖ω*(θ) + θ‖ = ‖C⁻¹b‖ + R n_K,  n_K = min(sup_{|V|≤1}‖C⁻¹KV‖, γ/√λ_C)",
    "l_psi": "√λ_max(C) + γΦ̂",
    "psi_max": "min(δ_max, √λ_max(C) W)",
    "phi_hat": "the operator's own sup‖φ̂‖",
    "L_phi_hat": "the operator's own Lipschitz constant of φ̂",
    "omega_star": "min(U + R, δ_max/√λ_C)",
    "G": "r_max + (1+γ)R + γ Φ̂ R",
    "H": "(2+γ)R + r_max",
    "C_grad_J": "ℓ_ψ ψ_max",
    "C1": "(u_B + R u_C + (R + Φ̂W) u_K)²",
    "C2": "(u_B + U u_C + R u_K)²",
    "C3": "(2/λ_C)((R + W) u_C)²",
    "C4": "(2/λ_C) C₂",
    "L1": "γ Φ̂",
    "L2": "1 + γΦ̂ + γ(Φ̂ L₃ + L_φ̂ W)",
    "L3": "1 + Φ̂ n_K",
    "L4": "1",
    "L5": "Φ̂(γ + n_K)",
    "L": "ℓ_ψ² + γ L_φ̂ ψ_max",
    "drift": "L₃²/λ_C + 2L₃²",
    "D": "L₁²(6(L/2 + ĉ)η_θ + 1 + ĉ),  ĉ = 1/8",
}

LINEAR_FORMULAS = {
    **CORRECTED_FORMULAS,
    "omega_star": "‖C⁻¹b‖ + R‖I − C⁻¹B‖,  B = E[γφφ̂ᵀ]",
    "U": "sup‖ω*(θ) + θ‖ = ‖C⁻¹b‖ + R‖C⁻¹B‖,  B = E[γφφ̂ᵀ]",
    "l_psi": "‖C^{−1/2}(B − C)‖",
    "L3": "‖I − C⁻¹B‖",
    "L5": "γΦ̂ + ‖C⁻¹B‖",
    "L": "ℓ_ψ²",
}


def moments(problem: Problem) -> tuple[FloatArray, FloatArray, FloatArray]:
    """C = E[φφᵀ], b = E[rφ] and K = E[γ φ 1{s'}ᵀ] (d, S)."""
    return problem.exact.moments


def _norm(matrix: NDArray[np.floating[Any]]) -> float:
    return float(np.linalg.norm(matrix, 2))


def signs_norm(matrix: NDArray[np.floating[Any]]) -> float:
    """sup ‖matrix V‖ over ‖V‖∞ ≤ 1: over all sign vectors if they are few, else the sum of the column norms."""
    columns = matrix[:, np.abs(matrix).max(axis=0) > 0]
    if columns.shape[1] > MOST_SIGNS:
        return float(np.linalg.norm(columns, axis=0).sum())
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=columns.shape[1])))
    return float(np.linalg.norm(signs @ columns.T, axis=1).max())
