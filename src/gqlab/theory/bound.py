"""The bound on E‖∇J(θ_ξ)‖² after T epochs, in two versions.

``as_printed`` is the paper's final inequality, bracket by bracket. ``corrected`` is what the repaired proof gives (the
derivation is in docs/theory_proofs.md; the repairs are listed in :mod:`gqlab.theory.repairs`). Both are sums of

    initialisation      4J(θ_0)/(η_θTM)
    bias                the batch means, through ⟨∇J, g − ∇J⟩ and ⟨θ_t − θ̃, g − ∇J⟩
    variance            the batch means, through ‖g‖²
    tracking: noise     the batch means, through ω_t − ω*(θ_t)
    tracking: start     ω_0 − ω*(θ_0)
    tracking: reference what is left of ω̃ − ω*(θ̃) at the reference points
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gqlab.theory.constants import C_HAT, Constants


@dataclass(frozen=True)
class Bound:
    """The terms and their sum; ``formulas`` has one string for each term."""

    version: str
    terms: dict[str, float]
    formulas: dict[str, str]

    @property
    def total(self) -> float:
        return sum(self.terms.values())

    @property
    def groups(self) -> dict[str, float]:
        """Initialisation, bias, variance and tracking: the terms with the three of tracking added up."""
        out: dict[str, float] = {}
        for name, value in self.terms.items():
            group = name.split(":")[0]
            out[group] = out.get(group, 0.0) + value
        return out

    @property
    def dominating(self) -> str:
        """The name of the largest term."""
        return max(self.terms, key=lambda name: self.terms[name])


def bound(c: Constants, eta_theta: float, eta_omega: float, M: float, T: float, J0: float, tracking0: float) -> Bound:
    """The bound of this version; ``J0`` is J(θ_0), ``tracking0`` is ‖ω_0 − ω*(θ_0)‖²."""
    terms = as_printed if c.version == "printed" else corrected
    formulas = PRINTED_FORMULAS if c.version == "printed" else CORRECTED_FORMULAS
    values = terms(c, eta_theta, eta_omega, M, T, J0, tracking0)
    return Bound(c.version, {name: float(value) for name, value in values.items()}, formulas)


def corrected(
    c: Constants, eta_theta: Any, eta_omega: Any, M: Any, T: Any, J0: float, tracking0: float
) -> dict[str, Any]:
    """The terms of the corrected bound; arrays are taken element by element."""
    x2 = (eta_theta / eta_omega) ** 2
    D = c.D(eta_theta)
    curvature = c.L / 2 + C_HAT
    per_lambda = 4 / c.lambda_C
    reference = reference_weight(c, eta_theta, eta_omega, M)
    floor = per_lambda * (
        (c.C3 + c.C4) / M + 5 * c.H**2 * eta_omega + 0.5 * c.drift * 5 * c.G**2 * x2
    )  # what is left of E‖ω̃ − ω*(θ̃)‖² after many epochs
    noise = 2 * per_lambda * (c.C3 + c.C4) + 9 * per_lambda * c.drift * x2 * c.C1 + 12 * per_lambda * eta_omega * c.C2
    return {
        "initialisation": 4 * J0 / (eta_theta * T * M),
        "bias": 4 / M * (1 + C_HAT) * c.C1,
        "variance": 4 / M * 9 * curvature * eta_theta * c.C1,
        "tracking: noise": 4 / M * D * noise,
        "tracking: start": 4 / T * reference * tracking0 / remaining(c, eta_omega, M),
        "tracking: reference": 4 * reference * floor,
    }


def reference_weight(c: Constants, eta_theta: Any, eta_omega: Any, M: Any) -> Any:
    """The coefficient of ‖ω̃ − ω*(θ̃)‖² in one epoch, divided by η_θ M."""
    x2 = (eta_theta / eta_omega) ** 2
    inner = 1 / (eta_omega * M) + 9 * c.drift * c.L1**2 * x2 + 18 * c.L4**2 * eta_omega
    power = 1 if c.version == "printed" else 2
    return 9 * c.L1**power * (c.L / 2 + C_HAT) * eta_theta + c.D(eta_theta) * 4 / c.lambda_C * inner


def remaining(c: Constants, eta_omega: Any, M: Any) -> Any:
    """1 − (1 − ½λ_Cη_ω)ᴹ, without cancellation; η_ω beyond 2/λ_C, which no condition admits, is taken as 2/λ_C."""
    base = np.minimum(0.5 * c.lambda_C * eta_omega, 1 - 1e-16)
    return -np.expm1(M * np.log1p(-base))


def as_printed(
    c: Constants, eta_theta: Any, eta_omega: Any, M: Any, T: Any, J0: float, tracking0: float
) -> dict[str, Any]:
    """The terms of the paper's final inequality, literally: L₁ unsquared, 1/(TM) without its 4, one bracket late."""
    x2 = (eta_theta / eta_omega) ** 2
    D = c.D(eta_theta)
    curvature = c.L / 2 + C_HAT
    per_lambda = 4 / c.lambda_C
    inner = 1 / (eta_omega * M) + 9 * c.drift * c.L1**2 * x2 + 18 * c.L4**2 * eta_omega
    floor = per_lambda * (c.C3 + c.C4) / M + per_lambda * c.H**2 * eta_omega + 2 / c.lambda_C * c.drift * c.G**2 * x2
    noise = 2 * per_lambda * (c.C3 + c.C4) + 9 * per_lambda * c.drift * x2 * c.C1 + 12 * per_lambda * eta_omega * c.C2
    start = reference_weight(c, eta_theta, eta_omega, M) / T * tracking0 / remaining(c, eta_omega, M)
    return {
        "initialisation": 4 * J0 / (eta_theta * T * M),
        "bias": 4 / M * (1 + 2 * C_HAT) * c.C1,
        "variance": 4 / M * 9 * curvature * eta_theta * c.C1,
        "tracking: noise": 4 / M * D * noise,
        "tracking: start": start,
        "tracking: reference": 9 * c.L1 * curvature * eta_theta + D * per_lambda * inner * floor,
    }


