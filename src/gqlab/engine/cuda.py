"""The GPU: launches of the kernels over groups of runs that fit its memory.

A launch takes every run through some whole epochs, so that Ctrl-C is heard between launches.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import config, cuda

from gqlab.engine import cuda_kernels
from gqlab.engine.cuda_kernels import Shape
from gqlab.engine.loop import Plan, Records, Runs
from gqlab.engine.tables import Chain
from gqlab.rules import Samples

#: Numbers d·A that pass through the updates of each run in a launch: a fraction of a second.
LAUNCH_NUMBERS = 400_000
#: The part of the GPU's free memory that a launch may fill.
MEMORY_SHARE = 0.8


def advance_all(
    samples: Samples, chain: Chain, plan: Plan, runs: Runs, records: Records,
    features_and_actions: tuple[int, int], progress: Callable[[int], None],
) -> None:  # fmt: skip
    """Take every run to its end; ``progress`` hears the number of updates done."""
    d, A = features_and_actions
    M = int(plan.batch_size.max())
    n_states = int(np.diff(chain.first_state).max()) if M else 0
    dtype = runs.theta.dtype
    shape = Shape(
        d, A, n_states, min(M, n_states), len(samples.pair), len(samples.phi) // d, len(chain.terminal), dtype.itemsize
    )  # fmt: skip
    index_type = np.min_scalar_type(len(samples.pair) - 1)
    there = on_device(samples), on_device(chain)
    for first, last in _groups(plan, records, shape, M * index_type.itemsize):
        _advance_group(
            shape, there, Plan(*(column[first:last] for column in plan)),
            Runs(*(column[first:last] for column in runs)), records, index_type,
            lambda: progress(int(runs.updates.sum())),
        )  # fmt: skip


def _advance_group(
    shape: Shape, tables: tuple[Any, Any], plan: Plan, runs: Runs, records: Records, index_type: Any,
    progress: Callable[[], None],
) -> None:  # fmt: skip
    """Take a group of runs to their end."""
    kernel = cuda_kernels.make_kernel(shape, runs.theta.dtype)
    n = len(plan.seed)
    begin = int(plan.first_record[0])
    end = int(plan.first_record[-1] + -(-plan.n_updates[-1] // records.every) + 1)
    kept = Records(records.theta[begin:end], records.omega[begin:end], records.every)
    runs_there = on_device(runs)
    records_there = (
        on_device(kept) if runs.updates.any() else kept._replace(theta=_room(kept.theta), omega=_room(kept.omega))
    )
    plan_there = on_device(plan._replace(first_record=plan.first_record - begin))
    numbers, indices = shape.scratch
    # Threads stand side by side in the last axis: what they write at the same time is written together.
    scratch = (
        cuda.device_array((max(int(plan.batch_size.max()), 1), n), index_type),
        cuda.device_array((max(numbers, 1), n), runs.theta.dtype),
        cuda.device_array((max(indices, 1), n), np.uint32),
    )
    stop = cuda.to_device(np.zeros(1, dtype=np.int64))
    epoch = np.maximum(plan.batch_size, 1)
    stride = np.maximum(1, LAUNCH_NUMBERS // (shape.d * shape.A) // epoch) * epoch
    done = runs.updates.copy()
    while (done < plan.n_updates).any():
        done = np.minimum(done + stride, plan.n_updates)
        todo = plan_there._replace(until=cuda.to_device(done))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*low occupancy")  # few runs leave most of the GPU idle: so be it
            kernel[math.ceil(n / cuda_kernels.BLOCK), cuda_kernels.BLOCK](
                *tables, todo, runs_there, records_there, n, stop, *scratch
            )  # fmt: skip
        cuda.synchronize()
        runs_there.updates.copy_to_host(runs.updates)
        progress()
    for host, device in zip([*runs, *kept[:2]], [*runs_there, *records_there[:2]], strict=True):
        device.copy_to_host(host)


def _groups(plan: Plan, records: Records, shape: Shape, batch_bytes: int) -> list[tuple[int, int]]:
    """Cut the runs into groups whose arrays fit the free memory."""
    n_runs = len(plan.seed)
    n_records = int(np.diff(np.append(plan.first_record, len(records.theta))).max())
    numbers, indices = shape.scratch
    state_bytes = 128 + 3 * shape.d * shape.itemsize
    run_bytes = batch_bytes + (numbers + 2 * n_records * shape.d) * shape.itemsize + 4 * indices + state_bytes
    size = min(n_runs, max(1, int(MEMORY_SHARE * free_memory()) // run_bytes))
    return [(k, min(k + size, n_runs)) for k in range(0, n_runs, size)]


def free_memory() -> int:
    """Bytes of the GPU's memory that are free."""
    return 2**30 if config.ENABLE_CUDASIM else int(cuda.current_context().get_memory_info().free)


def _room(like: Any) -> Any:
    """Room on the device for as much, nothing in it yet."""
    return cuda.device_array(like.shape, like.dtype)


def on_device(values: Any) -> Any:
    """A named tuple with its arrays on the device."""
    return type(values)(
        *(cuda.to_device(np.ascontiguousarray(v)) if isinstance(v, np.ndarray) else v for v in values)
    )  # fmt: skip
