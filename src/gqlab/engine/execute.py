"""From settings to results: lay out what every run has to do, let a device do it, and cut the records into results.

A *cell* is one algorithm on one problem under one seed, ``n_runs`` times; :func:`gqlab.run` has one cell and
:func:`gqlab.grid` many. All runs of all cells go to the device together.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from gqlab import checks
from gqlab.algorithms import Algorithm
from gqlab.engine import cpu, policy_search
from gqlab.engine.loop import Plan, Records, Runs
from gqlab.engine.tables import join_tables, offsets
from gqlab.problem import Problem
from gqlab.results import RunResult
from gqlab.rules import Samples
from gqlab.version import __version__

DEVICES = ("cpu", "cuda")
#: Numbers that the records of θ may hold: more would be a mistake.
MOST_RECORDED = 2**36
#: A point may lie outside the ball by as much, relatively: the projection of a single-precision run rounds.
BALL_TOLERANCE = 1e-6
DTYPES = {"float64": np.float64, "float32": np.float32}


@dataclass(frozen=True)
class Cell:
    """One algorithm on one problem under one seed."""

    problem: int
    algorithm: Algorithm
    seed: int
    n_runs: int
    theta0: ArrayLike | None = None
    omega0: ArrayLike | None = None
    resume: RunResult | None = None

    def updates(self, n_samples: int, record_every: int) -> NDArray[np.int64]:
        """The updates that are recorded."""
        last = self.algorithm.n_updates(n_samples)
        if self.resume is not None and last < self.resume.updates[-1]:
            done = self.resume.updates[-1]
            raise ValueError(f"n_samples is {n_samples}, but the result to resume has made {done} updates already")
        return np.append(np.arange(0, last, record_every), last)


def execute(
    problems: list[Problem], cells: list[Cell], n_samples: int, record_every: int, **settings: Any
) -> list[RunResult]:
    """The results of all cells; cells whose algorithms share a compiled loop go to the device together."""
    loops = [policy_search.loop_of(cell.algorithm) for cell in cells]
    results: dict[int, RunResult] = {}
    for loop in dict.fromkeys(loops):
        mine = [k for k in range(len(cells)) if loops[k] == loop]
        some = _execute(problems, [cells[k] for k in mine], n_samples, record_every, **settings)
        results.update(zip(mine, some, strict=True))
    return [results[k] for k in range(len(cells))]


def _execute(
    problems: list[Problem], cells: list[Cell], n_samples: int, record_every: int, *, device: str, dtype: str,
    threads: int | None, progress: bool | None,
) -> list[RunResult]:  # fmt: skip
    if device not in DEVICES:
        raise ValueError(f"device is {device!r}, expected one of {', '.join(map(repr, DEVICES))}")
    if dtype not in list(DTYPES):
        raise ValueError(f"dtype is {dtype!r}, expected one of {', '.join(map(repr, DTYPES))}")
    n_samples = checks.integer("n_samples", n_samples, least=1, below=2**48)
    record_every = checks.integer("record_every", record_every, least=1, below=2**48)
    threads = cpu.default_threads() if threads is None else checks.integer("threads", threads, least=1)
    block = policy_search.block_of(cells[0].algorithm, [problems[cell.problem] for cell in cells], problems, dtype)
    if block is not None and device != "cpu":
        raise ValueError(f"device is {device!r}, but {type(cells[0].algorithm).__name__} runs on the CPU alone")
    d, A = problems[0].dim, problems[0].mdp.n_actions
    total = sum(cell.n_runs for cell in cells) * (n_samples // record_every + 2)
    if total * d > MOST_RECORDED:
        raise ValueError(f"record_every is {record_every}: that makes up to {total:,} records of {d} numbers, too many")
    updates = [cell.updates(n_samples, record_every) for cell in cells]
    n_records = np.repeat([len(u) for u in updates], [cell.n_runs for cell in cells])
    first_record = offsets(n_records)
    with np.errstate(over="ignore"):  # of a cast to single precision: named below
        runs = Runs(*(np.concatenate(parts) for parts in zip(*(_state(c, d, dtype) for c in cells), strict=True)))
        plan = _plan(cells, updates, first_record[:-1], dtype)
        samples, chain = join_tables(problems, DTYPES[dtype])
    _check_precision(dtype, runs, plan, samples)
    theta_records, omega_records = np.empty((2, first_record[-1], d), dtype=dtype)
    records = Records(theta_records, omega_records, record_every)
    views = _views(cells, updates, records, d)
    for cell, u, (theta, omega) in zip(cells, updates, views, strict=True):
        _old_records(cell, u, record_every, theta, omega)
    with Progress(int(plan.n_updates.sum()), int(runs.updates.sum()), progress) as advanced:
        if device == "cuda":
            load_cuda().advance_all(samples, chain, plan, runs, records, (d, A), advanced)
        else:
            loop = block or cpu.advance_block
            cpu.advance_all(samples, chain, plan, runs, records, (d, A), threads, advanced, loop)
    settings = {"n_samples": n_samples, "record_every": record_every, "dtype": dtype, "device": device}
    mine = offsets([cell.n_runs for cell in cells])
    return [
        _result(
            cell, problems[cell.problem], u, *view, Runs(*(part[a:b] for part in runs)), settings, theta_records.nbytes
        )
        for cell, u, view, a, b in zip(cells, updates, views, mine[:-1], mine[1:], strict=True)
    ]


def _state(cell: Cell, d: int, dtype: str) -> Runs:
    """Where the runs of a cell begin."""
    n = cell.n_runs
    if cell.resume is not None:
        r = cell.resume
        last = np.full(n, r.updates[-1])
        return Runs(
            r.theta[:, -1], r.omega[:, -1], r.state, last, r.output, r.output_update, r.next_output, r.diverged_at
        )
    if cell.omega0 is not None and not cell.algorithm.has_omega:
        raise ValueError(f"omega0 is given, but {type(cell.algorithm).__name__} has no ω")
    radius = cell.algorithm.radius
    return Runs(
        theta=_first_point("theta0", cell.theta0, n, d, radius).astype(dtype, order="C"),
        omega=_first_point("omega0", cell.omega0, n, d, radius).astype(dtype, order="C"),
        s=np.zeros(n, dtype=np.uint32),
        updates=np.zeros(n, dtype=np.int64),
        output=np.zeros((n, d), dtype=dtype),
        output_update=np.full(n, -1),
        next_output=np.zeros(n, dtype=np.int64),
        diverged_at=np.full(n, -1),
    )


def _first_point(name: str, value: ArrayLike | None, n_runs: int, d: int, radius: float) -> checks.FloatArray:
    if value is None:
        return np.zeros((n_runs, d))
    point = checks.array(name, value, (d,) if checks.plain_array(name, value).ndim == 1 else (n_runs, d))
    with np.errstate(over="ignore"):
        norm = np.linalg.norm(np.broadcast_to(point, (n_runs, d)), axis=-1)
    bad = np.flatnonzero(norm > radius * (1 + BALL_TOLERANCE))
    if len(bad):
        where = name if point.ndim == 1 else f"{name}[{bad[0]}]"
        raise ValueError(f"{where} has norm {norm[bad[0]]:.6g}, outside the ball of radius {radius:g}")
    return np.broadcast_to(point, (n_runs, d))


def _check_precision(dtype: str, runs: Runs, plan: Plan, samples: Samples) -> None:
    """Numbers that ``dtype`` cannot hold are refused, not turned into infinities and zeros."""
    finite = {"theta0": runs.theta, "omega0": runs.omega, "reward": samples.reward, "features": samples.phi}
    for name, values in finite.items():
        if not np.isfinite(values).all():
            raise ValueError(f"{name} holds a number too large for {dtype}")
    if not (plan.eta_theta > 0).all():
        raise ValueError(f"eta_theta is too small for {dtype}")


def _plan(cells: list[Cell], updates: list[NDArray[np.int64]], first_record: NDArray[Any], dtype: str) -> Plan:
    counts = [cell.n_runs for cell in cells]

    def per_run(values: list[Any], dtype: Any = np.int64) -> NDArray[Any]:
        return np.repeat(np.array(values, dtype=dtype), counts)

    n_updates = per_run([u[-1] for u in updates])
    return Plan(
        problem=per_run([cell.problem for cell in cells]),
        seed=per_run([cell.seed for cell in cells], np.uint64),
        number=np.concatenate([np.arange(n) for n in counts]),
        eta_theta=per_run([cell.algorithm.eta_theta for cell in cells], dtype),
        eta_omega=per_run([cell.algorithm.eta_omega for cell in cells], dtype),
        radius=per_run([cell.algorithm.radius for cell in cells], dtype),
        batch_size=per_run([cell.algorithm.epoch for cell in cells]),
        n_updates=n_updates,
        until=n_updates.copy(),
        first_record=first_record,
    )


def _views(
    cells: list[Cell], updates: list[NDArray[np.int64]], records: Records, d: int
) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """The records of each cell, (n_runs, n_records, d)."""
    rows = offsets([cell.n_runs * len(u) for cell, u in zip(cells, updates, strict=True)])
    return [
        (records.theta[a:b].reshape(cell.n_runs, -1, d), records.omega[a:b].reshape(cell.n_runs, -1, d))
        for cell, a, b in zip(cells, rows[:-1], rows[1:], strict=True)
    ]


def _old_records(cell: Cell, updates: NDArray[np.int64], every: int, theta: NDArray[Any], omega: NDArray[Any]) -> None:
    """Write the records that exist already: those of the result that is resumed."""
    before = cell.resume
    if before is None:
        return
    # Its last point may stand between two record points of the longer run: then it is not one of them.
    kept = before.updates % every == 0
    theta[:, : kept.sum()], omega[:, : kept.sum()] = before.theta[:, kept], before.omega[:, kept]
    if updates[-1] == before.updates[-1]:
        theta[:, -1], omega[:, -1] = before.theta[:, -1], before.omega[:, -1]


def _result(
    cell: Cell, problem: Problem, updates: NDArray[np.int64], theta: NDArray[Any], omega: NDArray[Any], runs: Runs,
    settings: dict[str, Any], records_bytes: int,
) -> RunResult:  # fmt: skip
    versions = {
        "gqlab": __version__,
        "numpy": np.__version__,
        "numba": numba.__version__,
        "python": platform.python_version(),
    }
    if theta.nbytes < records_bytes:  # not a view of the records of all cells, which it would keep alive
        theta, omega = theta.copy(), omega.copy()
    return RunResult(
        theta=theta,
        omega=omega,
        samples=cell.algorithm.samples(updates),
        updates=updates,
        gradient_evaluations=cell.algorithm.gradient_evaluations(updates),
        output=runs.output.copy(),
        output_update=runs.output_update.copy(),
        diverged_at=runs.diverged_at.copy(),
        state=runs.s.copy(),
        next_output=runs.next_output.copy(),
        metadata={
            "algorithm": cell.algorithm.to_dict(),
            "problem": problem.fingerprint,
            "seed": cell.seed,
            **settings,
            "versions": versions,
        },
    )


def load_cuda() -> Any:
    """The GPU's side of the engine, or a ``ValueError`` in one line that says what is missing."""
    try:
        from numba import cuda as numba_cuda

        from gqlab.engine import cuda

        available = numba_cuda.is_available()
    except ImportError as error:
        raise ValueError(f"device 'cuda': numba-cuda is missing ({error}); pip install 'gqlab[cuda]'") from None
    if not available:
        raise ValueError("device 'cuda': no CUDA GPU, or no driver for it, was found")
    if not hasattr(np, "row_stack"):
        raise ValueError(
            f"device 'cuda': numba-cuda does not work with NumPy {np.__version__}, which has no row_stack; "
            "pip install 'gqlab[cuda]' brings one that it works with"
        )
    return cuda


class Progress:
    """A progress bar in updates: ``with Progress(total, done, wanted) as advanced`` gives a function of the count."""

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
