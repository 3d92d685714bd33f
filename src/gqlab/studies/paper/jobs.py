"""A job: one algorithm on one problem, measured. The unit that is run, kept and shared between experiments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gqlab.algorithms import Algorithm
from gqlab.exact.stationary import descend
from gqlab.lab.results import RunResult
from gqlab.lab.run import run
from gqlab.lab.variance import update_error
from gqlab.measure.watch import Watch
from gqlab.problems.problem import Problem
from gqlab.studies.paper.problems import ProblemSpec
from gqlab.support.checks import FloatArray

#: N, the steps of a walk that estimates a reward, and the Monte Carlo samples of a variance (the paper's numbers).
REWARD_STEPS, MONTE_CARLO = 100, 500

#: From how many points Newton's method searches for J*; a J − J* below the second number is rounding.
NEWTON_STARTS, ROUNDING = 4, 1e-14


@cache
def lowest_mspbe(spec: ProblemSpec) -> float:
    """J*: the least J at the stationary points that Newton's method finds from the first points of a few runs."""
    problem = spec.build()
    objective = problem.exact.objective.take(np.zeros(NEWTON_STARTS, dtype=np.intp))
    found = descend(objective, spec.theta0(NEWTON_STARTS, problem.dim))
    return float(problem.exact.mspbe(found.theta).min())


def gradient(problem: Problem, theta: FloatArray, job: Job) -> dict[str, FloatArray]:
    """‖∇J(θ)‖²."""
    return {"gradient": (problem.exact.gradient(theta) ** 2).sum(axis=-1)}


def mspbe(problem: Problem, theta: FloatArray, job: Job) -> dict[str, FloatArray]:
    """J(θ), and what it is above J*; less than rounding leaves of it is not told apart from 0."""
    J, least = problem.exact.mspbe(theta), lowest_mspbe(job.problem)
    return {"mspbe": J, "excess": np.maximum(J - least, ROUNDING)}


def reward(problem: Problem, theta: FloatArray, job: Job) -> dict[str, FloatArray]:
    """The exact long-run reward of π_θ."""
    return {"exact_reward": problem.exact.average_reward(theta)}


def value(problem: Problem, theta: FloatArray, job: Job) -> dict[str, FloatArray]:
    """The exact discounted value of π_θ from the first state on, which actor-critic and policy gradient climb."""
    return {"value": problem.exact.value(theta) @ problem.mdp.start}


def norm(problem: Problem, theta: FloatArray, job: Job) -> dict[str, FloatArray]:
    """‖θ‖."""
    return {"norm": np.linalg.norm(theta, axis=-1)}


JobMetric = Callable[[Problem, FloatArray, "Job"], dict[str, FloatArray]]
METRICS: dict[str, JobMetric] = {m.__name__: m for m in (gradient, mspbe, reward, value, norm)}

#: Taken of the run as a whole: E‖update − ∇J(θ)‖², by Monte Carlo, exactly, and split.
UPDATE = "update"

#: What a watch keeps at every update: the statistic of it, and the name that it gets.
WATCHED = {"gradient": ("lowest", "lowest_gradient"), "reward": ("largest", "largest_reward")}


@dataclass(frozen=True)
class Job:
    """``n_runs`` runs of ``algorithm``, recorded every ``record_every`` updates, and what is measured of them.

    ``watch`` ("gradient", "reward" or "") is kept at *every* update, inside the loop. ``metrics`` are taken at the
    records within the ``windows`` (pairs of updates: after the first, up to the second), and at every ``thin``-th of
    the others.
    """

    problem: ProblemSpec
    algorithm: Algorithm
    n_samples: int
    n_runs: int
    record_every: int
    metrics: tuple[str, ...]
    watch: str = ""
    thin: int = 1
    windows: tuple[tuple[int, int], ...] = ()
    device: str = "cpu"

    def kept(self, updates: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of the records are kept: the last one always."""
        kept = np.arange(len(updates)) % self.thin == 0
        kept[-1] = True
        for after, upto in self.windows:
            kept |= (updates > after) & (updates <= upto)
        return np.asarray(kept)

    @property
    def work(self) -> int:
        """A rough measure of the work, for the progress bar."""
        return self.n_runs * self.n_samples * (10 if self.watch else 1)


#: The names that a result has beside its values.
RECORDED = ("updates", "samples", "gradient_evaluations", "diverged")

#: Before the name of a value.
VALUE = "value "


@dataclass(frozen=True, eq=False)
class Measurement:
    """What a job gave: ``values[name]`` is (n_runs, n_records); the counts are (n_records,)."""

    updates: NDArray[np.int64]
    samples: NDArray[np.int64]
    gradient_evaluations: NDArray[np.int64]
    diverged: NDArray[np.bool_]
    values: dict[str, FloatArray] = field(default_factory=dict)

    @classmethod
    def of(cls, result: Mapping[str, Any]) -> Measurement:
        """From what :func:`measure` returned."""
        values = {name.removeprefix(VALUE): array for name, array in result.items() if name.startswith(VALUE)}
        return cls(**{name: result[name] for name in RECORDED}, values=values)

    def counts(self, axis: str, metric: str) -> NDArray[np.int64]:
        """The axis ("updates", "samples", "gradient_evaluations") at the points where ``metric`` was taken."""
        return np.asarray(getattr(self, axis))[: self.values[metric].shape[1]]


def measure(job: Job) -> dict[str, Any]:
    """Run the job, on one core: others run beside it. :meth:`Measurement.of` reads what it returns."""
    problem = job.problem.build()
    result = run(
        problem, job.algorithm, job.n_samples, n_runs=job.n_runs, seed=job.problem.draw,
        theta0=job.problem.theta0(job.n_runs, problem.dim), record_every=job.record_every, device=job.device,
        threads=1, progress=False, watch=Watch(job.watch, n_steps=REWARD_STEPS) if job.watch else None,
    )  # fmt: skip
    kept = job.kept(result.updates)
    theta = result.theta[:, kept]
    values: dict[str, FloatArray] = {}
    for name in job.metrics:
        values.update(_updates(result) if name == UPDATE else METRICS[name](problem, theta, job))
    if job.watch:
        which, called = WATCHED[job.watch]
        values[called] = getattr(result.watched[job.watch], which)[:, kept]
    counts = {name: getattr(result, name)[kept] for name in RECORDED[:-1]}
    return {**counts, "diverged": result.diverged, **{f"{VALUE}{name}": value for name, value in values.items()}}


def _updates(result: RunResult) -> dict[str, FloatArray]:
    error = update_error(result, n_draws=MONTE_CARLO)
    return {
        "update_sampled": error.sampled,
        "update_error": error.mean_squared,
        "update_bias": error.bias_squared,
        "update_variance": error.variance,
    }
