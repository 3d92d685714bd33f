"""The GPU, where there is one."""

from __future__ import annotations

import gqlab as gq
from benchmarks.problems import PLAIN, VR, paper_garnet
from benchmarks.table import Table, best_of

VR_RATE = "VR-Greedy-GQ, M = 3000, "
N_RUNS = 135_168


def rates(table: Table, scale: float) -> None:
    """Run-steps per second with one record for each 3000 updates, between a short and a long call.

    The difference of two calls leaves out what a call costs once (tables, launch, first allocation) and keeps what
    every epoch costs, the record and its way to the host included. The whole call's rate stands beside it.
    """
    problem = paper_garnet()
    try:
        gq.run(problem, PLAIN, n_samples=10, n_runs=1, device="cuda")
    except ValueError as error:
        table.section("GPU")
        table.note(str(error))
        return
    table.section(f"GPU: {N_RUNS:,} runs on Garnet(5,3,2,4), recording once per 3,000 updates")
    few, many = 3, 3 + max(5, int(60 * scale))
    for algorithm, name in ((VR, VR_RATE), (PLAIN, "Greedy-GQ, ")):
        for dtype in ("float32", "float64"):
            seconds = {
                epochs: best_of(lambda e=epochs, a=algorithm, t=dtype: call(problem, a, e, t))  # type: ignore[misc]
                for epochs in (few, many)
            }
            rate = N_RUNS * 3000 * (many - few) / (seconds[many] - seconds[few])
            whole = N_RUNS * 3000 * many / seconds[many]
            table.row(f"{name}{dtype}", rate, "run-steps/s", f"whole call of {many} epochs: {whole:.3e}")


def call(problem: gq.Problem, algorithm: gq.Algorithm, epochs: int, dtype: str) -> gq.RunResult:
    return gq.run(problem, algorithm, 3000 * epochs, N_RUNS, record_every=3000, device="cuda", dtype=dtype)
