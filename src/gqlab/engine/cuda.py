"""The GPU: one thread for each run, the same compiled loop as on the CPU.

The arrays of a run stand in the thread's own memory, sized at compile time; where they would be too large for that,
in rows of global memory. The tables of the problem are read through the caches. A launch takes every run through some
whole epochs, so that Ctrl-C is heard between launches, and the runs are cut into groups that fit the GPU's memory.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import config, cuda

from gqlab.engine.loop import Plan, Records, Runs, advance
from gqlab.engine.tables import Chain
from gqlab.estimators import EMPTY, Reference, Work
from gqlab.rules import Samples

#: Threads of a block.
BLOCK = 128
#: Registers of a thread, at most: more threads at a time against more numbers at hand.
MAX_REGISTERS = 128
#: A run whose arrays hold at most this many numbers keeps them in its own thread's memory.
MOST_LOCAL = 2048
#: About this many updates of each run in a launch: a fraction of a second.
LAUNCH_UPDATES = 30_000
#: The part of the GPU's free memory that a launch may fill.
MEMORY_SHARE = 0.8


@functools.cache
def local_kernel(d: int, A: int, n_states: int, n_slots: int, dtype: Any) -> Any:
    """The kernel for small problems: every array of a run in its thread's own memory."""
    states, slots, slot_numbers = max(n_states, 1), max(n_slots, 1), max(n_slots * d, 1)

    @cuda.jit(max_registers=MAX_REGISTERS)
    def kernel(samples, chain, plan, runs, records, first, last, stop, batches, scratch, slots_scratch):
        thread = cuda.grid(1)
        run = first + thread
        if run >= last:
            return
        theta, omega = cuda.local.array(d, dtype), cuda.local.array(d, dtype)
        work = Work(
            cuda.local.array(A, dtype), cuda.local.array(A, dtype),
            cuda.local.array(d, dtype), cuda.local.array(d, dtype), cuda.local.array(d, dtype),
        )  # fmt: skip
        slot = cuda.local.array(states, np.uint32)
        for s in range(n_states):
            slot[s] = EMPTY
        reference = Reference(
            cuda.local.array(d, dtype), cuda.local.array(d, dtype), cuda.local.array(d, dtype),
            cuda.local.array(d, dtype), slot, cuda.local.array(slots, np.uint32),
            cuda.local.array(slots, dtype), cuda.local.array(slot_numbers, dtype),
        )  # fmt: skip
        batch = batches[:, thread]
        advance(samples, chain, plan, runs, records, run, stop, theta, omega, work, reference, batch, d, A)

    return kernel


@functools.cache
def global_kernel(n_states: int, n_slots: int) -> Any:
    """The kernel for large problems: every array of a run in rows of global memory."""

    @cuda.jit(max_registers=MAX_REGISTERS)
    def kernel(samples, chain, plan, runs, records, first, last, stop, batches, scratch, slots_scratch):
        thread = cuda.grid(1)
        run = first + thread
        if run >= last:
            return
        d = runs.theta.shape[1]
        A = (scratch.shape[1] - 9 * d - n_slots * (d + 1)) // 2
        row = scratch[thread]
        a, v = 9 * d, 9 * d + 2 * A
        work = Work(row[a : a + A], row[a + A : v], row[2 * d : 3 * d], row[3 * d : 4 * d], row[4 * d : 5 * d])
        slot = slots_scratch[thread]
        for s in range(n_states):
            slot[s] = EMPTY
        reference = Reference(
            row[5 * d : 6 * d], row[6 * d : 7 * d], row[7 * d : 8 * d], row[8 * d : 9 * d],
            slot[:n_states], slot[n_states:], row[v : v + n_slots], row[v + n_slots :],
        )  # fmt: skip
        batch = batches[:, thread]
        advance(
            samples, chain, plan, runs, records, run, stop, row[:d], row[d : 2 * d], work, reference, batch, d, A
        )  # fmt: skip

    return kernel


