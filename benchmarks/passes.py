"""Passes over files that workers share: what a transition costs, and on paper what 10¹² of them would, or 10⁹ runs.

The first half is measured on one core. The second is arithmetic with these figures and with a cluster that is assumed.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import gqlab as gq
from benchmarks.data import DIM, N_ACTIONS, PAIRS, write
from benchmarks.sweeps import N_RUNS, N_SAMPLES, step_seconds, sweep_of
from benchmarks.table import Table
from gqlab.data.parts import MOST_PARTS, PIECE_ROWS, parts_of
from gqlab.estimators.svrg import GivenMeans
from gqlab.grids.driver import run_sweep
from gqlab.learn.fit import part_tasks
from gqlab.learn.fit.log_table import samples_of
from gqlab.learn.fit.passes import Passes, values_of
from gqlab.rules.memory import Sizes
from gqlab.tasks import Processes, Task, Threads, run_tasks

#: The cluster on paper: cores, bytes a second from the files' storage, and to and from the driver.
CORES, STORAGE, NETWORK = 1000, 10e9, 1.25e9
#: What is to be done there: transitions, updates of an epoch's inner loop; and runs of a sweep.
TRANSITIONS, UPDATES, RUNS = 10**12, 10**8, 10**9
#: Rows that least squares, which cost more, are measured on.
FEW = 2**17


class Costs(NamedTuple):
    """What was measured of one algorithm."""

    name: str
    row_seconds: float  # of a core, for a transition in a pass
    file_bytes: float  # of a transition
    sent: int  # bytes to and from a worker, for each part
    add_seconds: float  # of the driver, for the result of a part


def seconds_of(function: Callable[[], Any]) -> float:
    """Processor time of the second call: the first compiles."""
    function()
    begun = time.process_time()
    function()
    return time.process_time() - begun


def shared_by(files: Any, encoder: Any) -> dict[str, Any]:
    """What tasks get first."""
    about = {"target": gq.Greedy(), "n_actions": N_ACTIONS, "discount": 0.99}
    return {"files": files, "piece_rows": PIECE_ROWS, "encoder": encoder.fit(np.zeros((1, DIM))), **about}


def add_seconds(size: int) -> float:
    """To add so many numbers to a sum."""
    total, new = np.zeros((2, size))
    return seconds_of(lambda: [np.add(total, new, out=total) for _ in range(20)]) / 20


def update_seconds(shared: Mapping[str, Any], part: Any, d: int) -> float:
    """One inner step, where the model is."""
    algorithm, n = gq.WholeDataVRGreedyGQ(0.01, 0.01, epoch_updates=FEW), 2**15
    [log] = part_tasks.sample(shared, part, 0, part.n_rows, n, [0])
    samples = samples_of(log, shared["encoder"], shared["target"], N_ACTIONS)
    sizes = Sizes(d, N_ACTIONS, len(log.features), n)
    passes = Passes(samples, sizes, algorithm, GivenMeans, values_of(algorithm, GivenMeans))
    passes.advance(n)
    begun = time.process_time()
    passes.advance(3 * n)
    return (time.process_time() - begun) / (2 * n)


def measured(table: Table, n_rows: int) -> tuple[list[Costs], float, float]:
    """The costs of a pass for both algorithms, those of an inner step, and the bytes of a row that is sent for it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write(path, n_rows, "columns")
        files = gq.Transitions.from_parquet(str(path))._source
        parts, file_bytes = parts_of(files), path.stat().st_size / n_rows  # type: ignore[arg-type]
        tiles = shared_by(files, gq.TileCoder(4, 8, [0.0] * DIM, [1.0] * DIM, groups=PAIRS))
        waves = shared_by(files, gq.Fourier(1, [0.0] * DIM, [1.0] * DIM))
        d = N_ACTIONS * tiles["encoder"].n_features_out_
        K = waves["encoder"].n_features_out_
        theta, wide = np.zeros(d), np.zeros((N_ACTIONS, K))
        look = seconds_of(lambda: [part_tasks.look(tiles, part, 100) for part in parts]) / n_rows
        mean = seconds_of(lambda: [part_tasks.reference(tiles, part, theta, theta) for part in parts]) / n_rows
        least = seconds_of(lambda: part_tasks.measure(waves, parts[0], wide)) / parts[0].n_rows
        update = update_seconds(tiles, parts[0], d)
        [log] = part_tasks.sample(tiles, parts[0], 0, parts[0].n_rows, 2**12, [0])
        row = sum(np.asarray(array).nbytes for array in log if array is not None) / 2**12
    table.row("a transition in a file", file_bytes, "bytes")
    table.row("read, checked, counted", 1e9 * look, "ns a transition")
    table.row(f"mean G and H, 16 tiles of {d:,} features", 1e9 * mean, "ns a transition")
    table.row(f"least squares, {K} features of a state, d = {4 * K:,}", 1e9 * least, "ns a transition")
    table.row("an inner step, where the model is", 1e9 * update, "ns")
    table.row("a row that is sent there, encoded", row, "bytes")
    means = Costs("VR-Greedy-GQ, an epoch", mean, file_bytes, 4 * 8 * d, add_seconds(2 * d))
    size = wide.size
    squares = Costs("least squares, an evaluation", least, file_bytes, 8 * size * (size + 3), add_seconds(size**2))
    return [means, squares], update, row


