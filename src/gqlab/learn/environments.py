"""Environments: made by their names, checked, and played in."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gqlab.encoders.spaces import Flattener, discrete_actions
from gqlab.support import checks
from gqlab.support.files import one_line

if TYPE_CHECKING:
    from gqlab.learn.linear_q import Evaluation, LinearQ


def make_env(env: Any, **more: Any) -> Any:
    """An environment: a Gymnasium id, made with ``more`` keywords, or one that is there, single or vectorised."""
    try:
        import gymnasium
    except ImportError:
        raise ValueError("env: Gymnasium is missing; pip install gymnasium") from None
    if isinstance(env, str):
        try:
            return gymnasium.make(env, **more)
        except gymnasium.error.Error as error:
            raise ValueError(f"env is {env!r}: {one_line(error)}") from None
    if not isinstance(env, gymnasium.Env | gymnasium.vector.VectorEnv):
        raise ValueError(f"env is {checks.shown(env)}, expected an id or a Gymnasium environment")
    return env


def recipe_of(env: Any) -> dict[str, Any] | None:
    """The id and the keywords by which an environment like this one is made; None where they do not tell all."""
    spec = getattr(env, "spec", None)
    if is_vector(env) or spec is None or spec.additional_wrappers:
        return None
    try:
        kept = json.loads(json.dumps(spec.kwargs))
    except TypeError:  # a keyword that JSON cannot write
        return None
    return {"id": spec.id, "max_episode_steps": spec.max_episode_steps, **kept}


def env_of(recipe: Any, **more: Any) -> Any:
    """The environment of a recipe, which may come from a file: an id that would import a module is refused."""
    import gymnasium

    if not isinstance(recipe, dict) or not isinstance(recipe.get("id"), str):
        raise ValueError(f"env is missing: {checks.shown(recipe)} does not say how to make one")
    if ":" in recipe["id"]:
        raise ValueError(f"env is missing: {recipe['id']!r} would import a module, which no file may ask for")
    try:
        return gymnasium.make(**{**recipe, **more})
    except (gymnasium.error.Error, TypeError) as error:
        raise ValueError(f"env is missing: {recipe!r} cannot be made: {one_line(error)}") from None


def is_vector(env: Any) -> bool:
    """Whether it is a vector environment."""
    import gymnasium

    return isinstance(env, gymnasium.vector.VectorEnv)


def single_spaces(env: Any) -> tuple[Flattener, int]:
    """How one observation becomes a vector, and the number of actions."""
    if is_vector(env):
        return Flattener(env.single_observation_space), discrete_actions(env.single_action_space)
    return Flattener(env.observation_space), discrete_actions(env.action_space)


#: The seed of evaluations where none is given: far from those that agents learn with, so that the starts are others.
EVALUATION = 1_000_000


def play(
    model: LinearQ,
    env: Any,
    n_episodes: int,
    deterministic: bool,
    seed: int,
    look: Callable[[], None] = lambda: None,
) -> Evaluation:
    """The returns of a model's policy; ``look`` is called in every state."""
    from gqlab.learn.linear_q import Evaluation

    made = make_env(env)
    if is_vector(made):
        raise ValueError("env is a vector environment: evaluate in a single one")
    flat, n_actions = single_spaces(made)
    if (flat.size, n_actions) != (model.encoder.n_features_in_, model.n_actions):
        raise ValueError(
            f"env has observations of {flat.size} numbers and {n_actions} actions, "
            f"the model was made for {model.encoder.n_features_in_} and {model.n_actions}"
        )
    returns, lengths = np.zeros(n_episodes), np.zeros(n_episodes, dtype=np.int64)
    chooser, shown = Chooser(model), np.zeros(flat.size)
    random = np.random.default_rng([seed, 1])
    try:
        for k in range(n_episodes):
            observation, _ = made.reset(seed=int(np.random.SeedSequence([seed, k]).generate_state(1)[0]))
            over = False
            look()
            while not over:
                flat.write(observation, shown)
                q = chooser.q(shown)
                action = int(q.argmax()) if deterministic else int(_drawn(model.target.policy(q[None])[0], random))
                observation, reward, terminated, truncated, _ = made.step(action)
                returns[k] += float(reward)
                lengths[k] += 1
                over = terminated or truncated
                look()
    finally:
        if made is not env:
            made.close()
    return Evaluation(float(returns.mean()), float(returns.std()), returns, lengths)


def _drawn(p: Any, random: np.random.Generator) -> int:
    return min(int(np.searchsorted(np.cumsum(p), random.random(), side="right")), len(p) - 1)


class Chooser:
    """The action values of one observation at a time, without checks."""

    def __init__(self, model: LinearQ) -> None:
        self._encoder, self._theta = model.encoder, model.theta
        self._binary = model.encoder.kind == "binary"

    def q(self, observation: Any) -> Any:
        """(n_actions,)"""
        encoded = self._encoder.encode(observation)
        if self._binary:
            return self._theta[:, encoded].sum(axis=1) * self._encoder.value_
        return self._theta @ encoded
