"""The tasks of ``gqlab rates``: what is measured on one Garnet, each part of it by itself.

Tuning runs, test runs and those for the error that remains have seeds of their own: :mod:`gqlab.studies.rates.design`.
A task uses one core; others run beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gqlab.algorithms import Algorithm
from gqlab.studies.rates.choices import choose, edges
from gqlab.studies.rates.design import SCHEDULES, GarnetDraw, Search, TuningGrid
from gqlab.studies.rates.runs import Cohort, exact_descent, floors, samples_needed, stages
from gqlab.support.checks import FloatArray

#: What is added to 70 + 10s for the seed of tuning runs, of test runs and of those for the error that remains.
TUNING, TEST, REMAINING = 0, 1, 2


def cohort(draw: GarnetDraw, purpose: int) -> Cohort:
    """The problem with its θ_0, and the seed of these runs."""
    return Cohort(*draw.build(), 70 + 10 * draw.seed + purpose, threads=1)


def schedules_of(name: str) -> list[str]:
    """The theorems' schedules for an algorithm."""
    return [title for title, law in SCHEDULES.items() if law.algorithm == name]


def tuned(draw: GarnetDraw, grid: TuningGrid, name: str, search: Search) -> dict[str, Any]:
    """An algorithm with the setting that is chosen for each ε, and the theorems' schedules that begin at such a one.

    ``samples`` has one row for the former and one for each of ``schedules_of(name)``; ``chosen`` numbers the grid.
    """
    tuning, test = cohort(draw, TUNING), cohort(draw, TEST)
    epsilons = _start(tuning) * np.array(search.fractions)
    algorithms = grid.candidates()[name]
    plan = stages(search.budget, search.tuning_runs, search.watch_every)
    needed = samples_needed(tuning, algorithms, search.tuning_margin * epsilons, plan)
    best = choose(needed, np.asarray(edges(algorithms).any(axis=0)))
    rows = [_tested(test, [algorithms[j] if j >= 0 else None for j in best], epsilons, search)]
    first = best[search.schedule_margin]
    for title in schedules_of(name):
        scales = epsilons / epsilons[0]
        settings = [SCHEDULES[title].at(algorithms[first], x) if first >= 0 else None for x in scales]
        rows.append(_tested(test, settings, epsilons, search))
    return {"chosen": best, "samples": np.array(rows)}


def untuned(draw: GarnetDraw, algorithm: Algorithm, search: Search) -> dict[str, Any]:
    """An algorithm with one setting for every ε."""
    test = cohort(draw, TEST)
    epsilons = _start(test) * np.array(search.fractions)
    member = algorithm.for_problem(test.problem)
    return {"samples": _tested(test, [member] * len(epsilons), epsilons, search)}


def exact(draw: GarnetDraw, etas: Sequence[float], fractions: Sequence[float], n_steps: int) -> dict[str, Any]:
    """Gradient descent with the exact gradient."""
    run = cohort(draw, TEST)
    epsilons = _start(run) * np.array(fractions)
    return {"steps": exact_descent(run.problem, run.theta0, np.array(etas), epsilons, n_steps)}


def remaining(
    draw: GarnetDraw, algorithms: Sequence[Algorithm], n_samples: int, n_runs: int, watch_every: int
) -> dict[str, Any]:
    """The error that remains of runs from a stationary point, for each algorithm."""
    run = cohort(draw, REMAINING)
    at_rest = run._replace(theta0=run.problem.exact.stationary_point(run.theta0))
    return {"floors": floors(at_rest, algorithms, n_samples, n_runs, watch_every)}


def _start(run: Cohort) -> float:
    """‖∇J(θ_0)‖², of which ε is a fraction."""
    return float((run.problem.exact.gradient(run.theta0) ** 2).sum())


def _tested(run: Cohort, plan: Sequence[Algorithm | None], epsilons: FloatArray, search: Search) -> FloatArray:
    """The samples that setting k of the plan needs for ε_k; NaN if there is none, or it does not reach ε."""
    distinct = list(dict.fromkeys(a for a in plan if a is not None))
    out = np.full(len(epsilons), np.nan)
    if distinct:
        targets = np.array([[e if a == b else np.inf for e, b in zip(epsilons, plan, strict=True)] for a in distinct])
        budget = stages(search.budget, search.test_runs, search.watch_every)
        needed = samples_needed(run, distinct, targets, budget, best_only=False)
        for k, algorithm in enumerate(plan):
            if algorithm is not None:
                out[k] = needed[distinct.index(algorithm), k]
    return out
