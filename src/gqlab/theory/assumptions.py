"""The assumptions: the paper's four, and those that its proof makes implicitly.

The report says of each whether it holds, fails, or cannot be known, and which version of the bound needs it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from gqlab.lab.results import RunResult
from gqlab.problems.problem import Problem
from gqlab.theory.constants import Constants
from gqlab.theory.ergodicity import certify
from gqlab.theory.practical import stationary_point
from gqlab.theory.sampled import random_points

HOLDS, FAILS, UNKNOWN = "holds", "fails", "cannot be known"
BOTH = ("as_printed", "corrected")


@dataclass(frozen=True)
class Assumption:
    """One assumption. ``values`` are the numbers behind ``status``; ``needed_by`` the versions whose proof uses it."""

    name: str
    formula: str
    status: str
    detail: str
    values: dict[str, float]
    needed_by: tuple[str, ...] = BOTH


def stated(problem: Problem, radius: float) -> tuple[Assumption, ...]:
    """Assumptions 1 to 4 of the paper."""
    return (_features(problem), _smoothness(problem, radius), _solvability(problem), _ergodicity(problem))


def _features(problem: Problem) -> Assumption:
    longest = float(np.linalg.norm(problem.features, axis=-1).max())
    status = HOLDS if longest <= 1 + 1e-9 else FAILS
    return Assumption(
        "1 feature boundedness", "max ‖φ(s,a)‖ ≤ 1", status, f"max ‖φ‖ = {longest:.6g}", {"max_norm": longest}
    )


def _smoothness(problem: Problem, radius: float) -> Assumption:
    name, formula = "2 policy smoothness", "θ ↦ π_θ is k₁-Lipschitz and k₂-smooth; the proof uses sup‖φ̂‖ and L_φ̂"
    # Any radius serves to tell whether the operator is smooth.
    smooth = problem.target.smoothness(problem.mdp.n_actions, radius if math.isfinite(radius) else 1.0)
    if smooth is None:
        return Assumption(name, formula, FAILS, f"{problem.target!r} is not smooth: the theorem does not apply", {})
    if not math.isfinite(radius):
        return Assumption(name, formula, HOLDS, f"{problem.target!r} is smooth; its constants need a finite R", {})
    values = {"phi_hat": smooth.phi_hat, "L_phi_hat": smooth.L_phi_hat}
    known = ""
    if smooth.k1 is not None and smooth.k2 is not None:
        values |= {"k1": smooth.k1, "k2": smooth.k2}
        known = f"k₁ = {smooth.k1:g}, k₂ = {smooth.k2:g}, "
    detail = f"{known}sup‖φ̂‖ ≤ {smooth.phi_hat:.4g}, L_φ̂ ≤ {smooth.L_phi_hat:.4g} (over all features in the unit ball)"
    return Assumption(name, formula, HOLDS, detail, values)


def _solvability(problem: Problem) -> Assumption:
    eigenvalues = np.linalg.eigvalsh(problem.exact.feature_covariance)
    low, high = float(eigenvalues[0]), float(eigenvalues[-1])
    return Assumption(
        "3 problem solvability", "C = E[φφᵀ] is not singular", HOLDS,
        f"λ_C = {low:.4g}, condition of C = {high / low:.4g}", {"lambda_C": low, "condition": high / low},
    )  # fmt: skip


def _ergodicity(problem: Problem) -> Assumption:
    name, formula = "4 geometric ergodicity", "sup_s d_TV(P(s_t|s_0 = s), μ) ≤ Λρᵗ for t > 0"
    try:
        pair = certify(problem)
    except ValueError as error:
        return Assumption(name, formula, FAILS, str(error), {})
    detail = f"Λ = {pair.Lambda:.4g}, ρ = {pair.rho:.4g}, certified by d̄({pair.t0}) = {pair.d_bar:.4g}"
    values = {"Lambda": pair.Lambda, "rho": pair.rho, "t0": float(pair.t0), "d_bar": pair.d_bar}
    return Assumption(name, formula, HOLDS, detail, values)


def implicit_assumptions(
    problem: Problem, c: Constants, eta_theta: float, updates: float, theta0: ArrayLike | None, result: RunResult | None
) -> tuple[Assumption, ...]:
    """What the proof assumes implicitly; ``c`` are the corrected constants, ``updates`` is TM."""
    return (
        omega_star_inside(problem, c),
        _stationary_point_inside(problem, c, theta0),
        _projection_idle(c, eta_theta, updates, theta0, result),
        Assumption(
            "θ_t independent of its batch", "θ_t^(m) is independent of B_m", FAILS,
            "θ_t is made from the batch for every t ≥ 1; the corrected version bounds all θ at once instead", {},
            needed_by=("as_printed",),
        ),
    )  # fmt: skip


def one_ball(radius: float, radius_omega: float, omega0: ArrayLike | None) -> tuple[Assumption, ...]:
    """That one ball serves θ and ω, and that ω begins in it: the paper's algorithm, and Theorem 1's."""
    start = 0.0 if omega0 is None else float(np.linalg.norm(np.asarray(omega0)))
    return (
        Assumption(
            "one radius for θ and ω", "R_ω = R", HOLDS if radius_omega == radius else FAILS,
            f"R = {radius:g}, R_ω = {radius_omega:.6g}", {"radius": radius, "radius_omega": radius_omega},
        ),
        Assumption(
            "ω_0 inside the ball", "‖ω_0‖ ≤ R", HOLDS if start <= radius * (1 + 1e-12) else FAILS,
            f"‖ω_0‖ = {start:.4g}", {"norm": start, "radius": radius},
        ),
    )  # fmt: skip


def omega_star_inside(problem: Problem, c: Constants) -> Assumption:
    points = random_points(np.random.default_rng(7), 4000, problem.dim, c.R)
    seen = float(np.linalg.norm(problem.exact.omega_star(points), axis=1).max())
    if c.omega_star <= c.R:
        status, detail = HOLDS, f"sup‖ω*‖ ≤ {c.omega_star:.4g} is proved"
    elif seen > c.R:
        status, detail = FAILS, f"‖ω*‖ = {seen:.4g} = {seen / c.R:.3g} R at a sampled point"
    else:
        status, detail = UNKNOWN, f"sampled {seen:.4g}, proved only ≤ {c.omega_star:.4g}"
    return Assumption(
        "ω*(θ) inside the ball", "sup_{‖θ‖≤R}‖ω*(θ)‖ ≤ R", status, detail,
        {"sampled": seen, "proved": c.omega_star, "radius": c.R},
    )  # fmt: skip


def _stationary_point_inside(problem: Problem, c: Constants, theta0: ArrayLike | None) -> Assumption:
    point = stationary_point(problem, theta0)
    norm = float(np.linalg.norm(point.theta))
    if point.found and norm <= c.R:
        status, detail = HOLDS, f"‖∇J‖ = {point.gradient_norm:.1e} at a point of norm {norm:.4g}"
    else:
        status, detail = UNKNOWN, f"a descent from θ_0 ended at norm {norm:.4g} with ‖∇J‖ = {point.gradient_norm:.1e}"
    return Assumption(
        "a stationary point in the ball", "∇J(θ) = 0 for some ‖θ‖ ≤ R", status, detail,
        {"norm": norm, "gradient_norm": point.gradient_norm}, needed_by=(),
    )  # fmt: skip


def _projection_idle(
    c: Constants, eta_theta: float, updates: float, theta0: ArrayLike | None, result: RunResult | None
) -> Assumption:
    name, formula = "the projection of θ idle", "‖θ_t − η_θ g_t‖ ≤ R at every step"
    start = 0.0 if theta0 is None else float(np.linalg.norm(np.asarray(theta0)))
    furthest = start + updates * eta_theta * 3 * c.G
    values = {"furthest": furthest, "radius": c.R}
    if furthest <= c.R:
        detail = f"TM steps of at most 3Gη_θ cannot leave the ball: ‖θ‖ ≤ {furthest:.4g}"
        return Assumption(name, formula, HOLDS, detail, values)
    if result is None:
        return Assumption(name, formula, UNKNOWN, "depends on the run", values)
    largest = float(np.linalg.norm(result.theta, axis=-1).max())
    values["largest_recorded"] = largest
    if largest >= c.R * (1 - 1e-9):
        return Assumption(name, formula, FAILS, "a record of the run lies on the sphere of radius R", values)
    return Assumption(name, formula, UNKNOWN, f"not seen to act: ‖θ‖ ≤ {largest:.4g} at every record", values)
