"""The least number of samples for ε, and how it grows as ε falls: each bound, optimised over all free parameters.

The slope of the paper's theorem approaches 2 from below: c_0 ≤ 1/8 itself, used here where lr-3 has η_θM ≤ const, lets
η_θM grow like a logarithm.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gqlab.problems.problem import Problem
from gqlab.support.checks import FloatArray
from gqlab.theory.assumptions import FAILS, HOLDS, UNKNOWN, omega_star_inside
from gqlab.theory.choose import least_plan, schedule, start_terms
from gqlab.theory.constants import Constants, corrected
from gqlab.theory.greedy import best_greedy, samples_for
from gqlab.theory.search import least_samples
from gqlab.theory.sharp import Sharp
from gqlab.theory.theorems import leaves

#: The values of ε, over six decades.
EPSILONS = tuple(10.0**-k for k in range(2, 9))

#: The theorems by name: (theorem, order), and the exponent that is proved.
CASES = {
    "VR-Greedy-GQ, the paper's theorem, corrected": ("corrected", 1, "2"),
    "VR-Greedy-GQ, interior": ("interior", 2, "5/3"),
    "VR-Greedy-GQ, interior, ω* Lipschitz alone": ("interior", 1, "7/4"),
    "VR-Greedy-GQ, projected": ("projected", 2, "2"),
    "Greedy-GQ": ("greedy", 2, "2"),
    "the plug-in": ("plug-in", 2, "1"),
}


@dataclass(frozen=True)
class Growth:
    """The least samples at each ε, and the local slopes of log samples against log 1/ε."""

    name: str
    proved: str
    epsilons: tuple[float, ...]
    samples: tuple[float, ...]
    note: str = ""  # which part of the theorem is not shown here

    @property
    def slopes(self) -> FloatArray:
        return np.diff(np.log(self.samples)) / -np.diff(np.log(self.epsilons))

    def __str__(self) -> str:
        counts = ", ".join(f"{n:.3g}" for n in self.samples)
        slopes = ", ".join(f"{slope:.3f}" for slope in self.slopes)
        return f"{self.name}: samples {counts}; slopes {slopes} (proved: {self.proved}{self.note and f'; {self.note}'})"


def one_ball_note(problem: Problem, c: Constants) -> str:
    """Whether W ≤ R, which the paper's theorem needs, holds here; empty if it is proved."""
    inside = omega_star_inside(problem, c)
    words = {FAILS: "does not apply here, W > R", UNKNOWN: "W ≤ R is not shown here"}
    return "" if inside.status == HOLDS else f"{words[inside.status]}: {inside.detail}"


def stays_note(probabilities: Iterable[float]) -> str:
    """How likely runs are to come near the sphere, after which nothing is counted; empty if they cannot."""
    most = max(probabilities)
    if most == 0:
        return ""
    return "that runs stay inside is not shown" if most == 1 else f"runs leave with a probability of at most {most:.3g}"


def growth(
    problem: Problem, c: Sharp, start: tuple[float, float], epsilons: tuple[float, ...] = EPSILONS,
    names: tuple[str, ...] = tuple(CASES), theta0_norm: float = 0.0,
) -> tuple[Growth, ...]:  # fmt: skip
    """One entry for each case; ``start`` is (J(θ_0), ‖ω_0 − ω*(θ_0)‖²), ``theta0_norm`` is ‖θ_0‖.

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> from gqlab.theory.sharp import sharp_constants
    >>> mdp = gq.FiniteMDP([[[0.75, 0.25]], [[0.25, 0.75]]], [[0.03], [0.0]], discount=0.1)
    >>> problem = gq.Problem(mdp, np.eye(2)[:, None, :], target=gq.FixedPolicy([[1.0], [1.0]]))
    >>> names = ("VR-Greedy-GQ, interior", "Greedy-GQ")
    >>> found = growth(problem, sharp_constants(problem, 1.0), (0.1, 0.1), (1e-8, 1e-10), names)
    >>> [f"{case.slopes[0]:.2f}" for case in found]
    ['1.67', '2.00']
    """
    out = []
    for name in names:
        theorem, order, proved = CASES[name]
        if theorem == "corrected":
            own = corrected(problem, c.R)
            plans = [least_plan(own, epsilon, start) for epsilon in epsilons]
            samples, note = [float(T) * M for T, M, *_ in plans], one_ball_note(problem, own)
        elif theorem == "greedy":
            counts = [greedy_plan(problem, c, epsilon, start, theta0_norm) for epsilon in epsilons]
            samples, note = [count.samples for count in counts], stays_note(count.leaves for count in counts)
        else:
            found = [
                least_samples(c, theorem, epsilon, start=start, order=order, theta0_norm=theta0_norm)
                for epsilon in epsilons
            ]
            samples = [plan.samples for plan in found]
            note = "" if theorem in ("projected", "plug-in") else stays_note(plan.leaves or 0.0 for plan in found)
        out.append(Growth(name, proved, epsilons, tuple(samples), note))
    return tuple(out)


