"""The CPU: steps, threads, growth, memory, the library's other costs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import gqlab as gq
from benchmarks.problems import PLAIN, VR, paper_garnet, sized_garnet
from benchmarks.table import Table, best_of
from gqlab.engine.cpu import default_threads

VR_STEP = "VR-Greedy-GQ step, M = 3000, one thread"
GQ_STEP = "Greedy-GQ step, one thread"


def per_step(problem: gq.Problem, algorithm: gq.Algorithm, n_samples: int, n_runs: int, **settings: object) -> float:
    """Nanoseconds of wall time for one update of one run, sampling and reference pass included."""
    everything = {"n_samples": n_samples, "n_runs": n_runs, "record_every": 10**9, "threads": 1, **settings}

    def call() -> gq.RunResult:
        return gq.run(problem, algorithm, **everything)  # type: ignore[arg-type]

    gq.run(problem, algorithm, **{**everything, "n_samples": max(1, algorithm.epoch_size), "n_runs": 1})  # type: ignore[arg-type]
    updates = algorithm.n_updates(n_samples) * n_runs
    return best_of(call) / updates * 1e9


def steps(table: Table, scale: float) -> None:
    """One update on the paper's problem; threads; precision."""
    problem = paper_garnet()
    n = 3000 * max(1, int(33 * scale))
    table.section("One update on Garnet(5,3,2,4), float64, sampling and reference pass included")
    table.row(VR_STEP, per_step(problem, VR, n, 40), "ns")
    table.row(GQ_STEP, per_step(problem, PLAIN, n, 40), "ns")
    threads = default_threads()
    for algorithm in (VR, PLAIN):
        single = 0.0
        for count in sorted({1, 2, threads}):
            figure = per_step(problem, algorithm, 4 * n, 40, threads=count)
            single = single or figure
            name = f"{type(algorithm).__name__}, threads = {count}"
            table.row(name, 1e9 / figure, "steps/s", f"{single / figure:.2f} x one thread")
    table.row("VR-Greedy-GQ step, float32, one thread", per_step(problem, VR, n, 40, dtype="float32"), "ns")


def pure_python(table: Table) -> None:
    """The very same source without the compiler."""
    table.section("The same source in pure Python (NUMBA_DISABLE_JIT=1)")
    code = """
import time, warnings
warnings.simplefilter("ignore")
import gqlab as gq
from benchmarks.problems import PLAIN, paper_garnet
problem = paper_garnet()
for algorithm in (gq.VRGreedyGQ(0.02, 0.01, 500, 100.0), PLAIN):
    begin = time.perf_counter()
    gq.run(problem, algorithm, n_samples=1000, n_runs=1, threads=1)
    print((time.perf_counter() - begin) / 1000 * 1e9)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True, check=True
    )  # fmt: skip
    for name, single, figure in zip(
        ("VR-Greedy-GQ", "Greedy-GQ"), (VR_STEP, GQ_STEP), done.stdout.split(), strict=True
    ):
        what = f"{name} step in pure Python"
        table.row(what, float(figure), "ns")
        table.note(f"{'':<6}{table.ratio(what, single)}")


def library(table: Table, scale: float) -> None:
    """Exact quantities, grids, the first call of a process."""
    problem = paper_garnet()
    table.section("The rest of the library, Garnet(5,3,2,4)")
    theta = np.random.default_rng(0).normal(size=(200_000, 4))
    problem.exact.gradient(theta)
    table.row("exact gradients in one batch", len(theta) / best_of(lambda: problem.exact.gradient(theta)), "per second")
    problems = [problem]
    for k in range(1, 20):
        mdp = gq.garnet(seed=k)
        problems.append(gq.Problem(mdp, gq.random_features(mdp, dim=4, seed=k)))
    algorithms = gq.vary(
        gq.VRGreedyGQ, eta_theta=[0.005, 0.01, 0.02, 0.04, 0.08], batch_size=[100, 300, 1000, 2000, 3000]
    )
    runs = max(1, int(20 * scale))
    seconds = best_of(lambda: gq.grid(problems, algorithms, n_samples=10_000, n_runs=runs), 1)
    table.row(f"grid of {500 * runs} runs of 10,000 samples, all cores", seconds, "s")
    code = """
