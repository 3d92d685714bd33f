"""Choosing step sizes and schedules by the theorem.

Every needed condition (c_0 ≤ 1/8 among them) has the form ``left ≤ right`` with a left side that rises with η_θ and, in
log η_ω, is convex (a sum of positive powers). So the η_ω that go with an η_θ form an interval, and it shrinks as η_θ
grows: the largest η_θ is found by bisection. The bound is, but for 1 − (1 − ½λ_Cη_ω)ᴹ, a sum of positive powers too,
hence convex in the logarithms of (M, η_θ, η_ω): searching one variable inside another finds its least value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gqlab.algorithms import Algorithm
from gqlab.problems.problem import Problem
from gqlab.support import checks
from gqlab.support.checks import FloatArray
from gqlab.theory import bound as bounds
from gqlab.theory.conditions import coefficients, needed
from gqlab.theory.constants import Constants, corrected, printed
from gqlab.theory.inputs import checked
from gqlab.theory.practical import Practical, mean_dynamics_step_sizes

#: η_ω is sought between these: smaller ones underflow in the formulas.
SMALLEST_STEP = 1e-60

#: The largest batch that a schedule may have.
MOST_SAMPLES = 1e40

GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True)
class StepSizes:
    """A pair that satisfies every needed condition.

    ``bound`` is the bound at T → ∞; ``moves_float64`` says whether a step of this size, times the largest ‖g‖ = 3G,
    changes a float64 parameter of size R at all.
    """

    eta_theta: float
    eta_omega: float
    batch_size: int
    radius: float
    version: str
    bound: float
    moves_float64: bool
    practical: Practical | None

    def __str__(self) -> str:
        return f"{self.line()}\n{_beside(self.practical)}"

    def line(self) -> str:
        """The pair and where it comes from, in one line."""
        note = "" if self.moves_float64 else "; such a step does not change a float64 parameter of size R"
        return (
            f"η_θ = {self.eta_theta:.4g}, η_ω = {self.eta_omega:.4g} for M = {self.batch_size:.6g} and "
            f"R = {self.radius:g} ({self.version} conditions; bound for T → ∞: {self.bound:.4g}){note}"
        )


@dataclass(frozen=True)
class Schedule:
    """T, M and the step sizes with the least TM for which the conditions hold and the bound is at most ε."""

    epsilon: float
    n_epochs: int
    batch_size: int
    eta_theta: float
    eta_omega: float
    radius: float
    version: str
    bound: float
    moves_float64: bool
    practical: Practical | None

    @property
    def samples(self) -> int:
        return self.n_epochs * self.batch_size

    def __str__(self) -> str:
        return f"{self.line()}\n{_beside(self.practical)}"

    def line(self) -> str:
        """The schedule in one line."""
        note = "" if self.moves_float64 else "; such a step does not change a float64 parameter of size R"
        return (
            f"ε = {self.epsilon:g}: {float(self.samples):.3g} samples, T = {float(self.n_epochs):.3g}, "
            f"M = {float(self.batch_size):.3g}, η_θ = {self.eta_theta:.3g}, η_ω = {self.eta_omega:.3g} "
            f"({self.version} bound {self.bound:.4g}){note}"
        )


def _beside(practical: Practical | None) -> str:
    return "mean dynamics: no stationary point found" if practical is None else f"mean dynamics: {practical}"


def constants_of(problem: Problem, radius: float, version: str) -> Constants:
    """The constants of a version: "corrected" or "printed"."""
    radius = checks.number("radius", radius, above=0, infinite=True)
    return corrected(problem, radius) if version == "corrected" else printed(problem, radius)


@checked
def step_sizes(problem: Problem, batch_size: int, *, radius: float, version: str = "corrected") -> StepSizes:
    """Of all pairs that satisfy every condition, the one with the largest η_θ; of several η_ω the smallest bound.

    Parameters
    ----------
    problem : Problem
    batch_size : int
        M.
    radius : float
        R, finite.
    version : "corrected" or "printed"
        Which version of the conditions and the bound.

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> mdp = gq.FiniteMDP([[[0.75, 0.25]], [[0.25, 0.75]]], [[0.03], [0.0]], discount=0.1)
    >>> problem = gq.Problem(mdp, np.eye(2)[:, None, :], target=gq.FixedPolicy([[1.0], [1.0]]))
    >>> pair = gq.theory.step_sizes(problem, batch_size=10_000, radius=1.0)
    >>> f"{pair.eta_theta:.3g}"  # c_0 ≤ 1/8 is what binds; lr-3, which only implies it, would stop at 3.33e-05
    '0.000173'
    """
    M = checks.integer("batch_size", batch_size, least=1)
    c = constants_of(problem, radius, version)
    eta_theta = largest_admissible(c, M)
    low, high = eta_omega_interval(c, eta_theta, M)

    def limit(log_eta_omega: float) -> float:
        return _limit_bound(c, eta_theta, math.exp(log_eta_omega), M)

    eta_omega = math.exp(_golden(limit, math.log(low), math.log(high)))
    eta_omega = min(max(eta_omega, low), high)
    return StepSizes(
        eta_theta, eta_omega, M, c.R, version, _limit_bound(c, eta_theta, eta_omega, M), _moves(c, eta_theta),
        mean_dynamics_step_sizes(problem),
    )  # fmt: skip


@checked
def schedule(
    problem: Problem, epsilon: float, *, radius: float, version: str = "corrected",
    theta0: ArrayLike | None = None, omega0: ArrayLike | None = None,
) -> Schedule:  # fmt: skip
    """The T, M and step sizes with the smallest TM for which the conditions hold and the bound is at most ε.

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> mdp = gq.FiniteMDP([[[0.75, 0.25]], [[0.25, 0.75]]], [[0.03], [0.0]], discount=0.1)
    >>> problem = gq.Problem(mdp, np.eye(2)[:, None, :], target=gq.FixedPolicy([[1.0], [1.0]]))
    >>> plan = gq.theory.schedule(problem, epsilon=0.05, radius=1.0, theta0=[0.5, -0.5])
    >>> plan.bound <= 0.05
    True
    """
    epsilon = checks.number("epsilon", epsilon, above=0)
    c = constants_of(problem, radius, version)
    start = start_terms(problem, theta0, omega0, c.R)
    practical = mean_dynamics_step_sizes(problem, theta0)
    T, M, eta_theta, eta_omega, total = least_plan(c, epsilon, start)
    return Schedule(epsilon, T, M, eta_theta, eta_omega, c.R, version, total, _moves(c, eta_theta), practical)


def least_plan(c: Constants, epsilon: float, start: tuple[float, float]) -> tuple[int, int, float, float, float]:
    """(T, M, η_θ, η_ω, bound) with the smallest TM; ``start`` is (J(θ_0), ‖ω_0 − ω*(θ_0)‖²)."""
    J0, tracking0 = start

    def cost(log_M: float) -> float:
        M = math.exp(log_M)
        return _best(c, M, lambda eta, eta_omega: _cost(c, eta, eta_omega, M, epsilon, J0, tracking0))[0]

    log_M = _golden(cost, 0.0, math.log(MOST_SAMPLES))
    if cost(log_M) >= _INFEASIBLE:
        raise ValueError(f"epsilon is {epsilon:g}: no batch of up to {MOST_SAMPLES:g} samples brings the bound there")
    T_real = math.exp(cost(log_M) - log_M)
    plans = []
    for T in {max(1, math.floor(T_real)), math.ceil(T_real)}:
        M = _least_batch(c, T, epsilon, J0, tracking0, log_M)
        if M is not None:
            total, eta_theta, eta_omega = _best_bound(c, float(M), T, J0, tracking0)
            plans.append((T, M, eta_theta, eta_omega, total))
    if not plans:
        raise ValueError(f"epsilon is {epsilon:g}: no plan of up to {MOST_SAMPLES:g} samples a batch was found")
    return min(plans, key=lambda plan: plan[0] * plan[1])


def start_terms(
    problem: Problem, theta0: ArrayLike | None, omega0: ArrayLike | None, radius: float,
    radius_omega: float | None = None,
) -> tuple[float, float]:  # fmt: skip
    """J(θ_0) and ‖ω_0 − ω*(θ_0)‖²; None: zeros, and for ``radius_omega`` the radius of θ."""
    own = radius if radius_omega is None else radius_omega
    theta, omega = (point[None] for point in start_points(problem, theta0, omega0, radius, own))
    return float(problem.exact.mspbe(theta)[0]), float(((omega - problem.exact.omega_star(theta)) ** 2).sum())


def constant_steps(algorithm: Algorithm) -> tuple[float, float]:
    """(η_θ, η_ω) as numbers: the analysis is for constant steps."""
    return (
        checks.number("eta_theta", algorithm.eta_theta, above=0),
        checks.number("eta_omega", algorithm.eta_omega, above=0),
    )


def start_points(
    problem: Problem, theta0: ArrayLike | None, omega0: ArrayLike | None, radius: float, radius_omega: float
) -> tuple[FloatArray, FloatArray]:
    """θ_0 and ω_0, zeros by default; ``ValueError`` for a point outside its ball."""
    points = []
    for name, value, R in (("theta0", theta0, radius), ("omega0", omega0, radius_omega)):
        point = np.zeros(problem.dim) if value is None else checks.array(name, value, (problem.dim,))
        if np.linalg.norm(point) > R * (1 + 1e-12):
            raise ValueError(f"{name} has norm {np.linalg.norm(point):.6g}, outside the ball of radius {R:g}")
        points.append(point)
    return points[0], points[1]


def largest_admissible(c: Constants, M: float) -> float:
    """The largest η_θ for which some η_ω satisfies every needed condition."""
    low, high = math.log(SMALLEST_STEP), 0.0
    if eta_omega_interval(c, math.exp(low), M)[0] > eta_omega_interval(c, math.exp(low), M)[1]:
        raise ValueError(f"no step sizes above {SMALLEST_STEP:g} satisfy the conditions")
    for _ in range(100):
        middle = (low + high) / 2
        interval = eta_omega_interval(c, math.exp(middle), M)
        low, high = (middle, high) if interval[0] <= interval[1] else (low, middle)
    return math.exp(low)


def eta_omega_interval(c: Constants, eta_theta: float, M: float) -> tuple[float, float]:
    """The η_ω that satisfy every needed condition with this η_θ: from ``low`` to ``high``, none if low > high."""
    low, high = SMALLEST_STEP, 1.0
    for label, (constant, linear, inverse, right) in coefficients(c, eta_theta, M).items():
        if needed(c, label):
            # Slightly below the right side, as a margin for rounding.
            ends = _sublevel(linear, inverse * eta_theta**2, right * (1 - 1e-12) - constant)
            low, high = max(low, ends[0]), min(high, ends[1])
    return (low, high) if eta_theta <= 1 else (1.0, 0.0)


def _sublevel(A: float, B: float, most: float) -> tuple[float, float]:
    """The y > 0 with A y + B/y² ≤ most: an interval, since the left side is convex; none if low > high.

    Newton's method from outside the interval approaches an end of it monotonically, since the left side is convex.
    """
    if most < 0 or (most == 0 and (A > 0 or B > 0)):
        return 1.0, 0.0
    if A == 0 or B == 0:
        low = math.sqrt(B / most) if B > 0 else 0.0
        return low, most / A if A > 0 else math.inf
    valley = (2 * B / A) ** (1 / 3)
    if 1.5 * A * valley > most:
        return 1.0, 0.0
    ends = []
    for y in (math.sqrt(B / most), most / A):
        for _ in range(200):
            rise = A - 2 * B / y**3
            step = (A * y + B / y**2 - most) / rise if rise else 0.0
            y -= step
            if abs(step) <= 1e-15 * y:
                break
        ends.append(y)
    return min(ends[0], valley), max(ends[1], valley)


def _golden(function: Callable[[float], float], low: float, high: float, steps: int = 45) -> float:
    """The least point of a function with one valley."""
    a, b = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    f_a, f_b = function(a), function(b)
    for _ in range(steps):
        if f_a <= f_b:
            high, b, f_b = b, a, f_a
            a = high - GOLDEN * (high - low)
            f_a = function(a)
        else:
            low, a, f_a = a, b, f_b
            b = low + GOLDEN * (high - low)
            f_b = function(b)
    return a if f_a <= f_b else b


def _terms(c: Constants) -> Callable[..., dict[str, Any]]:
    return bounds.as_printed if c.version == "printed" else bounds.corrected


def _limit_bound(c: Constants, eta_theta: float, eta_omega: float, M: float) -> float:
    return float(sum(_terms(c)(c, eta_theta, eta_omega, M, 1.0, 0.0, 0.0).values()))


def _split(
    c: Constants, eta_theta: FloatArray | float, eta_omega: FloatArray | float, M: float, J0: float, tracking0: float
) -> tuple[FloatArray, FloatArray]:
    """The bound as per_T/T + rest."""
    terms = _terms(c)(c, eta_theta, eta_omega, M, 1.0, J0, tracking0)
    per_T = terms["initialisation"] + terms["tracking: start"]
    rest = terms["bias"] + terms["variance"] + terms["tracking: noise"] + terms["tracking: reference"]
    return per_T, rest


#: Costs above this mark points that miss ε, ordered by how far they miss it.
_INFEASIBLE = 1e6


def _best(c: Constants, M: float, cost: Callable[[float, float], float]) -> tuple[float, float, float]:
    """The least cost(η_θ, η_ω) over the pairs that satisfy the conditions, and its step sizes."""

    def inner(log_eta_theta: float) -> tuple[float, float]:
        eta_theta = math.exp(log_eta_theta)
        low, high = eta_omega_interval(c, eta_theta, M)
        if low > high:
            return math.inf, 1.0
        best = _golden(lambda y: cost(eta_theta, math.exp(y)), math.log(low), math.log(high), 40)
        eta_omega = min(max(math.exp(best), low), high)
        return cost(eta_theta, eta_omega), eta_omega

    top = math.log(largest_admissible(c, M))
    log_eta_theta = _golden(lambda y: inner(y)[0], math.log(SMALLEST_STEP), top)
    if inner(top)[0] <= inner(log_eta_theta)[0]:
        log_eta_theta = top
    value, eta_omega = inner(log_eta_theta)
    return value, math.exp(log_eta_theta), eta_omega


def _best_bound(c: Constants, M: float, T: float, J0: float, tracking0: float) -> tuple[float, float, float]:
    """The least bound for these M and T, and its step sizes."""
    terms = _terms(c)
    return _best(c, M, lambda eta, eta_omega: float(sum(terms(c, eta, eta_omega, M, T, J0, tracking0).values())))


def _least_batch(c: Constants, T: int, epsilon: float, J0: float, tracking0: float, log_M: float) -> int | None:
    """The smallest M for which T epochs bring the bound to ε; ``log_M`` is near it."""

    def enough(log_batch: float) -> bool:
        return _best_bound(c, math.exp(log_batch), T, J0, tracking0)[0] <= epsilon

    high = log_M
    while not enough(high):
        high += 1.0
        if high > math.log(MOST_SAMPLES):
            return None
    low = high
    while low > 0 and enough(low):
        low = max(0.0, low - 1.0)
    while high - low > 1e-6 and math.ceil(math.exp(high)) - math.floor(math.exp(low)) > 1:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return max(1, math.ceil(math.exp(high)))


def _cost(
    c: Constants, eta_theta: float, eta_omega: float, M: float, epsilon: float, J0: float, tracking0: float
) -> float:
    """log(TM) for the least T, or, where no T reaches ε, how far the rest of the bound misses it."""
    per_T, rest = _split(c, eta_theta, eta_omega, M, J0, tracking0)
    if rest >= epsilon:
        return _INFEASIBLE + math.log(float(rest) / epsilon)
    return math.log(max(float(per_T) / (epsilon - float(rest)), 1.0)) + math.log(M)


def _moves(c: Constants, eta_theta: float) -> bool:
    """Whether the largest step, η_θ·3G, changes a float64 number of the size of R."""
    return bool(c.R + eta_theta * 3 * c.G > c.R)
