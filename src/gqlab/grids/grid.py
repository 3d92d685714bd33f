"""Grids: many problems, algorithms and seeds in one call, side by side on one device or spread over many."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from gqlab.algorithms import Algorithm, check_algorithm, is_kind
from gqlab.engine.cells import Settings, precision
from gqlab.grids.description import Sweep, axes_of
from gqlab.grids.driver import run_sweep
from gqlab.grids.grid_result import Chosen, GridResult
from gqlab.grids.store import GridStore, StoredResults, open_store
from gqlab.lab.execute import execute
from gqlab.lab.results import RunResult
from gqlab.lab.run import DEFAULT_RUNS
from gqlab.measure.watch import Watch, watches
from gqlab.problems.problem import Problem
from gqlab.support import checks
from gqlab.tasks.base import Engine
from gqlab.tasks.engines import engine_of


def vary(kind: type[Algorithm], **parameters: Any) -> list[Algorithm]:
    """Every combination of the parameters, each given as one value or as a sequence of values.

    Examples
    --------
    >>> import gqlab as gq
    >>> gq.vary(gq.GreedyGQ, eta_theta=[0.01, 0.02], radius=100.0)
    [GreedyGQ(eta_theta=0.01, eta_omega=0.01, radius=100.0), GreedyGQ(eta_theta=0.02, eta_omega=0.01, radius=100.0)]
    """
    if not is_kind(kind):
        raise ValueError(f"kind is {checks.shown(kind)}, expected the class of an algorithm such as gqlab.GreedyGQ")
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    for name in parameters:
        if name not in known:
            raise ValueError(f"{name} is not a parameter of {kind.__name__}, expected any of {', '.join(known)}")
    axes = [checks.several(name, values) for name, values in parameters.items()]
    return [kind(**dict(zip(parameters, values, strict=True))) for values in itertools.product(*axes)]


def grid(
    problems: Problem | Sequence[Problem],
    algorithms: Algorithm | Sequence[Algorithm],
    n_samples: int = 100_000,
    *,
    n_runs: int = DEFAULT_RUNS,
    seeds: int | Iterable[int] = 0,
    theta0: ArrayLike | None = None,
    omega0: ArrayLike | None = None,
    record_every: int = 1000,
    device: str = "cpu",
    dtype: DTypeLike = "float64",
    threads: int | None = None,
    progress: bool | None = None,
    watch: Watch | Iterable[Watch] | None = None,
    engine: str | Engine | None = None,
    store: str | os.PathLike[str] | None = None,
) -> GridResult:
    """Run every algorithm on every problem under every seed, ``n_runs`` times, in a few compiled calls.

    Each cell is, number for number, what :func:`gqlab.run` gives for it, regardless of the other cells, the engine and
    any interruptions. Problems may differ in every respect; those of one size run in one call.

    Parameters
    ----------
    problems : Problem or sequence of Problem
    algorithms : Algorithm or sequence of Algorithm
        :func:`gqlab.vary` makes a list from ranges of parameters.
    n_samples, theta0, omega0, record_every, device, dtype, threads, progress, watch
        As in :func:`gqlab.run`, the same for every cell.
    n_runs : int
        Runs of each cell, default 40.
    seeds : int or sequence of int
    engine : "threads", "processes", "ray" or an Engine, optional
        Where the cells run, in tasks of a few seconds: see docs/scale.md. Default: all of them in one call of this
        process. An engine given by name has ``threads`` workers.
    store : str or path, optional
        A folder that keeps finished cells: after an interruption the same call computes what is missing. Results are
        read from it on demand. A cell that fails is named in a ``ValueError`` once all others are finished.

    Examples
    --------
    >>> import gqlab as gq
    >>> mdps = [gq.garnet(seed=k) for k in range(3)]
    >>> problems = [gq.Problem(mdp, gq.random_features(mdp, dim=4)) for mdp in mdps]
    >>> grid = gq.grid(problems, [gq.GreedyGQ(), gq.VRGreedyGQ(batch_size=100)], n_samples=1000, n_runs=5, seeds=[0, 1])
    >>> len(grid)
    12
    >>> for label, result in grid.select(problem=2, seed=1):
    ...     print(label["algorithm"], label["batch_size"], result.theta.shape)
    GreedyGQ nan (5, 2, 4)
    VRGreedyGQ 100.0 (5, 2, 4)
    """
    problem_list, algorithm_list = checks.several("problems", problems), checks.several("algorithms", algorithms)
    seed_list = [
        checks.integer(f"seeds[{k}]", seed, least=0, below=2**64)
        for k, seed in enumerate(checks.several("seeds", seeds))
    ]
    for k, problem in enumerate(problem_list):
        checks.instance(f"problems[{k}]", problem, Problem, "a Problem")
    for k, algorithm in enumerate(algorithm_list):
        check_algorithm(f"algorithms[{k}]", algorithm)
    settings = Settings(
        n_samples,
        record_every,
        device=device,
        dtype=precision(dtype),
        threads=threads,
        progress=progress,
        watch=watches(watch),
    )
    axes = axes_of(problem_list, algorithm_list, seed_list)
    sweep = Sweep(problem_list, axes, checks.integer("n_runs", n_runs, least=1), settings, theta0, omega0)
    if engine is None and store is None:
        results: Sequence[RunResult] = execute(problem_list, [sweep.cell(k) for k in range(len(sweep))], settings)
    else:
        results = run_sweep(sweep, engine_of("threads" if engine is None else engine, threads), store)
    return GridResult(results, axes.labels())


def open_grid(
    path: str | os.PathLike[str], *, problems: Problem | Sequence[Problem] | None = None, partial: bool = False
) -> GridResult:
    """The results in the store of a sweep, each read on demand: there may be more than fit in memory.

    Parameters
    ----------
    path : str or path
        The folder that was given to :func:`gqlab.grid` as ``store``, or to ``gqlab sweep`` as ``--out``.
    problems : Problem or sequence of Problem, optional
        The problems of the grid, in their order, which the store does not hold: exact metrics need them.
    partial : bool
        Whether to accept a store with missing cells; otherwise that is a ``ValueError``.

    Examples
    --------
    >>> import gqlab as gq, tempfile
    >>> mdp = gq.garnet(seed=0)
    >>> problem = gq.Problem(mdp, gq.random_features(mdp, dim=4))
    >>> folder = tempfile.mkdtemp()
    >>> algorithms = gq.vary(gq.GreedyGQ, eta_theta=[0.01, 0.02])
    >>> grid = gq.grid(problem, algorithms, n_samples=1000, n_runs=5, seeds=range(3), store=folder)
    >>> again = gq.open_grid(folder, problems=problem)
    >>> len(again), again.best("gradient").labels["eta_theta"]
    (6, array([0.02, 0.02, 0.02]))
    """
    checks.instance("partial", partial, bool, "True or False")
    store = open_store(path)
    known = None if problems is None else _known(problems, store)
    store.find(whole=False)
    labels, missing = store.description.axes.labels(), np.flatnonzero(~store.finished)
    if not len(missing):
        return GridResult(StoredResults(store, known), labels)
    if not partial:
        raise ValueError(
            f"{store.folder}: {len(missing):,} of {len(store.finished):,} cells are missing; run the same sweep "
            "again to resume it, or take the finished ones with partial=True"
        )
    done = np.flatnonzero(store.finished)
    return GridResult(
        Chosen(StoredResults(store, known), done), {name: column[done] for name, column in labels.items()}
    )


def _known(problems: Problem | Sequence[Problem], store: GridStore) -> list[Problem]:
    """The problems of a store, checked by their fingerprints."""
    given, wanted = checks.several("problems", problems), store.description.problems
    if len(given) != len(wanted):
        raise ValueError(f"problems has {len(given)}, expected the {len(wanted)} of the grid in {store.folder}")
    for k, (problem, fingerprint) in enumerate(zip(given, wanted, strict=True)):
        checks.instance(f"problems[{k}]", problem, Problem, "a Problem")
        if problem.fingerprint != fingerprint:
            raise ValueError(f"problems[{k}] is {problem!r}, which is not that of the grid in {store.folder}")
    return given