import time
import gqlab as gq
from benchmarks.problems import VR, paper_garnet
problem = paper_garnet()
begin = time.perf_counter()
gq.run(problem, VR, n_samples=3000, n_runs=40)
print(time.perf_counter() - begin)
"""

    def first_call() -> float:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        return float(done.stdout)

    first_call()
    table.row("first gq.run in a new process, compiled code on disk", min(first_call() for _ in range(3)), "s")
    table.row("from Ctrl-C to KeyboardInterrupt in a run of hours", interrupt_latency(), "s")
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import gqlab"], check=True)
    table.row("a process that does nothing but import gqlab", time.perf_counter() - begin, "s")


def interrupt_latency() -> float:
    """Seconds from the signal to the exception, in a process that runs with all cores."""
    code = """
import os, signal, threading, time
import gqlab as gq
from benchmarks.problems import VR, paper_garnet
sent = []
def send():
    sent.append(time.perf_counter())
    os.kill(os.getpid(), signal.SIGINT)
threading.Timer(1.0, send).start()
try:
    gq.run(paper_garnet(), VR, n_samples=10**12, n_runs=40, record_every=10**11)
except KeyboardInterrupt:
    print(time.perf_counter() - sent[0])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def growth(table: Table, scale: float) -> None:
    """How the cost of one update grows."""
    problem = paper_garnet()
    table.section("Growth: ns for one update, one thread")
    for n in (30_000, 300_000, 3_000_000):
        table.row(f"VR, n_samples = {n:,}, 4 runs", per_step(problem, VR, n, 4), "ns")
    for runs in (1, 10, 100, 1000):
        table.row(f"VR, n_runs = {runs:,}, 9,000 samples", per_step(problem, VR, 9_000, runs), "ns")
    for M in (1, 10, 100, 1000, 10_000, 100_000):
        algorithm = gq.VRGreedyGQ(0.02, 0.01, batch_size=M, radius=100.0)
        table.row(f"VR, M = {M:,}", per_step(problem, algorithm, 300_000, 4), "ns")
    sizes = [
        (4, 3),
        (8, 3),
        (16, 3),
        (64, 3),
        (256, 3),
        (1024, 3),
        (4, 2),
        (4, 8),
        (4, 16),
        (4, 64),
        (64, 2),
        (64, 16),
        (64, 64),
    ]
    for d, A in sizes:
        small = sized_garnet(d, A)
        n = int(np.clip(2e8 * scale / (d * A + 20), 2_000, 300_000))
        vr = per_step(small, gq.VRGreedyGQ(0.02, 0.01, batch_size=min(n, 3000), radius=100.0), n, 2)
        plain = per_step(small, PLAIN, n, 2)
        table.row(
            f"VR, d = {d:,}, A = {A}", vr, "ns", f"{vr / (d * A):.3g} ns for each of d·A;  Greedy-GQ: {plain:,.4g} ns"
        )


def memory(table: Table) -> None:
    """Peak memory of a process, whatever the number of samples."""
    if not Path("/proc/self/status").is_file():
        return
    table.section("Peak memory of a process with 40 runs and 11 records")
    for n in (30_000, 300_000, 3_000_000):
        code = f"""
import gqlab as gq
from benchmarks.problems import VR, paper_garnet
gq.run(paper_garnet(), VR, n_samples={n}, n_runs=40, record_every={n // 10})
with open("/proc/self/status") as status:  # getrusage would count the parent's memory too
    print(next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM")))
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        table.row(f"n_samples = {n:,}", float(done.stdout), "MiB")
