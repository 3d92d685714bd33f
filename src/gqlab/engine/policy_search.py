"""The loops of actor-critic and policy gradient, between the same records as every other algorithm's."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from gqlab import checks
from gqlab.algorithms import ActorCritic, Algorithm, PolicyGradient
from gqlab.checks import FloatArray
from gqlab.engine.compiled import entry
from gqlab.engine.loop import SEGMENT_NUMBERS, keep_output, leave, record, segment_end
from gqlab.engine.policy_rules import actor_critic_step, policy_gradient_add, policy_tables
from gqlab.engine.random import OUTPUT, RESTART, TRAJECTORY, draw, stream_key, word
from gqlab.engine.tables import next_sample, of_problem, sample_table, start_state
from gqlab.engine.workspace import length, work_array
from gqlab.estimators import Rates, Work, accept
from gqlab.operators import Softmax
from gqlab.problem import Problem
from gqlab.rules import rule

#: Streams of the random numbers: transitions and first states of policy gradient's own trajectories.
EPISODE, EPISODE_START = 16, 17


def loop_of(algorithm: Algorithm) -> tuple[int, int] | None:
    """Which compiled loop an algorithm needs: (trajectories, horizon), (0, 0) for actor-critic, None for the usual."""
    if isinstance(algorithm, PolicyGradient):
        return algorithm.n_trajectories, algorithm.horizon
    return (0, 0) if isinstance(algorithm, ActorCritic) else None


def block_of(
    algorithm: Algorithm, used: Sequence[Problem], problems: Sequence[Problem], dtype: str
) -> Callable[..., None] | None:
    """The compiled loop over a block of runs, as ``cpu.advance_all`` calls it; None where it is not one of these."""
    loop = loop_of(algorithm)
    if loop is None:
        return None
    for problem in used:
        _check_target(algorithm, problem)
    behavior = np.concatenate([problem.behavior.flatten() for problem in problems]).astype(dtype)
    return lambda *args: _advance_block(*args, behavior, *loop)


def actor_critic_direction(
    problem: Problem, theta: ArrayLike, omega: ArrayLike, sample: tuple[int, int, int]
) -> tuple[FloatArray, FloatArray]:
    """The steps of actor and critic for one sample (s, a, s'), at η = 1 without projection: two (d,) arrays."""
    th, om = (checks.array(name, v, (problem.dim,)) for name, v in (("theta", theta), ("omega", omega)))
    before = th.copy(), om.copy()
    rows = sample_table(problem, *(np.array([k]) for k in sample))
    d, A = problem.dim, problem.mdp.n_actions
    work = Work(np.empty(A), np.empty(A), np.empty(d), np.empty(d), np.empty(d))
    _one_step(rows, problem.behavior.flatten(), th, om, Rates(1.0, 1.0, np.inf), work, d, A)
    return th - before[0], om - before[1]


def policy_gradient_estimate(
    problem: Problem, theta: ArrayLike, trajectory: Sequence[tuple[int, int, int]]
) -> FloatArray:
    """g of one trajectory, a sequence of samples (s, a, s'): (d,)."""
    x = np.asarray(trajectory)
    g = np.zeros(problem.dim)
    rows = sample_table(problem, x[:, 0], x[:, 1], x[:, 2])
    th = checks.array("theta", theta, (problem.dim,))
    S, A = problem.mdp.n_states, problem.mdp.n_actions
    _one_trajectory(rows, problem.behavior.flatten(), S, th, g, problem.dim, A)
    return g


def _check_target(algorithm: Algorithm, problem: Problem) -> None:
    if not isinstance(problem.target, Softmax):
        raise ValueError(
            f"target is {problem.target!r}, but {type(algorithm).__name__} needs a softmax policy, gqlab.Softmax(sigma)"
        )


@entry
def _one_step(samples, behavior, theta, omega, rates, work, d, A):
    actor_critic_step(samples, behavior, 0, theta, omega, rates, work, d, A)


@entry
def _one_trajectory(samples, behavior, n_states, theta, g, d, A):
    ratio, score = np.empty(n_states * A), np.empty(n_states * A * d)
    policy_tables(samples, behavior, 0, n_states, theta, np.empty(A), np.empty(A), np.empty(d), ratio, score, d, A)
    total_score = np.zeros(d)
    weight = 1.0
    for x in range(len(samples.pair)):
        weight = policy_gradient_add(samples, x, 0, weight, ratio, score, total_score, g, d, A)


@rule
def add_trajectory(samples, chain, problem, c, H, keys, tables, d, A):
    """Draw trajectory number ``c`` and add its estimate to ``g``."""
    ratio, score, total_score, g = tables
    for i in range(d):
        total_score[i] = total_score.dtype.type(0)
    weight = g.dtype.type(1)
    s = start_state(chain, problem, keys[1], c)
    for t in range(H):
        first = chain.first[s]
        x = draw(chain.threshold, chain.alias, first, chain.first[s + 1] - first, word(keys[0], c * H + t))
        weight = policy_gradient_add(samples, x, samples.first_state, weight, ratio, score, total_score, g, d, A)
        s = samples.s_next[x]
        if chain.terminal[s]:  # γ = 0: nothing follows
            break


@rule
def policy_gradient_step(samples, chain, problem, behavior, u, n, H, keys, theta, omega, rates, work, tables, d, A):
    """θ ← Π_R[θ + η_θ · mean g] over the n trajectories of update u."""
    ratio, score, _, g = tables
    first, last = chain.first_state[problem], chain.first_state[problem + 1]
    policy_tables(samples, behavior, first, last, theta, work.q, work.w, work.phi_hat, ratio, score, d, A)
    for i in range(d):
        g[i] = g.dtype.type(0)
    for k in range(n):
        add_trajectory(samples, chain, problem, u * n + k, H, keys, tables, d, A)
    for i in range(d):
        work.theta[i] = theta[i] + rates.eta_theta * (g[i] / g.dtype.type(n))
        work.omega[i] = omega[i]
    return accept(theta, omega, rates, work, d)


@rule
def advance(joined, chain, plan, runs, records, run, stop, theta, omega, work, tables, behavior, n, H, d, A):
    """Take run number ``run`` to ``plan.until``, or to where ``stop[0]`` finds it; n = 0 is actor-critic."""
    problem = plan.problem[run]
    samples = of_problem(joined, chain, problem)
    seed, number = plan.seed[run], plan.number[run]
    trajectory_key = stream_key(seed, number, TRAJECTORY)
    restart_key = stream_key(seed, number, RESTART)
    keys = stream_key(seed, number, EPISODE), stream_key(seed, number, EPISODE_START)
    output_key = stream_key(seed, number, OUTPUT)
    rates = Rates(plan.eta_theta[run], plan.eta_omega[run], plan.radius[run])
    for i in range(d):
        theta[i] = runs.theta[run, i]
        omega[i] = runs.omega[run, i]
    u = runs.updates[run]
    s = runs.s[run] if u > 0 else start_state(chain, problem, restart_key, 0)
    finite = runs.diverged_at[run] < 0
    if u == 0:
        record(plan, records, run, theta, omega, u, d)
    next_output = runs.next_output[run]
    segment = 1 + SEGMENT_NUMBERS // (d * A * max(1, n * H))
    while u < plan.until[run] and finite and stop[0] == 0:
        end = segment_end(plan, records, run, u, segment)
        while u < end and finite:
            if u == next_output:
                next_output = keep_output(runs, run, theta, output_key, u, d)
            if n == 0:
                x, s = next_sample(samples, chain, problem, s, u, trajectory_key, restart_key)
                finite = actor_critic_step(samples, behavior, x, theta, omega, rates, work, d, A)
            else:
                finite = policy_gradient_step(
                    samples, chain, problem, behavior, u, n, H, keys, theta, omega, rates, work, tables, d, A
                )
            u += finite
        if finite:
            record(plan, records, run, theta, omega, u, d)
            runs.updates[run] = u
    leave(plan, runs, records, run, theta, omega, s, u, finite, next_output, output_key, d)


@entry
def _advance_block(samples, chain, plan, runs, records, first, last, stop, d_size, A_size, behavior, n, H):
    """Advance the runs ``first`` … ``last − 1``, one after another."""
    d, A = length(d_size), length(A_size)
    like = runs.theta
    theta, omega = work_array(d_size, like), work_array(d_size, like)
    work = Work(
        work_array(A_size, like), work_array(A_size, like),
        work_array(d_size, like), work_array(d_size, like), work_array(d_size, like),
    )  # fmt: skip
    n_pairs = 0  # of the largest problem
    for run in range(first, last):
        states = chain.first_state[plan.problem[run] + 1] - chain.first_state[plan.problem[run]]
        n_pairs = max(n_pairs, states * A)
    ratio, score = np.empty(n_pairs, dtype=like.dtype), np.empty(n_pairs * d, dtype=like.dtype)
    tables = ratio, score, work_array(d_size, like), work_array(d_size, like)
    for run in range(first, last):
        advance(samples, chain, plan, runs, records, run, stop, theta, omega, work, tables, behavior, n, H, d, A)
