"""Rates, measured: how many samples Greedy-GQ and VR-Greedy-GQ need to bring E‖∇J(θ_ξ)‖² to ε.

For each problem and each ε the step sizes (and M) that need the fewest samples are chosen on tuning runs; the samples
that count are those of other runs with that choice. ε is a fraction of ‖∇J(θ_0)‖². Beside them: the theorems' own
schedules, the family of estimators with its defaults, and gradient descent with the exact gradient.
:mod:`gqlab.studies.rates.design` has every number that is chosen, :mod:`gqlab.studies.rates.runs` the runs,
:mod:`gqlab.studies.rates.statistics` what is made of them.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gqlab.algorithms import Algorithm
from gqlab.problems.problem import Problem
from gqlab.studies.rates.design import CLAIMED_ETA, CLAIMED_SIZES, MEMBERS, QUICK, SCHEDULES, Family, RateSettings
from gqlab.studies.rates.runs import Cohort, exact_descent, floors, samples_needed, stages
from gqlab.studies.rates.statistics import FittedSlope, choose, edges, local_slopes, paired_slope, ratios, slope
from gqlab.support.checks import FloatArray
from gqlab.support.files import check_writable
from gqlab.support.plain_json import plain

#: Axes of the grids, in the order of :func:`edges`.
AXES = ("η_θ", "η_ω/η_θ", "M")
#: What an upper bound says of the slope of log samples against log 1/ε.
TUNED = {
    "GreedyGQ": "at most 3 (published then), 2 (Theorem 4)",
    "VRGreedyGQ": "at most 2 (the paper), 5/3 (Corollary 2)",
}
#: What it says of the error that remains: of its level, for steps that its conditions admit, not of a slope.
REMAINS = "the bounds have C/M, for far smaller steps"


@dataclass
class FamilyRates:
    """What was measured on one family; samples are (n_problems, n_fractions), NaN where ε was not reached."""

    name: str
    n_problems: int
    samples: dict[str, FloatArray] = field(default_factory=dict)
    exact: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))  # (n_problems, n_exact_fractions)
    chosen: dict[str, list[list[str]]] = field(default_factory=dict)
    n_tried: dict[str, int] = field(default_factory=dict)
    at_edge: dict[str, dict[str, float]] = field(default_factory=dict)  # shares of the choices, by axis and of any
    floors: FloatArray = field(default_factory=lambda: np.zeros((0, 0, 0)))  # (n_problems, n_etas, 1 + n_batch_sizes)
    slopes: list[FittedSlope] = field(default_factory=list)  # of log samples against log 1/ε
    floor_slopes: list[FittedSlope] = field(default_factory=list)  # of the log of what remains against log M
    local: dict[str, list[FittedSlope]] = field(default_factory=dict)
    ratios: list[FittedSlope] = field(default_factory=list)


@dataclass
class MeasuredRates:
    """Everything that was measured."""

    settings: RateSettings
    seed: int
    quick: bool
    families: list[FamilyRates] = field(default_factory=list)
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON; NaN is None."""
        return dict(plain(self))


def main(out: Path, quick: bool = False, seed: int = 0) -> tuple[MeasuredRates, str]:
    """Run the experiment and write ``rates.json``, ``.md`` and ``.png`` under ``out``; quick: ``rates-quick.*``.

    The numbers, and the tables as text.
    """
    from gqlab.studies.rates.report import write

    check_writable(Path(out))
    measured = measure(QUICK if quick else RateSettings(), seed, quick)
    return measured, write(measured, Path(out))


def measure(settings: RateSettings, seed: int = 0, quick: bool = False, threads: int | None = None) -> MeasuredRates:
    """The whole experiment."""
    began = time.perf_counter()
    out = MeasuredRates(settings, seed, quick)
    for family in settings.families:
        each = []
        for k in range(family.n_problems):
            each.append(_measure_problem(family, k, settings, seed, threads))
            spent = time.perf_counter() - began
            print(f"gqlab rates: {family.name} {k + 1} of {family.n_problems}, {spent:.0f} s", file=sys.stderr)
        out.families.append(_gather(family, each, settings))
    out.seconds = time.perf_counter() - began
    return out


@dataclass
class _One:
    """One problem's numbers."""

    samples: dict[str, FloatArray]
    chosen: dict[str, list[int]]
    exact: FloatArray
    floors: FloatArray


def _measure_problem(family: Family, k: int, settings: RateSettings, seed: int, threads: int | None) -> _One:
    problem, theta0 = family.problem(k, seed)
    start = float((problem.exact.gradient(theta0) ** 2).sum())
    epsilons = start * np.array(settings.fractions)
    tuning, test = (Cohort(problem, theta0, 70 + 10 * seed + more, threads) for more in (0, 1))
    samples: dict[str, FloatArray] = {}
    chosen: dict[str, list[int]] = {}
    first: dict[str, Algorithm] = {}
    for name, algorithms in family.grid.candidates().items():
        needed = samples_needed(
            tuning,
            algorithms,
            settings.tuning_margin * epsilons,
            stages(settings.budget, settings.tuning_runs, settings.watch_every),
        )
        best = choose(needed, np.asarray(edges(algorithms).any(axis=0)))
        chosen[name] = best.tolist()
        samples[name] = _tested(test, [algorithms[j] if j >= 0 else None for j in best], epsilons, settings)
        if best[settings.schedule_margin] >= 0:
            first[name] = algorithms[best[settings.schedule_margin]]
    for name, law in SCHEDULES.items():
        scales = epsilons / epsilons[0]
        plan = [law.at(first[law.algorithm], x) if law.algorithm in first else None for x in scales]
        samples[name] = _tested(test, plan, epsilons, settings)
    for name in settings.members:
        member = MEMBERS[name].for_problem(problem)
        samples[name] = _tested(test, [member] * len(epsilons), epsilons, settings)
    exact = exact_descent(
        problem, theta0, np.array(settings.exact_etas), start * np.array(settings.exact_fractions), settings.exact_steps
    )
    return _One(samples, chosen, exact, _floors(problem, theta0, settings, seed, threads))


