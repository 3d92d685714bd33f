"""Decisions from logs: the seconds that five policies take, and the memory and the time of a log in files.

CPU s are of the processor, on one core, in a process of its own; s are of the clock on the wall, which on a shared machine
tells of the others as well.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gqlab as gq
from benchmarks.table import Table

#: Numbers of an observation, actions, policies, rows of an episode, and γ.
DIM, N_ACTIONS, N_POLICIES, LENGTH, DISCOUNT = 4, 3, 5, 50, 0.95
#: Rows of the log in memory, and rows that are written at a time: whole episodes.
FEW, BLOCK = 30_000, 250_000


class Leaning:
    """A policy whose preferences are linear in the observation: it can be sent to another process."""

    def __init__(self, k: int) -> None:
        self.weights = np.random.default_rng(k).normal(size=(DIM, N_ACTIONS)) * 2

    def __call__(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        q = rows @ self.weights
        p = np.exp(q - q.max(axis=1, keepdims=True))
        return np.asarray(p / p.sum(axis=1, keepdims=True))


def policies() -> dict[str, Leaning]:
    """Five of them."""
    return {f"policy {k}": Leaning(k) for k in range(N_POLICIES)}


def walk(n_rows: int, seed: int) -> dict[str, NDArray[Any]]:
    """Episodes that drift to where their actions push them, under a behaviour that does anything."""
    random, n = np.random.default_rng(seed), -(-n_rows // LENGTH)
    push = np.random.default_rng(99).normal(size=(N_ACTIONS, DIM)) * 0.2
    x, steps = random.normal(size=(n, DIM)), []
    for _ in range(LENGTH):
        action = random.integers(N_ACTIONS, size=n)
        after = 0.9 * x + push[action] + 0.2 * random.normal(size=x.shape)
        steps.append((x, action, -np.abs(after).sum(axis=1), after))
        x = after
    observations, actions, rewards, following = (np.stack(part, axis=1) for part in zip(*steps, strict=True))
    size = n * LENGTH
    return {
        "observations": observations.reshape(size, DIM)[:n_rows], "actions": actions.reshape(-1)[:n_rows],
        "rewards": rewards.reshape(-1)[:n_rows], "next_observations": following.reshape(size, DIM)[:n_rows],
        "truncated": (np.arange(size) % LENGTH == LENGTH - 1)[:n_rows],
    }  # fmt: skip


def write(path: Path, n_rows: int) -> None:
    """The log in a Parquet file, a block of episodes at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    out: Any = None
    for k, first in enumerate(range(0, n_rows, BLOCK)):
        made = walk(min(BLOCK, n_rows - first), k)
        columns = {f"obs_{j}": made["observations"][:, j] for j in range(DIM)}
        columns |= {f"next_obs_{j}": made["next_observations"][:, j] for j in range(DIM)}
        columns |= {"action": made["actions"], "reward": made["rewards"], "truncated": made["truncated"]}
        table = pa.table({**columns, "terminated": np.zeros(len(made["actions"]), bool)})
        out = out or pq.ParquetWriter(path, table.schema, use_dictionary=False)
        out.write_table(table, row_group_size=2**17)
    out.close()


def in_memory() -> None:
    """In a process of its own: print the seconds of the processor."""
    made: dict[str, Any] = walk(FEW, 0)
    data = gq.Transitions.from_arrays(**made, n_actions=N_ACTIONS)
    begun = time.process_time()
    gq.decide(data, policies(), DISCOUNT)
    print(json.dumps({"seconds": time.process_time() - begun}))


def from_file(path: str, engine: str | None = None, workers: int = 1) -> None:
    """In a process of its own: print seconds, the largest memory in MB, and what was found."""
    from gqlab.tasks import engine_of

    data = gq.Transitions.from_parquet(path)
    before = peak()
    begun, processor = time.perf_counter(), time.process_time()
    shared = None if engine is None else engine_of(engine, workers)
    decision = gq.decide(data, policies(), DISCOUNT, engine=shared)
    found = {
        "seconds": time.process_time() - processor, "wall": time.perf_counter() - begun, "before": before,
        "peak": peak(), "decision": decision.to_dict(),
    }  # fmt: skip
    print(json.dumps(found))


def peak() -> float:
    """The largest memory of this process so far, in MB; what the system counts for its children has the parent's."""
    status = Path("/proc/self/status")
    if status.is_file():
        return int(next(line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmHWM"))) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def child(call: str) -> dict[str, Any]:
    """What a function of this module prints in a process of its own, on one core."""
    one = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    code = f"from benchmarks import decide; decide.{call}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **one})
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def costs(table: Table, n_rows: int) -> None:
    """All of it, for a file of ``n_rows`` rows."""
    about = f"{DIM} numbers, {N_ACTIONS} actions, {N_POLICIES} policies, trees, one core"
    table.section(f"Decisions from logs: {about}")
    table.row(f"{FEW:,} rows in memory", least(lambda: child("in_memory()")["seconds"]), "CPU s")
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        table.note("Files: skipped, there is no pyarrow")
        return
    with tempfile.TemporaryDirectory() as folder:
        large, small = Path(folder) / "large.parquet", Path(folder) / "small.parquet"
        write(large, n_rows)
        found = child(f"from_file({str(large)!r})")
        size = f"file {large.stat().st_size / 2**20:,.0f} MB"
        table.row(f"{n_rows:,} rows from Parquet", found["seconds"], "CPU s", size)
        table.row(
            f"{n_rows:,} rows from Parquet: largest memory", found["peak"], "MB", f"{found['before']:,.0f} before"
        )
        few = max(2 * BLOCK, n_rows // 10)
        write(small, few)
        alone = child(f"from_file({str(small)!r})")
        table.row(f"{few:,} rows from Parquet", alone["wall"], "s", f"largest memory {alone['peak']:,.0f} MB")
        for engine, workers in (("threads", 2), ("processes", 1), ("processes", 2)):
            shared = child(f"from_file({str(small)!r}, {engine!r}, {workers})")
            same = "the same digits" if shared["decision"] == alone["decision"] else "OTHER DIGITS"
            note = f"{same}; largest memory of the caller {shared['peak']:,.0f} MB"
            table.row(f"{few:,} rows, {workers} of {engine}", shared["wall"], "s", note)


def least(call: Callable[[], float], repeats: int = 3) -> float:
    """The shortest of several times."""
    return min(call() for _ in range(repeats))
