"""Logs of finite problems, whose true values are known."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gqlab.data.transitions import Transitions
from gqlab.judge.bound import table_of
from gqlab.mdp.finite import FiniteMDP
from gqlab.support import checks
from gqlab.support.checks import FloatArray


def sampled_log(
    mdp: FiniteMDP, behavior: ArrayLike, n_rows: int, horizon: int, seed: int = 0, initial: ArrayLike | None = None
) -> Transitions:
    """A log of a finite problem: episodes under the behaviour until there are ``n_rows`` rows, the last cut short.

    The observation is the state's number, and the behaviour's probabilities are logged.

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> from gqlab.judge.simulated import sampled_log
    >>> mdp = gq.garnet(5, 3, 2, discount=0.9, seed=0)
    >>> sampled_log(mdp, np.full((5, 3), 1 / 3), n_rows=100, horizon=20)
    Transitions(n_rows=100, n_actions=3, observation_size=1)
    """
    b = table_of("behavior", behavior, mdp)
    n, most = checks.integer("n_rows", n_rows, least=1), checks.integer("horizon", horizon, least=1)
    start = mdp.start if initial is None else checks.array("initial", initial, (mdp.n_states,))
    random = np.random.default_rng(seed)
    rows: list[NDArray[Any]] = []
    made = 0
    while made < n:
        episodes = -(-(n - made) // most)
        rows += _episodes(mdp, b, start, episodes, most, random)
        made = sum(len(part) for part in rows)
    table = np.concatenate(rows)[:n]
    s, a, s_next, reward, probability, episode = table.T
    ended = mdp.terminal[s_next.astype(np.intp)]
    last = np.append(episode[1:] != episode[:-1], True)
    return Transitions.from_arrays(
        observations=s, actions=a.astype(np.int64), rewards=reward, next_observations=s_next, terminated=ended,
        truncated=last & ~ended, episodes=episode, probabilities=probability, n_actions=mdp.n_actions,
    )  # fmt: skip


def _episodes(
    mdp: FiniteMDP, b: FloatArray, start: FloatArray, n: int, horizon: int, random: np.random.Generator
) -> list[NDArray[Any]]:
    """So many episodes, walked side by side, as rows (s, a, s', r, p, a number of its own) one behind the other."""
    A, arcs = mdp.n_actions, mdp.arcs
    actions = np.cumsum(b, axis=1)
    cumulated = np.cumsum(arcs.probability)
    before = np.append(0.0, cumulated)[arcs.first[:-1]]
    s = np.searchsorted(np.cumsum(start), random.random(n) * (1 - 1e-12), side="right")
    number = random.integers(2**52, size=n).astype(np.float64)
    alive, steps = np.arange(n), []
    for _ in range(horizon):
        a = (actions[s] <= random.random(len(s))[:, None] * actions[s, -1:]).sum(axis=1)
        row = s * A + a
        k = np.searchsorted(cumulated, before[row] + random.random(len(s)) * (1 - 1e-9), side="right")
        k = np.clip(k, arcs.first[row], arcs.first[row + 1] - 1)
        s_next = arcs.s_next[k]
        steps.append((alive, np.stack([s, a, s_next, arcs.reward[k], b[s, a], number[alive]], axis=1)))
        goes_on = ~mdp.terminal[s_next]
        alive, s = alive[goes_on], s_next[goes_on]
        if not len(alive):
            break
    which = np.concatenate([who for who, _ in steps])
    return [np.concatenate([rows for _, rows in steps])[np.argsort(which, kind="stable")]]