def pass_on_paper(table: Table, costs: Costs, others: Mapping[str, float]) -> None:
    """The hours of each resource for one pass, and which of them is needed longest."""
    table.note(f"\n{costs.name}: {TRANSITIONS:.0e} transitions in {MOST_PARTS:,} parts")
    table.row("  read from the files", TRANSITIONS * costs.file_bytes / 1e12, "TB")
    table.row("  core hours", TRANSITIONS * costs.row_seconds / 3600, "h")
    table.row("  to and from the driver", MOST_PARTS * costs.sent / 1e9, "GB")
    hours = {
        f"{CORES:,} cores": TRANSITIONS * costs.row_seconds / CORES / 3600,
        f"storage at {STORAGE / 1e9:g} GB/s": TRANSITIONS * costs.file_bytes / STORAGE / 3600,
        f"the driver's network at {NETWORK / 1e9:g} GB/s": MOST_PARTS * costs.sent / NETWORK / 3600,
        "the driver's sums": MOST_PARTS * costs.add_seconds / 3600,
        **others,
    }
    show_hours(table, hours)


def show_hours(table: Table, hours: Mapping[str, float]) -> None:
    """Each resource, and the one that is needed longest."""
    for name, value in hours.items():
        table.row(f"  {name}", value, "h")
    table.note(f"  saturates first: {max(hours, key=lambda name: hours[name])}")


def empty(shared: Any) -> None:
    """A task that does nothing: all that is left is the driver's work."""


def sweep_on_paper(table: Table) -> None:
    """A sweep of 10⁹ runs: the step's cost, the store, and how many tasks a driver can hand out."""
    step = step_seconds()
    sweep = sweep_of(1000, N_RUNS)
    with tempfile.TemporaryDirectory() as folder:
        run_sweep(sweep, Threads(1), folder)
        cell_bytes = sum(path.stat().st_size for path in Path(folder).rglob("*.npz")) / len(sweep)
    cells_per_task = max(1, round(2.0 / (N_RUNS * N_SAMPLES * step)))  # tasks of 1 to 4 seconds
    with Processes(1) as engine:
        engine.prepare({})
        list(run_tasks(engine, [Task(empty)]))
        begun = time.process_time()
        list(run_tasks(engine, (Task(empty) for _ in range(2000))))
        handing = (time.process_time() - begun) / 2000
    cells, core_hours = RUNS / N_RUNS, RUNS * N_SAMPLES * step / 3600
    n_tasks = cells / cells_per_task
    table.note(f"\nA sweep of {RUNS:.0e} runs of {N_SAMPLES:,} samples, {N_RUNS} runs in a cell, Garnet(5,3,2,4)")
    table.row("  a sample", 1e9 * step, "ns")
    table.row("  a cell in the store", cell_bytes, "bytes", f"{cells:.0e} cells: {cells * cell_bytes / 1e9:,.3g} GB")
    table.row("  cells in a task of 2 s", cells_per_task, "cells", f"{n_tasks:.3g} tasks, as many files")
    table.row("  the driver, for a task", 1e6 * handing, "us", f"keeps {2 / handing:,.0f} cores busy")
    table.row("  core hours", core_hours, "h")
    hours = {f"{CORES:,} cores": core_hours / CORES, "the driver's tasks": n_tasks * handing / 3600}
    show_hours(table, hours | {"the store's bytes": cells * cell_bytes / STORAGE / 3600})


def costs(table: Table, n_rows: int) -> None:
    """All of it, from files of ``n_rows`` rows."""
    table.section(f"Passes over parts of files: {n_rows:,} rows of {DIM} + {DIM} float32, one core, processor time")
    both, update, row = measured(table, n_rows)
    table.section(f"On paper, from these figures: {CORES:,} cores, files at {STORAGE / 1e9:g} GB/s")
    inner = {
        f"{UPDATES:.0e} inner steps": UPDATES * update / 3600,
        "their rows to the driver": UPDATES * row / NETWORK / 3600,
    }
    pass_on_paper(table, both[0], inner)
    pass_on_paper(table, both[1], {})
    sweep_on_paper(table)
