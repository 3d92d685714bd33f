"""Policies at work in an environment: episodes are played, and their returns are what a policy is worth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gqlab.encoders.spaces import answer_of, reward_of
from gqlab.learn.environments import is_vector, make_env, single_spaces
from gqlab.policies import Policy, as_policy
from gqlab.support import checks
from gqlab.support.checks import FloatArray

#: The seed of evaluations where none is given: far from those that agents learn with, so that the starts are others.
EVALUATION = 1_000_000


class Evaluation(NamedTuple):
    """The episodes of a policy: their returns, not discounted, with mean and standard deviation."""

    mean: float
    std: float
    returns: FloatArray  # (n_episodes,)
    lengths: NDArray[np.int64]  # (n_episodes,)


def evaluate(policy: Any, env: Any, n_episodes: int = 100, *, seed: int = EVALUATION) -> Evaluation:
    """Returns of ``n_episodes`` episodes of any policy, each with a seed of its own; actions are drawn.

    Parameters
    ----------
    policy : policy
        A LinearQ, an Agent (without exploration), a function of observations (n, size) that gives probabilities
        (n, n_actions) or actions (n,), or a FixedPolicy or a table where the observation is the state.
    env : str or gymnasium.Env
    n_episodes : int
    seed : int
        Of the first states, and of the draws.

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> right = np.tile([0.0, 0.0, 1.0, 0.0], (16, 1))
    >>> gq.evaluate(right, "FrozenLake-v1", 10).mean
    0.0
    >>> gq.evaluate(lambda rows: (rows[:, 2] > 0).astype(int), "CartPole-v1", 5).mean
    43.6
    """
    return play(policy, env, n_episodes, deterministic=False, seed=seed)


def play(
    policy: Any,
    env: Any,
    n_episodes: int,
    *,
    deterministic: bool,
    seed: int,
    look: Callable[[], None] = lambda: None,
) -> Evaluation:
    """The returns of a policy: of actions that are drawn, or of its best; ``look`` is called in every state."""
    if not isinstance(env, str) and np.isscalar(env):
        raise ValueError(
            f"env is {checks.shown(env)}, expected an environment: it comes first, evaluate(env, n_episodes)"
        )
    n = checks.integer("n_episodes", n_episodes, least=1)
    seed = checks.integer("seed", seed, least=0, below=2**63)
    made = make_env(env)
    try:
        return _played(_fitting(policy, made), made, n, deterministic, seed, look)
    finally:
        if made is not env:
            made.close()


def _fitting(policy: Any, env: Any) -> Policy:
    """The policy, which fits the environment."""
    if is_vector(env):
        raise ValueError("env is a vector environment: evaluate in a single one")
    flat, n_actions = single_spaces(env)
    if isinstance(policy, Policy) and (policy.observation_size or flat.size, policy.n_actions) != (
        flat.size,
        n_actions,
    ):
        raise ValueError(
            f"env has observations of {flat.size} numbers and {n_actions} actions, "
            f"the policy is for {policy.observation_size} and {policy.n_actions}"
        )
    return as_policy("policy", policy, n_actions, flat.size)


def _played(
    policy: Policy, env: Any, n_episodes: int, deterministic: bool, seed: int, look: Callable[[], None]
) -> Evaluation:
    flat, _ = single_spaces(env)
    returns, lengths = np.zeros(n_episodes), np.zeros(n_episodes, dtype=np.int64)
    random = np.random.default_rng([seed, 1])
    for k in range(n_episodes):
        observation, _ = answer_of("reset", env.reset(seed=int(np.random.SeedSequence([seed, k]).generate_state(1)[0])))
        over = False
        look()
        while not over:
            rows = np.empty((1, flat.size))
            try:
                flat.write(observation, rows[0])
            except ValueError as error:
                raise ValueError(f"env: after step {lengths[k]} of episode {k}: {error}") from None
            actions = policy.best(rows) if deterministic else policy.draw(rows, random)[0]
            observation, reward, terminated, truncated, _ = answer_of("step", env.step(int(actions[0])))
            lengths[k] += 1
            returns[k] += reward_of(reward, int(lengths[k]))
            over = terminated or truncated
            look()
    return Evaluation(float(returns.mean()), float(returns.std()), returns, lengths)
