"""The conditions on (η_θ, η_ω, M): the paper's five numbered ones and the unnumbered one of its first tracking lemma.

Each is written as ``left ≤ right``. With x = η_θ/η_ω and ``drift`` as in :mod:`gqlab.theory.constants`, both versions
use κ₁ = (4/λ_C)[12L₅²η_ω + 9 drift L₂²x²], the share of Σ‖θ_t − θ̃‖² in the summed tracking error.

Lyapunov coefficients: c_M = 0 and c_t = a c_{t+1} + b, hence c_0 = b (aᴹ − 1)/(a − 1); the proof needs c_0 ≤ ĉ = 1/8.
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


LABELS = ("lr-1", "lr-2", "lr-3", "lr-4", "lr-5", "tracking")

PRINTED_FORMULAS = (
    "(4/λ_C)[12L₅²η_ω + (9/λ_C + 2L₃²)9L₂²η_θ²/η_ω²] ≤ 1",
    "max(η_θ, η_ω) ≤ 1",
    "(3 + 16L₁)η_θ M ≤ 1",
    "[15/2 L₁Lη_θ + L₁κ₁] (4+16L₁)/(3+16L₁) (e−1) ≤ 1/8",
    "9(L/2 + ĉ)η_θ + D(9/λ_C + 2L₃²)(36/λ_C)η_θ²/η_ω² ≤ 3/8 − 1/4",
    "(9/λ_C + 2L₃²)6L₁²η_θ²/η_ω² + 12L₄²η_ω ≤ λ_C/4",
)

CORRECTED_FORMULAS = (
    "κ₁ = (4/λ_C)[12L₅²η_ω + (L₃²/λ_C + 2L₃²)9L₂²η_θ²/η_ω²] ≤ 1",
    "max(η_θ, η_ω) ≤ 1",
    "(3 + 9L₂²η_θ)η_θ M ≤ 1",
    "(e−1) M η_θ[9L₂²(L/2)η_θ + D κ₁] ≤ 1/8",
    "9(L/2 + ĉ)η_θ + D(L₃²/λ_C + 2L₃²)(36/λ_C)η_θ²/η_ω² ≤ 3/8 − 1/4",
    "(L₃²/λ_C + 2L₃²)6L₁²η_θ²/η_ω² + 12L₄²η_ω ≤ λ_C/4",
)


def kappa1(c: Constants, eta_theta: Any, eta_omega: Any) -> Any:
    """κ₁ = (4/λ_C)[12L₅²η_ω + 9 drift L₂²η_θ²/η_ω²]."""
    return 4 / c.lambda_C * (12 * c.L5**2 * eta_omega + 9 * c.drift * c.L2**2 * (eta_theta / eta_omega) ** 2)


def sides(c: Constants, eta_theta: Any, eta_omega: Any, M: Any) -> list[tuple[Any, Any]]:
    """(left, right) of the six conditions, in the order of ``LABELS``; arrays are taken element by element."""
    x2 = (eta_theta / eta_omega) ** 2
    k1 = kappa1(c, eta_theta, eta_omega)
    fifth = 9 * (c.L / 2 + C_HAT) * eta_theta + c.D(eta_theta) * c.drift * 36 / c.lambda_C * x2
    tracking = 6 * c.drift * c.L1**2 * x2 + 12 * c.L4**2 * eta_omega
    if c.version == "printed":
        third = (3 + 16 * c.L1) * eta_theta * M
        fourth = (7.5 * c.L1 * c.L * eta_theta + c.L1 * k1) * (4 + 16 * c.L1) / (3 + 16 * c.L1) * E1
    else:
        third = (3 + 9 * c.L2**2 * eta_theta) * eta_theta * M
        fourth = E1 * M * eta_theta * (4.5 * c.L2**2 * c.L * eta_theta + c.D(eta_theta) * k1)
    return [
        (k1, 1.0),
        (np.maximum(eta_theta, eta_omega), 1.0),
        (third, 1.0),
        (fourth, C_HAT),
        (fifth, 0.125),
        (tracking, c.lambda_C / 4),
    ]


#: lr-1 (κ₁ ≤ 1) only simplifies the printed recursion; the repaired one does without it.
NEEDED = {"printed": (True,) * 6, "corrected": (False, True, True, True, True, True)}


def conditions(c: Constants, eta_theta: float, eta_omega: float, M: float) -> tuple[Condition, ...]:
    """The six conditions at one point."""
    formulas = PRINTED_FORMULAS if c.version == "printed" else CORRECTED_FORMULAS
    return tuple(
        Condition(label, formula, float(left), float(right), needed)
        for label, formula, (left, right), needed in zip(
            LABELS, formulas, sides(c, eta_theta, eta_omega, M), NEEDED[c.version], strict=True
        )
    )


def all_hold(c: Constants, eta_theta: Any, eta_omega: Any, M: Any) -> Any:
    """Whether every needed condition holds; arrays are taken element by element."""
    out: Any = True
    for (left, right), needed in zip(sides(c, eta_theta, eta_omega, M), NEEDED[c.version], strict=True):
        if needed:
            out = out & (left <= right)
    return out


def recursion(c: Constants, eta_theta: float, eta_omega: float, M: float) -> Recursion:
    """The coefficients c_t of the Lyapunov function, and c_0."""
    k1 = float(kappa1(c, eta_theta, eta_omega))
    if c.version == "printed":
        a_minus_1 = 3 * eta_theta + 9 * c.L1 * eta_theta**2 + (6 * c.L1 * eta_theta**2 + eta_theta * c.L1) * k1
        b = 4.5 * c.L1 * c.L * eta_theta**2 + (3 * c.L1 * c.L * eta_theta**2 + eta_theta * c.L1) * k1
        formula = "c_t = c_{t+1}(1 + 3η_θ) + 9L₁(L/2 + c_{t+1})η_θ² + [6L₁(L/2 + c_{t+1})η_θ² + η_θL₁(1 + c_{t+1})]κ₁"
    else:
        a_minus_1 = 3 * eta_theta + 9 * c.L2**2 * eta_theta**2
        b = 4.5 * c.L2**2 * c.L * eta_theta**2 + eta_theta * c.D(eta_theta) * k1
        formula = "c_t = c_{t+1}(1 + 3η_θ) + 9L₂²(L/2 + c_{t+1})η_θ² + η_θ D κ₁"
    growth = M * math.log1p(a_minus_1)
    if growth > 700:
        log_c0 = math.log(b) - math.log(a_minus_1) + growth
    elif b == 0:
        return Recursion(a_minus_1, b, 0.0, -math.inf, formula)
    else:
        log_c0 = math.log(b) - math.log(a_minus_1) + math.log(math.expm1(growth))
    c0 = math.exp(log_c0) if log_c0 < 709 else math.inf
    return Recursion(a_minus_1, b, c0, log_c0 / math.log(10), formula)
