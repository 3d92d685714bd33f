"""Threads of this process: nothing has to be started or sent. Compiled code does not hold the interpreter's lock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, Self

import numpy as np

from gqlab.engine.cpu import POLL, default_threads
from gqlab.support import checks
from gqlab.tasks.base import Engine, Outcome, Task, perform


class Threads(Engine):
    """Tasks on threads of this process.

    Parameters
    ----------
    workers : int, optional
        Default: one for each core.

    Examples
    --------
    >>> import gqlab as gq
    >>> mdp = gq.garnet(seed=0)
    >>> problem = gq.Problem(mdp, gq.random_features(mdp, dim=4))
    >>> grid = gq.grid(problem, gq.GreedyGQ(), n_samples=1000, seeds=range(6), engine=gq.tasks.Threads(workers=2))
    >>> len(grid)
    6
    """

    def __init__(self, workers: int | None = None) -> None:
        self._given = default_threads() if workers is None else checks.integer("workers", workers, least=1, below=2**16)
        self.workers = self._given
        self._running: dict[Future[Outcome], Task] = {}
        self._pool: ThreadPoolExecutor | None = None
        self._stop = np.zeros(1, dtype=np.int64)

    def __enter__(self) -> Self:
        self._stop = np.zeros(1, dtype=np.int64)
        return self

    def prepare(self, shared: Mapping[str, Any], device: str = "cpu") -> None:
        super().prepare({**shared, "stop": self._stop}, device)
        self.workers = self._given if device == "cpu" else 1  # one launch fills a GPU
        self._pool = ThreadPoolExecutor(self.workers)

    def submit(self, task: Task) -> None:
        assert self._pool is not None
        self._running[self._pool.submit(perform, self.shared, task.function, task.arguments)] = task

    def results(self) -> Iterator[tuple[Task, Outcome]]:
        while self._running:
            done, _ = wait(self._running, timeout=POLL, return_when=FIRST_COMPLETED)
            for future in done:
                yield self._running.pop(future), future.result()

    def close(self) -> None:
        self._stop.fill(1)
        self._running.clear()
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
