"""``run``: many independent runs of one algorithm on one problem."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numpy.typing import ArrayLike

from gqlab import checks
from gqlab.algorithms import Algorithm
from gqlab.checks import FloatArray
from gqlab.engine import cpu
from gqlab.engine.loop import Plan, Records, Runs
from gqlab.engine.tables import problem_tables
from gqlab.problem import Problem
from gqlab.results import RunResult
from gqlab.version import __version__

DEVICES = ("cpu",)
DEFAULT_RUNS, DEFAULT_SEED, DEFAULT_RECORD_EVERY = 40, 0, 1000


def run(
    problem: Problem,
    algorithm: Algorithm,
    n_samples: int = 100_000,
    n_runs: int | None = None,
    seed: int | None = None,
    theta0: ArrayLike | None = None,
    omega0: ArrayLike | None = None,
    record_every: int | None = None,
    device: str = "cpu",
    resume: RunResult | None = None,
    *,
    threads: int | None = None,
    progress: bool | None = None,
) -> RunResult:
    """Run ``algorithm`` on ``problem``, ``n_runs`` times, each on a trajectory of its own.

    Run k of a seed is the same whatever ``n_runs``, ``threads`` and ``record_every`` are.

    Parameters
    ----------
    problem : Problem
    algorithm : GreedyGQ or VRGreedyGQ
    n_samples : int
        The budget of each run; VR-Greedy-GQ takes the whole batches that fit.
    n_runs : int
        Default 40.
    seed : int
        Default 0.
    theta0, omega0 : (d,) or (n_runs, d) array, optional
        Where the runs begin, inside the ball; default zeros.
    record_every : int
        Updates between two records, default 1000; the first and the last point are always recorded.
    device : "cpu"
    resume : RunResult, optional
        Go on from there: the result is, bit for bit, that of one call with this ``n_samples`` that never stopped.
        ``n_runs``, ``seed``, ``record_every`` and the first points come from it.
    threads : int, optional
        Default: all cores.
    progress : bool, optional
        A progress bar on stderr. Default: where stderr is a terminal, once the work has taken a second.

    Examples
    --------
    >>> import gqlab as gq
    >>> mdp = gq.garnet(seed=0)
    >>> problem = gq.Problem(mdp, gq.random_features(mdp, dim=4))
    >>> result = gq.run(problem, gq.VRGreedyGQ(batch_size=300), n_samples=3000, n_runs=8)
    >>> result.theta.shape, result.updates.tolist(), result.gradient_evaluations.tolist()
    ((8, 4, 4), [0, 1000, 2000, 3000], [0, 3200, 6100, 9000])
    """
    if not isinstance(algorithm, Algorithm):
        raise ValueError(f"algorithm is {algorithm!r}, expected one such as gqlab.VRGreedyGQ()")
    if device not in DEVICES:
        raise ValueError(f"device is {device!r}, expected one of {', '.join(map(repr, DEVICES))}")
    n_samples = checks.integer("n_samples", n_samples, least=1, below=2**48)
    threads = cpu.default_threads() if threads is None else checks.integer("threads", threads, least=1)
    n_runs, seed, record_every = _settings(problem, algorithm, n_runs, seed, record_every, resume)
    n_updates = algorithm.n_updates(n_samples)
    samples, chain, _ = problem_tables(problem)
    if resume is None:
        runs = _first_state(
            _first_point("theta0", theta0, n_runs, problem.dim, algorithm.radius),
            _first_point("omega0", omega0, n_runs, problem.dim, algorithm.radius),
        )
    else:
        if theta0 is not None or omega0 is not None:
            raise ValueError("theta0 and omega0 come from the result that is resumed: do not give them again")
        if n_updates < resume.updates[-1]:
            raise ValueError(
                f"n_samples is {n_samples}, but the result to resume has made {resume.updates[-1]} updates already"
            )
        runs = _state(resume)
    updates = np.append(np.arange(0, n_updates, record_every), n_updates)
    plan = _plan(algorithm, n_runs, seed, n_updates, len(updates))
    records = _records(runs, n_runs, len(updates), record_every, resume)
    with _Progress(n_runs * n_updates, int(runs.updates.sum()), progress) as advanced:
        cpu.advance_all(samples, chain, plan, runs, records, (problem.dim, problem.mdp.n_actions), threads, advanced)
    return RunResult(
        theta=records.theta.reshape(n_runs, -1, problem.dim),
        omega=records.omega.reshape(n_runs, -1, problem.dim),
        samples=algorithm.samples(updates),
        updates=updates,
        gradient_evaluations=algorithm.gradient_evaluations(updates),
        output=runs.output,
        output_update=runs.output_update,
        diverged_at=runs.diverged_at,
        state=runs.s,
        next_output=runs.next_output,
        metadata=_metadata(problem, algorithm, n_samples, seed, record_every, device),
    )


def _settings(
    problem: Problem, algorithm: Algorithm, n_runs: int | None, seed: int | None, record_every: int | None,
    resume: RunResult | None,
) -> tuple[int, int, int]:  # fmt: skip
    """n_runs, seed and record_every: as given, else those of the result that is resumed, else the defaults."""
    given = {"n_runs": n_runs, "seed": seed, "record_every": record_every}
    known = {"n_runs": DEFAULT_RUNS, "seed": DEFAULT_SEED, "record_every": DEFAULT_RECORD_EVERY}
    if resume is not None:
        if not isinstance(resume, RunResult):
            raise ValueError(f"resume is {resume!r}, expected a RunResult")
        if resume.metadata["problem"] != problem.fingerprint:
            raise ValueError("resume: that result is of another problem")
        if resume.algorithm != algorithm:
            raise ValueError(f"resume: that result is of {resume.algorithm!r}, not of {algorithm!r}")
        known = {"n_runs": len(resume.theta), **{name: resume.metadata[name] for name in ("seed", "record_every")}}
        for name, value in given.items():
            if value is not None and value != known[name]:
                raise ValueError(f"resume: that result has {name} = {known[name]}, not {value}")
    final = {name: known[name] if value is None else value for name, value in given.items()}
    return (
        checks.integer("n_runs", final["n_runs"], least=1),
        checks.integer("seed", final["seed"], least=0, below=2**64),
        checks.integer("record_every", final["record_every"], least=1),
    )


def _first_point(name: str, value: ArrayLike | None, n_runs: int, d: int, radius: float) -> FloatArray:
    if value is None:
        return np.zeros((n_runs, d))
    point = checks.array(name, value, (d,) if np.ndim(value) == 1 else (n_runs, d))
    with np.errstate(over="ignore"):
        norm = np.linalg.norm(np.broadcast_to(point, (n_runs, d)), axis=-1)
    bad = np.flatnonzero(norm > radius)
    if len(bad):
        where = name if point.ndim == 1 else f"{name}[{bad[0]}]"
        raise ValueError(f"{where} has norm {norm[bad[0]]:.6g}, outside the ball of radius {radius:g}")
    return np.array(np.broadcast_to(point, (n_runs, d)))


def _first_state(theta: FloatArray, omega: FloatArray) -> Runs:
    n_runs, d = theta.shape
    return Runs(
        theta=theta,
        omega=omega,
        s=np.zeros(n_runs, dtype=np.uint32),
        updates=np.zeros(n_runs, dtype=np.int64),
        output=np.zeros((n_runs, d)),
        output_update=np.full(n_runs, -1),
        next_output=np.zeros(n_runs, dtype=np.int64),
        diverged_at=np.full(n_runs, -1),
    )


def _state(result: RunResult) -> Runs:
    return Runs(
        theta=result.theta[:, -1].copy(),
        omega=result.omega[:, -1].copy(),
        s=result.state.copy(),
        updates=np.full(len(result.theta), result.updates[-1]),
        output=result.output.copy(),
        output_update=result.output_update.copy(),
        next_output=result.next_output.copy(),
        diverged_at=result.diverged_at.copy(),
    )


def _plan(algorithm: Algorithm, n_runs: int, seed: int, n_updates: int, n_records: int) -> Plan:
    every = np.ones(n_runs, dtype=np.int64)
    return Plan(
        seed=np.full(n_runs, seed, dtype=np.uint64),
        number=np.arange(n_runs),
        eta_theta=algorithm.eta_theta * every,
        eta_omega=algorithm.eta_omega * every,
        radius=algorithm.radius * every,
        batch_size=algorithm.epoch * every,
        n_updates=n_updates * every,
        first_record=n_records * np.arange(n_runs),
    )


def _records(runs: Runs, n_runs: int, n_records: int, every: int, resume: RunResult | None) -> Records:
    """Room for all records, with those that exist already."""
    d = runs.theta.shape[1]
    theta, omega = np.empty((2, n_runs, n_records, d))
    if resume is None:
        theta[:, 0], omega[:, 0] = runs.theta, runs.omega
    else:  # its last point may stand between two record points of the longer run: then it is not one of them
        kept = resume.updates % every == 0
        theta[:, : kept.sum()], omega[:, : kept.sum()] = resume.theta[:, kept], resume.omega[:, kept]
        if n_records == len(resume.updates):
            theta[:, -1], omega[:, -1] = resume.theta[:, -1], resume.omega[:, -1]
    return Records(theta.reshape(-1, d), omega.reshape(-1, d), every)


def _metadata(
    problem: Problem, algorithm: Algorithm, n_samples: int, seed: int, record_every: int, device: str
) -> dict[str, Any]:
    return {
        "algorithm": algorithm.to_dict(),
        "problem": problem.fingerprint,
        "n_samples": n_samples,
        "seed": seed,
        "record_every": record_every,
        "device": device,
        "versions": {
            "gqlab": __version__,
            "numpy": np.__version__,
            "numba": numba.__version__,
            "python": platform.python_version(),
        },
    }


class _Progress:
    """A progress bar in updates: ``with _Progress(total, done, wanted) as advanced`` gives a function of the count."""

    def __init__(self, total: int, done: int, wanted: bool | None) -> None:
        self._bar: Any = None
        if wanted is None:
            wanted = sys.stderr.isatty()
        if wanted:
            try:
                from tqdm import tqdm
            except ImportError:
                return
            self._bar = tqdm(total=total, initial=done, unit=" updates", unit_scale=True, delay=1.0)

    def __enter__(self) -> Callable[[int], None]:
        return self._advance

    def _advance(self, done: int) -> None:
        if self._bar is not None:
            self._bar.update(done - self._bar.n)

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.close()
