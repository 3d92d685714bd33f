"""fit(): action values from logged data."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from gqlab.algorithms import Algorithm, LeastSquaresGreedyGQ, VRGreedyGQ
from gqlab.data.encoding import fit_encoder
from gqlab.data.parquet import ParquetFiles
from gqlab.data.transitions import Transitions
from gqlab.learn.fit.fitted import check_joint
from gqlab.learn.fit.fitting import IN_PASSES, ONE_BY_ONE, SOLVERS, Fitting
from gqlab.learn.fit.log_table import Target, check_target
from gqlab.learn.fit.shared_fit import SHARED, SharedFit
from gqlab.learn.linear_q import LinearQ
from gqlab.operators import Greedy
from gqlab.support import checks
from gqlab.support.checks import FloatArray
from gqlab.support.files import one_line
from gqlab.support.progress import progress_bar
from gqlab.tasks.base import Engine
from gqlab.tasks.engines import engine_of
from gqlab.tasks.processes import Processes

#: Which row may come next.
ORDERS = ("shuffled", "drawn", "in order")


def fit(
    data: Transitions,
    encoder: Any,
    algorithm: Any,
    target: Any = None,
    *,
    discount: float = 0.99,
    n_passes: int = 10,
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
    algorithm : algorithm
        GreedyGQ, QRC, QLearning, AveragedGreedyGQ: in passes over the rows, also of files that do not fit the memory.
        VRGreedyGQ (whose batches are the next rows), StreamingGreedyGQ: in passes over rows that do.
        LeastSquaresGreedyGQ, FittedQ, LSPI: solve for θ, with matrices of all features. Step sizes that were not given
        are divided by the largest ‖φ‖².
    target : Operator or policy
        :class:`gqlab.Greedy` by default: control. A policy is evaluated: a LinearQ, an Agent, a function of
        observations (n, size) that gives probabilities (n, n_actions), a FixedPolicy or a table like its own.
    discount : float
    n_passes : int
        Passes over the rows; not read by the solvers.
    seed : int
        Of the order of the rows, and of the indices that batches draw.
    rows : {"shuffled", "drawn", "in order"}, optional
        Which row comes next: in an order that is drawn once, the default where they are in memory; any of them, each
        time anew, as the theory has it; or as they stand, the default for files that are read part by part.
    theta0 : (n_actions, K) array, optional
    progress : bool, optional
        A progress bar on stderr; by default where that is a terminal.
    checkpoint : path, optional
        A file that is written after every pass; the same call goes on from there. The solvers do not read it.
    engine : {"threads", "processes", "ray"} or gqlab.tasks.Engine, optional
        The rows of Parquet files are shared among workers, which read, check and encode them: for data that do not fit
        one machine. θ is the same to the last digit, whatever the number of workers. GreedyGQ, QRC, QLearning,
        AveragedGreedyGQ: as without, on rows that are sent ahead. VRGreedyGQ: the batch of an epoch is all the data,
        whose means are a sum over the workers; then follow ``batch_size`` updates, along rows drawn from all of them.
        A pass is such an epoch. LeastSquaresGreedyGQ: a sum over the workers for each J and ∇J.

    Returns
    -------
    LinearQ
        With ``history``: after every pass (or iteration) the empirical J and ‖∇J‖² (``mspbe``, ``gradient``), the
        largest ``|Q|`` (``max_q``) beside the largest that makes sense, r_max/(1 − discount) (``q_bound``), and θ
        itself, where that is not too large. Where there are more than 100,000 rows, every so many-th is measured.
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
    made = fit_encoder(encoder, data)
    goal = check_target(Greedy() if target is None else target, data.n_actions, data.observation_size)
    gamma = checks.number("discount", discount, least=0, below=1)
    kind = Fitting if workers is None else SharedFit
    run = kind(data, made, _algorithm(algorithm), goal, gamma, checks.integer("seed", seed, least=0))
    run.theta0 = _first_theta(theta0, data.n_actions, made.n_features_out_, getattr(algorithm, "radius", np.inf))
    run.checkpoint = None if checkpoint is None else _file("checkpoint", checkpoint)
    run.n_passes = checks.integer("n_passes", n_passes, least=1)
    if progress is not None:
        checks.instance("progress", progress, bool, "True, False or None")
    if workers is not None:
        assert isinstance(run, SharedFit)
        return run.model(_learn_shared(run, workers, rows, progress))
    streams = not data.in_memory and isinstance(algorithm, ONE_BY_ONE)
    order = checks.one_of("rows", ("in order" if streams else "shuffled") if rows is None else rows, ORDERS)
    if streams and order != "in order":
        raise ValueError(f"rows is {order!r}, but files are read as they stand; fit data.load() instead")
    with _bar(run.n_passes, progress) as advance_bar:
        if streams:
            run.look_through()
            theta = run.in_parts(advance_bar)
        else:
            run.load(order)
            theta = run.solve(advance_bar) if isinstance(algorithm, SOLVERS) else run.in_passes(advance_bar)
    return run.model(theta)


def _learn_shared(run: SharedFit, engine: Engine, rows: str | None, progress: bool | None) -> FloatArray:
    """θ, with the rows shared among the workers of an engine."""
    files, algorithm = run.data._source, run.algorithm
    if not isinstance(files, ParquetFiles) or not files.reading.as_it_stands:
        what = "in memory" if run.data.in_memory else "CSV, a split, or read with gap, ends or drop_nulls"
        raise ValueError(
            f"engine: workers share Parquet files as they stand, and data is {what}: to_parquet writes one"
        )
    if not isinstance(algorithm, SHARED):
        known = ", ".join(kind.__name__ for kind in SHARED)
        raise ValueError(f"algorithm is {checks.shown(algorithm)}: with an engine, expected one of {known}")
    if isinstance(algorithm, VRGreedyGQ) and not algorithm.as_in_the_paper:
        raise ValueError("algorithm: with an engine, VRGreedyGQ takes growth=1 and keep='new' alone")
    if rows is not None and not (rows == "in order" and isinstance(algorithm, ONE_BY_ONE)):
        raise ValueError(f"rows is {checks.shown(rows)}, which an engine does not take")
    if isinstance(algorithm, LeastSquaresGreedyGQ):
        check_joint(run.A, run.encoder.n_features_out_, "LeastSquaresGreedyGQ")
    if isinstance(engine, Processes):
        _check_travels(run.target)
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    with threadpool_limits(1, user_api="blas"), engine, _bar(None, progress, " parts") as advance_bar:
        run.open(engine, files, advance_bar)
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


def _algorithm(algorithm: Any) -> Any:
    """The algorithm, checked."""
    if not isinstance(algorithm, (*IN_PASSES, *SOLVERS)):
        known = ", ".join(kind.__name__ for kind in (*IN_PASSES, *SOLVERS))
        raise ValueError(f"algorithm is {checks.shown(algorithm)}, expected one of {known}")
    if isinstance(algorithm, Algorithm) and algorithm.trace > 0:
        raise ValueError(f"trace is {algorithm.trace:g}: traces are for gqlab.Agent, which sees whole episodes")
    return algorithm


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
