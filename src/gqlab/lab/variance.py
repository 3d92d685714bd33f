"""How far the updates of a run are from ∇J: bias and variance at its records, from the compiled steps themselves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gqlab.algorithms import GreedyGQ, VRGreedyGQ
from gqlab.engine.compiled import entry
from gqlab.engine.cpu import map_apart
from gqlab.engine.memory import compiled_sizes, length, part
from gqlab.estimators.base import begin, move
from gqlab.estimators.plain import Plain
from gqlab.lab.check import svrg_part
from gqlab.lab.results import RunResult, check_result
from gqlab.problems.problem import Problem
from gqlab.rules.dispatch import at, by_type, rule
from gqlab.rules.memory import Sizes
from gqlab.rules.point import DensePoint, Rates
from gqlab.samples.random import MONTE_CARLO, alias_table, draw_alias, word
from gqlab.samples.streams import STOP_LOOK, RunIdentity, World, key, start
from gqlab.samples.tables import problem_tables
from gqlab.support import checks
from gqlab.support.checks import FloatArray


class UpdateError(NamedTuple):
    """The error g − ∇J(θ_t) of the update direction g at the recorded points; (n_runs, n_records − 1) each."""

    bias_squared: FloatArray  # ‖E g − ∇J(θ_t)‖²
    variance: FloatArray  # E‖g − E g‖²
    sampled: FloatArray  # the mean of ‖g − ∇J(θ_t)‖² over draws of g

    @property
    def mean_squared(self) -> FloatArray:
        """E‖g − ∇J(θ_t)‖², exactly."""
        return self.bias_squared + self.variance


def update_error(result: RunResult, *, n_draws: int = 500) -> UpdateError:
    """E‖g − ∇J(θ_t)‖² of the directions g in which a run stepped, at each recorded point but the last.

    For Greedy-GQ g = G_x(θ_t, ω_t) and the expectation is over x ~ (D, P). For VR-Greedy-GQ g = G_x(θ_t, ω_t) − G_x(θ̃,
    ω̃) + G̃ and it is over a uniform index of the epoch's own batch. It is computed exactly, and estimated by
    ``n_draws`` Monte Carlo samples at each point.

    Parameters
    ----------
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
    >>> error = gq.update_error(result)
    >>> error.variance.shape
    (4, 50)
    >>> float(error.variance[:, ::5].max()) < 1e-20  # at the reference point every index gives the same update
    True
    """
    given: object = result
    if isinstance(given, Problem):
        raise ValueError(f"result is {given!r}: a result knows its problem, give the result alone")
    check_result("result", result)
    problem = result.known_problem("update_error")
    algorithm, every = result.algorithm, int(result.metadata["record_every"])
    n_draws = checks.integer("n_draws", n_draws, least=1, below=2**31)
    if not isinstance(algorithm, GreedyGQ | VRGreedyGQ):
        raise ValueError(f"result is of {algorithm!r}, expected Greedy-GQ or VR-Greedy-GQ")
    if isinstance(algorithm, VRGreedyGQ) and not algorithm.as_in_the_paper:
        raise ValueError(f"result is of {algorithm!r}, expected batches of constant size with only new samples")
    M = algorithm.epoch_size
    if M % every:
        raise ValueError(f"record_every is {every}, which does not divide the batch size {M}")
    tables = problem_tables(problem)
    s, a, s_next = tables.transitions.T
    weight = problem.exact.stationary[s] * problem.behavior[s, a] * problem.mdp.at(s, a, s_next)[0]
    law = (weight, *alias_table(weight))
    gradient = problem.exact.gradient(result.theta)
    n_runs, n_records = gradient.shape[:2]
    out = np.empty((3, n_runs, n_records - 1))
    d, A = problem.dim, problem.mdp.n_actions
    sizes, (d_size, A_size) = Sizes(d, A, problem.mdp.n_states), compiled_sizes(d, A)
    samples, chain, stop = at(tables.samples, 0), at(tables.chain, 0), np.zeros(1, dtype=np.int64)

    def measure(run: int) -> None:
        world = World(samples, chain, RunIdentity(np.uint64(result.metadata["seed"]), run), stop)
        estimator = svrg_part(d, A, problem.mdp.n_states, M) if M else part(Plain, sizes)
        path = result.theta[run].copy(), result.omega[run].copy(), gradient[run].copy()
        steps = M, every, n_draws
        _measure(world, estimator, part(DensePoint, sizes), law, path, steps, out[:, run], d_size, A_size)

    map_apart(measure, stop, n_runs)
    return UpdateError(*out)


@rule
def directions(samples, estimator, theta, omega, count, point, table, d, A):
    """g of every sample that can be drawn (count > 0) into the rows of ``table``, read off a move of size 1."""
    rates = Rates(1.0, 1.0, np.inf, np.inf, 0.0)
    for x in range(len(samples.row)):
        if count[x] > 0:
            place(point, theta, omega, d)
            move(estimator, samples, x, point, rates, d, A)
            for i in range(d):
                table[x, i] = theta[i] - point.theta[i]


@by_type
def count_batch(self, count):
    """How often each sample is in the batch, into ``count``; unchanged for estimators without batches."""


@by_type
def drawn(self, w):
    """A sample of the batch, by one random word."""
    return np.uint32(0)


@rule
def place(point, theta, omega, d):
    for i in range(d):
        point.theta[i] = theta[i]
        point.omega[i] = omega[i]


@rule
def distance_squared(u, v, d):
    total = 0.0
    for i in range(d):
        total += (u[i] - v[i]) ** 2
    return total


@rule
def bias_and_variance(count, table, gradient, mean, d):
    """Of the rows of ``table``, drawn with probability count/Σcount: ‖mean − gradient‖², and the variance."""
    total = 0.0
    for i in range(d):
        mean[i] = 0.0
    for x in range(len(count)):
        total += count[x]
        for i in range(d):
            mean[i] += count[x] * table[x, i]
    for i in range(d):
        mean[i] /= total
    variance = 0.0
    for x in range(len(count)):
        variance += count[x] / total * distance_squared(table[x], mean, d)
    return distance_squared(mean, gradient, d), variance


@entry
def _measure(world, estimator, point, law, path, steps, out, d_size, A_size):
    """Fill ``out`` (bias², variance, Monte Carlo; records) for one run: ``steps`` = (M, every, n_draws)."""
    theta, omega, gradient = path
    weight, threshold, alias = law
    M, every, n_draws = steps
    n, d, A = len(weight), length(d_size), length(A_size)
    table, mean, count = np.zeros((n, d)), np.empty(d), weight.copy()
    draw_key = key(world.run, MONTE_CARLO)
    cursor = start(world.stream, world.run)
    for k in range(out.shape[1]):
        if world.stop[0] != 0:
            break
        u = k * every
        if M > 0 and u % M == 0:  # a new epoch: the batch that the run drew here
            place(point, theta[k], omega[k], d)
            cursor = begin(estimator, world, point, cursor, u, d, A)
            count_batch(estimator, count)
        directions(world.samples, estimator, theta[k], omega[k], count, point, table, d, A)
        out[0, k], out[1, k] = bias_and_variance(count, table, gradient[k], mean, d)
        out[2, k] = 0.0
        for j in range(n_draws):
            if j & (STOP_LOOK - 1) == 0 and world.stop[0] != 0:
                break
            w = word(draw_key, k * n_draws + j)
            x = drawn(estimator, w) if M > 0 else draw_alias(threshold, alias, np.uint32(0), n, w)
            out[2, k] += distance_squared(table[x], gradient[k], d) / n_draws
