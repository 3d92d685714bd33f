"""One runner for all experiments: does the jobs that the store does not have, and gives the results of all."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gqlab.paper.design import Experiment, Scale, label
from gqlab.paper.jobs import Measured, measure
from gqlab.paper.store import Store


@dataclass(frozen=True)
class Results:
    """Of an experiment: ``results[part, number][label]`` is what an algorithm gave on problem ``number``."""

    experiment: Experiment
    scale: Scale
    measured: dict[tuple[str, int], dict[str, Measured]]

    def __getitem__(self, key: tuple[str, int]) -> dict[str, Measured]:
        return self.measured[key]

    @property
    def problems(self) -> Iterator[int]:
        """The numbers of the problems; 0 is the paper's setting."""
        return iter(range(self.scale.n_problems))


def run_missing(
    experiment: Experiment, scale: Scale, store: Store, *, force: bool = False, quiet: bool = False
) -> float:
    """Do the jobs of ``experiment`` that are not in the store (all with ``force``); returns the seconds that took."""
    begun = time.perf_counter()
    jobs = scale.jobs(experiment)
    # What this store saved itself is new: experiments share jobs, and force does each once.
    missing = [job for job in jobs if (job.digest not in store.saved if force else job not in store)]
    with _bar(experiment.name, sum(job.work for job in jobs), quiet) as bar:
        bar.update(sum(job.work for job in jobs) - sum(job.work for job in missing))
        for job in missing:
            store.save(job, measure(job))
            bar.update(job.work)
    return time.perf_counter() - begun


def collect(experiment: Experiment, scale: Scale, store: Store) -> Results | None:
    """The results of an experiment, or None while some are missing."""
    measured: dict[tuple[str, int], dict[str, Measured]] = {}
    for number in range(scale.n_problems):
        for part in experiment.parts:
            for algorithm in part.algorithms:
                found = store.load(scale.job(experiment, part, algorithm, number))
                if found is None:
                    return None
                measured.setdefault((part.name, number), {})[label(algorithm)] = found
    return Results(experiment, scale, measured)


def _bar(name: str, total: int, quiet: bool) -> Any:
    """A progress bar in samples, with the time left."""
    from tqdm import tqdm

    shape = "{desc:<30} {percentage:3.0f}% |{bar}| {elapsed}, {remaining} left"
    pace = 0.1 if sys.stderr.isatty() else 10.0  # seconds: a log file gets few lines
    settings = {"bar_format": shape, "disable": quiet, "mininterval": pace, "dynamic_ncols": True}
    return tqdm(total=total, desc=name, file=sys.stderr, **settings)
