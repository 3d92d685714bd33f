"""Two trees of gqlab side by side: the steps of this one against those of an earlier checkout, in one run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.table import Table

#: (d, A): the paper's problem, more features, more actions.
SIZES = ((4, 3), (8, 3), (64, 3), (1024, 3), (4, 16), (4, 64), (64, 16), (64, 64))
#: The two trees take turns, so that a disturbance of the machine hits both.
TURNS = 7

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
        begin = time.process_time()
        gq.run(problem, algorithm, n, n_runs=4, threads=1, record_every=10**9)
        times.append(time.process_time() - begin)
    print(min(times) / (4 * n) * 1e9)
"""


# What practitioners wait for: microseconds of an agent's step, nanoseconds of a fit's row, milliseconds of the import.
OTHERS = """
import time
begin = time.process_time()
import gqlab as gq
imported = time.process_time() - begin
import numpy as np
coder = gq.TileCoder(n_tilings=8, bins=8, low=[-1.2, -0.07], high=[0.6, 0.07]).fit([[0, 0]])
agent = gq.Agent("MountainCar-v0", coder, gq.QRC(0.05, 0.05), seed=0)
rng = np.random.default_rng(0)
x = rng.uniform([-1.2, -0.07], [0.6, 0.07], size=(20_001, 2))
data = gq.Transitions.from_arrays(x[:-1], rng.integers(3, size=20_000), rng.normal(size=20_000), x[1:])

def best(call, n):
    call()
    times = []
    for _ in range(7):
        begin = time.process_time()
        call()
        times.append(time.process_time() - begin)
    return min(times) / n

print(1e6 * best(lambda: agent.learn(5_000), 5_000))
for algorithm in (gq.GreedyGQ(0.02, 0.01), gq.VRGreedyGQ(0.02, 0.01, 1000)):
    print(1e9 * best(lambda: gq.fit(data, coder, algorithm, discount=0.95, n_passes=1), 20_000))
print(1e3 * imported)
"""


def measure(source: Path, code: str, *arguments: float) -> list[float]:
    """What the code prints with the gqlab in ``source``."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *map(str, arguments)],
        capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(source)},
    )  # fmt: skip
    return [float(figure) for figure in done.stdout.split()]


def compare(table: Table, path: Path, scale: float = 1.0) -> None:
    """The steps of this tree and of the one in ``path``, the shortest processor times of several turns each."""
    ours, theirs = Path(__file__).resolve().parent.parent / "src", path / "src"

    def rows(names: Sequence[str], units: Sequence[str], code: str, *arguments: float) -> None:
        turns = [(measure(ours, code, *arguments), measure(theirs, code, *arguments)) for _ in range(TURNS)]
        now, before = (np.min(figures, axis=0) for figures in zip(*turns, strict=True))
        for k, name in enumerate(names):
            table.row(name, now[k], units[k], f"{now[k] / before[k]:.3f} x before ({before[k]:,.4g} {units[k]})")

    table.section("One update against an earlier checkout, one thread, float64, processor time")
    for d, A in SIZES:
        names = [f"{name}, d = {d:,}, A = {A}" for name in ("Greedy-GQ", "VR-Greedy-GQ")]
        rows(names, ("ns", "ns"), STEPS, scale, d, A)
    names = ["QRC, a step of an agent on MountainCar", "Greedy-GQ, a row of a fit on tiles", "VR-Greedy-GQ, the same"]
    rows([*names, "import gqlab"], ("us", "ns", "ns", "ms"), OTHERS)
