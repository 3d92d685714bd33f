"""A job: one algorithm on one problem, measured. The unit that is run, kept on disk and shared between experiments."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gqlab.algorithms import Algorithm
from gqlab.checks import FloatArray
from gqlab.engine.run import run
from gqlab.measure.rollout import sampled_reward
from gqlab.measure.variance import update_error
from gqlab.paper.problems import ProblemSpec
from gqlab.problem import Problem
from gqlab.results import RunResult
from gqlab.version import __version__

#: N, the steps of a walk that estimates a reward, and the Monte Carlo samples of a variance (the paper's numbers).
REWARD_STEPS, MONTE_CARLO = 100, 500

#: Part of every key: raised when a metric changes its meaning.
FORMAT = 1


@cache
def source_digest() -> str:
    """A digest of all code that a result depends on: results of other code are not taken for those of this one."""
    package = Path(__file__).resolve().parent.parent
    here = Path(__file__).resolve().parent
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        elsewhere = path.parent.name == "theory" or path.name in ("cli.py", "__init__.py")
        if not elsewhere and (path.parent != here or path.name in ("problems.py", "jobs.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def gradient(problem: Problem, result: RunResult, job: Job) -> dict[str, FloatArray]:
    """‖∇J(θ)‖²."""
    return {"gradient": (problem.exact.gradient(result.theta) ** 2).sum(axis=-1)}


def mspbe(problem: Problem, result: RunResult, job: Job) -> dict[str, FloatArray]:
    """J(θ)."""
    return {"mspbe": problem.exact.mspbe(result.theta)}


def reward(problem: Problem, result: RunResult, job: Job) -> dict[str, FloatArray]:
    """The paper's r̂, from a walk of N steps, and the exact long-run reward of π_θ."""
    return {
        "sampled_reward": sampled_reward(problem, result.theta, REWARD_STEPS, job.walk_seed),
        "exact_reward": problem.exact.average_reward(result.theta),
    }


def update(problem: Problem, result: RunResult, job: Job) -> dict[str, FloatArray]:
    """E‖update − ∇J(θ)‖²: by Monte Carlo, exactly, and split."""
    error = update_error(problem, result, MONTE_CARLO)
    return {
        "update_sampled": error.sampled,
        "update_error": error.mean_squared,
        "update_bias": error.bias_squared,
        "update_variance": error.variance,
    }


def norm(problem: Problem, result: RunResult, job: Job) -> dict[str, FloatArray]:
    """‖θ‖."""
    return {"norm": np.linalg.norm(result.theta, axis=-1)}


Metric = Callable[[Problem, RunResult, "Job"], dict[str, FloatArray]]
METRICS: dict[str, Metric] = {m.__name__: m for m in (gradient, mspbe, reward, update, norm)}


@dataclass(frozen=True)
class Job:
    """``n_runs`` runs of ``algorithm``; ``metrics`` (names in ``METRICS``) are taken at every recorded point."""

    problem: ProblemSpec
    algorithm: Algorithm
    n_samples: int
    n_runs: int
    record_every: int
    metrics: tuple[str, ...]
    device: str = "cpu"

    @property
    def settings(self) -> dict[str, Any]:
        """All that the result depends on, ready for JSON: the code, too."""
        return {
            "format": FORMAT,
            "gqlab": __version__,
            "sources": source_digest(),
            "problem": self.problem.to_dict(),
            "algorithm": self.algorithm.to_dict(),
            "n_samples": self.n_samples,
            "n_runs": self.n_runs,
            "record_every": self.record_every,
            "metrics": list(self.metrics),
            "reward_steps": REWARD_STEPS,
            "monte_carlo": MONTE_CARLO,
            "device": self.device,
        }

    @cached_property
    def digest(self) -> str:
        """The key of the result: equal settings and no others have an equal one."""
        return hashlib.sha256(json.dumps(self.settings, sort_keys=True).encode()).hexdigest()[:32]

    @property
    def walk_seed(self) -> int:
        """The seed of the walks that estimate rewards: no two problems or algorithms share their luck."""
        text = json.dumps([self.problem.to_dict(), self.algorithm.to_dict()], sort_keys=True)
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big")

    @property
    def work(self) -> int:
        """A rough measure of the work, for the progress bar."""
        return self.n_runs * self.n_samples


@dataclass(frozen=True, eq=False)
class Measured:
    """What a job gave: ``values[name]`` is (n_runs, n_records); the counts are (n_records,); it took ``seconds``."""

    updates: NDArray[np.int64]
    samples: NDArray[np.int64]
    gradient_evaluations: NDArray[np.int64]
    diverged: NDArray[np.bool_]
    seconds: float
    values: dict[str, FloatArray] = field(default_factory=dict)

    def counts(self, axis: str, metric: str) -> NDArray[np.int64]:
        """The axis ("updates", "samples", "gradient_evaluations") at the points where ``metric`` was taken."""
        return np.asarray(getattr(self, axis))[: self.values[metric].shape[1]]


def measure(job: Job) -> Measured:
    """Run the job."""
    begun = time.perf_counter()
    problem = job.problem.build()
    result = run(
        problem, job.algorithm, job.n_samples, job.n_runs, job.problem.draw,
        theta0=job.problem.theta0(job.n_runs, problem.dim), record_every=job.record_every, device=job.device,
        progress=False,
    )  # fmt: skip
    values: dict[str, FloatArray] = {}
    for name in job.metrics:
        values.update(METRICS[name](problem, result, job))
    seconds = time.perf_counter() - begun
    return Measured(result.updates, result.samples, result.gradient_evaluations, result.diverged, seconds, values)
