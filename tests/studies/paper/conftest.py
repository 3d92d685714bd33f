"""The reproduction in its smallest form, run once for all tests of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gqlab.studies.paper.design import Contender, Experiment, ExperimentPart, Request
from gqlab.studies.paper.experiments import EXPERIMENTS
from gqlab.studies.paper.jobs import Job, Measurement, measure
from gqlab.studies.paper.reproduction import Reproduction
from gqlab.studies.paper.results import Results
from gqlab.studies.study import How, Runner


@dataclass(frozen=True)
class Tiny(Request):
    """Two problems, two runs each, two epochs or twenty iterations."""

    population: int = 2

    @property
    def n_problems(self) -> int:
        return self.population

    @property
    def n_runs(self) -> int:
        return 2

    def numbers(self, part: ExperimentPart) -> range:
        return range(50, 51) if part.problems == "tuning" else super().numbers(part)

    def sized(self, entry: Contender) -> Contender:
        n = 20 * 1800 if entry.algorithm.samples_per_update > 1 else max(6000, 2 * entry.algorithm.epoch_size)
        return replace(entry, n_samples=n, record_every=min(entry.record_every, 1000), thin=1, windows=())


def takes_long(name: str) -> bool:
    """Frozen Lake and Baird's problem have other sizes, and the reward other algorithms, for which everything would be
    compiled once more: `make long` runs them.
    """
    return not name.startswith("garnet") or "reward" in name or "baselines" in name


def each(names: Iterable[str]) -> list[Any]:
    """The names of experiments, for a test of each; those that take long by `make long`."""
    return [pytest.param(name, marks=pytest.mark.long) if takes_long(name) else name for name in names]


def run_all(experiments: Iterable[Experiment], folder: Path) -> dict[str, Results]:
    study = Reproduction(tuple(experiments), Tiny())
    with Runner(folder, How(progress=False)) as runner:
        return study.gather(runner.results(study.calls()))


@pytest.fixture(scope="session")
def long_results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Results]:
    """Those of the experiments that take long, run."""
    return run_all([e for e in EXPERIMENTS if takes_long(e.name)], tmp_path_factory.mktemp("long"))


@pytest.fixture(scope="session")
def tiny_results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Results]:
    """Those of all experiments: run, but for those that take long, whose are made up."""
    run = run_all([e for e in EXPERIMENTS if not takes_long(e.name)], tmp_path_factory.mktemp("tiny"))
    return {e.name: run[e.name] if e.name in run else synthetic(e, noise, 2, 2) for e in EXPERIMENTS}


@pytest.fixture
def run_results(name: str, request: pytest.FixtureRequest) -> Results:
    """Those of the experiment ``name``, run."""
    return request.getfixturevalue("long_results" if takes_long(name) else "tiny_results")[name]


#: What an experiment can measure.
METRICS = (
    "gradient", "lowest_gradient", "mspbe", "excess", "largest_reward", "exact_reward", "value", "norm",
    "update_sampled", "update_error", "update_bias", "update_variance",
)  # fmt: skip


def noise(label: str, number: int, rng: np.random.Generator, n_records: int) -> dict[str, np.ndarray]:
    return {metric: np.exp(0.1 * rng.standard_normal((2, n_records))) for metric in METRICS}


Values = Callable[[str, int, np.random.Generator, int], dict[str, np.ndarray]]


def synthetic(experiment: Experiment, values: Values, n_problems: int = 24, n_runs: int = 10) -> Results:
    """Results of made-up runs: ``values(label, number, rng, n_records)`` gives the metrics, (n_runs, n_records) each."""
    request = Tiny(population=n_problems)
    measured: dict[tuple[str, int], dict[str, Measurement]] = {}
    for part in experiment.parts:
        for number in request.numbers(part):
            for entry in part.entries:
                a, name = entry.algorithm, entry.label
                updates = np.arange(0, 9001, 90) if a.samples_per_update == 1 else np.arange(21)
                rng = np.random.default_rng([number, *name.encode()])
                measured.setdefault((part.name, number), {})[name] = Measurement(
                    updates=updates,
                    samples=a.samples(updates),
                    gradient_evaluations=a.gradient_evaluations(updates),
                    diverged=np.zeros(n_runs, dtype=bool),
                    values=values(name, number, rng, len(updates)),
                )
    return Results(experiment, request, measured)


def measured(job: Job) -> Measurement:
    """What a job gives, run here and now."""
    return Measurement.of(measure(job))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"
