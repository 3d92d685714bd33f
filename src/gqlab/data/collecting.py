"""Collecting transitions from an environment."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gqlab.data.spaces import spaces_of
from gqlab.data.transitions import Transitions
from gqlab.encoders.actions import by_numbers, numbered_actions
from gqlab.policies import as_policy
from gqlab.support import checks
from gqlab.support.checks import FloatArray
from gqlab.support.files import one_line
from gqlab.support.progress import progress_bar

#: Steps between two moves of the progress bar.
SHOWN_EVERY = 1000

#: An observation as a row (1, size) ↦ an action, and its probability where it is known.
Choose = Callable[[FloatArray], tuple[int, float | None]]


def collect(
    env: Any, policy: Any = None, *, n_steps: int = 100_000, seed: int = 0, progress: bool | None = None
) -> Transitions:
    """Act in an environment and keep the transitions.

    Parameters
    ----------
    env : str or gymnasium.Env
        A name such as ``"CartPole-v1"``, or an environment, with discrete actions.
    policy : policy, optional
        A LinearQ, an Agent (without exploration), a function of observations (n, size) that gives probabilities
        (n, n_actions), or a FixedPolicy or a table where the observation is the state. The probability of what was done
        is kept beside each transition. A function may also give actions, whole numbers (n,): then none is known.
        Default: all actions alike.
    n_steps : int
        Transitions. The last one is marked as truncated, if the environment did not end it.
    seed : int
        Of the environment and of the draws. The same seed gives the same data.
    progress : bool, optional
        A progress bar on stderr. Default: where stderr is a terminal.

    Returns
    -------
    Transitions

    Examples
    --------
    >>> import gqlab as gq
    >>> data = gq.collect("CartPole-v1", n_steps=500, seed=1)
    >>> data, bool(data.to_chunk().probability[0] == 0.5)
    (Transitions(n_rows=500, n_actions=2, observation_size=4), True)
    """
    n_steps = checks.integer("n_steps", n_steps, least=1)
    seed = checks.integer("seed", seed, least=0, below=2**32)
    if progress is not None:
        checks.instance("progress", progress, bool, "True, False or None")
    checks.memory("n_steps", n_steps, n_steps * 16)
    own = isinstance(env, str)
    world = by_numbers(_made(env))
    try:
        n_actions, flat = spaces_of(world, "env")
        choose = _chooser(policy, n_actions, flat.size, seed, n_steps)
        arrays = _steps(world, choose, flat, n_steps, seed, progress)
    finally:
        if own:
            world.close()
    out = Transitions.from_arrays(**arrays, n_actions=n_actions)
    out.layout = None if flat.is_vector else flat
    out.actions = numbered_actions(world)
    out.description = f"collected: {getattr(getattr(world, 'spec', None), 'id', type(world).__name__)}"
    return out


def _made(env: Any) -> Any:
    """The environment that a name stands for, or the one given."""
    import gymnasium

    if isinstance(env, str):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of an old version: the error, if there is one, says the same
                return gymnasium.make(env)
        except Exception as error:  # Gymnasium's own, and whatever an environment raises
            raise ValueError(f"env is {env!r}: {one_line(error)[:300]}") from None
    if not isinstance(env, gymnasium.Env):
        raise ValueError(
            f"env is {checks.shown(env)}, expected the name of a Gymnasium environment, or one (not a vector of them)"
        )
    return env


def _chooser(policy: Any, n_actions: int, size: int, seed: int, n_steps: int) -> Choose:
    """What gives an action and its probability for an observation."""
    random = np.random.default_rng(seed)
    if policy is None:
        drawn = iter(random.integers(n_actions, size=n_steps).tolist())
        return lambda row: (next(drawn), 1 / n_actions)
    asked = as_policy("policy", policy, n_actions, size)

    def choose(row: FloatArray) -> tuple[int, float | None]:
        actions, p = asked.draw(row, random)
        return int(actions[0]), None if p is None else float(p[0])

    return choose


def _steps(
    world: Any,
    choose: Choose,
    flat: Any,
    n_steps: int,
    seed: int,
    progress: bool | None,
) -> dict[str, Any]:
    """What ``Transitions.from_arrays`` takes."""
    from gqlab.encoders.spaces import answer_of, reward_of

    single = getattr(world.observation_space, "dtype", None) == np.float32
    observations, following = np.empty((2, n_steps, flat.size), np.float32 if single else np.float64)
    actions, episodes = np.empty((2, n_steps), np.int64)
    rewards, probabilities = np.empty((2, n_steps))
    terminated, truncated = np.zeros((2, n_steps), bool)
    known, episode = True, 0
    observation, _ = answer_of("reset", world.reset(seed=seed))
    for t in _with_bar(n_steps, progress):
        _write(flat, observation, observations[t], t)
        action, probability = choose(observations[t : t + 1].astype(np.float64))
        known = known and probability is not None
        observation, reward, ended, cut, _ = answer_of("step", world.step(action))
        _write(flat, observation, following[t], t + 1)
        rewards[t] = reward_of(reward, t + 1)
        actions[t], probabilities[t], episodes[t] = action, probability or 1.0, episode
        terminated[t], truncated[t] = ended, (cut or t == n_steps - 1) and not ended
        if ended or cut:
            episode += 1
            observation, _ = answer_of("reset", world.reset())
    return {
        "observations": observations, "actions": actions, "rewards": rewards, "next_observations": following,
        "terminated": terminated, "truncated": truncated, "episodes": episodes,
        "probabilities": probabilities if known else None,
    }  # fmt: skip


def _write(flat: Any, observation: Any, out: Any, step: int) -> None:
    try:
        flat.write(observation, out)
    except ValueError as error:
        raise ValueError(f"env: after step {step}: {error}") from None


def _with_bar(n_steps: int, progress: bool | None) -> Iterator[int]:
    """The steps, with a progress bar where one is wanted."""
    with progress_bar(progress, total=n_steps, unit=" steps", unit_scale=True, delay=1.0) as bar:
        for t in range(n_steps):
            yield t
            if (t + 1) % SHOWN_EVERY == 0:
                bar.update(SHOWN_EVERY)
