"""The family of estimators: cost for each sample beside Greedy-GQ with the same step sizes, growth with d, memory."""

from __future__ import annotations

import gqlab as gq
from benchmarks.problems import RADIUS, paper_garnet, sized_garnet
from benchmarks.table import Table, best_of
from gqlab.studies.compare.measure import run_bytes

STEPS = gq.Decay(0.32), gq.Decay(0.16)
GREEDY = gq.GreedyGQ(*STEPS, radius=RADIUS)
FAMILY: dict[str, gq.Algorithm] = {
    "averaged": gq.AveragedGreedyGQ(*STEPS, radius=RADIUS),
    "SAGA": gq.SAGAGreedyGQ(*STEPS, radius=RADIUS),
    "streaming SVRG": gq.StreamingGreedyGQ(*STEPS, radius=RADIUS),
    "STORM": gq.STORMGreedyGQ(*STEPS, radius=RADIUS),
    "SARAH": gq.SARAHGreedyGQ(*STEPS, radius=RADIUS),
    "SVRG, all data, x2": gq.VRGreedyGQ(*STEPS, batch_size=50, growth=2.0, keep="all", radius=RADIUS),
    "nested loops": gq.NestedGreedyGQ(*STEPS, radius=RADIUS),
    "least squares": gq.LeastSquaresGreedyGQ(radius=RADIUS),
}
#: (d, n_samples) of the growth; least squares, whose cost is d² a sample and d³ a solution, stands apart.
SIZES = ((64, 60_000), (256, 20_000), (1024, 6_000))


def per_sample(problem: gq.Problem, algorithm: gq.Algorithm, n_samples: int, n_runs: int = 1) -> float:
    """Nanoseconds for one sample of one run, on one thread."""

    def call() -> gq.RunResult:
        return gq.run(problem, algorithm, n_samples, n_runs=n_runs, record_every=10**9, threads=1, progress=False)

    used = int(call().samples[-1]) * n_runs
    return best_of(call) / used * 1e9


def costs(table: Table, scale: float) -> None:
    """All of it."""
    n = max(30_000, int(300_000 * scale))
    problem = paper_garnet()
    table.section(
        f"The family on Garnet(5,3,2,4): a sample, of {n:,}, one thread, against Greedy-GQ with the same Decay"
    )
    greedy = "Greedy-GQ with Decay"
    table.row(greedy, per_sample(problem, GREEDY, n, 4), "ns")
    for name, algorithm in FAMILY.items():
        figure = per_sample(problem, algorithm, n, 4)
        table.row(name, figure, "ns", f"{run_bytes(problem, algorithm.for_problem(problem), n):,} bytes a run")
        table.note(f"{'':<6}{table.ratio(name, greedy)}")
    for d, samples in SIZES:
        large = sized_garnet(d, 3)
        table.section(f"The family, d = {d}, A = 3: a sample")
        base = per_sample(large, GREEDY, samples)
        table.row(f"Greedy-GQ with Decay, d = {d}", base, "ns")
        for name, algorithm in FAMILY.items():
            if name != "least squares" or d == SIZES[0][0]:
                figure = per_sample(large, algorithm, samples)
                size = run_bytes(large, algorithm.for_problem(large), samples)
                table.row(f"{name}, d = {d}", figure, "ns", f"{figure / base:.2f} x Greedy-GQ; {size:,} bytes a run")
