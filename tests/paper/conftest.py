"""The reproduction in its smallest form, run once for all tests of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from gqlab.paper.design import Budget, Experiment, Part, Scale, label
from gqlab.paper.experiments import EXPERIMENTS
from gqlab.paper.jobs import Measured
from gqlab.paper.runner import Results, collect, run_missing
from gqlab.paper.store import Store


@dataclass(frozen=True)
class Tiny(Scale):
    """The paper's setting and two further problems, two runs each, two epochs or twenty iterations."""

    n_further: int = 2

    @property
    def n_problems(self) -> int:
        return 1 + self.n_further

    def budget(self, part: Part, number: int) -> Budget:
        return Budget(6000, 300, 2) if part.unit == "samples" else Budget(20, 1, 2)


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


def synthetic(experiment: Experiment, values: Values, n_further: int = 20, n_runs: int = 10) -> Results:
    """Results of made-up runs: ``values(label, number, rng, n_records)`` gives the metrics, (n_runs, n_records) each."""
    scale = Tiny(n_further=n_further)
    measured: dict[tuple[str, int], dict[str, Measured]] = {}
    for number in range(scale.n_problems):
        for part in experiment.parts:
            for algorithm in part.algorithms:
                updates = np.arange(0, 9001, 90) if part.unit == "samples" else np.arange(21)
                name = label(algorithm)
                rng = np.random.default_rng([number, *name.encode()])
                measured.setdefault((part.name, number), {})[name] = Measured(
                    updates=updates,
                    samples=algorithm.samples(updates),
                    gradient_evaluations=algorithm.gradient_evaluations(updates),
                    diverged=np.zeros(n_runs, dtype=bool),
                    seconds=0.0,
                    values=values(name, number, rng, len(updates)),
                )
    return Results(experiment, scale, measured)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"
