"""Rates, measured: how many samples Greedy-GQ and VR-Greedy-GQ need to bring E‖∇J(θ_ξ)‖² to ε.

θ_ξ is an iterate drawn uniformly from the first n, so E‖∇J(θ_ξ)‖² is the mean of ‖∇J(θ_t)‖² over t < n and over runs:
one long run serves every ε. For each Garnet and each ε the step sizes (and M) that need the fewest samples are chosen
on tuning seeds; the samples that count are those of other seeds with that choice. ε is a fraction of ‖∇J(θ_0)‖².

The slope of log samples against log 1/ε is fitted for each Garnet; the mean over Garnets has a t-interval.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from gqlab.algorithms import Algorithm, GreedyGQ, VRGreedyGQ
from gqlab.checks import FloatArray
from gqlab.features import random_features
from gqlab.garnet import garnet
from gqlab.grid import grid, sweep
from gqlab.problem import Problem
from gqlab.results import RunResult
from gqlab.theory.practical import stationary_point

RADIUS = 100.0


@dataclass(frozen=True)
class Settings:
    """The sizes of the experiment."""

    n_garnets: int = 12
    greedy_samples: int = 1_000_000
    vr_samples: int = 300_000
    record_every: int = 250
    tuning_runs: int = 4
    test_runs: int = 12
    fractions: tuple[float, ...] = tuple(float(10 ** (-k / 4)) for k in range(3, 9))
    greedy_eta_theta: tuple[float, ...] = (0.003, 0.01, 0.03, 0.1, 0.3)
    vr_eta_theta: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3)
    eta_omega: tuple[float, ...] = (0.001, 0.01, 0.1)
    batch_sizes: tuple[int, ...] = (100, 300, 1000, 3000, 10_000)
    floor_samples: int = 400_000
    floor_runs: int = 4
    floor_batch_sizes: tuple[int, ...] = (30, 100, 300, 1000, 3000, 10_000)
    floor_eta_theta: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3)
    floor_eta: float = 0.1
    floor_batch: int = 3000


QUICK = Settings(
    n_garnets=2, greedy_samples=20_000, vr_samples=20_000, record_every=50, tuning_runs=2, test_runs=2,
    fractions=(0.3, 0.2, 0.1), greedy_eta_theta=(0.03, 0.1), vr_eta_theta=(0.03, 0.1), eta_omega=(0.1,),
    batch_sizes=(100, 300), floor_samples=20_000, floor_runs=2, floor_batch_sizes=(100, 1000),
    floor_eta_theta=(0.03, 0.1), floor_batch=300,
)  # fmt: skip


@dataclass(frozen=True)
class Slope:
    """A mean slope over Garnets with its 95 % t-interval; ``theory`` is what the papers say (None: they do not)."""

    name: str
    mean: float
    low: float
    high: float
    n: int
    theory: str


@dataclass
class Rates:
    """Everything that was measured."""

    settings: Settings
    samples: dict[str, FloatArray] = field(default_factory=dict)  # (n_garnets, n_fractions), NaN: not reached
    chosen: dict[str, list[list[str]]] = field(default_factory=dict)
    floor_M: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))  # (n_garnets, n_batch_sizes)
    floor_eta: dict[str, FloatArray] = field(default_factory=dict)  # (n_garnets, n_eta)
    slopes: list[Slope] = field(default_factory=list)
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON; NaN is None."""

        def plain(value: Any) -> Any:
            if isinstance(value, np.ndarray):
                return [plain(item) for item in value.tolist()]
            if isinstance(value, list | tuple):
                return [plain(item) for item in value]
            if isinstance(value, dict):
                return {key: plain(item) for key, item in value.items()}
            return None if isinstance(value, float) and not np.isfinite(value) else value

        return dict(plain(asdict(self)))


