"""Pictures of a model: a grid world where its environment is one, else values and actions over one or two numbers."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gqlab.encoders.spaces import Flattener
from gqlab.learn.environments import env_of
from gqlab.support import checks
from gqlab.support.checks import FloatArray

if TYPE_CHECKING:
    from gqlab.learn.linear_q import LinearQ

#: Points along each side of a picture.
POINTS = 120

#: The steps of its own policy in which a model is watched, for the medians of the other numbers.
WATCHED = 1000


def plot_model(model: LinearQ, over: Any, at: Mapping[Any, float] | None, bounds: Any, ax: Any) -> Any:
    """The picture that is asked for."""
    recipe = model.metadata.get("env")
    if over is None and bounds is None and model.observation_size == 1 and ax_is_single(ax):
        world = _grid_world(model, recipe)
        if world is not None:
            return _draw_world(*world, ax)
    names = names_of(model)
    chosen = _dimensions(over, names)
    here = _typical(model, recipe, names)
    for key, value in (at or {}).items():
        here[_dimension("at", key, names)] = checks.number(f"at[{key!r}]", value)
    low, high = _bounds(model, bounds, chosen)
    sides = [np.linspace(a, b, POINTS) for a, b in zip(low, high, strict=True)]
    rows = np.tile(here, (POINTS ** len(chosen), 1))
    for i, column in zip(chosen, np.meshgrid(*sides), strict=True):
        rows[:, i] = column.ravel()
    q = model.q(rows)
    return _drawn(model, [names[i] for i in chosen], sides, q, ax)


def ax_is_single(ax: Any) -> bool:
    """Whether there is one place to draw in, or none yet."""
    return ax is None or np.ndim(ax) == 0


def _drawn(model: LinearQ, names: list[str], sides: list[FloatArray], q: FloatArray, ax: Any) -> Any:
    from gqlab.plots.learned import draw_line, draw_surface

    actions = action_names(model)
    if len(sides) == 1:
        return draw_line(sides[0], q, names[0], actions, ax)
    if ax is not None and np.size(ax) != 2:
        raise ValueError("ax is one Axes, expected two: for the values and for the actions")
    values = q.reshape(POINTS, POINTS, -1)
    return draw_surface((sides[0], sides[1]), values, (names[0], names[1]), actions, ax)


def action_names(model: LinearQ) -> list[str]:
    """What the actions are called."""
    if model.action_labels is not None:
        return [str(label) for label in model.action_labels]
    if model._actions is not None:
        return list(model._actions.names)
    return [str(a) for a in range(model.n_actions)]


def names_of(model: LinearQ) -> list[str]:
    """What the numbers of an observation are called."""
    known = model.space.names if model.space is not None else None
    return list(known or model.schema.names(model.observation_size))


def _dimensions(over: Any, names: list[str]) -> list[int]:
    """One or two numbers of an observation; by default the first."""
    given: Sequence[Any] = range(min(2, len(names))) if over is None else [over] if np.ndim(over) == 0 else list(over)
    chosen = [_dimension("over", key, names) for key in given]
    if not 1 <= len(chosen) <= 2 or len(set(chosen)) < len(chosen):
        raise ValueError(f"over is {checks.shown(over)}, expected one or two different numbers of an observation")
    return chosen


def _dimension(name: str, key: Any, names: list[str]) -> int:
    if isinstance(key, str):
        if key not in names:
            raise ValueError(f"{name} is {key!r}, expected one of {', '.join(names)}")
        return names.index(key)
    return checks.integer(name, key, least=0, below=len(names))


def _bounds(model: LinearQ, bounds: Any, chosen: list[int]) -> tuple[FloatArray, FloatArray]:
    """Where a picture begins and ends: as given, or where the encoder's bounds are."""
    if bounds is not None:
        given = (
            checks.array("bounds", bounds, (None, 2))
            if np.ndim(bounds) == 2
            else checks.array("bounds", [bounds], (1, 2))
        )
        if len(given) != len(chosen) or (given[:, 0] >= given[:, 1]).any():
            raise ValueError(f"bounds is {checks.shown(bounds)}, expected (low, high) of each of {len(chosen)} numbers")
        return given[:, 0], given[:, 1]
    low, high = getattr(model.encoder, "low_", None), getattr(model.encoder, "high_", None)
    if low is None or high is None:
        values = getattr(model.encoder, "values_", None)
        if values is None:
            raise ValueError("bounds is missing: the encoder has none; expected (low, high) of each number")
        low, high = (np.array([each[k] for each in values]) for k in (0, -1))
    if not (low[chosen] < high[chosen]).all():
        raise ValueError("bounds is missing: the encoder has none for these numbers; expected (low, high) of each")
    return low[chosen], high[chosen]


def _typical(model: LinearQ, recipe: Any, names: list[str]) -> FloatArray:
    """The median of each number in what the model's own policy sees, or in its data; the middle of its bounds else."""
    known = model.metadata.get("typical")
    if known is not None:
        return checks.array("typical", known, (len(names),))
    if isinstance(recipe, dict):
        with contextlib.suppress(ValueError, ImportError):
            return np.median(_watched(model, recipe), axis=0)
    low, high = getattr(model.encoder, "low_", None), getattr(model.encoder, "high_", None)
    return np.zeros(len(names)) if low is None or high is None else (low + high) / 2


def _watched(model: LinearQ, recipe: dict[str, Any]) -> FloatArray:
    """The observations of some steps of the greedy policy."""
    rows: list[FloatArray] = []
    with contextlib.closing(env_of(recipe)) as env:
        flat = Flattener(env.observation_space)
        over, episode = True, 0
        while len(rows) < WATCHED:
            if over:
                observation, _ = env.reset(seed=episode)
                episode += 1
            rows.append(flat.flatten(observation))
            observation, _, terminated, truncated, _ = env.step(int(model.best(rows[-1][None])[0]))
            over = terminated or truncated
    return np.array(rows)


def _grid_world(model: LinearQ, recipe: Any) -> tuple[Any, FloatArray] | None:
    """The environment's table and the values of all its states, where they are the cells of a grid."""
    from gqlab.learn.environments import WRAPPERS
    from gqlab.mdp.finite import FiniteMDP

    if not isinstance(recipe, dict) or ":" in str(recipe.get("id", ":")):
        return None
    keywords = {k: v for k, v in recipe.items() if k not in ("id", "max_episode_steps", WRAPPERS)}
    try:
        mdp = FiniteMDP.from_gymnasium(recipe["id"], **keywords)
        q = model.q(mdp.state_ids[:, None].astype(float))
    except (ValueError, TypeError):
        return None
    return None if mdp.grid_shape is None else (mdp, q)


def _draw_world(mdp: Any, q: FloatArray, ax: Any) -> Any:
    from gqlab.plots.worlds import PicturedWorld, world_plot

    policy = np.eye(mdp.n_actions)[q.argmax(axis=1)]
    world = PicturedWorld(mdp.transition, mdp.reward, mdp.terminal, mdp.initial, mdp.state_ids, q.max(axis=1), policy)
    return world_plot(world, mdp.grid_shape, ax)
