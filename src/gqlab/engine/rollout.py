"""Sampled rewards: a short walk of π_θ for every θ."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gqlab import checks
from gqlab.checks import FloatArray
from gqlab.engine.compiled import entry
from gqlab.engine.random import stream_key, unit, word
from gqlab.problem import Problem
from gqlab.rules import rule

#: Stream of the random numbers.
WALK = 18

#: Numbers that the tables of policies may hold at a time.
BATCH_NUMBERS = 4_000_000


class Kernel(NamedTuple):
    """What a walk reads: distributions summed up along their last axis."""

    start: Any  # (S,)
    transition: Any  # (S, A, S)
    reward: Any  # (S, A, S)
    terminal: Any  # (S,)


def sampled_reward(problem: Problem, theta: ArrayLike, n_steps: int = 100, seed: int = 0) -> FloatArray:
    """The mean reward of one walk of ``n_steps`` under π_θ, (...), for ``theta`` (..., d).

    This is the paper's r̂ (its appendix on experiments): s₁ comes from the distribution of first states, and a walk
    that arrives in a terminal state begins anew. Its expectation is near ``problem.exact.average_reward``; a maximum of
    many of them is larger, whatever the policies are. Row k of ``theta`` has random numbers of its own.

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> mdp = gq.garnet(seed=0)
    >>> problem = gq.Problem(mdp, gq.random_features(mdp, dim=4))
    >>> sampled = gq.sampled_reward(problem, np.zeros((2000, 4)), n_steps=100)
    >>> bool(abs(sampled.mean() - problem.exact.average_reward(np.zeros(4))) < 0.01)
    True
    """
    th = np.asarray(theta, dtype=np.float64)
    if th.ndim == 0 or th.shape[-1] != problem.dim:
        raise ValueError(f"theta has shape {th.shape}, expected (..., {problem.dim})")
    checks.integer("n_steps", n_steps, least=1, below=2**31)
    key = np.uint64(checks.integer("seed", seed, least=0, below=2**64))
    mdp = problem.mdp
    kernel = Kernel(_cumulative(mdp.start), _cumulative(mdp.transition), mdp.reward.copy(), mdp.terminal.copy())
    rows = th.reshape(-1, problem.dim)
    out = np.empty(len(rows))
    size = max(1, BATCH_NUMBERS // (mdp.n_states * mdp.n_actions))
    for first in range(0, len(rows), size):
        pi = _cumulative(problem.policy(rows[first : first + size]))
        _walks(kernel, pi, n_steps, key, first, out[first : first + size])
    return out.reshape(th.shape[:-1])


def _cumulative(p: FloatArray) -> FloatArray:
    total = np.cumsum(p, axis=-1)
    return np.ascontiguousarray(total / np.where(total[..., -1:] > 0, total[..., -1:], 1.0))


@rule
def pick(cumulative, u):
    """The first entry whose cumulative probability exceeds u."""
    k = 0
    while k < len(cumulative) - 1 and cumulative[k] <= u:
        k += 1
    return k


@entry
def _walks(kernel, pi, n_steps, seed, first, out):
    for k in range(len(out)):
        key = stream_key(seed, first + k, WALK)
        s = pick(kernel.start, unit(word(key, 0)))
        total = 0.0
        for t in range(n_steps):
            a = pick(pi[k, s], unit(word(key, 3 * t + 1)))
            s_next = pick(kernel.transition[s, a], unit(word(key, 3 * t + 2)))
            total += kernel.reward[s, a, s_next]
            s = pick(kernel.start, unit(word(key, 3 * t + 3))) if kernel.terminal[s_next] else s_next
        out[k] = total / n_steps