def main(out: Path, quick: bool = False, seed: int = 0) -> Rates:
    """Run the experiment and write ``rates.json``, ``rates.md`` and ``rates.png`` under ``out``."""
    from gqlab.theory.rates_report import write

    measured = measure(QUICK if quick else Settings(), seed)
    print(write(measured, Path(out)))
    print(f"\n{measured.seconds:.0f} seconds; written to {out}")
    return measured


def measure(settings: Settings, seed: int = 0) -> Rates:
    """The whole experiment."""
    began = time.perf_counter()
    problems = [_garnet(1000 * seed + 100 + k) for k in range(settings.n_garnets)]
    out = Rates(settings)
    for name, algorithms in candidates(settings).items():
        print(f"gqlab rates: {name}, {len(algorithms)} settings on {len(problems)} Garnets", flush=True)
        budget = settings.greedy_samples if name == "GreedyGQ" else settings.vr_samples
        pairs = [_samples_needed(problem, algorithms, budget, settings, seed) for problem in problems]
        out.samples[name] = np.array([samples for samples, _ in pairs])
        out.chosen[name] = [choice for _, choice in pairs]
    print("gqlab rates: the error that remains, against M and against the step size", flush=True)
    floors = [_floors(problem, settings, seed) for problem in problems]
    out.floor_M = np.array([floor["M"] for floor in floors])
    out.floor_eta = {name: np.array([floor[name] for floor in floors]) for name in ("GreedyGQ", "VRGreedyGQ")}
    out.slopes = all_slopes(out)
    out.seconds = time.perf_counter() - began
    return out


def candidates(settings: Settings) -> dict[str, list[Algorithm]]:
    """The step sizes and batch sizes that are tried."""
    return {
        "GreedyGQ": sweep(
            GreedyGQ, eta_theta=settings.greedy_eta_theta, eta_omega=settings.eta_omega, radius=RADIUS
        ),
        "VRGreedyGQ": sweep(
            VRGreedyGQ, eta_theta=settings.vr_eta_theta, eta_omega=settings.eta_omega,
            batch_size=settings.batch_sizes, radius=RADIUS,
        ),
    }  # fmt: skip


def _garnet(seed: int) -> Problem:
    mdp = garnet(seed=seed)
    return Problem(mdp, random_features(mdp, dim=4, seed=seed))


def _start(problem: Problem, seed: int) -> FloatArray:
    return np.random.default_rng([seed, 2]).standard_normal(problem.dim)


def _samples_needed(
    problem: Problem, algorithms: Sequence[Algorithm], budget: int, settings: Settings, seed: int
) -> tuple[FloatArray, list[str]]:
    """For each ε: the samples on test seeds with the setting that was best on tuning seeds; NaN where not reached."""
    theta0 = _start(problem, seed)
    epsilons = np.array(settings.fractions) * float((problem.exact.gradient(theta0) ** 2).sum())
    common: dict[str, Any] = {
        "n_samples": budget, "theta0": theta0, "record_every": settings.record_every, "progress": False,
    }  # fmt: skip
    tuning = grid([problem], list(algorithms), n_runs=settings.tuning_runs, seeds=2 * seed, **common)
    needed = np.array([first_below(problem, result, epsilons) for result in tuning.results])  # (n_algorithms, n_eps)
    best = np.where(np.isfinite(needed), needed, np.inf).argmin(axis=0)
    reached = np.isfinite(needed).any(axis=0)
    used = sorted(set(best[reached].tolist()))
    out = np.full(len(epsilons), np.nan)
    if used:
        test = grid([problem], [algorithms[k] for k in used], n_runs=settings.test_runs, seeds=2 * seed + 1, **common)
        for k, result in zip(used, test.results, strict=True):
            mine = reached & (best == k)
            out[mine] = first_below(problem, result, epsilons)[mine]
    return out, [repr(algorithms[k]) if ok else "" for k, ok in zip(best, reached, strict=True)]


