"""Off-policy evaluation without a model: weighted importance sampling, one step at a time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gqlab.data.transitions import Transitions
from gqlab.policies import as_policy
from gqlab.support import checks


class ImportanceSampling(NamedTuple):
    """What importance sampling says of a policy."""

    value: float  # of the policy, from where the episodes begin
    effective_episodes: float  # (Σ w)² / Σ w², of the weights of whole episodes
    n_episodes: int


def importance_sampling(data: Transitions, policy: Any, *, discount: float = 0.99) -> ImportanceSampling:
    """The value of a policy from logged episodes, by weighted importance sampling step by step.

        V = Σ_t γ^t Σ_i w_{i,t} r_{i,t} / Σ_i w_{i,t},        w_{i,t} = Π_{u ≤ t} π(a_u|s_u) / p_u

    The sums at time t go over all episodes: one that is over keeps its last weight, and a reward of 0. An episode that
    was cut off counts as if it ended there, so the value is too small in size where the rest would matter.

    Parameters
    ----------
    data : Transitions
        With the behaviour's probabilities.
    policy : policy
        A LinearQ, an Agent, a function of observations (n, size) that gives probabilities (n, n_actions), or a
        FixedPolicy or a table where the observation is the state.
    discount : float

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> data = gq.collect("CartPole-v1", n_steps=2000, seed=0)
    >>> uniform = gq.importance_sampling(data, lambda observations: np.full((len(observations), 2), 0.5), discount=0.9)
    >>> bool(abs(uniform.effective_episodes - uniform.n_episodes) < 1e-9)  # the policy that collected them
    True
    """
    checks.instance("data", data, Transitions, "a gqlab.Transitions")
    asked = as_policy("policy", policy, data.n_actions, data.observation_size)
    gamma = checks.number("discount", discount, least=0, most=1)
    chunk = data.to_chunk()
    if chunk.probability is None:
        raise ValueError("data have no behaviour probabilities: importance sampling needs them")
    pi = asked.probabilities(np.asarray(chunk.observations, dtype=np.float64))
    with np.errstate(divide="ignore"):  # log 0: the policy never does that
        log_ratio = np.log(pi[np.arange(len(pi)), chunk.actions]) - np.log(chunk.probability)
    starts = np.flatnonzero(np.append(True, np.diff(chunk.episode) != 0))
    lengths = np.diff(np.append(starts, len(pi)))
    order = np.argsort(-lengths, kind="stable")
    starts, lengths = starts[order], lengths[order]
    # Only proportions of weights count. Products of thousands of ratios leave the finite numbers, their logs do not.
    log_weight, weight, value = np.zeros(len(starts)), np.ones(len(starts)), 0.0
    for t in range(int(lengths.max())):
        alive = int(np.searchsorted(-lengths, -t))  # the episodes that are longer than t
        rows = starts[:alive] + t
        log_weight[:alive] += log_ratio[rows]
        if log_weight.max() == -np.inf:  # the policy does nothing of what was done from here on
            weight[:] = 0.0
            break
        weight = np.exp(log_weight - log_weight.max())
        value += gamma**t * float(weight[:alive] @ chunk.rewards[rows]) / float(weight.sum())
    squares = float((weight**2).sum())
    return ImportanceSampling(value, float(weight.sum()) ** 2 / squares if squares > 0 else 0.0, len(starts))
