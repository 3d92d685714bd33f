"""Environments: made by their names, and checked."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gqlab.encoders.actions import by_numbers, discrete_actions
from gqlab.encoders.spaces import Flattener
from gqlab.support import checks
from gqlab.support.files import one_line


def make_env(env: Any, **more: Any) -> Any:
    """An environment: a Gymnasium id, made with ``more`` keywords, or one that is there, single or vectorised.

    Its actions are 0, 1, …: where they were others, their numbers.
    """
    try:
        import gymnasium
    except ImportError:
        raise ValueError("env: Gymnasium is missing; pip install gymnasium") from None
    if isinstance(env, str):
        try:
            return by_numbers(gymnasium.make(env, **more))
        except (gymnasium.error.Error, ModuleNotFoundError) as error:  # an id may name a module to import
            raise ValueError(f"env is {env!r}: {one_line(error)}") from None
        except (TypeError, ValueError, KeyError) as error:
            if not more:
                raise
            given = ", ".join(f"{name}={value!r}" for name, value in more.items())
            raise ValueError(f"env is {env!r} with {given}: {one_line(error)}") from None
    if not isinstance(env, gymnasium.Env | gymnasium.vector.VectorEnv):
        raise ValueError(f"env is {checks.shown(env)}, expected an id or a Gymnasium environment")
    return by_numbers(env)


#: Steps of an episode in which a policy is checked, where the environment sets no limit: it may go in circles.
MOST_STEPS = 1000

#: The key of a recipe that lists wrappers: no keyword can be called so.
WRAPPERS = "gymnasium.wrappers"

#: A wrapper of Gymnasium's by its name, and its keywords.
Wrapper = tuple[str, Mapping[str, Any]]


@dataclass(frozen=True)
class EnvPlan:
    """An environment by its id, with keywords and with wrappers of Gymnasium's around it, the innermost first."""

    id: str
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    wrappers: tuple[Wrapper, ...] = ()

    def make(self, *, limited: bool = False) -> Any:
        """The environment; with ``limited`` one whose episodes all end."""
        import gymnasium

        made = make_env(self.id, **self.kwargs)  # first: the id may name a module that registers it
        if limited and made.spec is not None and made.spec.max_episode_steps is None:
            made = gymnasium.wrappers.TimeLimit(made, MOST_STEPS)
        return by_numbers(wrapped(made, self.wrappers))

    @property
    def threshold(self) -> float | None:
        """The mean return from which on Gymnasium counts the environment as solved."""
        import gymnasium

        spec = gymnasium.registry.get(self.id.rpartition(":")[2])
        return None if spec is None or spec.reward_threshold is None else float(spec.reward_threshold)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {"kwargs": dict(self.kwargs), "wrappers": [[name, dict(kwargs)] for name, kwargs in self.wrappers]}


def limited_env(env: str) -> Any:
    """The environment of an id, whose episodes all end."""
    return EnvPlan(env).make(limited=True)


def wrapped(env: Any, wrappers: Iterable[Wrapper]) -> Any:
    """The environment in wrappers of ``gymnasium.wrappers``, by their names."""
    import gymnasium

    for name, kwargs in wrappers:
        kind = getattr(gymnasium.wrappers, name, None) if isinstance(name, str) and name.isidentifier() else None
        if not (isinstance(kind, type) and issubclass(kind, gymnasium.Wrapper)):
            raise ValueError(f"wrappers: gymnasium.wrappers has no {checks.shown(name)}")
        try:
            env = kind(env, **kwargs)
        except (TypeError, ValueError, AssertionError) as error:
            raise ValueError(f"wrappers: {name}: {one_line(error) or type(error).__name__}") from None
    return env


def recipe_of(env: Any) -> dict[str, Any] | None:
    """The id, the keywords and the wrappers by which an environment like this one is made; None where they do not tell
    all.
    """
    spec = getattr(env, "spec", None)
    if is_vector(env) or spec is None:
        return None
    around = [each for each in spec.additional_wrappers if not each.entry_point.startswith("gqlab.")]
    if any(not each.entry_point.startswith(f"{WRAPPERS}.") or each.kwargs is None for each in around):
        return None
    more = {WRAPPERS: [[each.name, each.kwargs] for each in around]} if around else {}
    try:
        kept = json.loads(json.dumps({**spec.kwargs, **more}))
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
    arguments = {name: value for name, value in {**recipe, **more}.items() if name != WRAPPERS}
    try:
        wrappers = [(name, dict(kwargs)) for name, kwargs in recipe.get(WRAPPERS, [])]
        return by_numbers(wrapped(gymnasium.make(**arguments), wrappers))
    except (gymnasium.error.Error, TypeError, ValueError) as error:
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