CORRECTED_FORMULAS = {
    "initialisation": "4J(θ_0)/(η_θTM)",
    "bias": "(4/M)(1 + ĉ)C₁",
    "variance": "(4/M)·9(L/2 + ĉ)η_θ C₁",
    "tracking: noise": "(4/M) D[(8/λ_C)(C₃ + C₄) + (36/λ_C) drift x² C₁ + (48/λ_C)η_ω C₂],  x = η_θ/η_ω",
    "tracking: start": "(4/T) E ‖ω_0 − ω*(θ_0)‖²/(1 − (1 − ½λ_Cη_ω)ᴹ),  "
    "E = 9L₁²(L/2 + ĉ)η_θ + D(4/λ_C)[1/(η_ωM) + 9 drift L₁²x² + 18L₄²η_ω]",
    "tracking: reference": "4 E[(4/λ_C)(C₃ + C₄)/M + (4/λ_C)·5H²η_ω + (2/λ_C) drift·5G² x²]",
}

PRINTED_FORMULAS = {
    "initialisation": "4J(θ_0)/(η_θTM)",
    "bias": "(4/M)(1 + 2ĉ)C₁",
    "variance": "(4/M)·9(L/2 + ĉ)η_θ C₁",
    "tracking: noise": "(4/M) D[(8/λ_C)(C₃ + C₄) + (36/λ_C) drift x² C₁ + (48/λ_C)η_ω C₂],  x = η_θ/η_ω",
    "tracking: start": "(1/TM)[9L₁(L/2 + ĉ)η_θM + D(4/λ_C)[1/η_ω + M(9 drift L₁²x² + 18L₄²η_ω)]]"
    "·‖ω_0 − ω*(θ_0)‖²/(1 − (1 − ½λ_Cη_ω)ᴹ)",
    "tracking: reference": "9L₁(L/2 + ĉ)η_θ + D(4/λ_C)[1/(η_ωM) + 9 drift L₁²x² + 18L₄²η_ω]"
    "·[(4/λ_C)(C₃ + C₄)/M + (4/λ_C)H²η_ω + (2/λ_C) drift G² x²]",
}
