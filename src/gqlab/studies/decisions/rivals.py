"""Estimators that are in use elsewhere, in NumPy, as their documentation has them, on a log of a finite problem.

* **Fitted Q evaluation** at its fixed point, without shrinking: the mean of V(s₀), and a bootstrap over V(s₀) alone for
  its interval, as SCOPE-RL's direct method has it.
* **Weighted per-decision importance sampling**: weights of the first t actions, divided by their mean over episodes at
  each t; episodes that were cut off count as ended. The interval is a bootstrap over what episodes add.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gqlab.data.transitions import Transitions
from gqlab.support.checks import FloatArray

#: Resamples of a bootstrap, and its confidence.
RESAMPLES, CONFIDENCE = 200, 0.95


class RivalEstimate(NamedTuple):
    """An estimate with its interval."""

    estimate: float
    low: float
    high: float


def bootstrap(values: FloatArray, seed: list[int]) -> RivalEstimate:
    """The mean of independent values, with the percentiles of resampled means."""
    drawn = np.random.default_rng(seed).integers(len(values), size=(RESAMPLES, len(values)))
    low, high = np.quantile(values[drawn].mean(axis=1), [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return RivalEstimate(float(values.mean()), float(low), float(high))


def fitted_q_evaluation(data: Transitions, policy: FloatArray, gamma: float, seed: list[int]) -> RivalEstimate:
    """Of a policy (S, A) on a log whose observations are the numbers of states."""
    log = data.to_chunk()
    S, A = policy.shape
    s, s_next = (np.asarray(o)[:, 0].astype(int) for o in (log.observations, log.next_observations))
    row = s * A + np.asarray(log.actions)
    n = np.maximum(np.bincount(row, minlength=S * A), 1)
    reward = np.bincount(row, np.asarray(log.rewards), minlength=S * A) / n
    ahead = np.zeros((S * A, S))
    np.add.at(ahead, (row, s_next), np.where(log.terminated, 0.0, gamma))
    P = (ahead / n[:, None])[:, :, None] * policy[None]  # (S·A, S, A)
    Q = np.linalg.solve(np.eye(S * A) - P.reshape(S * A, S * A), reward)
    V = (policy * Q.reshape(S, A)).sum(axis=1)
    first = np.append(True, np.diff(log.episode) != 0)
    return bootstrap(V[s[first]], seed)


def weighted_importance_sampling(data: Transitions, policy: FloatArray, gamma: float, seed: list[int]) -> RivalEstimate:
    """Per decision, self-normalised; the log must know the probabilities of its actions."""
    log = data.to_chunk()
    s, a = np.asarray(log.observations)[:, 0].astype(int), np.asarray(log.actions)
    number = np.cumsum(np.append(False, np.diff(log.episode) != 0))
    time = np.arange(len(s)) - np.flatnonzero(np.append(True, np.diff(number) > 0))[number]
    m, T = number[-1] + 1, time.max() + 1
    ratio, reward = np.ones((m, T)), np.zeros((m, T))
    assert log.probability is not None
    ratio[number, time] = policy[s, a] / log.probability
    reward[number, time] = gamma**time * np.asarray(log.rewards)
    with np.errstate(over="ignore"):
        weight = np.cumprod(ratio, axis=1)
    mean = weight.mean(axis=0)
    return bootstrap((np.where(mean > 0, weight / np.where(mean > 0, mean, 1.0), 0.0) * reward).sum(axis=1), seed)
