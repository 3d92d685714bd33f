"""The statistical floor: what the samples of a run allow an algorithm that does not know the behaviour policy.

Form the objective from the samples that a run has seen (their counts in place of D and P), find its stationary point,
and take the exact ‖∇J‖² there. It falls like 1/n, and is the natural unit for the error of every algorithm that saw the
same samples. It is not a lower bound on a run: a method that has not yet moved along a flat direction can lie below it.
In the mean and in the limit it is the best that can be done without knowing π_b (:mod:`gqlab.lab.efficiency`); who
knows π_b puts π_b P̂ in place of the counts, and does better: ``behavior="known"``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from gqlab.engine.compiled import entry
from gqlab.engine.cpu import map_apart
from gqlab.exact.moments import FeatureMoments, as_dense
from gqlab.exact.objective import ProjectedBellmanError
from gqlab.exact.stationary import DAMPING, descend, is_smooth, none_need_exist
from gqlab.mdp.chains import recurrent_classes, stationary_distribution
from gqlab.problems.problem import Problem
from gqlab.rules.dispatch import at
from gqlab.samples.streams import STOP_LOOK, RunIdentity, draw, start
from gqlab.samples.tables import problem_tables
from gqlab.support import checks
from gqlab.support.checks import FloatArray

#: ‖∇Ĵ‖² at which a point is stationary for the empirical objective.
STATIONARY = 1e-20

#: Numbers that the searches of one batch may hold at a time.
BATCH_NUMBERS = 20_000_000

#: What transitions are weighted with.
Weights = NDArray[np.int64] | FloatArray


@dataclass(frozen=True)
class Floor:
    """The floor of one run.

    Attributes
    ----------
    theta : (d,) array
        The stationary point of the empirical objective.
    gradient_squared : float
        ‖∇J‖² there, exact: the floor.
    empirical_mspbe, empirical_gradient_squared : float
        Ĵ and ‖∇Ĵ‖² there.
    """

    theta: FloatArray
    gradient_squared: float
    empirical_mspbe: float
    empirical_gradient_squared: float


def floor(
    problem: Problem,
    n_samples: int,
    *,
    seed: int = 0,
    run: int = 0,
    theta0: ArrayLike | None = None,
    theta: ArrayLike | None = None,
    behavior: str = "unknown",
) -> Floor:
    """The stationary point of the objective of the first samples of run ``run`` of ``seed``, and ‖∇J‖² there.

    The search starts from ``theta0``, where the run began (default 0), and from ``theta``, where it ended, if given; of
    two stationary points the one with the smaller Ĵ is taken. ``ValueError`` if none is found. With ``behavior``
    "known" the objective is that of an algorithm which knows the behaviour policy: π_b P̂ in place of the counts.

    Examples
    --------
    >>> import gqlab as gq
    >>> mdp = gq.garnet(seed=0)
    >>> problem = gq.Problem(mdp, gq.random_features(mdp, dim=4))
    >>> floors = [gq.floor(problem, n).gradient_squared for n in (1000, 100_000)]
    >>> floors[0] > 10 * floors[1]
    True
    """
    checks.instance("problem", problem, Problem, "a Problem")
    n = checks.integer("n_samples", n_samples, least=1, below=2**48)
    seed = checks.integer("seed", seed, least=0, below=2**64)
    run = checks.integer("run", run, least=0, below=2**63)
    d = problem.dim
    starts = [np.zeros(d) if theta0 is None else checks.array("theta0", theta0, (d,))]
    starts += [] if theta is None else [checks.array("theta", theta, (d,))]
    checks.one_of("behavior", behavior, ("unknown", "known"))
    counts = count_samples(problem, [n], seed, [run])[0]
    shares = known_shares(problem, counts) if behavior == "known" else counts
    found = floors(problem, shares, np.array(starts)[None])
    if np.isnan(found.gradient_squared[0]):
        raise ValueError(f"n_samples: {no_floor(problem, f'the {n} samples of run {run}')}")
    return Floor(found.theta[0], *(float(column[0]) for column in (
        found.gradient_squared, found.empirical_mspbe, found.empirical_gradient_squared
    )))  # fmt: skip


def floor_multiple(problem: Problem, result: Any) -> float:
    """How far above its floor a result ends: see :meth:`gqlab.RunResult.floor_multiple`. The problem is its own."""
    if not result.algorithm.follows_trajectory:
        raise ValueError(f"result is of {result.algorithm!r}, which draws its own trajectories: it has no floor")
    n, runs = int(result.samples[-1]), range(len(result.theta))
    if n < 1:
        raise ValueError("result has no samples yet")
    last = np.asarray(result.theta[:, -1], dtype=np.float64)
    starts = np.stack([np.asarray(result.theta[:, 0], dtype=np.float64), last], axis=1)
    found = floors(problem, count_samples(problem, [n], result.metadata["seed"], runs)[0], starts)
    lost = np.flatnonzero(np.isnan(found.gradient_squared))
    if len(lost):
        raise ValueError("problem: " + no_floor(problem, f"the {n} samples of run {lost[0]}"))
    here = (problem.exact.gradient(last) ** 2).sum(axis=-1)
    return float(here.mean() / found.gradient_squared.mean())


def no_floor(problem: Problem, samples: str) -> str:
    """The message for samples without a zero of the empirical gradient."""
    smooth = is_smooth(problem.target, problem.mdp.n_actions)
    reason = "another theta0 may lead to one" if smooth else none_need_exist(problem.target)
    return f"no stationary point of the objective made of {samples} was found, so there is no floor: {reason}"


@dataclass(frozen=True)
class Floors:
    """The floors of n runs; NaN where no stationary point of the objective of a run's samples was found."""

    theta: FloatArray  # (n, d)
    gradient_squared: FloatArray  # (n,)
    empirical_mspbe: FloatArray  # (n,)
    empirical_gradient_squared: FloatArray  # (n,)


