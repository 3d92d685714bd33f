"""The CPU: blocks of runs on threads, each thread inside one compiled call that holds no lock of the interpreter."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from gqlab.engine.compiled import entry
from gqlab.engine.loop import Plan, Records, Runs, advance
from gqlab.engine.tables import Chain
from gqlab.engine.workspace import length, sizes, work_array
from gqlab.estimators import EMPTY, Reference, Work
from gqlab.rules import Samples

#: Seconds between two looks at the work: how often the progress bar moves.
POLL = 0.05


@entry
def advance_block(samples, chain, plan, runs, records, first, last, stop, d_size, A_size):
    """Advance the runs ``first`` … ``last − 1``, one after another."""
    d, A = length(d_size), length(A_size)
    like = runs.theta
    theta, omega = work_array(d_size, like), work_array(d_size, like)
    work = Work(
        work_array(A_size, like), work_array(A_size, like),
        work_array(d_size, like), work_array(d_size, like), work_array(d_size, like),
    )  # fmt: skip
    M = 0
    for run in range(first, last):
        M = max(M, plan.batch_size[run])
    n_states = 0  # of the largest problem with batches
    if M > 0:
        for run in range(first, last):
            problem = plan.problem[run]
            n_states = max(n_states, chain.first_state[problem + 1] - chain.first_state[problem])
    n_slots = min(M, n_states)
    slot = np.full(n_states, EMPTY, dtype=np.uint32)
    reference = Reference(
        work_array(d_size, like), work_array(d_size, like), work_array(d_size, like), work_array(d_size, like),
        slot, np.empty(n_slots, dtype=np.uint32),
        np.empty(n_slots, dtype=like.dtype), np.empty(n_slots * d, dtype=like.dtype),
    )  # fmt: skip
    batch = np.empty(M, dtype=np.uint32)
    for run in range(first, last):
        advance(samples, chain, plan, runs, records, run, stop, theta, omega, work, reference, batch, d, A)


def default_threads() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def advance_all(
    samples: Samples, chain: Chain, plan: Plan, runs: Runs, records: Records,
    features_and_actions: tuple[int, int], threads: int, progress: Callable[[int], None],
    advance_block: Callable[..., None] = advance_block,
) -> None:  # fmt: skip
    """Take every run to its end; ``progress`` hears the number of updates done. Ctrl-C stops it within milliseconds.

    ``advance_block`` is the compiled loop of the algorithm.
    """
    n_runs = len(plan.seed)
    size = max(1, -(-n_runs // (8 * threads)))  # some blocks for each thread, so that none waits long for the others
    stop = np.zeros(1, dtype=np.int64)
    d_size, A_size = sizes(*features_and_actions)

    def advance_from(first: int, last: int) -> None:
        advance_block(samples, chain, plan, runs, records, first, last, stop, d_size, A_size)

    with _heard_interrupts(stop):
        advance_from(0, 0)  # compile once, before the threads
        with ThreadPoolExecutor(threads) as pool:
            try:
                waiting = {pool.submit(advance_from, k, min(k + size, n_runs)) for k in range(0, n_runs, size)}
                while waiting:
                    done, waiting = wait(waiting, timeout=POLL)
                    for future in done:
                        future.result()
                    progress(int(runs.updates.sum()))
            except BaseException:
                stop[0] = 1
                pool.shutdown(wait=False, cancel_futures=True)
                raise


@contextmanager
def _heard_interrupts(stop: NDArray[np.int64]) -> Iterator[None]:
    """Ctrl-C sets ``stop``, and becomes a KeyboardInterrupt when the compiled code has returned.

    An exception that is raised wherever the interpreter happens to be can be lost, in a callback of the compiler or
    between two statements; a flag cannot. A handler of the user's own, and other threads than the main one, are left
    alone.
    """
    default = threading.current_thread() is threading.main_thread() and (
        signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    heard = []

    def hear(*_: object) -> None:
        heard.append(True)
        stop[0] = 1

    if default:
        signal.signal(signal.SIGINT, hear)
    try:
        yield
    finally:
        if default:
            signal.signal(signal.SIGINT, signal.default_int_handler)
    if heard:
        raise KeyboardInterrupt
