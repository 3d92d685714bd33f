"""Logged data: rows a second of processor time from Parquet, decoded and encoded, and the memory that this takes."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.table import Table

#: Numbers of an observation, as float32; the next observation has as many.
DIM = 8
N_ACTIONS = 4
#: Rows that are written at a time, and rows of a row group.
BLOCK, GROUP = 2**18, 2**17
#: 16 tilings in groups of two inputs each, as in benchmarks of encoders.
PAIRS = [(0, 1), (2, 3), (4, 5), (6, 7)]


def write(path: Path, n_rows: int, kind: str) -> None:
    """A file of uniform random numbers: observations in a column each, or as lists, without compression of floats."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    random = np.random.default_rng(0)
    out: Any = None
    for first in range(0, n_rows, BLOCK):
        n = min(BLOCK, n_rows - first)
        columns: dict[str, Any] = {}
        for name in ("obs", "next_obs"):
            x = random.random((n, DIM), dtype=np.float32)
            if kind == "columns":
                columns |= {f"{name}_{j}": x[:, j].copy() for j in range(DIM)}
            else:
                columns[name] = pa.FixedSizeListArray.from_arrays(pa.array(x.reshape(-1)), DIM)
        columns |= {"action": random.integers(N_ACTIONS, size=n), "reward": random.random(n)}
        columns |= {"terminated": random.random(n) < 0.01, "truncated": np.zeros(n, bool)}
        table = pa.table(columns)
        out = out or pq.ParquetWriter(path, table.schema, use_dictionary=False)
        out.write_table(table, row_group_size=GROUP)
    out.close()


def read(path: str, what: str) -> None:
    """In a process of its own: print rows, seconds of processor time, and the largest memory in MB."""
    import gqlab as gq

    data = gq.Transitions.from_parquet(path)
    encode: Any = None
    if what == "encoded":
        encoder = gq.TileCoder(4, 8, [0.0] * DIM, [1.0] * DIM, groups=PAIRS).fit(np.zeros((1, DIM)))
        encode = encoder.encode_batch
        encode(np.zeros((2, DIM)))  # compiled before the clock starts
    begin, n = time.process_time(), 0
    if what == "health":
        gq.health(data)
    else:
        for chunk in data.chunks():
            if encode is not None:
                encode(chunk.observations)
                encode(chunk.next_observations)
            n += len(chunk)
    seconds = time.process_time() - begin
    print(data.n_rows, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def costs(table: Table, n_rows: int) -> None:
    """All of it, for files of ``n_rows`` rows."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        table.note("Logged data: skipped, there is no pyarrow")
        return
    table.section(f"Logged data: {n_rows:,} rows of {DIM} + {DIM} float32, one core")
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("columns", "lists"):
            path = Path(folder) / f"{kind}.parquet"
            write(path, n_rows, kind)
            for what in ("decoded", "encoded", "health"):
                command = [sys.executable, "-c", f"from benchmarks.data import read; read({str(path)!r}, {what!r})"]
                n, seconds, peak = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
                note = f"largest memory {float(peak):,.0f} MB, file {path.stat().st_size / 2**20:,.0f} MB"
                table.row(f"{what}, {kind}", int(n) / float(seconds), "rows/CPU s", note)
            path.unlink()
