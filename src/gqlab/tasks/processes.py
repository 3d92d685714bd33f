"""Processes of this machine, each a pool of one: so it is known which task a process was running when it died."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pickle import PicklingError
from typing import Any

from gqlab.engine.cpu import POLL, default_threads
from gqlab.support import checks
from gqlab.support.files import one_line
from gqlab.tasks.base import Engine, Outcome, Task, perform

#: Give up after this many processes in a row, for each worker, have died before taking a task.
STILLBORN = 5

#: In a worker: what every task gets.
_shared: Mapping[str, Any] = {}


def _begin(shared: Mapping[str, Any], environment: Mapping[str, str]) -> None:
    """Prepare a process that has just begun."""
    global _shared
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its children
    _shared = shared
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End when the parent is killed, instead of waiting for the next task for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Outcome:
    return perform(_shared, function, arguments)


def _ready() -> None:
    """The first call of a process: its return shows that the process has started."""


class Processes(Engine):
    """Tasks in processes of this machine; a process that dies is replaced, and its task is run again.

    A script that uses it must keep its calls under ``if __name__ == "__main__":``, since every process imports it. On
    ``device="cuda"`` there is one process for each GPU.

    Parameters
    ----------
    workers : int, optional
        Default: one for each core, or for each GPU.
    """

    def __init__(self, workers: int | None = None) -> None:
        self._given = workers is not None
        self.workers = (
            default_threads() if workers is None else checks.integer("workers", workers, least=1, below=2**16)
        )
        self._waiting: deque[Task] = deque()
        self._running: dict[Future[Outcome], tuple[int, Task]] = {}
        self._pools: dict[int, ProcessPoolExecutor] = {}
        self._began: dict[int, Future[None]] = {}
        self._free = list(range(self.workers))
        self._stillborn = 0

    def prepare(self, shared: Mapping[str, Any], device: str = "cpu") -> None:
        super().prepare(shared, device)
        self.close()
        if device == "cuda" and not self._given:
            self.workers = max(1, len(visible_gpus()))
        self._free = list(range(self.workers))
        self._stillborn = 0

    def submit(self, task: Task) -> None:
        self._waiting.append(task)
        self._dispatch()

    def results(self) -> Iterator[tuple[Task, Outcome]]:
        while self._running:
            done, _ = wait(self._running, timeout=POLL, return_when=FIRST_COMPLETED)
            for future in done:
                slot, task = self._running.pop(future)
                outcome = self._outcome(slot, future)
                self._free.append(slot)
                self._dispatch()
                yield task, outcome

    def close(self) -> None:
        self._waiting.clear()
        self._running.clear()
        for slot in list(self._pools):
            self._end(slot)

    def _dispatch(self) -> None:
        while self._waiting and self._free:
            slot, task = self._free.pop(), self._waiting.popleft()
            try:
                future = self._pool(slot).submit(_work, task.function, task.arguments)
            except BrokenProcessPool:  # it died while idle
                self._end(slot)
                future = self._pool(slot).submit(_work, task.function, task.arguments)
            self._running[future] = slot, task

    def _outcome(self, slot: int, future: Future[Outcome]) -> Outcome:
        try:
            outcome = future.result()
        except BrokenProcessPool:
            began = self._began[slot]
            self._stillborn = 0 if began.done() and began.exception() is None else self._stillborn + 1
            self._end(slot)
            if self._stillborn >= STILLBORN * self.workers:
                raise ValueError(
                    "engine 'processes': the processes die before they take a task; does the script keep its calls "
                    "under if __name__ == '__main__'?"
                ) from None
            return Outcome(error="the process that ran it died", lost=True)
        except Exception as error:  # something that cannot be sent between processes
            return Outcome(error=f"{type(error).__name__}: {error}")
        self._stillborn = 0
        return outcome

    def _pool(self, slot: int) -> ProcessPoolExecutor:
        if slot not in self._pools:
            gpus = visible_gpus() if self.device == "cuda" else []
            environment = {"CUDA_VISIBLE_DEVICES": gpus[slot % len(gpus)]} if gpus else {}
            pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _begin, (self.shared, environment))
            try:
                self._began[slot] = pool.submit(_ready)
            except (TypeError, AttributeError, PicklingError) as error:
                raise ValueError(
                    f"engine 'processes': the work cannot be sent to a process ({one_line(error)})"
                ) from None
            self._pools[slot] = pool
        return self._pools[slot]

    def _end(self, slot: int) -> None:
        """End a process at once; a file that it was writing is whole or absent."""
        pool = self._pools.pop(slot)
        processes = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.kill()
        for process in processes:
            process.join()


def visible_gpus() -> list[str]:
    """The GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them."""
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is not None:
        return [name for name in chosen.split(",") if name]
    from numba import cuda

    return [str(k) for k in range(len(cuda.gpus))] if cuda.is_available() else []
