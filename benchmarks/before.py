"""Two trees of gqlab side by side: the steps of this one against those of an earlier checkout, in one run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from benchmarks.table import Table

#: (d, A): the paper's problem, more features, more actions.
SIZES = ((4, 3), (8, 3), (64, 3), (1024, 3), (4, 16), (4, 64), (64, 16), (64, 64))
#: The two trees take turns, so that a disturbance of the machine hits both.
TURNS = 4

# It runs under either tree, so it uses public names that both have.
STEPS = """
import sys, time
import numpy as np
import gqlab as gq
scale = float(sys.argv[1])
d, A = int(sys.argv[2]), int(sys.argv[3])
mdp = gq.garnet(max(5, -(-2 * d // A)), A, 2, discount=0.95, seed=1)
problem = gq.Problem(mdp, gq.random_features(mdp, dim=d, kind="gaussian"))
n = 3000 * max(1, int(scale * np.clip(5e7 / (d * A + 20), 3_000, 99_000)) // 3000)
for algorithm in (gq.GreedyGQ(0.02, 0.01, 100.0), gq.VRGreedyGQ(0.02, 0.01, 3000, 100.0)):
    gq.run(problem, algorithm, 3000, n_runs=1, threads=1)
    times = []
    for _ in range(7):
        begin = time.perf_counter()
        gq.run(problem, algorithm, n, n_runs=4, threads=1, record_every=10**9)
        times.append(time.perf_counter() - begin)
    print(min(times) / (4 * n) * 1e9)
"""


def measure(source: Path, d: int, A: int, scale: float) -> list[float]:
    """Nanoseconds of a Greedy-GQ and a VR-Greedy-GQ step, with the gqlab in ``source``."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", STEPS, str(scale), str(d), str(A)],
        capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(source)},
    )  # fmt: skip
    return [float(figure) for figure in done.stdout.split()]


def compare(table: Table, path: Path, scale: float = 1.0) -> None:
    """The steps of this tree and of the one in ``path``, the shortest times of several turns each."""
    table.section("One update against an earlier checkout, one thread, float64")
    ours, theirs = Path(__file__).resolve().parent.parent / "src", path / "src"
    for d, A in SIZES:
        turns = [(measure(ours, d, A, scale), measure(theirs, d, A, scale)) for _ in range(TURNS)]
        now, before = (np.min(figures, axis=0) for figures in zip(*turns, strict=True))
        for k, name in enumerate(("Greedy-GQ", "VR-Greedy-GQ")):
            ratio = f"{now[k] / before[k]:.3f} x before ({before[k]:,.4g} ns)"
            table.row(f"{name}, d = {d:,}, A = {A}", now[k], "ns", ratio)
