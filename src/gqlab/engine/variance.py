"""How far the updates of a run are from ∇J: bias and variance at its records, by the compiled steps themselves."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from gqlab import checks
from gqlab.algorithms import GreedyGQ, VRGreedyGQ
from gqlab.checks import FloatArray
from gqlab.engine.compiled import entry
from gqlab.engine.cpu import default_threads
from gqlab.engine.random import RESTART, TRAJECTORY, alias_table, below, draw, stream_key, word
from gqlab.engine.tables import next_sample, problem_tables, start_state
from gqlab.estimators import (
    EMPTY,
    Rates,
    Reference,
    Work,
    plain_step,
    svrg_add,
    svrg_end,
    svrg_mean,
    svrg_start,
    svrg_step,
)
from gqlab.problem import Problem
from gqlab.results import RunResult
from gqlab.rules import rule

#: Stream of the Monte Carlo draws.
MONTE_CARLO = 19


class UpdateError(NamedTuple):
    """The error g − ∇J(θ_t) of the update direction g at the recorded points; (n_runs, n_records − 1) each."""

    bias_squared: FloatArray  # ‖E g − ∇J(θ_t)‖²
    variance: FloatArray  # E‖g − E g‖²
    sampled: FloatArray  # the mean of ‖g − ∇J(θ_t)‖² over draws of g

    @property
    def mean_squared(self) -> FloatArray:
        """E‖g − ∇J(θ_t)‖², exactly."""
        return self.bias_squared + self.variance


def update_error(problem: Problem, result: RunResult, n_draws: int = 500) -> UpdateError:
    """E‖g − ∇J(θ_t)‖² of the directions g in which a run stepped, at each recorded point but the last.

    For Greedy-GQ g = G_x(θ_t, ω_t) and the expectation is over x ~ (D, P). For VR-Greedy-GQ
    g = G_x(θ_t, ω_t) − G_x(θ̃, ω̃) + G̃ and it is over a uniform index of the epoch's own batch. It is taken exactly, and
    by ``n_draws`` Monte Carlo samples at each point.

    Parameters
    ----------
    problem : Problem
        The one that ``result`` is of.
    result : RunResult
        Of ``GreedyGQ`` or ``VRGreedyGQ``; for the latter ``record_every`` must divide the batch size, so that (θ̃, ω̃)
        are among the records.
    n_draws : int

    Examples
    --------
    >>> import gqlab as gq
    >>> mdp = gq.garnet(seed=0)
    >>> problem = gq.Problem(mdp, gq.random_features(mdp, dim=4))
    >>> result = gq.run(problem, gq.VRGreedyGQ(batch_size=1000), n_samples=10_000, n_runs=4, record_every=200)
    >>> error = gq.update_error(problem, result)
    >>> error.variance.shape
    (4, 50)
    >>> float(error.variance[:, ::5].max()) < 1e-20  # at the reference point every index gives the same update
    True
    """
    algorithm, every = result.algorithm, int(result.metadata["record_every"])
    checks.integer("n_draws", n_draws, least=1)
    if not isinstance(algorithm, GreedyGQ | VRGreedyGQ):
        raise ValueError(f"result is of {algorithm!r}, expected Greedy-GQ or VR-Greedy-GQ")
    if result.metadata["problem"] != problem.fingerprint:
        raise ValueError("result is of another problem")
    if algorithm.epoch % every:
        raise ValueError(f"record_every is {every}, which does not divide the batch size {algorithm.epoch}")
    samples, chain, rows = problem_tables(problem)
    s, a, s_next = rows.T
    weight = problem.exact.stationary[s] * problem.behavior[s, a] * problem.mdp.transition[s, a, s_next]
    law = (weight, *alias_table(weight))
    gradient = problem.exact.gradient(result.theta)
    n_runs, n_records = gradient.shape[:2]
    out = np.empty((3, n_runs, n_records - 1))
    sizes = algorithm.epoch, every, n_draws, problem.dim, problem.mdp.n_actions
    seed = np.uint64(result.metadata["seed"])

    def measure(run: int) -> None:
        theta, omega = result.theta[run].copy(), result.omega[run].copy()
        _measure(samples, chain, law, seed, run, theta, omega, gradient[run].copy(), sizes, out[:, run])

    with ThreadPoolExecutor(default_threads()) as pool:
        list(pool.map(measure, range(n_runs)))
    return UpdateError(*out)


@rule
def directions(samples, theta, omega, count, reference, work, point, table, d, A):
    """g of every transition that can be drawn (count > 0) into the rows of ``table``, read off a step of size 1."""
    rates = Rates(1.0, 1.0, np.inf)
    for x in range(len(samples.pair)):
        if count[x] > 0:
            for i in range(d):
                point[0, i] = theta[i]
                point[1, i] = omega[i]
            if len(reference.slot) == 0:
                plain_step(samples, x, point[0], point[1], rates, work, d, A)
            else:
                svrg_step(samples, x, point[0], point[1], reference, rates, work, d, A)
            for i in range(d):
                table[x, i] = theta[i] - point[0, i]


@rule
def distance_squared(u, v, d):
    total = 0.0
    for i in range(d):
        total += (u[i] - v[i]) ** 2
    return total


@rule
def moments(count, total, table, gradient, mean, out, k, d):
    """Bias² and variance of the rows of ``table``, drawn with probability count/total, into ``out[:2, k]``."""
    for i in range(d):
        mean[i] = 0.0
    for x in range(len(count)):
        if count[x] > 0:
            for i in range(d):
                mean[i] += count[x] / total * table[x, i]
    out[0, k] = distance_squared(mean, gradient, d)
    out[1, k] = 0.0
    for x in range(len(count)):
        if count[x] > 0:
            out[1, k] += count[x] / total * distance_squared(table[x], mean, d)


@entry
def _measure(samples, chain, law, seed, run, theta, omega, gradient, sizes, out):
    """Fill ``out`` (bias², variance, Monte Carlo; records) for one run: ``sizes`` = (M, every, n_draws, d, A)."""
    M, every, n_draws, d, A = sizes
    weight, threshold, alias = law
    n = len(weight)
    work = Work(np.empty(A), np.empty(A), np.empty(d), np.empty(d), np.empty(d))
    point, table, mean = np.empty((2, d)), np.empty((n, d)), np.empty(d)
    count, batch = np.zeros(n), np.empty(M, dtype=np.uint32)
    S = len(chain.terminal) if M > 0 else 0
    reference = Reference(
        np.empty(d), np.empty(d), np.empty(d), np.empty(d),
        np.full(S, EMPTY, dtype=np.uint32), np.empty(S, dtype=np.uint32), np.empty(S), np.empty(S * d),
    )  # fmt: skip
    draw_key = stream_key(seed, run, MONTE_CARLO)
    trajectory_key, restart_key = stream_key(seed, run, TRAJECTORY), stream_key(seed, run, RESTART)
    s = start_state(chain, 0, restart_key, 0)
    n_visited = 0
    if M == 0:
        count[:] = weight
    for k in range(out.shape[1]):
        u = k * every
        if M > 0 and u % M == 0:  # a new epoch: the batch that the run drew here
            svrg_end(reference, n_visited)
            n_visited = 0
            count[:] = 0.0
            svrg_start(reference, theta[k], omega[k], d)
            for t in range(u, u + M):
                x, s = next_sample(samples, chain, 0, s, t, trajectory_key, restart_key)
                batch[t - u] = x
                count[x] += 1.0
                n_visited = svrg_add(samples, x, reference, n_visited, work, d, A)
            svrg_mean(reference, M, d)
        directions(samples, theta[k], omega[k], count, reference, work, point, table, d, A)
        moments(count, M if M > 0 else 1.0, table, gradient[k], mean, out, k, d)
        out[2, k] = 0.0
        for j in range(n_draws):
            w = word(draw_key, k * n_draws + j)
            x = batch[below(w, M)] if M > 0 else draw(threshold, alias, np.uint32(0), n, w)
            out[2, k] += distance_squared(table[x], gradient[k], d) / n_draws
