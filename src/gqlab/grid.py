"""Grids: many problems, algorithms and seeds in one call, all runs side by side on one device."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from gqlab import checks
from gqlab.algorithms import Algorithm, check_algorithm
from gqlab.engine.cells import Cell, Settings, precision
from gqlab.engine.execute import execute
from gqlab.grid_result import GridResult
from gqlab.measure.watch import Watch, watches
from gqlab.problem import Problem


def sweep(kind: type[Algorithm], **parameters: Any) -> list[Algorithm]:
    """Every combination of the parameters, each given as one value or as a sequence of values.

    Examples
    --------
    >>> import gqlab as gq
    >>> gq.sweep(gq.GreedyGQ, eta_theta=[0.01, 0.02], radius=100.0)
    [GreedyGQ(eta_theta=0.01, eta_omega=0.01, radius=100.0), GreedyGQ(eta_theta=0.02, eta_omega=0.01, radius=100.0)]
    """
    if not (isinstance(kind, type) and issubclass(kind, Algorithm) and hasattr(kind, "estimator")):
        raise ValueError(f"kind is {checks.shown(kind)}, expected the class of an algorithm such as gqlab.GreedyGQ")
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    for name in parameters:
        if name not in known:
            raise ValueError(f"{name} is no parameter of {kind.__name__}, expected some of {', '.join(known)}")
    axes = [checks.several(name, values) for name, values in parameters.items()]
    return [kind(**dict(zip(parameters, values, strict=True))) for values in itertools.product(*axes)]


def grid(
    problems: Problem | Sequence[Problem],
    algorithms: Algorithm | Sequence[Algorithm],
    n_samples: int = 100_000,
    n_runs: int = 1,
    seeds: int | Iterable[int] = 0,
    theta0: ArrayLike | None = None,
    omega0: ArrayLike | None = None,
    record_every: int = 1000,
    device: str = "cpu",
    *,
    dtype: DTypeLike = "float64",
    threads: int | None = None,
    progress: bool | None = None,
    watch: Watch | Iterable[Watch] | None = None,
) -> GridResult:
    """Run every algorithm on every problem under every seed, ``n_runs`` times, in one compiled loop.

    Each cell is, number for number, what :func:`gqlab.run` gives for it. The problems may differ in everything but
    their numbers of actions and features.

    Parameters
    ----------
    problems : Problem or sequence of Problem
    algorithms : Algorithm or sequence of Algorithm
        :func:`gqlab.sweep` makes one from ranges of parameters.
    n_samples, theta0, omega0, record_every, device, dtype, threads, progress, watch
        As in :func:`gqlab.run`, the same for every cell.
    n_runs : int
        Runs of each cell.
    seeds : int or sequence of int

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
    seed_list = checks.several("seeds", seeds)
    _check_sizes(problem_list)
    for k, algorithm in enumerate(algorithm_list):
        check_algorithm(f"algorithms[{k}]", algorithm)
    n_runs = checks.integer("n_runs", n_runs, least=1)
    cells = [
        Cell(
            p,
            algorithm.for_problem(problem_list[p]),
            checks.integer(f"seeds[{k}]", seed, least=0, below=2**64),
            n_runs,
            theta0,
            omega0,
        )
        for p, algorithm, (k, seed) in itertools.product(range(len(problem_list)), algorithm_list, enumerate(seed_list))
    ]
    settings = Settings(
        n_samples,
        record_every,
        device=device,
        dtype=precision(dtype),
        threads=threads,
        progress=progress,
        watch=watches(watch),
    )
    results = execute(problem_list, cells, settings)
    return GridResult(results, _labels(cells))


def _check_sizes(problems: list[Problem]) -> None:
    for k, problem in enumerate(problems):
        checks.instance(f"problems[{k}]", problem, Problem, "a Problem")
        for name, size, wanted in (
            ("actions", problem.mdp.n_actions, problems[0].mdp.n_actions),
            ("features", problem.dim, problems[0].dim),
        ):
            if size != wanted:
                raise ValueError(f"problems[{k}] has {size} {name}, expected {wanted} as in problems[0]")


def _labels(cells: list[Cell]) -> dict[str, NDArray[Any]]:
    parameters = [
        {field.name: getattr(cell.algorithm, field.name) for field in fields(cell.algorithm)}  # type: ignore[arg-type]
        for cell in cells
    ]
    names = dict.fromkeys(name for values in parameters for name in values)
    return {
        "problem": np.array([cell.problem for cell in cells]),
        "seed": np.array([cell.seed for cell in cells], dtype=np.uint64),
        "algorithm": np.array([type(cell.algorithm).__name__ for cell in cells]),
        **{name: np.array([values.get(name, np.nan) for values in parameters]) for name in names},
    }
