"""The two sharper theorems on VR-Greedy-GQ, as numbers (the proofs are in docs/theory_proofs.md).

Both rest on one Lyapunov function within an epoch,

    Ψ_t = J(θ_t) + c_t‖θ_t − θ̃‖² + b_t‖ω_t − ω*(θ_t)‖² + f_t‖ω̃ − ω*(θ̃)‖²        c_M = f_M = 0,  b_M = b_0 + f_0,

on one step of the tracking error, given the batch and in expectation,

    E‖Δ_{t+1}‖² ≤ (1 − y)‖Δ_t‖² + P‖Δ̃‖² + S e_t² + Q‖∇J(θ_t)‖² + N_s E‖θ_{t+1} − θ_t‖² + N₀/M,

and on the same telescoping sum. They differ in how θ moves:

``interior``
    The sum of E‖∇J(θ_t)‖² over the iterates before the first one within 3Gη_θ of the sphere, divided by all TM: a
    run that leaves early makes it small, so :func:`leaves` belongs to it. ``order`` 2 expands ω* to second order
    (then N₀, S ~ η_ω² + η_θ²: O(ε^{−5/3}) samples), ``order`` 1 only uses that ω* is Lipschitz (O(ε^{−7/4})).
``projected``
    E‖𝒢(θ_ξ)‖² over all iterates, 𝒢 the projected-gradient mapping: nothing is assumed about the run (O(ε^{−2})).

All arguments may be arrays, treated elementwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gqlab.theory.sharp import Sharp

#: βη_θM, the growth of ‖θ_t − θ̃‖² over an epoch allowed by Young's inequality: near the minimum of (eᵏ − 1)/k².
GROWTH = 1.6

#: The smallest admissible coefficient ρ of ‖∇J‖²; the bound divides by ρ itself, which is at most ½.
LEAST_RHO = 0.25

THEOREMS = ("interior", "projected")


@dataclass(frozen=True)
class Tracking:
    """One step of the tracking error: the coefficients of ‖Δ̃‖², e_t², ‖∇J‖², ‖θ_{t+1} − θ_t‖² and 1/M."""

    y: Any
    P: Any
    S: Any
    Q: Any
    N_s: Any
    N0: Any


@dataclass(frozen=True)
class EvaluatedTheorem:
    """A theorem at (η_θ, η_ω, M): what must be positive, and the bound as per_T/T + rest."""

    needs: dict[str, Any]
    coefficients: dict[str, Any]
    initialisation: Any  # times J(θ_0)/T
    start: Any  # times ‖ω_0 − ω*(θ_0)‖²/T
    batch: Any  # the batch means, through the step of θ
    tracking: Any  # the batch means, through ω − ω*(θ)

    @property
    def holds(self) -> Any:
        """Whether everything that the proof needs holds."""
        ok = np.asarray(True)
        for value in self.needs.values():
            ok = ok & np.greater_equal(value, 0)
        return ok

    def terms(self, T: Any, J0: float, tracking0: float) -> dict[str, Any]:
        """The terms of the bound; ``J0`` is J(θ_0), ``tracking0`` is ‖ω_0 − ω*(θ_0)‖²."""
        return {
            "initialisation": self.initialisation * J0 / T,
            "tracking: start": self.start * tracking0 / T,
            "batch": self.batch,
            "tracking: batch": self.tracking,
        }


def evaluate(c: Sharp, theorem: str, eta_theta: Any, eta_omega: Any, M: Any, order: int = 2) -> EvaluatedTheorem:
    """The theorem's needs and bound at these steps.

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> from gqlab.theory.sharp import sharp_constants
    >>> mdp = gq.FiniteMDP([[[0.75, 0.25]], [[0.25, 0.75]]], [[0.03], [0.0]], discount=0.1)
    >>> problem = gq.Problem(mdp, np.eye(2)[:, None, :], target=gq.FixedPolicy([[1.0], [1.0]]))
    >>> found = evaluate(sharp_constants(problem, 1.0), "interior", 4e-4, 4e-3, 10_000)
    >>> bool(found.holds), bool(0.25 < found.coefficients["rho"] < 0.5)
    (True, True)
    """
    if theorem == "interior":
        return _interior(c, eta_theta, eta_omega, M, order)
    return _projected(c, eta_theta, eta_omega, M)


def tracking_step(c: Sharp, theorem: str, eta_theta: Any, eta_omega: Any, order: int = 2) -> Tracking:
    """The coefficients of one step of the tracking error."""
    lam, a2, e2 = c.lambda_C, eta_omega**2, eta_theta**2
    N0 = 4 * a2 * c.C2 + 2 * eta_omega * (c.C3 + c.C4)
    if theorem == "projected":  # −2⟨Δ, δ⟩ ≤ ½λη_ω‖Δ‖² + (2/λη_ω)‖δ‖², δ = ω*(θ_{t+1}) − ω*(θ_t)
        N_s = 2 * c.L3**2 * (1 + 1 / (lam * eta_omega))
        return Tracking(lam * eta_omega - 10 * a2, 6 * a2, 6 * c.L5**2 * a2, 0.0 * e2, N_s, N0)
    if order == 2:  # δ = −η_θ Dω* g + ρ, ‖ρ‖ ≤ ½L₆η_θ²‖g‖²: only the mean of g meets Δ
        N = 2 * c.L3**2 + (c.R_omega + c.omega_star) * c.L6
        cross, mean = 2 * eta_theta * c.L1 * c.L3, c.L3**2 / lam * e2 / eta_omega
    else:  # −2⟨Δ, δ⟩ ≤ ¾λη_ω‖Δ‖² + (4/3λη_ω)L₃²η_θ²‖g‖²
        N = c.L3**2 * (2 + 4 / (3 * lam * eta_omega))
        cross, mean = 0.0 * eta_theta, 0.0 * eta_theta
    return Tracking(
        y=0.75 * lam * eta_omega - cross - 10 * a2 - 6 * N * c.L1**2 * e2,
        P=6 * a2 + 3 * N * c.L1**2 * e2,
        S=6 * c.L5**2 * a2 + 3 * N * c.L2**2 * e2,
        Q=2 * mean + 3 * N * e2,
        N_s=0.0 * e2,
        N0=N0 + (4 * mean + 3 * N * e2) * c.C1,
    )


def leaves(c: Sharp, risen: float, longest: float, n_steps: float, theta0_norm: float) -> float:
    """A bound on the probability that some iterate lies outside the ball of radius R − ``longest``.

    ``longest`` bounds a step of θ; ``risen`` is the right side of the theorem before the division: Ψ_0 and everything
    added to it. Ψ ≥ J ≥ c.least_J where the run leaves, so Markov's inequality bounds the probability. A run that
    is too short to leave does not.

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> from gqlab.theory.sharp import sharp_constants
    >>> mdp = gq.FiniteMDP([[[0.75, 0.25]], [[0.25, 0.75]]], [[0.03], [0.0]], discount=0.1)
    >>> problem = gq.Problem(mdp, np.eye(2)[:, None, :], target=gq.FixedPolicy([[1.0], [1.0]]))
    >>> c = sharp_constants(problem, 1.0)
    >>> leaves(c, 0.1, 0.01, 40, 0.5), leaves(c, 0.1, 0.01, 60, 0.5) > 0, leaves(c, 0.0, 0.01, 1, 0.995)
    (0.0, True, 1.0)
    """
    inner = c.R - longest
    if not theta0_norm <= inner:
        return 1.0
    if theta0_norm + n_steps * longest <= inner:
        return 0.0
    level = c.least_J(inner)
    return min(1.0, risen / level) if level > 0 else 1.0


def _epoch(t: Tracking, M: Any, w: Any, v: Any) -> tuple[Any, Any, Any]:
    """b*, X and r: b_{M−j} = b* + X(1−y)ʲ with b_t = (1−y)b_{t+1} + w, f_t = f_{t+1} + v + P b_{t+1}, b_M = b_0 + f_0.

    ``w`` and ``v`` are the coefficients of ‖Δ_t‖² and ‖Δ̃‖² in the step of θ; r = 1 − (1−y)ᴹ.
    """
    y = np.clip(t.y, 1e-300, 1 - 1e-16)  # where y is not positive a need fails anyway
    r = -np.expm1(M * np.log1p(-y))
    b_star = w / y
    X = M * (v + t.P * b_star) / (r * np.maximum(1 - t.P / y, 1e-300))
    return b_star, X, r / y


def _grown(a_minus_1: Any, M: Any) -> tuple[Any, Any]:
    """(aᴹ − 1)/(a − 1) and aᴹ, without overflow."""
    log_power = np.minimum(M * np.log1p(a_minus_1), 600.0)
    return np.expm1(log_power) / a_minus_1, np.exp(log_power)


def _interior(c: Sharp, eta_theta: Any, eta_omega: Any, M: Any, order: int) -> EvaluatedTheorem:
    t = tracking_step(c, "interior", eta_theta, eta_omega, order)
    inverse_beta = eta_theta * M / GROWTH
    sum_a, power = _grown(GROWTH / M + 3 * c.L2**2 * eta_theta**2, M)

    def at(c_hat: Any) -> dict[str, Any]:
        """Everything that follows from c_t ≤ ĉ; affine in ĉ."""
        A = 0.5 * c.L * eta_theta + c_hat * (inverse_beta + eta_theta)  # η_θA multiplies ‖Ĝ‖²
        V = (0.5 * c.L + c_hat) * eta_theta  # η_θV multiplies the variance of g
        b_star, X, run = _epoch(t, M, eta_theta * c.L1**2 * (1 + 3 * A + 3 * V), 3 * c.L1**2 * eta_theta * V)
        c_0 = sum_a * (1.5 * c.L * c.L2**2 * eta_theta**2 + t.S * b_star) + power * t.S * X * run
        return {"A": A, "V": V, "b_star": b_star, "X": X, "run": run, "c_0": c_0}

    least, slope = at(0.0)["c_0"], at(1.0)["c_0"] - at(0.0)["c_0"]
    # The least ĉ with c_0(ĉ) = ĉ; none where the slope is 1 or more, and then a need fails.
    c_hat = least / np.maximum(1 - slope, 1e-300)
    found = at(c_hat)
    B = found["b_star"] + found["X"]
    rho = 0.5 - 3 * found["A"] - B * t.Q / eta_theta
    needs = {
        "steps": 1 - np.maximum(eta_theta, eta_omega),
        "y": t.y,
        "P < y": t.y - t.P,
        "c_hat": 1 - slope,
        "rho": rho - LEAST_RHO,
    }
    rho = np.maximum(rho, 1e-300)
    held = found["b_star"] + found["X"] * found["run"] / M  # the mean of b_t over an epoch
    return EvaluatedTheorem(
        needs=needs,
        coefficients={"rho": rho, "c_hat": c_hat, "B": B, "b_star": found["b_star"], "mean_b": held},
        initialisation=1 / (rho * eta_theta * M),
        start=B / (rho * eta_theta * M),
        batch=(1 + 3 * found["A"]) * c.C1 / (rho * M),
        tracking=held * t.N0 / (rho * eta_theta * M),
    )


def _projected(c: Sharp, eta_theta: Any, eta_omega: Any, M: Any) -> EvaluatedTheorem:
    t = tracking_step(c, "projected", eta_theta, eta_omega)
    p = GROWTH / M
    sum_a, power = _grown(p, M)
    b_star, X, run = _epoch(t, M, 2.5 * eta_theta * c.L1**2, 1.5 * eta_theta * c.L1**2)
    c_0 = sum_a * (1.5 * eta_theta * c.L2**2 + t.S * b_star) + power * t.S * X * run
    B = b_star + X
    room = 0.5 / eta_theta - 0.5 * c.L  # before −‖θ_{t+1} − θ_t‖²
    needs = {
        "steps": 1 - np.maximum(eta_theta, eta_omega),
        "y": t.y,
        "P < y": t.y - t.P,
        "step of θ": room - c_0 * (1 + 1 / p) - B * t.N_s,
    }
    held = b_star + X * run / M
    return EvaluatedTheorem(
        needs=needs,
        coefficients={"rho": 0.5 + 0 * eta_theta, "c_hat": c_0, "B": B, "b_star": b_star, "mean_b": held},
        initialisation=2 / (eta_theta * M),
        start=2 * B / (eta_theta * M),
        batch=2 * c.C1 / M + 0 * eta_theta,
        tracking=2 * held * t.N0 / (eta_theta * M),
    )
