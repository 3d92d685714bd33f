"""The reproduction in its smallest form, run once for all tests of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from gqlab.paper.design import Entry, Experiment, Part, Scale
from gqlab.paper.experiments import EXPERIMENTS
from gqlab.paper.jobs import Measured
from gqlab.paper.runner import Results, collect, run_missing
from gqlab.paper.store import Store


@dataclass(frozen=True)
class Tiny(Scale):
    """Two problems, two runs each, two epochs or twenty iterations."""

    population: int = 2

    @property
    def n_problems(self) -> int:
        return self.population

    @property
    def n_runs(self) -> int:
        return 2

    def numbers(self, part: Part) -> range:
        return range(50, 51) if part.problems == "tuning" else super().numbers(part)

    def sized(self, entry: Entry) -> Entry:
        n = 20 * 1800 if entry.algorithm.samples_per_update > 1 else max(6000, 2 * entry.algorithm.batch_size)
        return replace(entry, n_samples=n, record_every=min(entry.record_every, 1000), thin=1, windows=())


@pytest.fixture(scope="session")
def tiny_store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(tmp_path_factory.mktemp("tiny") / "data")
    for experiment in EXPERIMENTS:
        run_missing(experiment, Tiny(), store, quiet=True)
    return store


@pytest.fixture(scope="session")
def tiny_results(tiny_store: Store) -> dict[str, Results]:
    found = {experiment.name: collect(experiment, Tiny(), tiny_store) for experiment in EXPERIMENTS}
    return {name: results for name, results in found.items() if results is not None}


Values = Callable[[str, int, np.random.Generator, int], dict[str, np.ndarray]]


def synthetic(experiment: Experiment, values: Values, n_problems: int = 24, n_runs: int = 10) -> Results:
    """Results of made-up runs: ``values(label, number, rng, n_records)`` gives the metrics, (n_runs, n_records) each."""
    scale = Tiny(population=n_problems)
    measured: dict[tuple[str, int], dict[str, Measured]] = {}
    for part in experiment.parts:
        for number in scale.numbers(part):
            for entry in part.entries:
                a, name = entry.algorithm, entry.label
                updates = np.arange(0, 9001, 90) if a.samples_per_update == 1 else np.arange(21)
                rng = np.random.default_rng([number, *name.encode()])
                measured.setdefault((part.name, number), {})[name] = Measured(
                    updates=updates,
                    samples=a.samples(updates),
                    gradient_evaluations=a.gradient_evaluations(updates),
                    diverged=np.zeros(n_runs, dtype=bool),
                    seconds=0.0,
                    values=values(name, number, rng, len(updates)),
                )
    return Results(experiment, scale, measured)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"
