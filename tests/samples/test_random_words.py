"""Every draw of policy gradient has a word of its own, and work that is asked to stop does."""

from __future__ import annotations

import numba
import numpy as np
import pytest

import gqlab as gq
from conftest import assert_close
from gqlab.engine.memory import part
from gqlab.estimators.base import begin, step
from gqlab.estimators.policy_search import PolicyGradientStep
from gqlab.lab.check import svrg_part
from gqlab.rules.dispatch import at
from gqlab.rules.memory import Sizes
from gqlab.rules.point import DensePoint, Rates
from gqlab.samples.streams import STOP_LOOK, RunIdentity, World
from gqlab.samples.tables import problem_tables
from helpers.policy_steps import policy_gradient_estimate
from helpers.random_words import key, word

EPISODE, EPISODE_START = 16, 17


def drawn(threshold, alias, first: int, n: int, w: int) -> int:
    """An entry of an alias table by one word, in whole numbers of Python."""
    column = first + (w * n >> 64)
    return column if (w * n) % 2**64 < int(threshold[column]) else int(alias[column])


@pytest.mark.parametrize("terminal", [False, True])
def test_the_trajectories_of_policy_gradient_take_the_documented_words(terminal, garnet_problem):
    """Trajectory c of a run begins with word c of its stream of first states, and step t takes word c·horizon + t."""
    mdp = garnet_problem.mdp
    if terminal:
        ends, start = np.arange(5) == 4, [0.1, 0.6, 0.1, 0.2, 0.0]
        mdp = gq.FiniteMDP(mdp.transition, mdp.reward, 0.95, ends, start)
    problem = gq.Problem(mdp, garnet_problem.features)
    tables = problem_tables(problem)
    chain = tables.chain
    n, horizon, seed, run = 4, 6, 7, 2
    algorithm = gq.PolicyGradient(0.3, n, horizon)
    result = gq.run(problem, algorithm, 3 * n * horizon, n_runs=run + 1, seed=seed, record_every=1)
    theta = np.zeros(4)
    lengths = set()
    for u in range(3):
        g = np.zeros(4)
        for c in range(u * n, (u + 1) * n):
            w = word(key(seed, run, EPISODE_START), c)
            s = int(chain.start_state[drawn(chain.start_threshold, chain.start_alias, 0, len(chain.start_state), w)])
            path = []
            for t in range(horizon):
                first, last = map(int, chain.first[s : s + 2])
                w = word(key(seed, run, EPISODE), c * horizon + t)
                path.append(tables.transitions[drawn(chain.threshold, chain.alias, first, last - first, w)])
                s = int(path[-1][2])
                if mdp.terminal[s]:
                    break
            lengths.add(len(path))
            g += policy_gradient_estimate(problem, theta, np.array(path)) / n
        theta = theta + 0.3 * g
        assert_close(result.theta[run, u + 1], theta, 1e-12)
    assert (min(lengths) < horizon) == terminal


@numba.njit
def begin_once(estimator, world, point, d, A):
    return begin(estimator, world, point, np.uint32(0), 0, d, A)


@numba.njit
def step_once(estimator, world, point, rates, d, A):
    return step(estimator, world, point, np.uint32(0), 0, rates, d, A)[0]


def world_of(problem: gq.Problem, stop: int) -> World:
    tables = problem_tables(problem)
    flag = np.array([stop], dtype=np.int64)
    return World(at(tables.samples, 0), at(tables.chain, 0), RunIdentity(np.uint64(0), 0), flag)


@pytest.mark.parametrize("stop", [0, 1])
def test_a_batch_that_is_asked_to_stop_is_left_within_so_many_samples(stop, garnet_problem):
    M, unseen = 8 * STOP_LOOK, 2**32 - 1
    sizes, svrg = Sizes(4, 3, 5), svrg_part(4, 3, 5, M)
    svrg.batch[:] = unseen
    begin_once(svrg, world_of(garnet_problem, stop), part(DensePoint, sizes), 4, 3)
    n_drawn = int((svrg.batch != unseen).sum())
    assert n_drawn == M if stop == 0 else n_drawn <= STOP_LOOK


@pytest.mark.parametrize("stop", [0, 1])
def test_an_update_of_policy_gradient_that_is_asked_to_stop_draws_no_more_trajectories(stop, garnet_problem):
    sizes = Sizes(4, 3, 5)
    estimator = part(PolicyGradientStep, sizes, n_trajectories=50, horizon=10)
    point = part(DensePoint, sizes)
    assert step_once(estimator, world_of(garnet_problem, stop), point, Rates(0.1, 0.1, np.inf, np.inf, 0.0), 4, 3)
    assert point.theta.any() == (stop == 0)
