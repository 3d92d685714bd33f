"""Rewards that are shifted by one row: those of the row before, or of the row after.

A reward belongs to a transition x_t = (s_t, a_t, s_{t+1}, end). So the share of r_t that its own row leaves
unexplained,

    u_0 = 1 − R²(r_t | x_t),    is compared with    u_{−1} = 1 − R²(r_t | x_{t−1}),    u_{+1} = 1 − R²(r_t | x_{t+1}).

In correct data nothing explains a reward better than its own row: noise is explained by no row, and what the model
cannot express does not become clear from a neighbour. In shifted data the neighbour explains the reward and its own
row does not. The alarm is raised where the own row leaves at least ``LEFT`` unexplained and a neighbour less than
``RATIO`` of that. R² is measured on rows that the fit has not seen: the model is fitted to one half of the rows and
judged on the other, both ways.

A shift is invisible if its result could be the row's own reward: one that is the same in every row, or depends on the
state alone. One such case is worth a note: every reward is the same except at terminations, where all are 0. That is
what a shift makes of a constant reward, and some environments are like that.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from gqlab.data.assemble import Chunk
from gqlab.data.findings import Finding
from gqlab.data.transitions import Transitions

#: How many rows are looked at, from the first on.
MOST = 20_000

#: Below so few there is no test.
FEWEST = 100

#: The least unexplained share that counts, and how much less a neighbour must leave.
#: Set on the environments that docs/data.md names, right and shifted.
LEFT, RATIO = 0.05, 0.6

#: Up to this many different observations each is a feature of its own; beyond, the features are polynomials.
STATES = 200

#: Numbers of an observation that enter products.
PRODUCTS = 16

#: Of the fit, in units of standardised features: enough to bear constant ones.
RIDGE = 1e-6


class Shifted:
    """The first rows, and whether they look shifted."""

    def __init__(self, data: Transitions) -> None:
        self.n_actions = data.n_actions
        self._chunks: list[Chunk] = []
        self._n = 0
        self._plain: set[float] = set()  # rewards where episodes go on: the least and the largest
        self._at_ends: set[float] = set()

    def add(self, chunk: Chunk) -> None:
        goes_on = ~(chunk.terminated | chunk.truncated)
        for kept, values in (
            (self._at_ends, chunk.rewards[chunk.terminated]),
            (self._plain, chunk.rewards[goes_on]),
        ):
            if len(kept) < 2 and len(values):  # more are not asked for
                kept |= {float(values.min()), float(values.max())}
        if self._n < MOST:
            self._chunks.append(_head(chunk, MOST - self._n))
            self._n += len(self._chunks[-1])

    def findings(self) -> Iterator[Finding]:
        name = "shifted rewards"
        if len(self._plain) == 1 and self._at_ends == {0.0} and self._plain != {0.0}:
            yield Finding(
                name, "note", None,
                f"Every reward is {next(iter(self._plain)):g}, and 0 where the episode terminates: either the "
                "environment is like that, or the rewards stand one row too early and the last is lost.",
            )  # fmt: skip
            return
        left = unexplained(self._chunks, self.n_actions)
        if left is None:
            yield Finding(name, "ok", None, "Too few rows, or rewards that do not vary: nothing to see.")
            return
        own = left[0]
        lag = min((-1, 1), key=left.__getitem__)
        share = {"own row": left[0], "row before": left[-1], "row after": left[1]}
        if own < LEFT or left[lag] > RATIO * own:
            yield Finding(
                name,
                "ok",
                share,
                "The share of the rewards' variance that a row leaves unexplained: no neighbour does better.",
            )
            return
        where, remedy = ("late", "r[t] = r[t+1]") if lag < 0 else ("early", "r[t] = r[t−1]")
        yield Finding(
            name, "problem", share,
            "The share of the rewards' variance that a row leaves unexplained. The "
            f"{'row before' if lag < 0 else 'row after'} explains a reward better than its own: the rewards stand "
            f"one row too {where}. What is learned from them is wrong. Move them within each episode: {remedy}.",
        )  # fmt: skip


def unexplained(chunks: list[Chunk], n_actions: int) -> dict[int, float] | None:
    """u_0, u_{−1} and u_{+1} by lag, or None where there is nothing to explain."""
    rewards = np.concatenate([chunk.rewards for chunk in chunks])
    if len(rewards) < FEWEST or rewards.min() == rewards.max():
        return None
    x = _features(chunks, n_actions)
    r = (rewards - rewards.mean()) / rewards.std()
    n = len(r)
    rows = np.arange(1, n - 1)  # those with two neighbours: all three fits explain the same rewards
    return {lag: _left(x[rows + lag], r[rows]) for lag in (0, -1, 1)}


def _left(x: NDArray[np.float64], r: NDArray[np.float64]) -> float:
    """1 − R² of a ridge regression, each half of the rows judged by the fit to the other; 1: it explains nothing."""
    half = len(r) // 2
    parts = (slice(None, half), slice(half, None))
    errors = 0.0
    for fit, judged in (parts, parts[::-1]):
        mean = x[fit].mean(axis=0)
        z = x[fit] - mean
        gram = z.T @ z + RIDGE * len(z) * np.eye(x.shape[1])
        weights = np.linalg.solve(gram, z.T @ (r[fit] - r[fit].mean()))
        errors += float(((r[judged] - r[fit].mean() - (x[judged] - mean) @ weights) ** 2).sum())
    return min(errors / float(((r - r.mean()) ** 2).sum()), 1.0)


def _features(chunks: list[Chunk], n_actions: int) -> NDArray[np.float64]:
    """What a row says about its own reward: state, action, next state, and whether the episode ends."""
    s = np.concatenate([chunk.observations for chunk in chunks]).astype(np.float64)
    following = np.concatenate([chunk.next_observations for chunk in chunks]).astype(np.float64)
    actions = np.concatenate([chunk.actions for chunk in chunks])
    terminated = np.concatenate([chunk.terminated for chunk in chunks])
    episode = np.concatenate([chunk.episode for chunk in chunks])
    ends = np.append(np.diff(episode) != 0, False) | terminated
    one_hot = (actions[:, None] == np.arange(min(n_actions, STATES))).astype(np.float64)
    _, states = np.unique(np.concatenate([s, following]), axis=0, return_inverse=True)
    states = states.reshape(-1)
    if states.max() < STATES:
        table = np.eye(int(states.max()) + 1)
        before, after = table[states[: len(s)]], table[states[len(s) :]]
        return np.hstack([before, after, after * terminated[:, None], one_hot, terminated[:, None], ends[:, None]])
    both = _standardised(np.hstack([s, following]))
    low = both[:, :PRODUCTS] if both.shape[1] > 2 * PRODUCTS else both
    products = [low[:, [i]] * low[:, i:] for i in range(low.shape[1])]
    chosen = [low * one_hot[:, [a]] for a in range(one_hot.shape[1])] if low.shape[1] * n_actions <= STATES else []
    flags = [both * terminated[:, None], one_hot, terminated[:, None], ends[:, None]]
    return np.hstack([both, *products, *chosen, *flags])


def _standardised(x: NDArray[np.float64]) -> NDArray[np.float64]:
    deviation = x.std(axis=0)
    return (x - x.mean(axis=0)) / np.where(deviation > 0, deviation, 1)


def _head(chunk: Chunk, n: int) -> Chunk:
    """The first rows of a chunk, as copies, so that the rest can be freed."""
    return Chunk(
        chunk.observations[:n].copy(), chunk.actions[:n], chunk.rewards[:n], chunk.next_observations[:n].copy(),
        chunk.terminated[:n], chunk.truncated[:n], chunk.episode[:n], None, chunk.first_row,
    )  # fmt: skip
