"""Run the algorithms, and measure them in units of the floor."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gqlab.algorithms import Algorithm
from gqlab.algorithms.schedules import scaled
from gqlab.engine.cells import Cell, Settings
from gqlab.engine.memory import declared, dtype_of
from gqlab.lab.execute import execute
from gqlab.lab.floor import count_samples, floors, no_floor
from gqlab.lab.results import RunResult
from gqlab.problems.problem import Problem
from gqlab.rules.dispatch import parameters
from gqlab.rules.memory import Sizes
from gqlab.samples.tables import problem_tables
from gqlab.studies.compare.design import (
    FACTORS,
    NEAR,
    RADIUS,
    RECORD_SAMPLES,
    ROBUST_WITHIN,
    Family,
    Scale,
    first_point,
)
from gqlab.studies.compare.rivals import AveragedQLearning, lspi
from gqlab.studies.compare.store import Store, code_of
from gqlab.support.checks import FloatArray

#: J at a stationary point below which it is a zero of E[δφ].
ZERO = 1e-12


@dataclass(frozen=True)
class Row:
    """What was measured of one algorithm; arrays are (n_problems, n_moments) if nothing else is said."""

    name: str
    algorithm: str
    multiple: FloatArray  # of the floor: mean of ‖∇J‖² over runs ÷ mean of the floors
    evaluations: float  # of (G_x, H_x), a sample
    nanoseconds: float  # of one core, a sample
    bytes: int  # of a run: θ, ω and what the estimator declares
    diverged: int  # runs
    factors: (
        FloatArray  # (n_factors,)  the median multiple at the last moment with steps times FACTORS; empty: no steps
    )
    samples: FloatArray  # (n_records,)  of the curve
    curve: FloatArray  # (n_records,)  ‖∇J‖², mean over runs, median over problems

    @property
    def near(self) -> FloatArray:
        """The share of problems within ``NEAR`` times the floor, (n_moments,)."""
        return np.asarray((self.multiple <= NEAR).mean(axis=0))

    @property
    def robust(self) -> float | None:
        """The share of step sizes within ``ROBUST_WITHIN`` times the best; None without step sizes."""
        if not len(self.factors):
            return None
        return float((self.factors <= ROBUST_WITHIN * self.factors.min()).mean())


@dataclass(frozen=True)
class Rival:
    """What solves E[δφ] = 0 on the same samples, at the last moment."""

    name: str
    multiple: FloatArray  # (n_problems,)
    mspbe: FloatArray  # (n_problems,)  J, mean over runs
    value: FloatArray  # (n_problems,)  μᵀV^π ÷ μᵀV*, mean over runs
    converged: float  # share of runs


@dataclass(frozen=True)
class Comparison:
    """The leaderboard."""

    title: str
    scale: Scale
    seeds: tuple[int, ...]
    floor: FloatArray  # (n_problems, n_moments)
    J_star: FloatArray  # (n_problems,)  J at the stationary point that Newton's method reaches from θ₀
    rows: tuple[Row, ...]
    rivals: tuple[Rival, ...]
    seconds: float

    @property
    def moments(self) -> tuple[int, ...]:
        return self.scale.moments


class Bench:
    """The problems of a comparison, their floors, and the runs on them."""

    def __init__(self, family: Family, scale: Scale, store: Store, threads: int | None = None) -> None:
        self.family, self.scale, self.store, self.threads = family, scale, store, threads
        self.seeds = tuple(scale.first_seed + k for k in range(scale.n_problems))
        self.problems = [family.build(seed) for seed in self.seeds]
        self.theta0 = first_point(self.problems[0].dim)
        self.stationary = [problem.exact.stationary_point(self.theta0) for problem in self.problems]
        self.J_star = np.array([p.exact.mspbe(theta) for p, theta in zip(self.problems, self.stationary, strict=True)])
        found = self._kept({"what": "floor"}, self._floors)
        self.floor = np.array(found, dtype=float)  # (n_problems, n_moments, n_runs)

    def _kept(self, more: dict[str, Any], compute: Callable[[], Any]) -> Any:
        """The result of a task: from the store, or computed and stored."""
        key = {"problems": [p.fingerprint for p in self.problems], "seeds": self.seeds, "moments": self.scale.moments,
               "runs": self.scale.n_runs, "samples": self.scale.n_samples, **more}  # fmt: skip
        found = self.store.load(key)
        if found is None:
            found = compute()
            self.store.save(key, found)
        return found

    def _floors(self) -> list[Any]:
        """Each searched from θ₀ and from the exact stationary point that is reached from there."""
        out = []
        n_runs, moments = self.scale.n_runs, self.scale.moments
        for problem, seed, theta in zip(self.problems, self.seeds, self.stationary, strict=True):
            counts = count_samples(problem, moments, seed, range(n_runs))
            starts = np.tile(np.stack([self.theta0, theta]), (len(moments) * n_runs, 1, 1))
            found = floors(problem, counts.reshape(len(moments) * n_runs, -1), starts).gradient_squared
            if np.isnan(found).mean() > 0.1:
                raise ValueError(no_floor(problem, f"the samples of seed {seed}"))
            out.append(found.reshape(len(moments), n_runs).tolist())
        return out

    def run(self, algorithms: Sequence[Algorithm], n_runs: int, n_samples: int) -> list[RunResult]:
        """Algorithm k on problem k."""
        cells = [
            Cell(k, algorithm, seed, n_runs, theta0=self.theta0)
            for k, (algorithm, seed) in enumerate(zip(algorithms, self.seeds, strict=True))
        ]
        every = max(1, RECORD_SAMPLES // algorithms[0].samples_per_update)
        return execute(self.problems, cells, Settings(n_samples, every, threads=self.threads, progress=False))

    def gradients(self, results: Sequence[RunResult]) -> list[FloatArray]:
        """‖∇J‖² of every record, (n_runs, n_records) for each problem."""
        with np.errstate(over="ignore", invalid="ignore"):
            out = [
                (problem.exact.gradient(result.theta) ** 2).sum(axis=-1)
                for problem, result in zip(self.problems, results, strict=True)
            ]
        return [np.where(np.isfinite(g), g, np.inf) for g in out]

    def at_moments(self, results: Sequence[RunResult], gradients: Sequence[FloatArray]) -> FloatArray:
        """‖∇J‖² at the last record up to each moment, (n_problems, n_moments, n_runs)."""
        at = np.searchsorted(results[0].samples, self.scale.moments, side="right") - 1
        return np.array([g[:, at].T for g in gradients])

    def multiple(self, gradient: FloatArray) -> FloatArray:
        """Mean ‖∇J‖² over runs ÷ mean floor, (n_problems, n_moments); runs without a floor are left out."""
        floor = self.floor[:, -gradient.shape[1] :, : gradient.shape[2]]
        known = ~np.isnan(floor)
        return np.asarray(np.where(known, gradient, 0).sum(axis=-1) / np.where(known, floor, 0).sum(axis=-1))

    def row(self, name: str, algorithm: Algorithm) -> Row:
        """Everything about one algorithm."""
        task = {"algorithm": algorithm.to_dict(), "code": code_of(algorithm)}
        main = self._kept(task | {"what": "main"}, lambda: self._main(algorithm))
        factors: list[float] = []
        if type(algorithm).default_etas and _has_steps(algorithm):
            more = {"what": "factors", "factors": FACTORS, "robust runs": self.scale.robust_runs}
            factors = self._kept(task | more, lambda: self._factors(algorithm))
        arrays: dict[str, Any] = {k: np.array(v, dtype=float) if isinstance(v, list) else v for k, v in main.items()}
        return Row(name=name, algorithm=repr(algorithm), factors=np.array(factors, dtype=float), **arrays)

    def _main(self, algorithm: Algorithm) -> dict[str, Any]:
        own = [algorithm.for_problem(problem) for problem in self.problems]
        self.run(own, 1, self.scale.moments[0])  # compile
        began = time.process_time()
        results = self.run(own, self.scale.n_runs, self.scale.n_samples)
        spent = time.process_time() - began
        used = int(results[0].samples[-1])
        gradients = self.gradients(results)
        curve = np.median([g.mean(axis=0) for g in gradients], axis=0)
        drawn = results[0].samples
        shown = np.append(drawn[1:] != drawn[:-1], True)  # of several records in an epoch the last one
        return {
            "multiple": self.multiple(self.at_moments(results, gradients)).tolist(),
            "evaluations": float(results[0].gradient_evaluations[-1] / used),
            "nanoseconds": 1e9 * spent / (used * self.scale.n_runs * len(results)),
            "bytes": max(run_bytes(p, a, self.scale.n_samples) for p, a in zip(self.problems, own, strict=True)),
            "diverged": sum(int(result.diverged.sum()) for result in results),
            "samples": drawn[shown].tolist(),
            "curve": curve[shown].tolist(),
        }

    def _factors(self, algorithm: Algorithm) -> list[float]:
        out = []
        for factor in FACTORS:
            own = [faster(algorithm.for_problem(problem), factor) for problem in self.problems]
            results = self.run(own, self.scale.robust_runs, self.scale.n_samples)
            last = self.at_moments(results, self.gradients(results))[:, -1:]
            out.append(float(np.median(self.multiple(last))))
        return out

    def rivals(self) -> tuple[Rival, ...]:
        """LSPI and averaged Q-learning at the last moment, beside the stationary point of the samples."""
        n, n_runs = self.scale.moments[-1], self.scale.n_runs
        counts = [
            count_samples(p, [n], seed, range(n_runs))[0] for p, seed in zip(self.problems, self.seeds, strict=True)
        ]
        own = [AveragedQLearning(radius=RADIUS).for_problem(problem) for problem in self.problems]
        averaged = [np.asarray(result.theta[:, -1]) for result in self.run(own, n_runs, n)]
        iterated = [lspi(p, c, self.theta0) for p, c in zip(self.problems, counts, strict=True)]
        starts = [np.tile(np.stack([self.theta0, theta]), (n_runs, 1, 1)) for theta in self.stationary]
        floor = [floors(p, c, s).theta for p, c, s in zip(self.problems, counts, starts, strict=True)]
        share = float(np.mean([i.converged.mean() for i in iterated]))
        return (
            self._rival("stationary point of the samples' J", floor, 1.0),
            self._rival("LSPI (LSTD-Q, iterated)", [i.theta for i in iterated], share),
            self._rival("averaged Q-learning", averaged, 1.0),
        )

    def _rival(self, name: str, thetas: Sequence[FloatArray], converged: float) -> Rival:
        pairs = list(zip(self.problems, thetas, strict=True))
        gradient = np.array([(p.exact.gradient(th) ** 2).sum(axis=-1)[None] for p, th in pairs])
        return Rival(
            name=name,
            multiple=self.multiple(gradient)[:, 0],
            mspbe=np.array([p.exact.mspbe(th).mean() for p, th in pairs]),
            value=np.array([np.mean(p.exact.value(th) @ weight_of(p)) for p, th in pairs]),
            converged=converged,
        )


def weight_of(problem: Problem) -> FloatArray:
    """μ over μᵀV*: the value of a policy as a part of the best."""
    mu = problem.exact.stationary
    return np.asarray(mu / (mu @ problem.exact.optimal_value))


def _has_steps(algorithm: Algorithm) -> bool:
    return "eta_theta" in algorithm.to_dict()


def faster(algorithm: Algorithm, factor: float) -> Algorithm:
    """The algorithm with its step sizes times a factor."""
    etas = {name: scaled(getattr(algorithm, name), factor) for name in ("eta_theta", "eta_omega")}
    given = {name: eta for name, eta in etas.items() if name in algorithm.to_dict()}
    return replace(algorithm, **given)  # type: ignore[type-var]


def run_bytes(problem: Problem, algorithm: Algorithm, n_samples: int) -> int:
    """The memory of a run: θ and ω, and every array that its estimator declares."""
    sizes = Sizes(
        d=problem.dim,
        A=problem.mdp.n_actions,
        states=problem.mdp.n_states,
        samples=len(problem_tables(problem).samples.row),
        updates=algorithm.n_updates(n_samples),
        most={name: getattr(algorithm, name) for name in parameters(algorithm.estimator)},
    )
    arrays = declared(algorithm.estimator, sizes).values()
    return 16 * problem.dim + sum(array.size * dtype_of(array, np.float64).itemsize for array in arrays)


def compare(
    family: Family, algorithms: Mapping[str, Algorithm], scale: Scale, store: Store, progress: Callable[[str], None]
) -> Comparison:
    """The leaderboard of some algorithms on the problems of a family."""
    began = time.perf_counter()
    bench = Bench(family, scale, store)
    progress(f"{len(bench.problems)} problems and their floors")
    rows = []
    for k, (name, algorithm) in enumerate(algorithms.items()):
        rows.append(bench.row(name, algorithm))
        progress(f"{name}, {k + 1} of {len(algorithms)}")
    rivals = bench.rivals()
    return Comparison(
        title=family.title,
        scale=scale,
        seeds=bench.seeds,
        floor=np.nanmean(bench.floor, axis=-1),
        J_star=bench.J_star,
        rows=tuple(sorted(rows, key=lambda row: float(np.median(row.multiple[:, -1])))),
        rivals=rivals,
        seconds=time.perf_counter() - began,
    )
