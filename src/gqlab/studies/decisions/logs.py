"""Logs of a problem: episodes of its behaviour, as a person would have them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gqlab.data.transitions import Transitions
from gqlab.studies.decisions.problems import LoggedProblem
from gqlab.support.checks import FloatArray


def make_log(
    problem: LoggedProblem, n_rows: int, seed: list[int], *, policy: FloatArray | None = None, propensities: bool = True
) -> Transitions:
    """About ``n_rows`` rows (whole episodes, or cut off at the horizon) of the behaviour, or of another policy.

    The episodes are played side by side: each of ``n_rows / horizon`` places plays one after another until it has
    ``horizon`` rows, and cuts off the last.
    """
    mdp, horizon = problem.mdp, min(problem.horizon, n_rows)
    behavior = problem.behavior if policy is None else policy
    rng = np.random.default_rng(seed)
    places = max(1, n_rows // horizon)
    acting, moving = np.cumsum(behavior, axis=1), np.cumsum(mdp.transition, axis=2)
    starting = np.cumsum(mdp.start)
    shape = places, horizon
    state, action, after = (np.zeros(shape, dtype=np.int64) for _ in range(3))
    ended, episode = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=np.int64)
    here, number = drawn(np.broadcast_to(starting, (places, mdp.n_states)), rng), np.zeros(places, dtype=np.int64)
    for t in range(horizon):
        a = drawn(acting[here], rng)
        arrived = drawn(moving[here, a], rng)
        state[:, t], action[:, t], after[:, t], episode[:, t] = here, a, arrived, number
        ended[:, t] = over = mdp.terminal[arrived]
        number = number + over
        here = np.where(over, drawn(np.broadcast_to(starting, (places, mdp.n_states)), rng), arrived)
    cut = np.zeros(shape, dtype=bool)
    cut[:, -1] = ~ended[:, -1]
    s, a, s_next = state.ravel(), action.ravel(), after.ravel()
    return Transitions.from_arrays(
        problem.observation[s],
        a,
        mdp.reward[s, a, s_next],
        problem.observation[s_next],
        terminated=ended.ravel(),
        truncated=cut.ravel(),
        episodes=(np.arange(places)[:, None] * (horizon + 1) + episode).ravel(),
        probabilities=behavior[s, a] if propensities else None,
        n_actions=mdp.n_actions,
    )


def drawn(cumulated: FloatArray, rng: np.random.Generator) -> NDArray[np.int64]:
    """One index from each row of cumulated probabilities."""
    chance = rng.random((len(cumulated), 1)) * cumulated[:, -1:]
    return np.asarray(np.minimum((cumulated <= chance).sum(axis=1), cumulated.shape[1] - 1))
