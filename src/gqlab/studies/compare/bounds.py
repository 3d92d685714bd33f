"""The efficiency bounds of the problems of the leaderboard: a call of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from gqlab.lab.efficiency import efficiency
from gqlab.problems.problem import Problem
from gqlab.studies.compare.design import Problems, first_point
from gqlab.support.checks import FloatArray


def measure_bounds(problems: Problems) -> dict[str, Any]:
    """tr Σ and tr Σ_b at the stationary point that Newton's method reaches from θ₀, (n_problems, 2)."""
    return {"bounds": np.array([bounds_of(p, p.exact.stationary_point(first_point(p.dim))) for p in problems.build()])}


def bounds_of(problem: Problem, stationary: FloatArray) -> tuple[float, float]:
    """Both efficiency bounds; NaN for an operator that has none."""
    try:
        limits = efficiency(problem, stationary)
    except ValueError:
        return np.nan, np.nan
    return limits.unknown, limits.known