def floors(problem: Problem, counts: Weights, starts: FloatArray) -> Floors:
    """The floors for the counts, or the shares, (n, K) of transitions in n runs, searched from ``starts`` (n, k, d)."""
    n_rows, d = problem.rows.shape
    per_search = len(DAMPING) * n_rows + d * n_rows * d
    size = max(1, BATCH_NUMBERS // (starts.shape[1] * per_search))
    parts = [_floors(problem, counts[i : i + size], starts[i : i + size]) for i in range(0, len(counts), size)]
    return Floors(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _floors(problem: Problem, counts: Weights, starts: FloatArray) -> tuple[FloatArray, ...]:
    n, k, d = starts.shape
    objective = empirical_objective(problem, counts)
    twice = objective.take(np.repeat(np.arange(n), k))
    found = descend(twice, starts.reshape(-1, d))
    g = np.nan_to_num(found.gradient_norm**2, nan=np.inf).reshape(n, k)
    # Where a search found nothing, any point serves as a placeholder.
    ends = np.where((g <= STATIONARY)[..., None], found.theta.reshape(n, k, d), 0.0)
    J = twice.value(ends.reshape(-1, 1, d))[:, 0].reshape(n, k)
    best, each = np.where(g <= STATIONARY, J, np.inf).argmin(axis=1), np.arange(n)
    theta, stationary = ends[each, best], g[each, best] <= STATIONARY
    exact = (problem.exact.gradient(theta) ** 2).sum(axis=-1)
    return theta, np.where(stationary, exact, np.nan), J[each, best], g[each, best]


def empirical_objective(problem: Problem, counts: Weights) -> ProjectedBellmanError:
    """J with the counts, or the shares, (n, K) of the transitions in place of D and P."""
    tables, d = problem_tables(problem), problem.dim
    met = np.flatnonzero(counts.any(axis=0))
    share = counts[:, met] / counts.sum(axis=1, keepdims=True)  # (n, K)
    phi, s_next = as_dense(problem.rows[tables.samples.row[met]]), tables.transitions[met, 2]
    C = (share @ (phi[:, :, None] * phi[:, None, :]).reshape(len(phi), -1)).reshape(-1, d, d)
    b = (share * tables.samples.reward[met]) @ phi
    into = csr_array((np.ones(len(met)), (s_next, np.arange(len(met)))), shape=(problem.mdp.n_states, len(met)))
    discounted = share * tables.samples.discount[met]
    K = np.stack([(into @ (weight[:, None] * phi)).T for weight in discounted])
    return ProjectedBellmanError(problem.rows, problem.target, FeatureMoments(0.5 * (C + np.swapaxes(C, -1, -2)), b, K))


def known_shares(problem: Problem, counts: NDArray[np.int64]) -> FloatArray:
    """μ̂(s) π_b(a|s) P̂(s'|s,a) of every transition, (n, K), with μ̂ the stationary distribution of π_b P̂.

    The plain shares, as long as an action of a state that was met has not been tried.
    """
    return np.stack([_known_shares(problem, row) for row in counts])


def _known_shares(problem: Problem, count: NDArray[np.int64]) -> FloatArray:
    mdp, (s, a, s_next) = problem.mdp, problem_tables(problem).transitions.T
    tried = np.zeros(problem.behavior.shape)
    np.add.at(tried, (s, a), count)
    met, plain = tried.sum(axis=1), count / count.sum()
    entered = np.bincount(s_next, count, mdp.n_states)
    start = np.maximum(met - entered, 0.0)  # a trajectory began there
    ended = entered[mdp.terminal].sum() > 0
    closed = ((tried > 0) | (problem.behavior == 0) | (met == 0)[:, None]).all()
    if not closed or (entered[(met == 0) & ~mdp.terminal] > 0).any() or (ended and start.sum() == 0):
        return np.asarray(plain)
    p = problem.behavior[s, a] * count / np.maximum(tried[s, a], 1)  # π_b P̂
    chain = np.zeros((mdp.n_states, mdp.n_states))
    np.add.at(chain, (s, s_next), p)
    if ended:
        chain += np.outer(chain[:, mdp.terminal].sum(axis=1), start / start.sum())
        chain[:, mdp.terminal] = 0.0
    [inside] = recurrent_classes(chain[np.ix_(met > 0, met > 0)] > 0)
    inside = np.flatnonzero(met > 0)[inside]
    mu = np.zeros(mdp.n_states)
    mu[inside] = stationary_distribution(chain[np.ix_(inside, inside)])
    return np.asarray(mu[s] * p)


def count_samples(problem: Problem, at_samples: Sequence[int], seed: int, runs: Sequence[int]) -> NDArray[np.int64]:
    """How often each transition is among the first samples of each run, (len(at_samples), n_runs, K).

    ``at_samples`` is increasing; the transitions are those of ``problem_tables(problem)``.
    """
    tables = problem_tables(problem)
    checks.memory("n_samples", at_samples[-1], len(at_samples) * len(runs) * len(tables.transitions))
    counts = np.zeros((len(at_samples), len(runs), len(tables.transitions)), dtype=np.int64)
    ends, chain, stop = np.array(at_samples, dtype=np.int64), at(tables.chain, 0), np.zeros(1, dtype=np.int64)
    map_apart(lambda k: _count(chain, RunIdentity(np.uint64(seed), runs[k]), ends, counts[:, k], stop), stop, len(runs))
    return counts


@entry
def _count(stream, run, ends, counts, stop):
    cursor, t = start(stream, run), 0
    for k in range(len(ends)):
        if k > 0:
            counts[k] = counts[k - 1]
        while t < ends[k] and (t & (STOP_LOOK - 1) != 0 or stop[0] == 0):
            x, cursor = draw(stream, run, cursor, t)
            counts[k, x] += 1
            t += 1
