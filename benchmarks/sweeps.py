"""Sweeps: many small cells on two workers against threads of one process, and a large sweep against its step's cost.

On a machine that is shared, the time on the wall tells of the others: the processor time of the work stands beside it.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

import gqlab as gq
from benchmarks.problems import RADIUS, paper_garnet
from benchmarks.table import Table, best_of
from gqlab.engine.cells import Settings
from gqlab.grids.batches import Batches, run_cells
from gqlab.grids.description import Sweep, axes_of
from gqlab.grids.store import create_store
from gqlab.tasks import Engine, Processes, Task, Threads, run_tasks

#: Workers, and the samples of a run.
WORKERS, N_SAMPLES = 2, 10_000
#: Tasks of each worker that are not counted: it begins, and loads compiled code.
BEGINNING = 2
#: Runs of a cell of the large sweep.
N_RUNS = 100


def sweep_of(n_cells: int, n_runs: int) -> Sweep:
    """So many cells of Greedy-GQ on Garnet(5,3,2,4)."""
    algorithms = [gq.GreedyGQ(0.001 * k, 0.01, radius=RADIUS) for k in range(1, 11)]
    problem = paper_garnet()
    settings = Settings(N_SAMPLES, N_SAMPLES, threads=1, progress=False)
    return Sweep([problem], axes_of([problem], algorithms, range(n_cells // 10)), n_runs, settings)


def timed_cells(shared: Mapping[str, Any], numbers: Any) -> float:
    """Run and keep cells; the seconds of processor time that this took."""
    begun = time.process_time()
    run_cells(shared, numbers)
    return time.process_time() - begun


def measure(engine: Engine, sweep: Sweep) -> tuple[float, float]:
    """Seconds on the wall and of processor time for a cell, once every worker has begun."""
    counted, wall, cpu, begun = 0, 0.0, 0.0, 0.0
    own = time.process_time()
    with tempfile.TemporaryDirectory() as folder, create_store(folder, sweep.description).shown() as files, engine:
        engine.prepare({"sweep": sweep, "files": files})
        batches = Batches(sweep, np.ones(len(sweep), dtype=bool), engine.workers)
        for k, (task, outcome) in enumerate(
            run_tasks(engine, (Task(timed_cells, task.arguments) for task in batches)), 1
        ):
            if outcome.error:
                raise RuntimeError(outcome.error)
            batches.learn(task.arguments[0], outcome.seconds)
            if k > BEGINNING * engine.workers:
                counted += len(task.arguments[0])
                cpu += outcome.value
                wall = time.perf_counter() - begun
            elif k == BEGINNING * engine.workers:
                begun, own = time.perf_counter(), time.process_time()
    # In this process the tasks' clocks tick for all of them together; elsewhere this process works besides.
    total = time.process_time() - own + (0 if isinstance(engine, Threads) else cpu)
    return wall / counted, total / counted


def costs(table: Table, scale: float, n_runs: int) -> None:
    """All of it; the large sweep has ``n_runs`` runs."""
    n_cells = int(40_000 * scale) // 10 * 10
    table.section(f"Sweeps: {n_cells:,} cells of one run of {N_SAMPLES:,} samples, kept in a store, {WORKERS} workers")
    small = sweep_of(n_cells, 1)
    figures = {}
    for name, engine in {"threads": Threads(WORKERS), "processes": Processes(WORKERS)}.items():
        figures[name] = wall, cpu = measure(engine, small)
        table.row(f"cells, {name}", 1 / wall, "cells/s", f"{1e3 * cpu:.3g} ms of processor time each")
    wall, cpu = (figures["threads"][k] / figures["processes"][k] for k in (0, 1))
    table.note(
        f"{'':<6}processes: {wall:.2f} x the cells a second of threads, {cpu:.2f} x those a second of processor time"
    )
    step = step_seconds()
    predicted = n_runs * N_SAMPLES * step
    table.section(
        f"Sweeps: {n_runs:,} runs of {N_SAMPLES:,} samples, {N_RUNS} in a cell, against {1e9 * step:.3g} ns a sample"
    )
    large = sweep_of(max(10, n_runs // N_RUNS // 10 * 10), N_RUNS)
    wall, cpu = (figure * len(large) for figure in measure(Processes(WORKERS), large))
    table.row("predicted, on one core", predicted, "s")
    table.row("measured, processor time", cpu, "s", f"{cpu / predicted:.3f} x predicted")
    table.row(f"measured, on the wall, {WORKERS} workers", wall, "s", f"{wall / (predicted / WORKERS):.3f} x predicted")


def step_seconds() -> float:
    """Seconds of processor time for one sample of one run: many runs in one call on one thread."""
    problem, algorithm = paper_garnet(), gq.GreedyGQ(0.005, 0.01, radius=RADIUS)

    def call() -> None:
        gq.run(problem, algorithm, N_SAMPLES, n_runs=1000, record_every=N_SAMPLES, threads=1, progress=False)

    call()  # compiled before the clock starts
    begun = time.process_time()
    best_of(call, 3)
    return (time.process_time() - begun) / 3 / (1000 * N_SAMPLES)