def advance_all(
    samples: Samples, chain: Chain, plan: Plan, runs: Runs, records: Records,
    features_and_actions: tuple[int, int], progress: Callable[[int], None],
) -> None:  # fmt: skip
    """Take every run to its end, in launches; ``progress`` hears the number of updates done."""
    d, A = features_and_actions
    M = int(plan.batch_size.max())
    n_states = int(np.diff(chain.first_state).max()) if M else 0
    n_slots = min(M, n_states)
    numbers = 9 * d + 2 * A + n_slots * (d + 1)
    dtype = runs.theta.dtype
    local = numbers + n_states + n_slots <= MOST_LOCAL
    kernel = local_kernel(d, A, n_states, n_slots, dtype) if local else global_kernel(n_states, n_slots)
    index_type = np.min_scalar_type(len(samples.pair) - 1)
    record_bytes = 2 * int(np.diff(np.append(plan.first_record, len(records.theta))).max()) * d * dtype.itemsize
    row_bytes = M * index_type.itemsize + record_bytes + 200 + 4 * d * dtype.itemsize
    row_bytes += 0 if local else numbers * dtype.itemsize + 4 * (n_states + n_slots)
    tables = on_device(samples), on_device(chain), cuda.to_device(np.zeros(1, dtype=np.int64))
    for first, last in _groups(len(plan.seed), row_bytes):
        part = slice(first, last)
        _advance_group(
            kernel, tables, Plan(*(column[part] for column in plan)), Runs(*(column[part] for column in runs)),
            records, (M, index_type, 0 if local else numbers, 0 if local else n_states + n_slots),
            lambda: progress(int(runs.updates.sum())),
        )  # fmt: skip


def _advance_group(
    kernel: Any, tables: tuple[Any, ...], plan: Plan, runs: Runs, records: Records,
    rows: tuple[int, Any, int, int], progress: Callable[[], None],
) -> None:  # fmt: skip
    """Take a group of runs, whose arrays fit the GPU's memory, to their end."""
    samples, chain, stop = tables
    M, index_type, numbers, slots = rows
    n = len(plan.seed)
    begin = int(plan.first_record[0])
    end = int(plan.first_record[-1] + -(-plan.n_updates[-1] // records.every) + 1)
    kept = Records(records.theta[begin:end], records.omega[begin:end], records.every)
    there = on_device(kept)
    state = on_device(runs)
    batches = cuda.device_array((max(M, 1), n), index_type)  # threads side by side: they write together
    scratch = cuda.device_array((n, max(numbers, 1)), runs.theta.dtype)
    slots_scratch = cuda.device_array((n, max(slots, 1)), np.uint32)
    moved = plan._replace(first_record=plan.first_record - begin)
    fixed = on_device(moved)
    epoch = np.maximum(plan.batch_size, 1)
    stride = np.maximum(1, LAUNCH_UPDATES // epoch) * epoch
    done = runs.updates.copy()
    while (done < plan.n_updates).any():
        done = np.minimum(done + stride, plan.n_updates)
        todo = fixed._replace(until=cuda.to_device(done))
        kernel[math.ceil(n / BLOCK), BLOCK](
            samples, chain, todo, state, there, 0, n, stop, batches, scratch, slots_scratch
        )  # fmt: skip
        cuda.synchronize()
        state.updates.copy_to_host(runs.updates)
        progress()
    for host, device in [*zip(runs, state, strict=True), (kept.theta, there.theta), (kept.omega, there.omega)]:
        host[...] = device.copy_to_host()


def _groups(n_runs: int, row_bytes: int) -> list[tuple[int, int]]:
    """Cut the runs into groups whose arrays fit the free memory."""
    free = _free_memory()
    size = min(n_runs, max(1, int(MEMORY_SHARE * free) // row_bytes))
    return [(k, min(k + size, n_runs)) for k in range(0, n_runs, size)]


def _free_memory() -> int:
    return 2**30 if config.ENABLE_CUDASIM else int(cuda.current_context().get_memory_info().free)


def on_device(values: Any) -> Any:
    """A named tuple with its arrays on the device."""
    return type(values)(
        *(cuda.to_device(np.ascontiguousarray(v)) if isinstance(v, np.ndarray) else v for v in values)
    )  # fmt: skip
