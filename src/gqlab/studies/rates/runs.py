"""The runs behind ``gqlab rates``: samples until the mean of ‖∇J‖² over all iterates so far is at most ε.

θ_ξ is an iterate drawn uniformly from the first n, so E‖∇J(θ_ξ)‖² is the mean of ‖∇J(θ_t)‖² over those iterates and
over runs. A watch inside the loop takes it; a record only says what it is by then. Runs are made in stages, each about
three times as long as the one before, recorded finely enough to resolve the number of samples to 5 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gqlab.algorithms import Algorithm
from gqlab.grids.grid import grid
from gqlab.lab.results import RunResult
from gqlab.measure.watch import Watch
from gqlab.problems.problem import Problem
from gqlab.support.checks import FloatArray

#: A stage is longer than the one before by this.
GROWTH = 10**0.5
#: A stage of n < SHORT samples has SHORT/n times as many runs, at most MORE_RUNS times.
SHORT, MORE_RUNS = 63_246, 10
#: A stage of SHORT samples or more is watched less often by this factor.
LESS_OFTEN = 4
#: Records in a stage: an interval is at most √10/63 = 5 % of any number of samples beyond the stage before.
RECORDS = 63


class Cohort(NamedTuple):
    """Who runs: on which problem, from where and under which seed."""

    problem: Problem
    theta0: FloatArray
    seed: int
    threads: int | None = None


class Stage(NamedTuple):
    """How many runs of how many samples, how often they are watched (from a random offset on) and recorded."""

    n_samples: int
    n_runs: int
    record_every: int
    watch_every: int


def stages(budget: int, n_runs: int, watch_every: int) -> list[Stage]:
    """632, 2000, 6325, … samples up to a budget; the short ones, noisy and cheap, have more than ``n_runs`` runs.

    The first stage is watched and recorded at every update, long ones are watched less often.
    """
    out: list[Stage] = []
    n = min(2000 / GROWTH, float(budget))
    while True:
        whole = round(n)
        runs = round(n_runs * min(MORE_RUNS, max(1.0, SHORT / whole)))
        every = watch_every * (LESS_OFTEN if whole >= SHORT else 1)
        out.append(Stage(whole, runs, max(1, whole // RECORDS) if out else 1, every if out else 1))
        if whole >= budget:
            return out
        n = min(n * GROWTH, float(budget))


def first_below(result: RunResult, epsilons: FloatArray, after: int = 0) -> FloatArray:
    """The samples after which the watched mean of ‖∇J‖², over the runs too, is first at most ε; NaN where it is not.

    Parameters
    ----------
    result : RunResult
        Of a run with ``watch=gq.Watch("gradient")``.
    epsilons : (n_epsilons,) array
    after : int
        Only records beyond this many samples count: up to there a larger number of runs did not reach ε.
    """
    below = (running_mean(result)[:, None] <= epsilons) & (result.samples > after)[:, None]
    return np.where(below.any(axis=0), result.samples[below.argmax(axis=0)], np.nan)


def running_mean(result: RunResult) -> FloatArray:
    """The mean of ‖∇J‖² over all iterates up to each record and over runs, (n_records,); ∞ before the first look."""
    means = result.watched["gradient"].mean
    return np.where(np.isfinite(means).all(axis=0), means.mean(axis=0), np.inf)


def samples_needed(
    cohort: Cohort, algorithms: Sequence[Algorithm], epsilons: FloatArray, plan: Sequence[Stage], best_only: bool = True
) -> FloatArray:
    """The samples that each algorithm needs for each ε, (n_algorithms, n_epsilons); NaN: not reached, or left.

    A sum of squares does not shrink: one whose mean is m after n samples reaches ε after no fewer than mn/ε. It is left
    as soon as that lies beyond the budget for every ε that it has not reached or, with ``best_only``, beyond what
    another has needed: the least over algorithms is what it would be if none were left.

    Parameters
    ----------
    epsilons : (n_epsilons,) or (n_algorithms, n_epsilons) array
    plan : sequence of Stage
    """
    targets = np.broadcast_to(epsilons, (len(algorithms), np.shape(epsilons)[-1]))
    needed = np.full(targets.shape, np.nan)
    done = np.zeros(len(algorithms), dtype=int)
    alive = list(range(len(algorithms)))
    for stage in plan:
        now = [k for k in alive if algorithms[k].epoch_size <= stage.n_samples]
        ahead = np.zeros(targets.shape)
        for k, result in zip(now, _run(cohort, [algorithms[k] for k in now], stage), strict=True):
            found = first_below(result, targets[k], done[k])
            done[k] = result.samples[-1]
            needed[k] = np.where(np.isnan(needed[k]), found, needed[k])
            ahead[k] = 0.98 * running_mean(result)[-1] * float(result.updates[-1]) / targets[k]  # 2 % for the offsets
        least = np.nanmin(np.where(np.isnan(needed), np.inf, needed), axis=0)
        limit = np.minimum(least, plan[-1].n_samples) if best_only else float(plan[-1].n_samples)
        limit = np.where(stage.n_samples >= limit, 0.0, limit)
        open_still = (np.isnan(needed) & (ahead < limit)).any(axis=1)
        alive = [k for k in alive if open_still[k]]
        if not alive:
            break
    return needed


def _run(cohort: Cohort, algorithms: list[Algorithm], stage: Stage) -> Sequence[RunResult]:
    if not algorithms:
        return []
    return grid(
        [cohort.problem], algorithms, n_samples=stage.n_samples, n_runs=stage.n_runs, seeds=cohort.seed,
        theta0=cohort.theta0, record_every=stage.record_every, watch=Watch("gradient", every=stage.watch_every),
        threads=cohort.threads, progress=False,
    ).results  # fmt: skip


def exact_descent(
    problem: Problem, theta0: FloatArray, etas: FloatArray, epsilons: FloatArray, most: int
) -> FloatArray:
    """Steps of θ ← θ − η∇J(θ) until the mean of ‖∇J‖² over θ_0, θ_1, … is at most ε, the least over η; (n_epsilons,).

    Where the sum has converged after ``most`` steps (its last term, kept up to the end, would add less than 1 %), n is
    that sum over ε.
    """
    theta = np.tile(theta0, (len(etas), 1))
    total = np.zeros(len(etas))
    needed = np.full((len(etas), len(epsilons)), np.inf)
    square = np.zeros(len(etas))
    for n in range(1, most + 1):
        gradient = problem.exact.gradient(theta)
        square = (gradient**2).sum(axis=-1)
        total += square
        needed = np.where(np.isinf(needed) & (total[:, None] <= n * epsilons), float(n), needed)
        theta = theta - etas[:, None] * gradient
        ok = np.isfinite(theta).all(axis=-1) & (np.linalg.norm(theta, axis=-1) < 1e6)
        theta[~ok], etas = theta0, np.where(ok, etas, 0.0)  # one that is lost stays at θ_0 and reaches nothing
        if n % 100 == 0 and np.isfinite(needed).any(axis=0).all():
            break
    n_left = total[:, None] / epsilons
    converged = square[:, None] * n_left <= 1e-2 * total[:, None]
    needed = np.where(np.isinf(needed) & converged, np.ceil(n_left), needed)
    least = needed.min(axis=0)
    return np.where(np.isfinite(least), least, np.nan)


def floors(
    cohort: Cohort, algorithms: Sequence[Algorithm], n_samples: int, n_runs: int, watch_every: int
) -> FloatArray:
    """The mean of ‖∇J‖² over the second half of runs that begin at a stationary point and at ω* of it; one each.

    Read from the watch: the sum over all iterates less the sum over those of the first half.
    """
    omega0 = cohort.problem.exact.omega_star(cohort.theta0)
    results = grid(
        [cohort.problem], list(algorithms), n_samples=n_samples, n_runs=n_runs, seeds=cohort.seed,
        theta0=cohort.theta0, omega0=omega0, record_every=n_samples // 2, watch=Watch("gradient", every=watch_every),
        threads=cohort.threads, progress=False,
    ).results  # fmt: skip
    out = []
    for result in results:
        sums = result.watched["gradient"].mean.mean(axis=0) * result.updates
        k = int(np.searchsorted(result.updates, n_samples // 2))
        k = min(k, len(sums) - 2)
        out.append((sums[-1] - sums[k]) / (result.updates[-1] - result.updates[k]))
    return np.array(out)
