"""Logs of a problem: episodes of its behaviour, as a person would have them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gqlab.data.transitions import Transitions
from gqlab.studies.decisions.problems import LoggedProblem
from gqlab.support.checks import FloatArray


def rows_per_episode(problem: LoggedProblem, behavior: FloatArray) -> float:
    """The mean number of rows of an episode."""
    mdp, total, now = problem.mdp, 0.0, problem.mdp.start
    step = np.einsum("sa,sat->st", behavior, mdp.transition)
    for _ in range(problem.horizon):
        total += float(now.sum())
        now = np.where(mdp.terminal, 0.0, now @ step)
    return total


def episodes_of(problem: LoggedProblem, behavior: FloatArray, n_rows: int) -> int:
    """How many episodes have so many rows in the mean."""
    return max(2, round(n_rows / rows_per_episode(problem, behavior)))


def make_log(
    problem: LoggedProblem, n_rows: int, seed: list[int], *, behavior: FloatArray | None = None, known: bool = True
) -> Transitions:
    """Whole episodes, as many as have ``n_rows`` rows in the mean: their number does not depend on what happens.

    Each ends in a terminal state, or is cut off after ``horizon`` rows. ``behavior``: another policy than the
    problem's; ``known``: the log tells its probabilities.
    """
    mdp, b = problem.mdp, problem.behavior if behavior is None else behavior
    rng = np.random.default_rng(seed)
    m = episodes_of(problem, b, n_rows)
    acting, moving = np.cumsum(b, axis=1), np.cumsum(mdp.transition, axis=2)
    state, action, after = (np.zeros((m, problem.horizon), dtype=np.int64) for _ in range(3))
    alive = np.zeros((m, problem.horizon), dtype=bool)
    here, on = drawn(np.broadcast_to(np.cumsum(mdp.start), (m, mdp.n_states)), rng), np.ones(m, dtype=bool)
    for t in range(problem.horizon):
        a = drawn(acting[here], rng)
        arrived = drawn(moving[here, a], rng)
        state[:, t], action[:, t], after[:, t], alive[:, t] = here, a, arrived, on
        on, here = on & ~mdp.terminal[arrived], arrived
        if not on.any():
            break
    s, a, s_next = state[alive], action[alive], after[alive]
    episode = np.repeat(np.arange(m), alive.sum(axis=1))
    ended, last = mdp.terminal[s_next], np.append(episode[1:] != episode[:-1], True)
    return Transitions.from_arrays(
        problem.observation[s],
        a,
        mdp.reward[s, a, s_next],
        problem.observation[s_next],
        terminated=ended,
        truncated=last & ~ended,
        episodes=episode,
        probabilities=b[s, a] if known else None,
        n_actions=mdp.n_actions,
    )


def drawn(cumulated: FloatArray, rng: np.random.Generator) -> NDArray[np.int64]:
    """One index from each row of cumulated probabilities."""
    chance = rng.random((len(cumulated), 1)) * cumulated[:, -1:]
    return np.asarray(np.minimum((cumulated <= chance).sum(axis=1), cumulated.shape[1] - 1))
