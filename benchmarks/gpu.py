"""The GPU, where there is one."""

from __future__ import annotations

import numpy as np

import gqlab as gq
from benchmarks.family import FAMILY
from benchmarks.problems import PLAIN, VR, paper_garnet
from benchmarks.table import Table, best_of
from gqlab.lab.execute import PLACES

VR_RATE = "VR-Greedy-GQ, M = 3000, "
N_RUNS = 135_168
#: Of a run of one of the family.
FAMILY_SAMPLES = 30_000


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
    table.section(f"GPU: the family, {N_RUNS:,} runs of {FAMILY_SAMPLES:,} samples on Garnet(5,3,2,4), whole calls")
    for name, member in FAMILY.items():
        if PLACES["cuda"].takes(type(member)):
            for dtype in ("float32", "float64"):
                spent = best_of(lambda a=member, t=dtype: call(problem, a, FAMILY_SAMPLES // 3000, t))  # type: ignore[misc]
                table.row(f"{name}, {dtype}", N_RUNS * FAMILY_SAMPLES / spent, "samples/s")
    agreement(table)


def own_algorithms(table: Table) -> None:
    """Every other algorithm, with watches: against the CPU, and resumed against not having stopped."""
    problem = gq.Problem(mdp := terminal_garnet(), gq.random_features(mdp, dim=4, kind="gaussian"))
    watch = [gq.Watch("gradient"), gq.Watch("mspbe", every=7), gq.Watch("reward", n_steps=20)]
    algorithms = (
        gq.QRC(gq.Decay(0.1, 100, 0.5), gq.Decay(0.1, 100, 1.0), beta=0.5, radius=50.0),
        gq.QLearning(0.02, radius=50.0),
        gq.ActorCritic(0.02, 0.01, radius=50.0),
        gq.PolicyGradient(0.02, n_trajectories=5, horizon=10, radius=50.0),
        gq.VRGreedyGQ(batch_size=100, radius=50.0),
        *(algorithm for algorithm in FAMILY.values() if PLACES["cuda"].takes(type(algorithm))),
    )
    for algorithm in algorithms:
        common = {"n_runs": 20, "record_every": 10, "watch": watch, "theta0": np.full(4, 0.1)}
        on_cpu, on_gpu = (gq.run(problem, algorithm, 1000, device=device, **common) for device in ("cpu", "cuda"))  # type: ignore[arg-type]
        half = gq.run(problem, algorithm, 500, device="cuda", **common)  # type: ignore[arg-type]
        resumed = gq.run(problem, algorithm, 1000, device="cuda", resume=half)
        far = max(_apart(a, b) for a, b in zip(_all(on_cpu), _all(on_gpu), strict=True))
        again = max(_apart(a, b) for a, b in zip(_all(resumed), _all(on_gpu), strict=True))
        name = f"largest difference in 1,000 samples, {type(algorithm).__name__}"
        table.row(name, far, "", f"watches included; resumed on the GPU against not having stopped: {again:g}")


def _all(result: gq.RunResult) -> list[np.ndarray]:
    watched = [column for seen in result.watched.values() for column in seen]
    return [result.theta, result.omega, result.output, *result.memory.values(), *watched]


def _apart(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.nan_to_num(np.abs(a - b)).max())


def agreement(table: Table) -> None:
    """The GPU against the CPU: the first 1,000 updates number by number, and long runs in their statistics."""
    table.section("GPU against CPU")
    for target in (
        gq.Softmax(1.0),
        gq.Mellowmax(5.0),
        gq.Greedy(),
        gq.EpsilonGreedy(0.1),
        gq.FixedPolicy(np.full((6, 3), 1 / 3)),
    ):
        mdp = terminal_garnet()
        problem = gq.Problem(mdp, gq.random_features(mdp, dim=4, kind="gaussian"), target=target)
        worst = 0.0
        for radius in (0.3, 50.0):
            for algorithm in (
                gq.GreedyGQ(0.02, 0.01, radius),
                *gq.vary(gq.VRGreedyGQ, batch_size=[1, 7, 100], radius=radius),
            ):
                settings = {"n_samples": 1000, "n_runs": 20, "theta0": np.full(4, 0.1), "record_every": 50}
                on_cpu, on_gpu = (gq.run(problem, algorithm, device=device, **settings) for device in ("cpu", "cuda"))  # type: ignore[arg-type]
                worst = max(
                    worst,
                    float(np.abs(on_cpu.theta - on_gpu.theta).max()),
                    float(np.abs(on_cpu.omega - on_gpu.omega).max()),
                )
        table.row(f"largest difference in 1,000 updates, {type(target).__name__}", worst, "", "float64")
    own_algorithms(table)
    problem = paper_garnet()
    for algorithm in (VR, PLAIN):
        means = []
        for device, dtype, seed in (("cpu", "float64", 0), ("cuda", "float64", 1), ("cuda", "float32", 2)):
            result = gq.run(problem, algorithm, 300_000, n_runs=400, seed=seed, device=device, dtype=dtype)
            late = result.updates > 0.9 * result.updates[-1]
            norm = (problem.exact.gradient(result.theta[:, late]) ** 2).sum(axis=-1).mean(axis=-1)
            means.append((norm.mean(), norm.std(ddof=1) / np.sqrt(len(norm))))
            z = (means[-1][0] - means[0][0]) / np.hypot(means[-1][1], means[0][1])
            name = f"{type(algorithm).__name__}, mean ‖∇J‖² at the end, {device} {dtype}"
            table.row(
                name,
                norm.mean(),
                "",
                f"± {means[-1][1]:.1e}, {z:+.1f} standard errors from the CPU's"
                if len(means) > 1
                else f"± {means[-1][1]:.1e}",
            )


def terminal_garnet() -> gq.FiniteMDP:
    """A small problem with a terminal state."""
    mdp = gq.garnet(6, 3, 3, seed=5)
    return gq.FiniteMDP(mdp.transition, mdp.reward, 0.95, np.arange(6) == 5, [0.5, 0.5, 0, 0, 0, 0])


def call(problem: gq.Problem, algorithm: gq.Algorithm, epochs: int, dtype: str) -> gq.RunResult:
    return gq.run(problem, algorithm, 3000 * epochs, n_runs=N_RUNS, record_every=3000, device="cuda", dtype=dtype)
