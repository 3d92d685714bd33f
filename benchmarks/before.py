"""Two trees of gqlab side by side: the steps of this one against those of an earlier checkout, in one run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.table import Table

#: (d, A): the paper's problem, more features, more actions.
SIZES = ((4, 3), (8, 3), (64, 3), (1024, 3), (4, 16), (4, 64), (64, 16), (64, 64))
#: The two trees take turns, so that a disturbance of the machine hits both.
TURNS = 3

# It runs under either tree, so it uses public names that both have.
STEPS = """
import sys, time
import numpy as np
import gqlab as gq
scale = float(sys.argv[1])
for d, A in eval(sys.argv[2]):
    S = max(5, -(-2 * d // A))
    mdp = gq.garnet(S, A, 2, discount=0.95, seed=1)
    problem = gq.Problem(mdp, gq.random_features(mdp, dim=d, kind="gaussian"))
    n = 3000 * max(1, int(scale * np.clip(1e8 / (d * A + 20), 3_000, 99_000)) // 3000)
    for algorithm in (gq.GreedyGQ(0.02, 0.01, 100.0), gq.VRGreedyGQ(0.02, 0.01, 3000, 100.0)):
        gq.run(problem, algorithm, 3000, 1, threads=1)
        times = []
        for _ in range(5):
            begin = time.perf_counter()
            gq.run(problem, algorithm, n, 4, threads=1, record_every=10**9)
            times.append(time.perf_counter() - begin)
        print(min(times) / (4 * n) * 1e9)
"""


def measure(source: Path, scale: float) -> list[float]:
    """Nanoseconds of a Greedy-GQ and a VR-Greedy-GQ step for each of the sizes, with the gqlab in ``source``."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", STEPS, str(scale), repr(SIZES)],
        capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(source)},
    )  # fmt: skip
    return [float(figure) for figure in done.stdout.split()]


def compare(table: Table, path: Path, scale: float = 1.0) -> None:
    """The steps of this tree and of the one in ``path``, the shortest times of several turns each."""
    table.section("One update against an earlier checkout, one thread, float64")
    ours, theirs = Path(__file__).resolve().parent.parent / "src", path / "src"
    turns = [(measure(ours, scale), measure(theirs, scale)) for _ in range(TURNS)]
    now, before = ([min(figures) for figures in zip(*runs, strict=True)] for runs in zip(*turns, strict=True))
    names = [f"{name}, d = {d:,}, A = {A}" for d, A in SIZES for name in ("Greedy-GQ", "VR-Greedy-GQ")]
    for name, new, old in zip(names, now, before, strict=True):
        table.row(name, new, "ns", f"{new / old:.3f} x before ({old:,.4g} ns)")
