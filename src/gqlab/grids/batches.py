"""From cells to tasks of a few seconds: cells of one kind, as many as the cost that was seen so far allows."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gqlab.engine.records import record_count
from gqlab.grids.description import Sweep
from gqlab.grids.store import Files, Packed, pack
from gqlab.lab.execute import execute, kinds_of
from gqlab.tasks.base import Task

#: Seconds that a task is to take: long against what it costs to hand one out, short against what a kill may lose.
LEAST, MOST = 1.0, 4.0

#: Bytes of records of a task: they are in memory, and cross the network where workers and store do not share a disk.
MOST_BYTES = 2**27

#: Seconds for each number of d·A that an update reads, before a task has shown it; and for each cell besides.
FIRST_RATE, CELL_SECONDS = 5e-9, 2e-4


def run_cells(shared: Mapping[str, Any], numbers: NDArray[np.int64]) -> Packed | None:
    """What a worker does: run these cells and keep them in the store, or hand them back where it sees none."""
    sweep: Sweep = shared["sweep"]
    settings = replace(sweep.settings, threads=1, progress=False, stop=shared.get("stop"))
    results = execute(sweep.problems, [sweep.cell(k) for k in numbers.tolist()], settings)
    packed = pack(numbers.tolist(), results)
    files: Files | None = shared["files"]
    if files is None or not files.seen():
        return packed
    try:
        files.save(packed)
    except OSError:  # the cells are good: the driver tries, and says what is wrong with the folder
        return packed
    return None


class Batches(Iterator[Task]):
    """The missing cells of a sweep as tasks, made when they are asked for; ``learn`` tells what one has taken."""

    def __init__(self, sweep: Sweep, missing: NDArray[np.bool_], workers: int) -> None:
        self.workers = workers
        n_seeds = sweep.axes.shape[2]
        first = [sweep.cell(k) for k in range(0, len(sweep), n_seeds)]  # of each problem and algorithm
        kinds: dict[Any, int] = {}
        kind_of = []
        cost, size = np.empty((2, len(first)))
        for k, cell in enumerate(first):
            problem, algorithm, settings = sweep.problems[cell.problem], cell.algorithm, sweep.settings
            kind_of.append(kinds.setdefault(kinds_of(problem, algorithm, settings.device), len(kinds)))
            watching = sum(watch.cost(problem.mdp.n_states) for watch in settings.watch)
            updates = algorithm.n_updates(settings.n_samples)
            each = (algorithm.samples_per_update + watching) * problem.dim * problem.mdp.n_actions
            cost[k] = float(cell.n_runs) * updates * each
            size[k] = 16.0 * cell.n_runs * record_count(updates, settings.record_every) * problem.dim
        #: Of each cell: the cost in numbers that pass through its updates, bytes of records, and the kind.
        self.cost, self.size, self.kind = (np.repeat(values, n_seeds) for values in (cost, size, np.array(kind_of)))
        #: Seconds for each number, of every kind: the least that was seen, for the first task compiles besides.
        self._rate = np.full(len(kinds), np.nan)
        self._waiting = [deque[int](np.flatnonzero(missing & (self.kind == k)).tolist()) for k in range(len(kinds))]
        self._halves: deque[NDArray[np.int64]] = deque()
        self._left = float(self.cost[missing].sum())

    def __next__(self) -> Task:
        if self._halves:
            return Task(run_cells, (self._halves.popleft(),))
        waiting = next((cells for cells in self._waiting if cells), None)
        if waiting is None:
            raise StopIteration
        kind = int(self.kind[waiting[0]])
        known = not np.isnan(self._rate[kind])
        rate = self._rate[kind] if known else FIRST_RATE
        # At the end tasks are shorter, so that no worker waits long for the last one; and the first ones only try.
        target = float(np.clip(self._left * rate / (2 * self.workers), LEAST, MOST)) if known else LEAST
        numbers: list[int] = []
        seconds = size = 0.0
        while waiting and (not numbers or (seconds < target and size < MOST_BYTES)):
            numbers.append(waiting.popleft())
            seconds += CELL_SECONDS + rate * self.cost[numbers[-1]]
            size += self.size[numbers[-1]]
        self._left -= float(self.cost[numbers].sum())
        return Task(run_cells, (np.array(numbers, dtype=np.int64),))

    def learn(self, numbers: NDArray[np.int64], seconds: float) -> None:
        """A task of these cells took so long."""
        kind = self.kind[numbers[0]]
        rate = max(seconds - CELL_SECONDS * len(numbers), 0.1 * seconds) / self.cost[numbers].sum()
        self._rate[kind] = np.fmin(self._rate[kind], rate)

    def halve(self, numbers: NDArray[np.int64]) -> None:
        """A task that failed, as two: one cell that cannot be computed is not to take others with it."""
        self._halves.extend(np.array_split(numbers, 2))
