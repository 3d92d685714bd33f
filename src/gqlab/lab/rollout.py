"""Sampled rewards: a short walk of π_θ for every θ."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from gqlab.engine.compiled import entry
from gqlab.engine.cpu import run_apart
from gqlab.measure.compiled import cumulated, first_of_walk, stretch, walk_tables
from gqlab.problems.problem import Problem
from gqlab.rules.dispatch import at
from gqlab.samples.random import WALK, stream_key, word
from gqlab.support import checks
from gqlab.support.checks import FloatArray

#: Numbers that the tables of policies may hold at a time.
BATCH_NUMBERS = 4_000_000

#: Steps of a walk between two checks of the stop flag.
STRETCH = 1 << 16


def sampled_reward(problem: Problem, theta: ArrayLike, *, n_steps: int = 100, seed: int = 0) -> FloatArray:
    """The mean reward of one walk of ``n_steps`` under π_θ, (...), for ``theta`` (..., d).

    This is the paper's r̂ (its appendix on experiments): s₁ is drawn from the distribution of first states, and a walk
    that reaches a terminal state restarts. Its expectation is near ``problem.exact.average_reward``; the maximum
    of many of them is larger, whatever the policies. Row k of ``theta`` has random numbers of its own.

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> mdp = gq.garnet(seed=0)
    >>> problem = gq.Problem(mdp, gq.random_features(mdp, dim=4))
    >>> sampled = gq.sampled_reward(problem, np.zeros((2000, 4)), n_steps=100)
    >>> bool(abs(sampled.mean() - problem.exact.average_reward(np.zeros(4))) < 0.01)
    True
    """
    checks.instance("problem", problem, Problem, "a Problem")
    th = checks.vectors("theta", theta, problem.dim)
    steps = checks.integer("n_steps", n_steps, least=1, below=2**31)
    key = np.uint64(checks.integer("seed", seed, least=0, below=2**64))
    walks = at(walk_tables([problem]), 0)
    S, A = problem.mdp.n_states, problem.mdp.n_actions
    rows = th.reshape(-1, problem.dim)
    out = np.empty(len(rows))
    size, stop = max(1, BATCH_NUMBERS // (S * A)), np.zeros(1, dtype=np.int64)
    for first in range(0, len(rows), size):
        pi = cumulated(problem.policy(rows[first : first + size]))
        part = out[first : first + size]
        run_apart(_walks, stop, walks, pi.reshape(-1, S * A), steps, key, first, part, stop, A)
    return out.reshape(th.shape[:-1])


@entry
def _walks(walks, pi, n_steps, seed, first, out, stop, A):
    for k in range(len(out)):
        walk_key = stream_key(seed, first + k, WALK)
        s, total, t = first_of_walk(walks, word(walk_key, 0)), 0.0, 0
        while t < n_steps and stop[0] == 0:
            end = min(t + STRETCH, n_steps)
            rewards, s = stretch(walks, pi[k], walk_key, s, t, end, A)
            total, t = total + rewards, end
            out[k] = total / n_steps  # written in the loop, or the compiler might treat the flag as constant
