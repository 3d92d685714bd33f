"""fit(): action values from logged data."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from gqlab.algorithms import Algorithm, check_algorithm
from gqlab.algorithms.places import RunPlace, Way, way_in
from gqlab.data.encoding import fit_encoder
from gqlab.data.parquet import ParquetFiles
from gqlab.data.transitions import Transitions
from gqlab.estimators.needs import Need
from gqlab.learn.fit.empirical import check_joint
from gqlab.learn.fit.fitted import check_goal
from gqlab.learn.fit.fitting import Fitting
from gqlab.learn.fit.log_table import Target, check_target
from gqlab.learn.fit.shared_fit import SharedFit
from gqlab.learn.linear_q import LinearQ
from gqlab.operators import Greedy
from gqlab.support import checks
from gqlab.support.checks import FloatArray
from gqlab.support.compile_errors import cause_first
from gqlab.support.files import one_line
from gqlab.support.progress import progress_bar
from gqlab.tasks.base import Engine
from gqlab.tasks.engines import engine_of
from gqlab.tasks.processes import Processes

#: Which row may come next.
ORDERS = ("shuffled", "drawn", "in order")

#: Passes over the rows, where nothing else is said.
PASSES = 10

#: What rows in memory can be asked for, what files that are read as they stand, and what workers that share files.
MEMORY = RunPlace("gqlab.fit", frozenset(Need) - {Need.BEHAVIOR, Need.SIMULATION, Need.KEPT})
FILES = RunPlace("gqlab.fit over files", frozenset({Need.EPISODES, Need.NEXT_ACTION, Need.WHOLE_MEAN, Need.CPU}))
SHARED = RunPlace("gqlab.fit with an engine", frozenset({Need.WHOLE_MEAN, Need.SUMS, Need.CPU}))


def fit(
    data: Transitions,
    encoder: Any,
    algorithm: Any,
    target: Any = None,
    *,
    discount: float = 0.99,
    n_passes: int | None = None,
    seed: int = 0,
    rows: str | None = None,
    theta0: Any = None,
    progress: bool | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    engine: str | Engine | None = None,
) -> LinearQ:
    """Learn action values from logged transitions.

    Parameters
    ----------
    data : Transitions
    encoder : encoder
        Such as :class:`gqlab.Fourier`, or any scikit-learn transformer. One that is not fitted is fitted to the data's
        observations.
    algorithm : Algorithm
        Any but those that need a simulation: docs/algorithms.md has the table. In passes over the rows, those that take
        one row at a time also over files that do not fit the memory; for others files are read into it. ``FittedQ``,
        ``LSPI`` and ``LeastSquaresGreedyGQ`` solve for θ, with matrices of all features. Traces take the rows in the
        order of time, and begin anew with every episode. Step sizes that were not given are divided by the largest
        ‖φ‖².
    target : Operator or policy
        :class:`gqlab.Greedy` by default: control. A policy is evaluated: a LinearQ, an Agent, a function of
        observations (n, size) that gives probabilities (n, n_actions), a FixedPolicy or a table like its own.
    discount : float
    n_passes : int, optional
        Passes over the rows, default 10. Of WholeDataVRGreedyGQ a pass is an epoch.
    seed : int
        Of the order of the rows, and of the indices that batches draw.
    rows : {"shuffled", "drawn", "in order"}, optional
        Which row comes next: in an order that is drawn once, the default where they are in memory; any of them, each
        time anew, as the theory has it; or as they stand, the default for files that are read part by part and for
        traces.
    theta0 : (n_actions, K) array, optional
    progress : bool, optional
        A progress bar on stderr; by default where that is a terminal.
    checkpoint : path, optional
        A file that is written after every pass; the same call resumes from it.
    engine : {"threads", "processes", "ray"} or gqlab.tasks.Engine, optional
        The rows of Parquet files are shared among workers, which read, check and encode them: for data that do not fit
        one machine. θ is the same to the last digit, whatever the number of workers. Algorithms that take one row at a
        time go along rows that are sent ahead; the means of WholeDataVRGreedyGQ, and each J and ∇J of
        LeastSquaresGreedyGQ, are sums over the workers.

    What a solver does not use (``n_passes``, ``rows``, ``checkpoint``) must not be given with one.

    Returns
    -------
    LinearQ
        With ``history``: after every pass (or iteration) the empirical J and ‖∇J‖² (``mspbe``, ``gradient``), the
        largest ``|Q|`` (``max_q``) beside the largest that makes sense, r_max/(1 − discount) (``q_bound``), and θ
        itself, where that is not too large. Of a solver the first 20 iterations, every tenth and the last are measured;
        where there are more than 100,000 rows, every so many-th of these.
        More passes can make a policy worse: compare the iterates.

    Examples
    --------
    >>> import gqlab as gq
    >>> data = gq.collect("CartPole-v1", n_steps=2000, seed=0)
    >>> encoder = gq.Fourier(2, low=[-2.4, -3, -0.21, -3], high=[2.4, 3, 0.21, 3])
    >>> model = gq.fit(data, encoder, gq.VRGreedyGQ(0.1, 0.1, batch_size=1000), discount=0.95, n_passes=3)
    >>> model.history["gradient"].shape, bool(model.history["max_q"][-1] < 2 * model.history["q_bound"][-1])
    ((4,), True)
    """
    checks.instance("data", data, Transitions, "a gqlab.Transitions")
    workers = None if engine is None else engine_of(engine)
    check_algorithm("algorithm", algorithm)
    place, way = place_and_way(data, algorithm, workers)
    if way.estimator is None:
        _check_solver(algorithm, n_passes=n_passes, rows=rows, checkpoint=checkpoint)
    order = _order(place, way, algorithm, rows)
    made = fit_encoder(encoder, data)
    goal = _goal(target, data, way)
    check_goal(algorithm, goal, theta0)
    gamma = checks.number("discount", discount, least=0, below=1)
    shared = workers is not None or Need.WHOLE_MEAN in way.needs
    kind = SharedFit if shared else Fitting
    run = kind(data, made, algorithm, way, goal, gamma, checks.integer("seed", seed, least=0))
    run.theta0 = _first_theta(theta0, data.n_actions, made.n_features_out_, algorithm.radius)
    run.checkpoint = None if checkpoint is None else _file("checkpoint", checkpoint)
    run.n_passes = PASSES if n_passes is None else checks.integer("n_passes", n_passes, least=1)
    if progress is not None:
        checks.instance("progress", progress, bool, "True, False or None")
    if isinstance(run, SharedFit):
        return run.model(_learn_shared(run, engine_of("threads", 1) if workers is None else workers, progress))
    own = (way.estimator, getattr(goal, "compiled", None))
    with cause_first(own), _bar(None if run.solves else run.n_passes, progress) as advance_bar:
        if place is FILES:
            run.look_through()
            return run.model(run.in_parts(advance_bar))
        run.load(order)
        return run.model(run.solve(advance_bar) if run.solves else run.in_passes(advance_bar))


def place_and_way(data: Transitions, algorithm: Algorithm, engine: Engine | None) -> tuple[RunPlace, Way]:
    """Where a fit takes place, and how the algorithm runs there: what files do not offer they may in memory."""
    if engine is not None:
        files = data._source
        if not isinstance(files, ParquetFiles) or not files.reading.as_it_stands:
            what = "in memory" if data.in_memory else "CSV, a split, or read with gap, ends or drop_nulls"
            raise ValueError(
                f"engine: workers share Parquet files as they stand, and data is {what}: to_parquet writes one"
            )
        return SHARED, way_in(SHARED, algorithm)
    if not data.in_memory and any(not FILES.unmet(way) for way in algorithm.ways):
        return FILES, way_in(FILES, algorithm)
    return MEMORY, way_in(MEMORY, algorithm)


def _check_solver(algorithm: Algorithm, **given: Any) -> None:
    """``ValueError`` where something is given that a solver cannot use."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name} is {checks.shown(value)}, but {type(algorithm).__name__} solves for θ at once")


