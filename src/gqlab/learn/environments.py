"""Environments: made by their names, and checked."""

from __future__ import annotations

import json
from typing import Any

from gqlab.encoders.spaces import Flattener, discrete_actions
from gqlab.support import checks
from gqlab.support.files import one_line


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


#: Steps of an episode in which a policy is checked, where the environment sets no limit: it may go in circles.
MOST_STEPS = 1000


def limited_env(env: str) -> Any:
    """The environment of an id, whose episodes all end."""
    import gymnasium

    spec = gymnasium.registry.get(env)
    unlimited = spec is not None and spec.max_episode_steps is None
    return make_env(env, **({"max_episode_steps": MOST_STEPS} if unlimited else {}))


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
