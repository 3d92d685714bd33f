"""The GPU: launches of the kernels over blocks of runs that fit its memory.

A launch takes every run through a number of updates that ends where no estimator is in the middle of a batch, so that
Ctrl-C is handled between launches.
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
from gqlab.engine.layout import Group
from gqlab.engine.loop import DeviceTask, Parts, Records, RunPlan, Runs
from gqlab.engine.records import record_count
from gqlab.rules.dispatch import is_parameter

#: Numbers d·A that pass through the updates of each run in a launch: a fraction of a second.
LAUNCH_NUMBERS = 400_000
#: Bytes of a page of the host's memory.
PAGE = 4096
#: The part of the GPU's free memory that a launch may fill.
MEMORY_SHARE = 0.8


def advance_all(group: Group, progress: Callable[[], None]) -> None:
    """Take every run to its end; ``progress`` is called between launches."""
    task = group.task
    shape = kernel_shape(group)
    shared = task._replace(tables=on_device(task.tables), schedule=task.schedule, plan=None, runs=None, records=None)
    for first, last in _blocks(group, shape):
        _advance_block(group, shape, shared, slice(first, last), progress)


def kernel_shape(group: Group) -> Shape:
    """Which kernel the group needs."""
    local = group.d * group.A <= cuda_kernels.MOST_LOCAL
    n_samples = len(group.task.tables.samples.row)
    dtype = group.settings.dtype
    return Shape(
        kinds=group.kinds,
        places=cuda_kernels.place_arrays(group.arrays(), local, np.min_scalar_type(n_samples - 1)),
        d=group.d if local else 0,
        A=group.A if local else 0,
        dtype=dtype,
        tables=cuda_kernels.shared_tables(group.task.tables, group.d, dtype) if local else (),
    )


def _advance_block(group: Group, shape: Shape, shared: DeviceTask, rows: slice, progress: Callable[[], None]) -> None:
    """Take a block of runs to their end."""
    task = group.task
    plan, runs = RunPlan(*(column[rows] for column in task.plan)), Runs(*(column[rows] for column in task.runs))
    n = len(plan.seed)
    begin = int(plan.first_record[0])
    end = int(plan.first_record[-1]) + record_count(int(plan.n_updates[-1]), task.records.every)
    every = task.records.every
    theta, omega, watched = (column[begin:end] for column in task.records[:3])
    records = Records(theta=theta, omega=omega, watched=watched, every=every)
    fresh = not runs.updates.any()
    on_gpu = shared._replace(
        schedule=on_device(type(task.schedule)(*(column[rows] for column in task.schedule))),
        plan=on_device(plan._replace(first_record=plan.first_record - begin)),
        runs=on_device(runs),
        records=_room(records) if fresh else on_device(records),
    )
    kernel = cuda_kernels.make_kernel(shape)
    # Threads stand side by side in the last axis: what they write at the same time is written together.
    scratch = tuple(cuda.device_array((size, n), dtype) for dtype, size in shape.columns.items()) or (
        cuda.device_array((1, 1), np.uint8),
    )
    layout, stop = _parameters(group, rows), cuda.to_device(np.zeros(1, dtype=np.int64))
    done, stride = runs.updates.copy(), _stride(group)[rows]
    while (done < plan.n_updates).any():
        done = np.minimum(_whole(group, rows, done + stride), plan.n_updates)
        todo = on_gpu._replace(plan=on_gpu.plan._replace(until=cuda.to_device(done)))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*low occupancy")  # few runs leave most of the GPU idle, which is fine
            kernel[math.ceil(n / cuda_kernels.BLOCK), cuda_kernels.BLOCK](
                todo, layout, scratch, n, stop, group.d, group.A
            )
        if fresh:
            _touch(records)
            fresh = False
        cuda.synchronize()
        on_gpu.runs.updates.copy_to_host(runs.updates)
        progress()
    for host, device in zip([*runs, *records[:3]], [*on_gpu.runs, *on_gpu.records[:3]], strict=True):
        if host.size:
            device.copy_to_host(host)


def _touch(records: Records) -> None:
    """Write one number into every page of the records, while the GPU works: they are still empty.

    The system maps fresh memory page by page on the first write: done at the end, that would cost more than the copy.
    """
    for column in records[:3]:
        column.reshape(-1)[:: PAGE // column.itemsize] = 0


def _stride(group: Group) -> Any:
    """About how many updates of each run a launch makes."""
    return np.maximum(1, LAUNCH_NUMBERS // group.task.plan.cost)


def _whole(group: Group, rows: slice, updates: Any) -> Any:
    """The first updates, these or later, at which no run is in the middle of a batch."""
    out, cell_of = updates.copy(), group.per_run(range(len(group.cells)))[rows]
    for k in np.unique(cell_of):
        of_cell = cell_of == k
        out[of_cell] = group.cells[k].algorithm.whole(updates[of_cell])
    return out


def _parameters(group: Group, rows: slice) -> Parts:
    """The parts with their parameters alone: their arrays are made in the kernel."""
    parts = []
    for layout in group.layout:
        kind = type(layout)
        values = (
            cuda.to_device(np.ascontiguousarray(value[rows])) if is_parameter(kind, field) else 0
            for field, value in zip(kind._fields, layout, strict=True)
        )
        parts.append(kind(*values))
    return Parts(*parts)


def _blocks(group: Group, shape: Shape) -> list[tuple[int, int]]:
    """Cut the runs into blocks whose arrays fit the free memory."""
    task = group.task
    n_runs = len(task.plan.seed)
    n_records = int(record_count(task.plan.n_updates, task.records.every).max())
    row_bytes = sum(column.itemsize * math.prod(column.shape[1:]) for column in task.records[:3] if column.size)
    state_bytes = sum(column.itemsize * math.prod(column.shape[1:]) for column in [*task.runs, *task.plan])
    scratch_bytes = sum(np.dtype(dtype).itemsize * size for dtype, size in shape.columns.items())
    run_bytes = scratch_bytes + n_records * row_bytes + 2 * state_bytes + 128
    size = min(n_runs, max(1, int(MEMORY_SHARE * free_memory()) // run_bytes))
    return [(k, min(k + size, n_runs)) for k in range(0, n_runs, size)]


def free_memory() -> int:
    """Bytes of the GPU's memory that are free."""
    return 2**30 if config.ENABLE_CUDASIM else int(cuda.current_context().get_memory_info().free)


def _room(records: Records) -> Records:
    """Uninitialised space on the device for the records."""
    theta, omega, watched = (cuda.device_array(_not_empty(column.shape), column.dtype) for column in records[:3])
    return Records(theta=theta, omega=omega, watched=watched, every=records.every)


def _not_empty(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(max(1, n) for n in shape)


def on_device(value: Any) -> Any:
    """A named tuple with its arrays on the device."""
    if isinstance(value, np.ndarray):
        whole = value if value.size else np.zeros(_not_empty(value.shape), value.dtype)
        return cuda.to_device(np.ascontiguousarray(whole))
    if isinstance(value, tuple):
        inner = [on_device(part) for part in value]
        return type(value)(*inner) if hasattr(value, "_fields") else tuple(inner)
    return value
