"""From cells to tasks of a few seconds: cells of one kind, as many as the cost observed so far allows."""

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

#: The target duration of a task in seconds: long compared with the cost of handing it out, short enough to lose in a
#: kill.
LEAST, MOST = 1.0, 4.0

#: The most bytes of records in a task: they are held in memory, and sent over the network without a shared disk.
MOST_BYTES = 2**27

#: Seconds for each number of d·A that an update reads, before any task was measured; and an overhead for each cell.
FIRST_RATE, CELL_SECONDS = 5e-9, 2e-4


def run_cells(shared: Mapping[str, Any], numbers: NDArray[np.int64]) -> Packed | None:
    """What a worker does: run these cells and keep them in the store, or return them if it cannot see the store."""
    sweep: Sweep = shared["sweep"]
    settings = replace(sweep.settings, threads=1, progress=False, stop=shared.get("stop"))
    results = execute(sweep.problems, [sweep.cell(k) for k in numbers.tolist()], settings)
    packed = pack(numbers.tolist(), results)
    files: Files | None = shared["files"]
    if files is None or not files.seen():
        return packed
    try:
        files.save(packed)
    except OSError:  # the cells are good: the driver tries to write them, and reports what is wrong with the folder
        return packed
    return None


class Batches(Iterator[Task]):
    """The missing cells of a sweep as tasks, made on demand; ``learn`` reports how long one took."""

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
        #: For each cell: its cost in numbers that pass through its updates, its bytes of records, and its kind.
        self.cost, self.size, self.kind = (np.repeat(values, n_seeds) for values in (cost, size, np.array(kind_of)))
        #: Seconds for each number, by kind: the least that was observed, since the first task also compiles.
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
        # The last tasks are shorter, so that no worker waits long for the end; and the first ones are probes.
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
        """Note that a task of these cells took ``seconds``."""
        kind = self.kind[numbers[0]]
        rate = max(seconds - CELL_SECONDS * len(numbers), 0.1 * seconds) / self.cost[numbers].sum()
        self._rate[kind] = np.fmin(self._rate[kind], rate)

    def halve(self, numbers: NDArray[np.int64]) -> None:
        """Split a task that failed in two: a cell that cannot be computed should not fail others."""
        self._halves.extend(np.array_split(numbers, 2))
