"""One runner for all experiments: does the jobs that the store does not have, and gives the results of all."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any

from gqlab.engine.cpu import default_threads
from gqlab.studies.paper.design import Experiment, Request
from gqlab.studies.paper.jobs import Job, Measurement, measure
from gqlab.studies.paper.store import Store
from gqlab.support.progress import progress_bar


@dataclass(frozen=True)
class Results:
    """Of an experiment: ``results[part, number][label]`` is what an algorithm gave on problem ``number``."""

    experiment: Experiment
    request: Request
    measured: dict[tuple[str, int], dict[str, Measurement]]

    def __getitem__(self, key: tuple[str, int]) -> dict[str, Measurement]:
        return self.measured[key]

    def numbers(self, part: str) -> range:
        """The numbers of a part's problems."""
        return self.request.numbers(self.experiment.part(part))

    def each(self, part: str, name: str) -> list[Measurement]:
        """What an algorithm gave on every problem of a part."""
        return [self.measured[part, number][name] for number in self.numbers(part)]


def run_missing(
    experiment: Experiment, request: Request, store: Store, *, force: bool = False, quiet: bool = False
) -> float:
    """Do the jobs of ``experiment`` that are not in the store (all with ``force``); returns the seconds that took."""
    begun = time.perf_counter()
    jobs = request.jobs(experiment)
    # What this store saved itself is new: experiments share jobs, and force does each once.
    missing = [job for job in jobs if (job.digest not in store.saved if force else job not in store)]
    with _bar(experiment.name, sum(job.work for job in jobs), quiet) as bar:
        bar.update(sum(job.work for job in jobs) - sum(job.work for job in missing))
        for job in _do(missing, store):
            bar.update(job.work)
    return time.perf_counter() - begun


def _do(jobs: list[Job], store: Store) -> Iterator[Job]:
    """Do and save the jobs, one on each core at a time: what is not compiled in one leaves its core to another.

    Ctrl-C waits for those that have begun, some seconds, and keeps them.
    """

    def work(job: Job) -> Job:
        store.save(job, measure(job))
        return job

    pool = ThreadPoolExecutor(1 if any(job.device != "cpu" for job in jobs) else default_threads())
    try:
        for future in as_completed([pool.submit(work, job) for job in jobs]):
            yield future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def collect(experiment: Experiment, request: Request, store: Store) -> Results | None:
    """The results of an experiment, or None while some are missing."""
    measured: dict[tuple[str, int], dict[str, Measurement]] = {}
    for part in experiment.parts:
        for number in request.numbers(part):
            for entry in part.entries:
                found = store.load(request.job(experiment, part, entry, number))
                if found is None:
                    return None
                measured.setdefault((part.name, number), {})[entry.label] = found
    return Results(experiment, request, measured)


def _bar(name: str, total: int, quiet: bool) -> Any:
    """A progress bar in samples, with the time left."""
    shape = "{desc:<30} {percentage:3.0f}% |{bar}| {elapsed}, {remaining} left"
    return progress_bar(not quiet, total=total, desc=name, bar_format=shape, dynamic_ncols=True)
