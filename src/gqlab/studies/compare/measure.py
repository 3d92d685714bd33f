"""What the leaderboard computes: floors, runs, runs with other step sizes, and what solves E[δφ] = 0 instead.

Each function is a call of the study (:mod:`gqlab.studies.compare.leaderboard`): plain numbers of the runs, from which
the statistics are gathered. Every call runs on one core; others run beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gqlab.algorithms import Algorithm
from gqlab.algorithms.schedules import scaled
from gqlab.engine.cells import Cell, Settings
from gqlab.engine.memory import declared, dtype_of
from gqlab.lab.execute import execute
from gqlab.lab.floor import count_samples, floors, no_floor
from gqlab.lab.results import RunResult
from gqlab.problems.problem import Problem
from gqlab.rules.dispatch import parameters
from gqlab.rules.memory import Sizes
from gqlab.samples.tables import problem_tables
from gqlab.studies.compare.design import RADIUS, RECORD_SAMPLES, Problems, first_point
from gqlab.studies.compare.rivals import AveragedQLearning, lspi
from gqlab.support.checks import FloatArray

Moments = tuple[int, ...]


def measure_floors(problems: Problems, moments: Moments, n_runs: int) -> dict[str, Any]:
    """‖∇J‖² of the floor on the samples of every run up to each moment, (n_problems, n_moments, n_runs), and J*.

    Each is searched from θ₀ and from the exact stationary point that Newton's method reaches from there, whose J is J*.
    """
    found, J_star = [], []
    for problem, seed in zip(problems.build(), problems.seeds, strict=True):
        theta0 = first_point(problem.dim)
        stationary = problem.exact.stationary_point(theta0)
        counts = count_samples(problem, moments, seed, range(n_runs))
        starts = np.tile(np.stack([theta0, stationary]), (len(moments) * n_runs, 1, 1))
        each = floors(problem, counts.reshape(len(moments) * n_runs, -1), starts).gradient_squared
        if np.isnan(each).mean() > 0.1:
            raise ValueError(no_floor(problem, f"the samples of seed {seed}"))
        found.append(each.reshape(len(moments), n_runs))
        J_star.append(problem.exact.mspbe(stationary))
    return {"floor": np.array(found), "J_star": np.array(J_star, dtype=float)}


def measure_runs(
    problems: Problems, algorithm: Algorithm, moments: Moments, n_runs: int, n_samples: int
) -> dict[str, Any]:
    """The runs of an algorithm: ‖∇J‖² at the moments and along the way, and what a sample costs."""
    each = problems.build()
    own = [algorithm.for_problem(problem) for problem in each]
    spent: list[float] = []
    results = run_all(each, own, problems.seeds, n_runs, n_samples, spent)
    used = int(results[0].samples[-1])
    gradients = gradients_of(each, results)
    drawn = results[0].samples
    shown = np.append(drawn[1:] != drawn[:-1], True)  # of several records in an epoch the last one
    return {
        "gradient": at_moments(results, gradients, moments),
        "evaluations": float(results[0].gradient_evaluations[-1] / used),
        "bytes": max(run_bytes(problem, a, n_samples) for problem, a in zip(each, own, strict=True)),
        "diverged": sum(int(result.diverged.sum()) for result in results),
        "samples": drawn[shown].astype(float),
        "curve": np.median([g.mean(axis=0) for g in gradients], axis=0)[shown],
        "times": {"nanoseconds": nanoseconds(spent, used, n_runs, len(results))},
    }


def nanoseconds(spent: Sequence[float], n_samples: int, n_runs: int, n_results: int) -> float:
    """Of one core, a sample: seconds over all samples of all runs of all results."""
    return 1e9 * sum(spent) / (n_samples * n_runs * n_results)


def measure_factor(
    problems: Problems, algorithm: Algorithm, factor: float, moments: Moments, n_runs: int, n_samples: int
) -> dict[str, Any]:
    """‖∇J‖² at the last moment with all step sizes times a factor, (n_problems, 1, n_runs)."""
    each = problems.build()
    own = [faster(algorithm.for_problem(problem), factor) for problem in each]
    results = run_all(each, own, problems.seeds, n_runs, n_samples)
    return {"gradient": at_moments(results, gradients_of(each, results), moments[-1:])}


def measure_rivals(problems: Problems, n_samples: int, n_runs: int) -> dict[str, Any]:
    """LSPI and averaged Q-learning, beside the stationary point of the same samples."""
    each = problems.build()
    theta0 = first_point(each[0].dim)
    counts = [
        count_samples(p, [n_samples], seed, range(n_runs))[0] for p, seed in zip(each, problems.seeds, strict=True)
    ]
    own = [AveragedQLearning(radius=RADIUS).for_problem(problem) for problem in each]
    averaged = [np.asarray(r.theta[:, -1]) for r in run_all(each, own, problems.seeds, n_runs, n_samples)]
    iterated = [lspi(p, c, theta0) for p, c in zip(each, counts, strict=True)]
    starts = [np.tile(np.stack([theta0, p.exact.stationary_point(theta0)]), (n_runs, 1, 1)) for p in each]
    floor = [floors(p, c, s).theta for p, c, s in zip(each, counts, starts, strict=True)]
    share = float(np.mean([i.converged.mean() for i in iterated]))
    return {
        "stationary point of the samples' J": _rival(each, floor, 1.0),
        "LSPI (LSTD-Q, iterated)": _rival(each, [i.theta for i in iterated], share),
        "averaged Q-learning": _rival(each, averaged, 1.0),
    }


def _rival(problems: Sequence[Problem], thetas: Sequence[FloatArray], converged: float) -> dict[str, Any]:
    pairs = list(zip(problems, thetas, strict=True))
    return {
        "gradient": np.array([(p.exact.gradient(th) ** 2).sum(axis=-1)[None] for p, th in pairs]),
        "mspbe": np.array([p.exact.mspbe(th).mean() for p, th in pairs]),
        "value": np.array([np.mean(p.exact.value(th) @ weight_of(p)) for p, th in pairs]),
        "converged": converged,
    }


# --- The parts ------------------------------------------------------------------------------------------------------


def run_all(
    problems: Sequence[Problem], algorithms: Sequence[Algorithm], seeds: Sequence[int], n_runs: int, n_samples: int,
    spent: list[float] | None = None,
) -> list[RunResult]:  # fmt: skip
    """Algorithm k on problem k."""
    theta0 = first_point(problems[0].dim)
    cells = [Cell(k, algorithm, seeds[k], n_runs, theta0=theta0) for k, algorithm in enumerate(algorithms)]
    every = max(1, RECORD_SAMPLES // algorithms[0].samples_per_update)
    settings = Settings(n_samples, every, threads=1, progress=False, spent=spent)
    return execute(problems, cells, settings)


def gradients_of(problems: Sequence[Problem], results: Sequence[RunResult]) -> list[FloatArray]:
    """‖∇J‖² of every record, (n_runs, n_records) for each problem."""
    with np.errstate(over="ignore", invalid="ignore"):
        out = [
            (problem.exact.gradient(result.theta) ** 2).sum(axis=-1)
            for problem, result in zip(problems, results, strict=True)
        ]
    return [np.where(np.isfinite(g), g, np.inf) for g in out]


def at_moments(results: Sequence[RunResult], gradients: Sequence[FloatArray], moments: Moments) -> FloatArray:
    """‖∇J‖² at the last record up to each moment, (n_problems, n_moments, n_runs)."""
    at = np.searchsorted(results[0].samples, moments, side="right") - 1
    return np.array([g[:, at].T for g in gradients])


def weight_of(problem: Problem) -> FloatArray:
    """μ over μᵀV*: the value of a policy as a part of the best."""
    mu = problem.exact.stationary
    return np.asarray(mu / (mu @ problem.exact.optimal_value))


def has_steps(algorithm: Algorithm) -> bool:
    """Whether it has step sizes that can be multiplied."""
    return bool(type(algorithm).default_etas) and "eta_theta" in algorithm.to_dict()


def faster(algorithm: Algorithm, factor: float) -> Algorithm:
    """The algorithm with its step sizes times a factor."""
    etas = {name: scaled(getattr(algorithm, name), factor) for name in ("eta_theta", "eta_omega")}
    given = {name: eta for name, eta in etas.items() if name in algorithm.to_dict()}
    return replace(algorithm, **given)  # type: ignore[type-var]


def run_bytes(problem: Problem, algorithm: Algorithm, n_samples: int) -> int:
    """The memory of a run: θ and ω, and every array that its estimator declares."""
    sizes = Sizes(
        d=problem.dim,
        A=problem.mdp.n_actions,
        states=problem.mdp.n_states,
        samples=len(problem_tables(problem).samples.row),
        updates=algorithm.n_updates(n_samples),
        most={name: getattr(algorithm, name) for name in parameters(algorithm.estimator)},
    )
    arrays = declared(algorithm.estimator, sizes).values()
    return 16 * problem.dim + sum(array.size * dtype_of(array, np.float64).itemsize for array in arrays)