class GreedyPlan(NamedTuple):
    """Steps of Greedy-GQ that bring its bound to ε, and how likely the run is to come near the sphere with them."""

    samples: float
    eta_theta: float
    eta_omega: float
    bound: float
    leaves: float


def greedy_plan(
    problem: Problem, c: Sharp, epsilon: float, start: tuple[float, float], theta0_norm: float
) -> GreedyPlan:
    """The fewest samples of Greedy-GQ, with their steps."""
    n = samples_for(problem, c, epsilon, start, theta0_norm)
    found, eta, total = best_greedy(problem, c, n, start=start, theta0_norm=theta0_norm)
    return GreedyPlan(n, eta, eta / found.x, total, leaves(c, total * found.rho * n * eta, c.G * eta, n, theta0_norm))


@dataclass(frozen=True)
class Requirement:
    """What it takes to bring one bound to ε."""

    epsilon: float
    samples: float
    bound: float
    detail: str
    note: str = ""  # which part of the theorem is not shown here

    def __str__(self) -> str:
        return f"ε = {self.epsilon:g}: {self.samples:.3g} samples ({self.detail}{self.note and f'; {self.note}'})"


def requirements(
    problem: Problem, algorithm: str, epsilon: float, c: Sharp, theta0: FloatArray
) -> dict[str, Requirement]:
    """The least numbers of samples that bring the bound of each theorem to ε."""
    start, norm = start_terms(problem, theta0, None, c.R, c.R_omega), float(np.linalg.norm(theta0))
    if algorithm == "greedy-gq":
        best = greedy_plan(problem, c, epsilon, start, norm)
        pair = f"η_θ = {best.eta_theta:.3g}, η_ω = {best.eta_omega:.3g}"
        return {"greedy": Requirement(epsilon, best.samples, best.bound, pair, stays_note([best.leaves]))}
    out, one_ball = {}, one_ball_note(problem, corrected(problem, c.R))
    for version in ("printed", "corrected"):
        old = schedule(problem, epsilon, radius=c.R, version=version, theta0=theta0)
        note = "" if old.moves_float64 else "; such a step does not change a float64 parameter of size R"
        pair = f"T = {float(old.n_epochs):.3g}, M = {float(old.batch_size):.3g}, η_θ = {old.eta_theta:.3g}"
        detail = f"{pair}, η_ω = {old.eta_omega:.3g}{note}"
        out[version] = Requirement(epsilon, float(old.samples), old.bound, detail, one_ball)
    for name, theorem, order in (("interior", "interior", 2), ("interior, Lipschitz ω* alone", "interior", 1),
                                 ("projected", "projected", 2)):  # fmt: skip
        plan = least_samples(c, theorem, epsilon, start=start, order=order, theta0_norm=norm)
        pair = f"T = {plan.n_epochs:.3g}, M = {float(plan.batch_size):.3g}, η_θ = {plan.eta_theta:.3g}"
        note = "" if plan.leaves is None else stays_note([plan.leaves])
        out[name] = Requirement(epsilon, plan.samples, plan.bound, f"{pair}, η_ω = {plan.eta_omega:.3g}", note)
    plan = least_samples(c, "plug-in", epsilon)
    out["plug-in"] = Requirement(epsilon, plan.samples, plan.bound, "the minimiser of their own objective")
    return out