def _order(place: RunPlace, way: Way, algorithm: Algorithm, rows: str | None) -> str:
    """Which row comes next."""
    in_order = place in (FILES, SHARED) or Need.EPISODES in way.needs
    order = checks.one_of("rows", ("in order" if in_order else "shuffled") if rows is None else rows, ORDERS)
    if rows is not None and Need.WHOLE_MEAN in way.needs:
        raise ValueError(f"rows is {rows!r}, but {type(algorithm).__name__} draws its rows from all the data")
    if order != "in order" and Need.EPISODES in way.needs:
        raise ValueError(f"rows is {order!r}, but traces need the rows in the order of time")
    if order != "in order" and in_order:
        raise ValueError(f"rows is {order!r}, but files are read as they stand; fit data.load() instead")
    return order


def _goal(target: Any, data: Transitions, way: Way) -> Target:
    """What is learned."""
    goal = check_target(Greedy() if target is None else target, data.n_actions, data.observation_size)
    if Need.NEXT_ACTION in way.needs and type(goal) is not Greedy:
        raise ValueError(f"target is {checks.shown(goal)}: that of Sarsa is the action that is taken next")
    return goal


def _learn_shared(run: SharedFit, engine: Engine, progress: bool | None) -> FloatArray:
    """θ, with the rows shared among the workers of an engine."""
    if run.solves:
        check_joint(run.A, run.encoder.n_features_out_, type(run.algorithm).__name__)
    if isinstance(engine, Processes):
        _check_travels(run.target)
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    with threadpool_limits(1, user_api="blas"), engine, _bar(None, progress, " parts") as advance_bar:
        run.open(engine, run.data._source, advance_bar)
        run.look_through()
        return run.learn()


def _check_travels(target: Target) -> None:
    """``ValueError`` where another process cannot be given the target."""
    try:
        pickle.dumps(target)
    except Exception as error:  # pickle's, and AttributeError
        raise ValueError(f"target: engine 'processes' cannot send it to a process: {one_line(error)}") from None


def _file(name: str, path: Any) -> Path:
    """A file in a folder that is there."""
    file = Path(checks.path(name, path))
    if not file.parent.is_dir():
        raise ValueError(f"{name} is {str(file)!r}, but there is no folder {str(file.parent)!r}")
    return file


def _first_theta(theta0: Any, n_actions: int, K: int, radius: float) -> FloatArray:
    if theta0 is None:
        return np.zeros((n_actions, K))
    theta = checks.array("theta0", theta0, (n_actions, K))
    checks.finite("theta0", theta)
    if np.linalg.norm(theta) > radius:
        raise ValueError(f"theta0 has norm {np.linalg.norm(theta):.6g}, outside the ball of radius {radius:g}")
    return theta


@contextmanager
def _bar(total: int | None, wanted: bool | None, unit: str = " passes") -> Iterator[Callable[[], None]]:
    """A progress bar over passes, iterations, or parts of files."""
    with progress_bar(wanted, total=total, unit=unit, delay=1.0) as bar:
        yield lambda: bar.update(1)
