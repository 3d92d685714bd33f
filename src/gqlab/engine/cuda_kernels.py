"""The GPU's kernels: one thread for each run, around the same compiled loop as on the CPU.

What every thread touches at its own places is kept as close to it as it fits:

* near arrays (θ, ω and the like): the thread's registers or own memory, sized at compile time; for large problems
  columns of global memory.
* far arrays: shared memory, the smallest first, as long as they fit; then columns of global memory.
* the tables of the problem: shared memory where they fit, else global memory through the caches.

A kernel is written for the kinds of its parts and the places of their arrays: compiled code cannot loop over the
fields of a named tuple, and what is on a thread's stack must be made in the kernel itself.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numba import config, cuda

from gqlab.engine.loop import DeviceTask, Parts, advance
from gqlab.rules.dispatch import is_parameter, rule
from gqlab.rules.gradient import Dense, Samples
from gqlab.rules.memory import SAMPLE, Array
from gqlab.samples.streams import Chain
from gqlab.samples.tables import Tables

#: Threads of a block.
BLOCK = 128
#: The most registers of a thread, for numbers of 4 and of 8 bytes: a compromise between more threads at a time and more
#: numbers at hand. Threads with at most so many near numbers need fewer.
MAX_REGISTERS, FEW_REGISTERS, FEW_NEAR = {4: 128, 8: 168}, {4: 96, 8: 128}, 40
#: Problems with at most this many numbers d·A have near arrays of the threads' own.
MOST_LOCAL = 256
#: Bytes of a block's shared memory for far arrays, and for the tables: together under the 48 KiB that all GPUs have.
MOST_SHARED_ARRAYS = 35 << 10
MOST_SHARED_TABLES = 12 << 10

LOCAL, SHARED, COLUMN = "local", "shared", "column"

#: The columns of the tables that every update reads: (part, field, how many entries, their dtype; None: the run's).
TABLE_COLUMNS = (
    ("features", "phi", "numbers", None),
    ("samples", "reward", "samples", None),
    ("samples", "discount", "samples", None),
    ("samples", "row", "samples", np.uint32),
    ("samples", "next_row", "samples", np.uint32),
    ("stream", "alias", "samples", np.uint32),
    ("stream", "threshold", "samples", np.uint64),
    ("stream", "next_state", "samples", np.uint32),
    ("stream", "first", "firsts", np.uint32),
    ("stream", "terminal", "states", np.bool_),
)


class ArrayPlace(NamedTuple):
    """Where an array of a thread is."""

    part: str  # "point", "estimator" or "watch"
    field: str
    where: str  # LOCAL, SHARED or COLUMN
    size: int
    dtype: str
    fill: float
    first: int  # the first of its columns among those of its dtype


class Shape(NamedTuple):
    """All that decides the text of a kernel."""

    kinds: tuple[type, type, type]  # of the point, the estimator and the watch
    places: tuple[ArrayPlace, ...]
    d: int  # 0: known at run time
    A: int
    dtype: str
    tables: tuple[tuple[str, int], ...]  # the entries of the tables in shared memory, by name; empty: none are

    @property
    def columns(self) -> dict[str, int]:
        """How many columns of each dtype a run needs in global memory."""
        out: dict[str, int] = {}
        for place in self.places:
            if place.where == COLUMN:
                out[place.dtype] = out.get(place.dtype, 0) + place.size
        return out


def place_arrays(
    arrays: Iterable[tuple[str, str, Array, np.dtype[Any]]], local: bool, sample_type: np.dtype[Any]
) -> tuple[ArrayPlace, ...]:
    """Where the arrays (part, field, declaration, dtype) of a thread go."""
    found = [
        (part, field, array, sample_type if array.kind == SAMPLE else dtype) for part, field, array, dtype in arrays
    ]
    shared, used = set(), 0
    if local:
        for part, field, array, dtype in sorted(found, key=lambda f: f[2].size * f[3].itemsize):
            size = BLOCK * (array.size | 1) * dtype.itemsize
            if not array.near and used + size <= MOST_SHARED_ARRAYS:
                used += size
                shared.add((part, field))
    columns: dict[str, int] = {}
    places = []
    for part, field, array, dtype in found:
        where = LOCAL if array.near and local else SHARED if (part, field) in shared else COLUMN
        first = columns.get(dtype.name, 0)
        place = ArrayPlace(
            part=part, field=field, where=where, size=array.size, dtype=dtype.name, fill=array.fill, first=first
        )
        places.append(place)
        if where == COLUMN:
            columns[dtype.name] = first + array.size
    return tuple(places)


def shared_tables(tables: Tables, d: int, dtype: str) -> tuple[tuple[str, int], ...]:
    """The entries of the tables that every update reads, where they fit into shared memory; else nothing."""
    samples, stream = tables.samples, tables.stream
    entries = {
        "numbers": len(samples.features.phi),
        "samples": len(samples.row),
        "firsts": len(stream.first),
        "states": len(stream.terminal),
    }
    size = sum(entries[count] * np.dtype(kind or dtype).itemsize for _, _, count, kind in TABLE_COLUMNS)
    return tuple(entries.items()) if size <= MOST_SHARED_TABLES else ()


@cuda.jit(device=True)
def copy_together(source, target):
    """The threads of a block copy an array."""
    for k in range(cuda.threadIdx.x, len(source), cuda.blockDim.x):
        target[k] = source[k]


@cuda.jit(device=True)
def fill_up(array, fill):
    for k in range(len(array)):
        array[k] = fill


@functools.cache
def make_kernel(shape: Shape) -> Any:
    """The kernel for parts of this shape."""
    scope: dict[str, Any] = {
        "np": np, "cuda": cuda, "advance": rule(advance), "fill_up": fill_up, "copy_together": copy_together,
        "BLOCK": BLOCK,
        "Dense": Dense, "Samples": Samples, "Chain": Chain, "Tables": Tables, "DeviceTask": DeviceTask, "Parts": Parts,
        "Point": shape.kinds[0], "Estimator": shape.kinds[1], "Watch": shape.kinds[2],
    }  # fmt: skip
    scope.update({name: np.dtype(name).type for name in _dtypes(shape)})
    exec(kernel_text(shape), scope)  # noqa: S102 - the text comes from the fields of classes alone
    # The simulator takes no options.
    near = sum(place.size for place in shape.places if place.where == LOCAL)
    limit = (FEW_REGISTERS if near <= FEW_NEAR else MAX_REGISTERS)[np.dtype(shape.dtype).itemsize]
    options = {} if config.ENABLE_CUDASIM else {"max_registers": limit}
    return cuda.jit(**options)(scope["kernel"])


def _dtypes(shape: Shape) -> set[str]:
    used = {place.dtype for place in shape.places}
    return used | {np.dtype(kind or shape.dtype).name for *_, kind in TABLE_COLUMNS}


def kernel_text(shape: Shape) -> str:
    """The source of a kernel."""
    lines = ["def kernel(task, layout, scratch, n_runs, stop, d, A):"]
    lines += _table_lines(shape)
    lines += ["run = cuda.grid(1)", "if run >= n_runs:", "    return", "thread = cuda.threadIdx.x"]
    for k, place in enumerate(shape.places):
        if place.where == LOCAL:
            lines.append(f"a{k} = cuda.local.array({max(1, place.size)}, {place.dtype})")
        elif place.where == SHARED:  # rows of odd length: the same entry of neighbouring threads is in different banks
            row = f"cuda.shared.array((BLOCK, {place.size | 1}), {place.dtype})"
            lines.append(f"a{k} = {row}[thread, :{place.size}]")
        else:
            column = list(shape.columns).index(place.dtype)
            lines.append(f"a{k} = scratch[{column}][{place.first} : {place.first + place.size}, run]")
        lines.append(f"fill_up(a{k}, {place.dtype}({place.fill}))")
    parts = [
        f"{name}={name.title()}({_fields(name, kind, shape)})"
        for name, kind in zip(("point", "estimator", "watch"), shape.kinds, strict=True)
    ]
    lines.append(f"parts = Parts({', '.join(parts)})")
    d, A = (shape.d, shape.A) if shape.d else ("d", "A")
    lines.append(f"advance(task, parts, run, run + 1, stop, {d}, {A})")
    return "\n    ".join(lines)


def _fields(name: str, kind: Any, shape: Shape) -> str:
    array = {place.field: f"a{k}" for k, place in enumerate(shape.places) if place.part == name}
    return ", ".join(
        f"{field}=layout.{name}.{field}" if is_parameter(kind, field) else f"{field}={array[field]}"
        for field in kind._fields
    )


def _table_lines(shape: Shape) -> list[str]:
    """Move the tables into shared memory, and make a task that reads them there."""
    if not shape.tables:
        return []
    entries, lines = dict(shape.tables), []
    source = {
        "features": "task.tables.samples.features",
        "samples": "task.tables.samples",
        "stream": "task.tables.stream",
    }
    moved: dict[str, list[str]] = {"features": [], "samples": [], "stream": []}
    for part, field, count, kind in TABLE_COLUMNS:
        name = f"{part}_{field}"
        lines.append(f"{name} = cuda.shared.array({entries[count]}, {np.dtype(kind or shape.dtype).name})")
        lines.append(f"copy_together({source[part]}.{field}, {name})")
        moved[part].append(field)
    lines.append("cuda.syncthreads()")

    def rebuilt(kind: Any, part: str, given: dict[str, str]) -> str:
        values = {f: f"{part}_{f}" if f in moved[part] else f"{source[part]}.{f}" for f in kind._fields}
        return f"{kind.__name__}({', '.join(f'{f}={v}' for f, v in (values | given).items())})"

    samples = rebuilt(Samples, "samples", {"features": rebuilt(Dense, "features", {})})
    tables = f"Tables(samples={samples}, stream={rebuilt(Chain, 'stream', {})}, exact=task.tables.exact)"
    others = ", ".join(f"{field}=task.{field}" for field in DeviceTask._fields if field != "tables")
    lines.append(f"task = DeviceTask(tables={tables}, {others})")
    return lines
