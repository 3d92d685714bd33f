"""Run a sweep on an engine, with or without a store."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gqlab.grids.batches import Batches
from gqlab.grids.description import Sweep
from gqlab.grids.store import GridStore, StoredResults, Unpacked, create_store
from gqlab.lab.execute import load_cuda
from gqlab.lab.results import RunResult
from gqlab.support.files import writing
from gqlab.support.progress import progress_bar
from gqlab.tasks.base import Engine, Outcome, run_tasks


class Collected:
    """Where the results of a run go: to a store, or into memory."""

    def __init__(self, sweep: Sweep, store: GridStore | None) -> None:
        self.sweep, self.store = sweep, store
        self.results: list[RunResult | None] = [None] * (0 if store is not None else len(sweep))
        self.failed: dict[int, str] = {}

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Which cells are to be run."""
        return np.ones(len(self.sweep), dtype=bool) if self.store is None else ~self.store.finished

    def take(self, numbers: NDArray[np.int64], outcome: Outcome) -> None:
        """Store what a worker returned, or note what it has kept itself."""
        if self.store is None:
            found = Unpacked(outcome.value)
            for k, number in enumerate(numbers.tolist()):
                problem = self.sweep.problems[self.sweep.axes.at(number)[0]]
                self.results[number] = found[k].with_problem(problem)
            return
        path = self.store.files.path(numbers)
        if outcome.value is not None:
            with writing(self.store.folder):
                self.store.files.save(outcome.value)
        if not path.is_file():
            raise ValueError(
                f"{path}, which a worker has written, is missing: run the same sweep again to compute its cells"
            )
        self.store.add(path, numbers)

    def check(self) -> None:
        """``ValueError`` where cells could not be computed."""
        if self.failed:
            number, error = next(iter(self.failed.items()))
            p, a, seed = self.sweep.axes.at(number)
            kept = "" if self.store is None else f"; the others are kept in {self.store.folder}"
            raise ValueError(
                f"{len(self.failed):,} of {len(self.sweep):,} cells failed, the first on problems[{p}] with "
                f"{self.sweep.axes.algorithms[a]!r} and seed {seed}: {error}{kept}"
            )


def run_sweep(sweep: Sweep, engine: Engine, store: Any = None) -> Sequence[RunResult]:
    """The results of all cells; those already in ``store``, a folder, are not run again."""
    sweep.check()
    if sweep.settings.device == "cuda":
        load_cuda()
    kept = None if store is None else create_store(store, sweep.description)
    if kept is not None:
        kept.find(whole=True)
    collected = Collected(sweep, kept)
    n_missing = int(collected.missing.sum())
    if n_missing:
        _run_missing(sweep, engine, collected)
    collected.check()
    if kept is not None:
        return StoredResults(kept, sweep.problems, n_missing)
    return collected.results  # type: ignore[return-value]


def _run_missing(sweep: Sweep, engine: Engine, collected: Collected) -> None:
    missing = collected.missing
    shown = contextlib.nullcontext() if collected.store is None else collected.store.shown()
    with shown as files, engine:
        engine.prepare({"sweep": sweep, "files": files}, sweep.settings.device)
        batches = Batches(sweep, missing, engine.workers)
        with _bar(sweep.settings.progress, batches.cost, missing) as bar:
            for task, outcome in run_tasks(engine, batches):
                [numbers] = task.arguments
                if not outcome.error:
                    batches.learn(numbers, outcome.seconds)
                    collected.take(numbers, outcome)
                elif len(numbers) > 1:
                    batches.halve(numbers)
                    continue
                else:
                    collected.failed[int(numbers[0])] = outcome.error
                bar.update(float(batches.cost[numbers].sum()))


def _bar(wanted: bool | None, cost: NDArray[np.float64], missing: NDArray[np.bool_]) -> Any:
    """A progress bar in units of work, with the time left."""
    return progress_bar(
        wanted,
        total=float(cost.sum()),
        initial=float(cost[~missing].sum()),
        desc=f"{len(cost):,} cells",
        bar_format="{desc}: {percentage:3.0f}% |{bar}| {elapsed}, {remaining} left",
        delay=1.0,
    )
