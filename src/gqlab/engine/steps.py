"""The compiled functions themselves, on samples of one's own, and the very samples and indices that a run sees."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gqlab import checks
from gqlab.algorithms import Algorithm
from gqlab.checks import FloatArray
from gqlab.engine.compiled import entry
from gqlab.engine.random import INDEX, RESTART, TRAJECTORY, below, stream_key, word
from gqlab.engine.tables import next_sample, problem_tables, sample_table, start_state
from gqlab.estimators import (
    EMPTY,
    Rates,
    Reference,
    Work,
    plain_step,
    svrg_add,
    svrg_mean,
    svrg_start,
    svrg_step,
)
from gqlab.problem import Problem
from gqlab.rules import G, H, Samples, td_terms, value_and_gradient


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
    samples, chain, rows = problem_tables(problem)
    drawn = np.empty(checks.integer("n_samples", n_samples, least=0), dtype=np.uint32)
    _trajectory(samples, chain, _seed(seed), _run(run), drawn)
    return Trajectory(*rows[drawn].T)


def batch_indices(algorithm: Algorithm, n_samples: int, seed: int = 0, run: int = 0) -> NDArray[np.int64]:
    """The indices that the inner loops of run ``run`` draw, (n_epochs, M): row m points into the m-th batch.

    Examples
    --------
    >>> import gqlab as gq
    >>> gq.batch_indices(gq.VRGreedyGQ(batch_size=100), n_samples=1000).shape
    (10, 100)
    """
    checks.instance("algorithm", algorithm, Algorithm, "one such as gqlab.VRGreedyGQ()")
    if not algorithm.epoch:
        raise ValueError(f"{algorithm!r} draws no indices: it has no batches")
    n_updates = algorithm.n_updates(checks.integer("n_samples", n_samples, least=1))
    out = np.empty(n_updates, dtype=np.int64)
    _indices(_seed(seed), _run(run), algorithm.epoch, out)
    return out.reshape(-1, algorithm.epoch)


def pseudo_gradient(
    problem: Problem, theta: ArrayLike, omega: ArrayLike, sample: tuple[int, int, int]
) -> tuple[FloatArray, FloatArray]:
    """(G_x(θ, ω), H_x(θ, ω)) of one sample (s, a, s'), two (d,) arrays.

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> mdp = gq.FiniteMDP([[[1.0]]], [[2.0]], discount=0.5)
    >>> problem = gq.Problem(mdp, [[[1.0]]], target=gq.Greedy())
    >>> gq.pseudo_gradient(problem, [1.0], [3.0], (0, 0, 0))  # δ = 2 + 0.5·1 − 1 = 1.5
    (array([0.]), array([1.5]))
    """
    rows = _rows(problem, np.reshape(np.asarray(sample), (1, -1)), "sample")
    theta, omega = _point(problem, "theta", theta), _point(problem, "omega", omega)
    out = np.empty((2, problem.dim))
    _pseudo_gradient(rows, theta, omega, _work(problem), out[0], out[1], problem.dim, problem.mdp.n_actions)
    return out[0], out[1]


def greedy_gq_steps(
    problem: Problem, algorithm: Algorithm, theta: ArrayLike, omega: ArrayLike, trajectory: Any
) -> tuple[FloatArray, FloatArray]:
    """(θ, ω) after one Greedy-GQ update for each of the given samples.

    ``trajectory`` is a :class:`Trajectory` or an (n, 3) array of rows (s, a, s').

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> mdp = gq.garnet(seed=0)
    >>> problem, algorithm = gq.Problem(mdp, gq.random_features(mdp, dim=4)), gq.GreedyGQ()
    >>> theta, omega = gq.greedy_gq_steps(problem, algorithm, np.zeros(4), np.zeros(4), gq.trajectory(problem, 500))
    >>> bool(np.allclose(theta, gq.run(problem, algorithm, n_samples=500, n_runs=1).theta[0, -1]))
    True
    """
    rows = _rows(problem, trajectory, "trajectory")
    theta, omega = _point(problem, "theta", theta), _point(problem, "omega", omega)
    _plain_steps(rows, theta, omega, _rates(algorithm), _work(problem), problem.dim, problem.mdp.n_actions)
    return theta, omega


def svrg_epoch(
    problem: Problem, algorithm: Algorithm, theta: ArrayLike, omega: ArrayLike, batch: Any, indices: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """(θ, ω) after Algorithm 1's inner loop, begun at the reference point (θ, ω).

    ``batch`` is a :class:`Trajectory` or an (M, 3) array of rows (s, a, s'); ``indices`` are the draws from it.

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> mdp = gq.garnet(seed=0)
    >>> problem, algorithm = gq.Problem(mdp, gq.random_features(mdp, dim=4)), gq.VRGreedyGQ(batch_size=500)
    >>> batch, [indices] = gq.trajectory(problem, 500), gq.batch_indices(algorithm, 500)
    >>> theta, omega = gq.svrg_epoch(problem, algorithm, np.zeros(4), np.zeros(4), batch, indices)
    >>> bool(np.allclose(theta, gq.run(problem, algorithm, n_samples=500, n_runs=1).theta[0, -1]))
    True
    """
    rows = _rows(problem, batch, "batch")
    drawn = np.asarray(indices)
    M = len(rows.pair)
    if drawn.ndim != 1 or not np.issubdtype(drawn.dtype, np.integer):
        raise ValueError(f"indices has shape {drawn.shape} and dtype {drawn.dtype}, expected one axis of whole numbers")
    bad = np.flatnonzero((drawn < 0) | (drawn >= M))
    if len(bad):
        raise ValueError(f"indices[{bad[0]}] is {drawn[bad[0]]}, expected at least 0 and below {M}")
    theta, omega = _point(problem, "theta", theta), _point(problem, "omega", omega)
    d, S, A = problem.dim, problem.mdp.n_states, problem.mdp.n_actions
    reference = Reference(
        theta_tilde=np.empty(d), omega_tilde=np.empty(d), G_tilde=np.empty(d), H_tilde=np.empty(d),
        slot=np.full(S, EMPTY, dtype=np.uint32), visited=np.empty(S, dtype=np.uint32),
        V=np.empty(S), phi_hat=np.empty(S * d),
    )  # fmt: skip
    _svrg_epoch(rows, drawn.astype(np.int64), theta, omega, reference, _rates(algorithm), _work(problem), d, A)
    return theta, omega


@entry
def _trajectory(samples, chain, seed, run, out):
    """The first ``len(out)`` samples of a run."""
    trajectory_key = stream_key(seed, run, TRAJECTORY)
    restart_key = stream_key(seed, run, RESTART)
    s = start_state(chain, 0, restart_key, 0)
    for t in range(len(out)):
        out[t], s = next_sample(samples, chain, 0, s, t, trajectory_key, restart_key)


@entry
def _indices(seed, run, M, out):
    key = stream_key(seed, run, INDEX)
    for u in range(len(out)):
        out[u] = below(word(key, u), M)


@entry
def _pseudo_gradient(samples, theta, omega, work, g, h, d, A):
    V = value_and_gradient(samples, samples.s_next[0], theta, work.q, work.w, work.phi_hat, d, A)
    delta, phi_omega = td_terms(samples, 0, V, theta, omega, d)
    row = samples.pair[0] * d
    for i in range(d):
        phi_i = samples.phi[row + i]
        g[i] = G(delta, phi_omega, samples.gamma[0], phi_i, work.phi_hat[i])
        h[i] = H(delta, phi_omega, phi_i)


@entry
def _plain_steps(samples, theta, omega, rates, work, d, A):
    for x in range(len(samples.pair)):
        if not plain_step(samples, x, theta, omega, rates, work, d, A):
            return


@entry
def _svrg_epoch(samples, indices, theta, omega, reference, rates, work, d, A):
    M = len(samples.pair)
    svrg_start(reference, theta, omega, d)
    n_visited = 0
    for x in range(M):
        n_visited = svrg_add(samples, x, reference, n_visited, work, d, A)
    svrg_mean(reference, M, d)
    for t in range(len(indices)):
        if not svrg_step(samples, indices[t], theta, omega, reference, rates, work, d, A):
            return


def _rows(problem: Problem, samples: Any, name: str) -> Samples:
    """Samples (s, a, s') as a table, checked."""
    checks.instance("problem", problem, Problem, "a Problem")
    x = np.stack(samples, axis=1) if isinstance(samples, Trajectory) else checks.plain_array(name, samples)
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
    return sample_table(problem, x[:, 0], x[:, 1], x[:, 2])


def _point(problem: Problem, name: str, value: ArrayLike) -> FloatArray:
    return checks.array(name, value, (problem.dim,))


def _work(problem: Problem) -> Work:
    d, A = problem.dim, problem.mdp.n_actions
    return Work(np.empty(A), np.empty(A), np.empty(d), np.empty(d), np.empty(d))


def _rates(algorithm: Algorithm) -> Rates:
    checks.instance("algorithm", algorithm, Algorithm, "one such as gqlab.GreedyGQ()")
    return Rates(algorithm.eta_theta, algorithm.eta_omega, algorithm.radius)


def _seed(seed: int) -> np.uint64:
    return np.uint64(checks.integer("seed", seed, least=0, below=2**64))


def _run(run: int) -> int:
    return checks.integer("run", run, least=0, below=2**63)