def first_below(problem: Problem, result: RunResult, epsilons: FloatArray) -> FloatArray:
    """The samples after which the mean of ‖∇J‖² over all iterates so far, and over runs, is first at most ε."""
    squares = (problem.exact.gradient(result.theta) ** 2).sum(axis=-1).mean(axis=0)
    # The mean over the iterates before record k: each record stands for those up to the next one.
    mean = np.cumsum(squares[:-1]) / np.arange(1, len(squares))
    below = mean[:, None] <= epsilons
    return np.where(below.any(axis=0), result.samples[1:][below.argmax(axis=0)], np.nan)


def _floors(problem: Problem, settings: Settings, seed: int) -> dict[str, FloatArray]:
    """The mean of ‖∇J‖² over the second half of runs that begin at a stationary point."""
    theta0 = stationary_point(problem, _start(problem, seed)).theta
    omega0 = problem.exact.omega_star(theta0)
    eta = settings.floor_eta
    algorithms: list[Algorithm] = [
        *sweep(VRGreedyGQ, eta_theta=eta, eta_omega=eta / 2, batch_size=settings.floor_batch_sizes, radius=RADIUS),
        *(GreedyGQ(x, x / 2, RADIUS) for x in settings.floor_eta_theta),
        *(VRGreedyGQ(x, x / 2, settings.floor_batch, RADIUS) for x in settings.floor_eta_theta),
    ]
    cells = grid(
        [problem], algorithms, n_samples=settings.floor_samples, n_runs=settings.floor_runs, seeds=2 * seed + 1,
        theta0=theta0, omega0=omega0, record_every=settings.record_every, progress=False,
    )  # fmt: skip
    squares = []
    for result in cells.results:
        half = result.theta[:, result.theta.shape[1] // 2 :]
        squares.append(float((problem.exact.gradient(half) ** 2).sum(axis=-1).mean()))
    first, second = len(settings.floor_batch_sizes), len(settings.floor_eta_theta)
    values = np.array(squares)
    return {"M": values[:first], "GreedyGQ": values[first : first + second], "VRGreedyGQ": values[first + second :]}


def all_slopes(rates: Rates) -> list[Slope]:
    """The slopes over Garnets, each with its interval."""
    settings = rates.settings
    inverse = -np.log(settings.fractions)
    eta = np.log(settings.floor_eta_theta)
    M = np.log(settings.floor_batch_sizes)
    large = np.array(settings.floor_batch_sizes) >= 1000
    out = [
        slope("Greedy-GQ: log samples against log 1/ε", inverse, rates.samples["GreedyGQ"], "3 (upper bound)"),
        slope("VR-Greedy-GQ: log samples against log 1/ε", inverse, rates.samples["VRGreedyGQ"], "2 (upper bound)"),
        slope("VR-Greedy-GQ: log error against log M, all M", M, rates.floor_M, "−1"),
    ]
    if large.sum() > 1:
        out.append(slope("VR-Greedy-GQ: log error against log M, M ≥ 1000", M[large], rates.floor_M[:, large], "−1"))
    out += [
        slope("Greedy-GQ: log error against log η", eta, rates.floor_eta["GreedyGQ"], "–"),
        slope(
            f"VR-Greedy-GQ, M = {settings.floor_batch}: log error against log η",
            eta,
            rates.floor_eta["VRGreedyGQ"],
            "–",
        ),
    ]
    return out


def slope(name: str, x: FloatArray, y: FloatArray, theory: str) -> Slope:
    """The mean over rows of the least-squares slope of log y on x; NaN and rows with one point are left out."""
    each = []
    for row in np.log(y):
        ok = np.isfinite(row)
        if ok.sum() >= 2:
            each.append(np.polyfit(x[ok], row[ok], 1)[0])
    n = len(each)
    if n == 0:
        return Slope(name, np.nan, np.nan, np.nan, 0, theory)
    mean = float(np.mean(each))
    half = float(stats.t.ppf(0.975, n - 1) * np.std(each, ddof=1) / np.sqrt(n)) if n > 1 else np.nan
    return Slope(name, mean, mean - half, mean + half, n, theory)
