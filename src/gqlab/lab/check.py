"""Single steps of the compiled code, on samples of your own; and the samples and indices that a run sees."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gqlab.algorithms import Algorithm
from gqlab.algorithms.greedy_gq import Epochs
from gqlab.algorithms.schedules import join_schedules, rates_at
from gqlab.engine.compiled import entry
from gqlab.engine.layout import known_operators
from gqlab.engine.memory import part
from gqlab.estimators.base import move, step
from gqlab.estimators.epochs import GROWTH_UNIT
from gqlab.estimators.plain import Plain
from gqlab.estimators.svrg import SVRG, add_reference, mean_reference, start_reference
from gqlab.problems.problem import Problem
from gqlab.rules.dispatch import at
from gqlab.rules.gradient import Samples, evaluate, scatter
from gqlab.rules.memory import Sizes
from gqlab.rules.point import DensePoint
from gqlab.samples.random import BATCH_INDEX, below, stream_key, word
from gqlab.samples.streams import RowsInOrder, RunIdentity, World, draw, start
from gqlab.samples.tables import problem_tables, sample_table
from gqlab.support import checks
from gqlab.support.checks import FloatArray


class Trajectory(NamedTuple):
    """Consecutive samples: in state ``s[t]`` action ``a[t]`` led to ``s_next[t]``."""

    s: NDArray[np.intp]
    a: NDArray[np.intp]
    s_next: NDArray[np.intp]


def trajectory(problem: Problem, n_samples: int, seed: int = 0, run: int = 0) -> Trajectory:
    """The first samples (s, a, s') that run ``run`` of ``seed`` sees, three (n_samples,) arrays.

    Examples
    --------
    >>> import gqlab as gq
    >>> mdp = gq.garnet(seed=0)
    >>> problem = gq.Problem(mdp, gq.random_features(mdp, dim=4))
    >>> x = gq.trajectory(problem, n_samples=100)
    >>> bool((x.s_next[:-1] == x.s[1:]).all())
    True
    """
    checks.instance("problem", problem, Problem, "a Problem")
    tables, n = problem_tables(problem), checks.integer("n_samples", n_samples, least=0)
    checks.memory("n_samples", n, 4 * n)
    drawn = np.empty(n, dtype=np.uint32)
    _trajectory(at(tables.chain, 0), RunIdentity(_seed(seed), _run(run)), drawn)
    return Trajectory(*tables.transitions[drawn].T)


def batch_indices(algorithm: Algorithm, n_samples: int, seed: int = 0, run: int = 0) -> NDArray[np.int64]:
    """The indices that the inner loops of run ``run`` draw, (n_epochs, M): row m points into the m-th batch.

    Examples
    --------
    >>> import gqlab as gq
    >>> gq.check.batch_indices(gq.VRGreedyGQ(batch_size=100), n_samples=1000).shape
    (10, 100)
    """
    checks.instance("algorithm", algorithm, Algorithm, "one such as gqlab.VRGreedyGQ()")
    M = algorithm.epoch_size
    if not isinstance(algorithm, Epochs):
        raise ValueError(f"{algorithm!r} draws no indices: it has no batches")
    if not algorithm.as_in_the_paper:
        raise ValueError(f"{algorithm!r} has growing batches, whose indices do not form a table")
    n_updates = algorithm.n_updates(checks.integer("n_samples", n_samples, least=1))
    checks.memory("n_samples", n_samples, n_updates)
    out = np.empty(n_updates, dtype=np.int64)
    _indices(_seed(seed), _run(run), M, out)
    return out.reshape(-1, M)


def pseudo_gradient(
    problem: Problem, theta: ArrayLike, omega: ArrayLike, sample: tuple[int, int, int]
) -> tuple[FloatArray, FloatArray]:
    """(G_x(θ, ω), H_x(θ, ω)) of one sample (s, a, s'), two (d,) arrays.

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> mdp = gq.FiniteMDP([[[1.0]]], [[2.0]], discount=0.5)
    >>> problem = gq.Problem(mdp, [[[1.0]]], target=gq.Greedy())
    >>> gq.check.pseudo_gradient(problem, [1.0], [3.0], (0, 0, 0))  # δ = 2 + 0.5·1 − 1 = 1.5
    (array([0.]), array([1.5]))
    """
    rows = _rows(problem, _one_row(sample), "sample")
    out = np.zeros((2, problem.dim))
    point = _point(problem, theta, omega)
    _pseudo_gradient(rows, point, _plain(problem), out[0], out[1], problem.dim, problem.mdp.n_actions)
    if not np.isfinite(out).all():
        raise ValueError("theta and omega are too large: G_x and H_x overflow")
    return out[0], out[1]


def greedy_gq_steps(
    problem: Problem, algorithm: Algorithm, theta: ArrayLike, omega: ArrayLike, trajectory: Any
) -> tuple[FloatArray, FloatArray]:
    """(θ, ω) after one Greedy-GQ update for each of the given samples.

    ``trajectory`` is a :class:`Trajectory` or an (n, 3) array of rows (s, a, s'). A sample whose update
    overflows is a ``ValueError`` that names it.

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> mdp = gq.garnet(seed=0)
    >>> problem, algorithm = gq.Problem(mdp, gq.random_features(mdp, dim=4)), gq.GreedyGQ()
    >>> samples = gq.trajectory(problem, 500)
    >>> theta, omega = gq.check.greedy_gq_steps(problem, algorithm, np.zeros(4), np.zeros(4), samples)
    >>> bool(np.allclose(theta, gq.run(problem, algorithm, n_samples=500, n_runs=1).theta[0, -1]))
    True
    """
    rows = _rows(problem, trajectory, "trajectory")
    point, world = _point(problem, theta, omega), _in_order(rows)
    schedule, d, A = _schedule(problem, algorithm), problem.dim, problem.mdp.n_actions
    done = _plain_steps(world, point, _plain(problem), schedule, d, A)
    _check_all("trajectory", done, len(rows.row))
    return point.theta, point.omega


def svrg_epoch(
    problem: Problem, algorithm: Algorithm, theta: ArrayLike, omega: ArrayLike, batch: Any, indices: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """(θ, ω) after Algorithm 1's inner loop, begun at the reference point (θ, ω).

    ``batch`` is a :class:`Trajectory` or an (M, 3) array of rows (s, a, s'); ``indices`` are the draws from it. A draw
    whose update overflows is a ``ValueError`` that names it.

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> mdp = gq.garnet(seed=0)
    >>> problem, algorithm = gq.Problem(mdp, gq.random_features(mdp, dim=4)), gq.VRGreedyGQ(batch_size=500)
    >>> batch, [indices] = gq.trajectory(problem, 500), gq.check.batch_indices(algorithm, 500)
    >>> theta, omega = gq.check.svrg_epoch(problem, algorithm, np.zeros(4), np.zeros(4), batch, indices)
    >>> bool(np.allclose(theta, gq.run(problem, algorithm, n_samples=500, n_runs=1).theta[0, -1]))
    True
    """
    rows = _rows(problem, batch, "batch")
    drawn = checks.plain_array("indices", indices)
    M = len(rows.row)
    if drawn.ndim != 1 or not np.issubdtype(drawn.dtype, np.integer):
        raise ValueError(f"indices has shape {drawn.shape} and dtype {drawn.dtype}, expected one axis of whole numbers")
    bad = np.flatnonzero((drawn < 0) | (drawn >= M))
    if len(bad):
        raise ValueError(f"indices[{bad[0]}] is {drawn[bad[0]]}, expected at least 0 and below {M}")
    point = _point(problem, theta, omega)
    d, A = problem.dim, problem.mdp.n_actions
    svrg = svrg_part(d, A, problem.mdp.n_states, M)
    done = _svrg_epoch(rows, drawn.astype(np.int64), point, svrg, _schedule(problem, algorithm), d, A)
    _check_all("indices", done, len(drawn))
    return point.theta, point.omega


@entry
def _trajectory(stream, run, out):
    """The first ``len(out)`` samples of a run."""
    cursor = start(stream, run)
    for t in range(len(out)):
        out[t], cursor = draw(stream, run, cursor, t)


@entry
def _indices(seed, run, M, out):
    index_key = stream_key(seed, run, BATCH_INDEX)
    for u in range(len(out)):
        out[u] = below(word(index_key, u), M)


@entry
def _pseudo_gradient(samples, point, plain, g, h, d, A):
    evaluate(samples, 0, point.theta, point.omega, plain.q, plain.w, plain.c, d, A)
    scatter(samples, 0, plain.c, 1.0, 1.0, g, h, d, A)


@entry
def _plain_steps(world, point, plain, schedule, d, A):
    for u in range(len(world.samples.row)):
        finite, _ = step(plain, world, point, 0, u, rates_at(schedule, u, point.theta), d, A)
        if not finite:
            return u
    return len(world.samples.row)


@entry
def _svrg_epoch(samples, indices, point, svrg, schedule, d, A):
    start_reference(svrg, point, d)
    for x in range(len(samples.row)):
        add_reference(svrg, samples, x, d, A)
    mean_reference(svrg, samples, len(samples.row), d, A)
    for t in range(len(indices)):
        if not move(svrg, samples, indices[t], point, rates_at(schedule, t, point.theta), d, A):
            return t
    return len(indices)


def _check_all(name: str, done: int, n: int) -> None:
    """``ValueError`` unless all ``n`` updates were made."""
    if done < n:
        raise ValueError(f"{name}[{done}]: the update overflows")


def _one_row(sample: Any) -> NDArray[Any]:
    x = checks.plain_array("sample", sample)
    return x[None] if x.ndim == 1 else x.reshape(1, -1)


def _rows(problem: Problem, samples: Any, name: str) -> Samples:
    """Samples (s, a, s') as a table, checked."""
    checks.instance("problem", problem, Problem, "a Problem")
    x = checks.plain_array(name, samples)
    if isinstance(samples, Trajectory) and x.ndim == 2:
        x = x.T
    if x.ndim != 2 or x.shape[1] != 3 or len(x) == 0 or not np.issubdtype(x.dtype, np.integer):
        raise ValueError(f"{name} has shape {x.shape} and dtype {x.dtype}, expected rows (s, a, s') of whole numbers")
    S, A = problem.mdp.n_states, problem.mdp.n_actions
    bad = np.argwhere((x < 0) | (x >= np.array([S, A, S])))
    if len(bad):
        k, column = bad[0]
        raise ValueError(f"{name}[{k}] is {tuple(x[k].tolist())}: {('s', 'a', 's_next')[column]} is out of range")
    ended = np.flatnonzero(problem.mdp.terminal[x[:, 0]])
    if len(ended):
        raise ValueError(f"{name}[{ended[0]}] is {tuple(x[ended[0]].tolist())}: s is a terminal state")
    return at(sample_table(problem, x[:, 0], x[:, 1], x[:, 2], known_operators(problem)), 0)


def svrg_part(d: int, A: int, n_states: int, M: int) -> SVRG:
    """Algorithm 1's estimator with batches of M, for calls from a single Python thread."""
    values = {"batch_size": M, "growth_units": GROWTH_UNIT, "keeps_all": 0}
    made: SVRG = part(SVRG, Sizes(d, A, n_states, most=values), **values)
    return made


def _point(problem: Problem, theta: ArrayLike, omega: ArrayLike) -> DensePoint:
    vectors = {name: checks.array(name, v, (problem.dim,)) for name, v in (("theta", theta), ("omega", omega))}
    return part(DensePoint, Sizes(problem.dim, problem.mdp.n_actions))._replace(**vectors)


def _in_order(samples: Samples) -> World:
    return World(samples, RowsInOrder(len(samples.row)), RunIdentity(np.uint64(0), 0), np.zeros(1, dtype=np.int64))


def _plain(problem: Problem) -> Plain:
    made: Plain = part(Plain, Sizes(problem.dim, problem.mdp.n_actions))
    return made


def _schedule(problem: Problem, algorithm: Algorithm) -> Any:
    checks.instance("algorithm", algorithm, Algorithm, "one such as gqlab.GreedyGQ()")
    return at(join_schedules([algorithm.for_problem(problem)], [1], np.float64), 0)


def _seed(seed: int) -> np.uint64:
    return np.uint64(checks.integer("seed", seed, least=0, below=2**64))


def _run(run: int) -> int:
    return checks.integer("run", run, least=0, below=2**63)
