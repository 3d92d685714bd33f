"""The CPU: blocks of runs on threads, each thread inside one compiled call that holds no lock of the interpreter."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gqlab.engine.compiled import entry
from gqlab.engine.interrupts import heard_interrupts
from gqlab.engine.loop import DeviceTask, Parts, advance
from gqlab.engine.memory import allocate, compiled_sizes

#: Seconds between two checks of the work: how often the progress bar moves.
POLL = 0.05


#: The loop, for a block of runs. It skips reference counting: Python holds all arrays while it runs.
advance_block = entry(advance, _nrt=False)


def default_threads() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def advance_all(
    task: DeviceTask, layout: Parts, d: int, A: int, threads: int, progress: Callable[[], None], stop: Any = None,
    spent: list[float] | None = None,
) -> None:  # fmt: skip
    """Take every run to its end; ``progress`` is called now and then. Ctrl-C stops it within milliseconds.

    Only the main thread receives Ctrl-C: a call on another thread runs until ``stop`` is set, and also ends with a
    KeyboardInterrupt. The CPU seconds of each block of runs are appended to ``spent``, whatever else this process does
    meanwhile.
    """
    n_runs = len(task.plan.seed)
    size = max(1, -(-n_runs // (8 * threads)))  # several blocks for each thread, so that none waits long for the others
    stop = np.zeros(1, dtype=np.int64) if stop is None else stop
    d_size, A_size = compiled_sizes(d, A)

    def advance_from(first: int, last: int) -> None:
        own = Parts(*map(allocate, layout))  # of this thread
        began = time.thread_time()
        advance_block(task, own, first, last, stop, d_size, A_size)
        if spent is not None and last > first:
            spent.append(time.thread_time() - began)

    with _stopped_by_interrupts(stop):
        advance_from(0, 0)  # compile once, before the threads
        with ThreadPoolExecutor(threads) as pool:
            try:
                waiting = {pool.submit(advance_from, k, min(k + size, n_runs)) for k in range(0, n_runs, size)}
                _wait_for(waiting, progress)
            except BaseException:
                stop[0] = 1
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    if stop[0]:
        raise KeyboardInterrupt


def run_apart(function: Callable[..., None], stop: NDArray[np.int64], *arguments: Any) -> None:
    """Call a compiled function on a thread of its own, so that this one can receive Ctrl-C and set ``stop``."""
    with _stopped_by_interrupts(stop), ThreadPoolExecutor(1) as pool:
        _wait_for({pool.submit(function, *arguments)})


def map_apart(function: Callable[[int], None], stop: NDArray[np.int64], n: int) -> None:
    """``function(0)`` … ``function(n − 1)``, each a compiled call that checks ``stop``, on all cores."""
    with _stopped_by_interrupts(stop), ThreadPoolExecutor(default_threads()) as pool:
        _wait_for({pool.submit(function, k) for k in range(n)})


def _wait_for(waiting: set[Future[None]], progress: Callable[[], None] = lambda: None) -> None:
    """Wait for the futures, in short naps: a signal that reaches another thread does not wake this one."""
    while waiting:
        done, waiting = wait(waiting, timeout=POLL)
        for future in done:
            future.result()
        progress()


def _stopped_by_interrupts(stop: NDArray[np.int64]) -> AbstractContextManager[None]:
    return heard_interrupts(lambda: stop.fill(1))
