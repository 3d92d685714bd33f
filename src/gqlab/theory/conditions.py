"""The conditions on (η_θ, η_ω, M): the paper's five numbered ones and the unnumbered one of its first tracking lemma.

Each is written as ``left ≤ right``. With x = η_θ/η_ω and ``drift`` as in :mod:`gqlab.theory.constants`, both versions
use κ₁ = (4/λ_C)[12L₅²η_ω + 9 drift L₂²x²], the share of Σ‖θ_t − θ̃‖² in the summed tracking error.

Lyapunov coefficients: c_M = 0 and c_t = a c_{t+1} + b, hence c_0 = b (aᴹ − 1)/(a − 1); the proof needs c_0 ≤ ĉ = 1/8.
lr-3 and lr-4 serve only to imply that, so the repaired proof needs, of the printed six, lr-2, lr-5 and tracking, and
c_0 ≤ 1/8 itself: every condition is reported, and which of them the proof needs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from gqlab.theory.constants import C_HAT, Constants

E1 = math.e - 1


@dataclass(frozen=True)
class Condition:
    """One condition, ``left ≤ right``. ``needed`` is False where the repaired proof does without it."""

    label: str
    formula: str
    left: float
    right: float
    needed: bool = True

    @property
    def margin(self) -> float:
        return self.right - self.left

    @property
    def holds(self) -> bool:
        return bool(self.left <= self.right)


@dataclass(frozen=True)
class Recursion:
    """The Lyapunov coefficients: c_t = (1 + a_minus_1) c_{t+1} + b. ``c0`` is inf where it exceeds float64."""

    a_minus_1: float
    b: float
    c0: float
    log10_c0: float
    formula: str

    @property
    def holds(self) -> bool:
        return self.c0 <= C_HAT


PRINTED_FORMULAS = {
    "lr-1": "(4/λ_C)[12L₅²η_ω + (9/λ_C + 2L₃²)9L₂²η_θ²/η_ω²] ≤ 1",
    "lr-2": "max(η_θ, η_ω) ≤ 1",
    "lr-3": "(3 + 16L₁)η_θ M ≤ 1",
    "lr-4": "[15/2 L₁Lη_θ + L₁κ₁] (4+16L₁)/(3+16L₁) (e−1) ≤ 1/8",
    "lr-5": "9(L/2 + ĉ)η_θ + D(9/λ_C + 2L₃²)(36/λ_C)η_θ²/η_ω² ≤ 3/8 − 1/4",
    "tracking": "(9/λ_C + 2L₃²)6L₁²η_θ²/η_ω² + 12L₄²η_ω ≤ λ_C/4",
}

CORRECTED_FORMULAS = {
    "lr-1": "κ₁ = (4/λ_C)[12L₅²η_ω + (L₃²/λ_C + 2L₃²)9L₂²η_θ²/η_ω²] ≤ 1",
    "lr-2": "max(η_θ, η_ω) ≤ 1",
    "lr-3": "(3 + 9L₂²η_θ)η_θ M ≤ 1",
    "lr-4": "(e−1) M η_θ[9L₂²(L/2)η_θ + D κ₁] ≤ 1/8",
    "lr-5": "9(L/2 + ĉ)η_θ + D(L₃²/λ_C + 2L₃²)(36/λ_C)η_θ²/η_ω² ≤ 3/8 − 1/4",
    "tracking": "(L₃²/λ_C + 2L₃²)6L₁²η_θ²/η_ω² + 12L₄²η_ω ≤ λ_C/4",
}


def kappa1(c: Constants, eta_theta: float, eta_omega: float) -> float:
    """κ₁ = (4/λ_C)[12L₅²η_ω + 9 drift L₂²η_θ²/η_ω²]."""
    return 4 / c.lambda_C * (12 * c.L5**2 * eta_omega + 9 * c.drift * c.L2**2 * (eta_theta / eta_omega) ** 2)


def coefficients(c: Constants, eta_theta: Any, M: Any) -> dict[str, tuple[Any, Any, Any, float]]:
    """(constant, linear, inverse, right) of each condition: constant + linear·η_ω + inverse·(η_θ/η_ω)² ≤ right.

    lr-2 is apart: η_θ ≤ 1 and η_ω ≤ 1.
    """
    # κ₁ = linear·η_ω + inverse·(η_θ/η_ω)²
    linear, inverse = 48 * c.L5**2 / c.lambda_C, 36 * c.drift * c.L2**2 / c.lambda_C
    if c.version == "printed":
        third = (3 + 16 * c.L1) * eta_theta * M
        scale = (4 + 16 * c.L1) / (3 + 16 * c.L1) * E1
        fixed, weight = scale * 7.5 * c.L1 * c.L * eta_theta, scale * c.L1
    else:
        third = (3 + 9 * c.L2**2 * eta_theta) * eta_theta * M
        scale = E1 * M * eta_theta
        fixed, weight = scale * 4.5 * c.L2**2 * c.L * eta_theta, scale * c.D(eta_theta)
    curvature = 9 * (c.L / 2 + C_HAT) * eta_theta
    out = {
        "lr-1": (0.0, linear, inverse, 1.0),
        "lr-3": (third, 0.0, 0.0, 1.0),
        "lr-4": (fixed, weight * linear, weight * inverse, C_HAT),
        "lr-5": (curvature, 0.0, c.D(eta_theta) * c.drift * 36 / c.lambda_C, 0.125),
        "tracking": (0.0, 12 * c.L4**2, 6 * c.drift * c.L1**2, c.lambda_C / 4),
    }
    if c.version != "printed":  # c_0 = b (aᴹ − 1)/(a − 1) itself
        growth = _geometric(3 * eta_theta + 9 * c.L2**2 * eta_theta**2, M)
        weight = growth * eta_theta * c.D(eta_theta)
        out["c_0"] = (growth * 4.5 * c.L2**2 * c.L * eta_theta**2, weight * linear, weight * inverse, C_HAT)
    return out


def _geometric(a_minus_1: Any, M: Any) -> Any:
    """(aᴹ − 1)/(a − 1), without cancellation and without overflow."""
    return np.expm1(np.minimum(M * np.log1p(a_minus_1), 300.0)) / a_minus_1


def sides(c: Constants, eta_theta: Any, eta_omega: Any, M: Any) -> dict[str, tuple[Any, float]]:
    """(left, right) of the six conditions and of c_0 ≤ ĉ; arrays are taken element by element."""
    x2 = (eta_theta / eta_omega) ** 2
    out: dict[str, tuple[Any, float]] = {"lr-2": (np.maximum(eta_theta, eta_omega), 1.0)}
    for label, (constant, linear, inverse, right) in coefficients(c, eta_theta, M).items():
        out[label] = (constant + linear * eta_omega + inverse * x2, right)
    return out


def needed(c: Constants, label: str) -> bool:
    """Whether the proof uses it. lr-1 (κ₁ ≤ 1), lr-3 and lr-4 only bound c_0; the repaired proof takes c_0 itself."""
    return c.version == "printed" or label not in ("lr-1", "lr-3", "lr-4")


def conditions(c: Constants, eta_theta: float, eta_omega: float, M: float) -> tuple[Condition, ...]:
    """The six conditions at one point."""
    formulas = PRINTED_FORMULAS if c.version == "printed" else CORRECTED_FORMULAS
    values = sides(c, eta_theta, eta_omega, M)
    return tuple(
        Condition(label, formula, float(values[label][0]), values[label][1], needed(c, label))
        for label, formula in formulas.items()
    )


def recursion(c: Constants, eta_theta: float, eta_omega: float, M: float) -> Recursion:
    """The coefficients c_t of the Lyapunov function, and c_0."""
    k1 = kappa1(c, eta_theta, eta_omega)
    if c.version == "printed":
        a_minus_1 = 3 * eta_theta + 9 * c.L1 * eta_theta**2 + (6 * c.L1 * eta_theta**2 + eta_theta * c.L1) * k1
        b = 4.5 * c.L1 * c.L * eta_theta**2 + (3 * c.L1 * c.L * eta_theta**2 + eta_theta * c.L1) * k1
        formula = "c_t = c_{t+1}(1 + 3η_θ) + 9L₁(L/2 + c_{t+1})η_θ² + [6L₁(L/2 + c_{t+1})η_θ² + η_θL₁(1 + c_{t+1})]κ₁"
    else:
        a_minus_1 = 3 * eta_theta + 9 * c.L2**2 * eta_theta**2
        b = 4.5 * c.L2**2 * c.L * eta_theta**2 + eta_theta * c.D(eta_theta) * k1
        formula = "c_t = c_{t+1}(1 + 3η_θ) + 9L₂²(L/2 + c_{t+1})η_θ² + η_θ D κ₁"
    if b == 0:
        return Recursion(a_minus_1, b, 0.0, -math.inf, formula)
    growth = M * math.log1p(a_minus_1)
    grown = growth if growth > 700 else math.log(math.expm1(growth))  # log(aᴹ − 1)
    log_c0 = math.log(b) - math.log(a_minus_1) + grown
    c0 = math.exp(log_c0) if log_c0 < 709 else math.inf
    return Recursion(a_minus_1, b, c0, log_c0 / math.log(10), formula)