def _tested(cohort: Cohort, plan: list[Algorithm | None], epsilons: FloatArray, settings: RateSettings) -> FloatArray:
    """The samples that setting k of the plan needs for ε_k; NaN where there is none or it does not get there."""
    distinct = list(dict.fromkeys(a for a in plan if a is not None))
    out = np.full(len(epsilons), np.nan)
    if distinct:
        targets = np.array([[e if a == b else np.inf for e, b in zip(epsilons, plan, strict=True)] for a in distinct])
        budget = stages(settings.budget, settings.test_runs, settings.watch_every)
        needed = samples_needed(cohort, distinct, targets, budget, best_only=False)
        for k, algorithm in enumerate(plan):
            if algorithm is not None:
                out[k] = needed[distinct.index(algorithm), k]
    return out


def _floors(problem: Problem, theta0: FloatArray, settings: RateSettings, seed: int, threads: int | None) -> FloatArray:
    cohort = Cohort(problem, problem.exact.stationary_point(theta0), 72 + 10 * seed, threads)
    found = floors(
        cohort, settings.floor_algorithms(), settings.floor_samples, settings.floor_runs, settings.watch_every
    )
    return found.reshape(len(settings.floor_etas), -1)


def _gather(family: Family, each: list[_One], settings: RateSettings) -> FamilyRates:
    out = FamilyRates(family.name, family.n_problems)
    out.samples = {name: np.array([one.samples[name] for one in each]) for name in each[0].samples}
    out.exact = np.array([one.exact for one in each])
    out.floors = np.array([one.floors for one in each])
    for name, algorithms in family.grid.candidates().items():
        picks = np.array([one.chosen[name] for one in each])
        out.chosen[name] = [[repr(algorithms[j]) if j >= 0 else "" for j in row] for row in picks]
        out.n_tried[name] = len(algorithms)
        ends = edges(algorithms)[:, picks[picks >= 0]]
        out.at_edge[name] = {axis: float(row.mean()) for axis, row in zip(AXES, ends, strict=False)}
        out.at_edge[name]["any"] = float(ends.any(axis=0).mean())
    _fit(out, settings)
    return out


def _fit(out: FamilyRates, settings: RateSettings) -> None:
    """All slopes, local slopes and paired differences of a family."""
    x, exact_x = -np.log(settings.fractions), -np.log(settings.exact_fractions)
    greedy, vr = out.samples["GreedyGQ"], out.samples["VRGreedyGQ"]
    out.slopes = [slope(f"{name}, tuned", x, out.samples[name], theory) for name, theory in TUNED.items()]
    out.slopes.append(paired_slope("VR-Greedy-GQ less Greedy-GQ, tuned, paired", x, vr, greedy))
    out.slopes += [slope(name, x, out.samples[name], f"at most {law.samples}") for name, law in SCHEDULES.items()]
    out.slopes += [slope(f"{name}, defaults", x, out.samples[name], "none known") for name in settings.members]
    out.slopes.append(slope("exact gradient", exact_x, out.exact, "at least 1"))
    out.local = {name: local_slopes(x, samples) for name, samples in out.samples.items()}
    out.local["exact"] = local_slopes(exact_x, out.exact)
    out.ratios = ratios(vr, greedy)
    out.floor_slopes = _floor_slopes(out.floors, settings)


def _floor_slopes(found: FloatArray, settings: RateSettings) -> list[FittedSlope]:
    """What remains against M, where an epoch leaves its batch unsolved (Mη_θ ≤ 10) and where it solves it (≥ 100).

    And over the range that the paper's claim is about, with its η_θ.
    """
    M = np.array(settings.floor_batch_sizes, dtype=float)
    out = []
    for label in ("Mη_θ ≤ 10", "Mη_θ ≥ 100"):
        for j, eta in enumerate(settings.floor_etas):
            kept = M * eta <= 10 * (1 + 1e-9) if label == "Mη_θ ≤ 10" else M * eta >= 100 * (1 - 1e-9)
            if kept.sum() >= 2:
                out.append(slope(f"{label}, η_θ = {eta:g}", np.log(M[kept]), found[:, j, 1:][:, kept], REMAINS))
    first, last = CLAIMED_SIZES
    if CLAIMED_ETA in settings.floor_etas:
        kept, j = (first <= M) & (last >= M), settings.floor_etas.index(CLAIMED_ETA)
        name = f"M = {first} … {last}, η_θ = {CLAIMED_ETA:g}"
        out.append(slope(name, np.log(M[kept]), found[:, j, 1:][:, kept], REMAINS))
    return out
