"""An encoder and an algorithm for an environment that nobody has chosen any for.

Discrete observations get a table. Others get tiles over each number and over each pair of numbers: they are local and
cheap, and hold what two numbers do together. Bounds are those of the space; where it has none, the range of a
thousand random steps, and half as much again on either side. The algorithm is Sarsa(λ) with the step
size of the presets, or SAGA over what is kept where an agent replays: docs/learning.md has the tables.
"""

from __future__ import annotations

import itertools
import logging
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from gqlab.algorithms import Algorithm, FittedQ, SAGAQLearning, Sarsa
from gqlab.encoders.bounds import UNBOUNDED
from gqlab.encoders.foreign import Foreign
from gqlab.encoders.one_hot import OneHot
from gqlab.encoders.registry import as_encoder, own_copy
from gqlab.encoders.spaces import Flattener
from gqlab.encoders.tiles import TileCoder
from gqlab.learn.agent.replay import Refit, Replay
from gqlab.learn.environments import is_vector
from gqlab.support.checks import FloatArray

logger = logging.getLogger("gqlab")

#: The steps that a space without bounds is looked at.
RANDOM_STEPS = 1000

#: What is added to the range that they have shown, on either side, as a share of it.
MARGIN = 0.5

#: The largest table of discrete observations; more numbers than this have no pairs, or only those that are neighbours.
MOST_CELLS, MOST_PAIRED, MOST_NUMBERS = 20_000, 10, 100


def algorithm_for(replay: Replay | Refit | None) -> Algorithm:
    """The algorithm that the tables recommend."""
    if replay is None:
        return Sarsa(0.25, trace=0.9)
    return FittedQ() if isinstance(replay, Refit) else SAGAQLearning(0.1)


def encoder_for(env: Any, flat: Flattener, seed: int) -> tuple[Any, str | None]:
    """An encoder for an environment, and what a user should know of it."""
    space = env.single_observation_space if is_vector(env) else env.observation_space
    if hasattr(space, "n") and hasattr(space, "start"):
        return OneHot(), None
    if flat.size > MOST_NUMBERS:
        raise ValueError(
            f"encoder is missing: an observation has {flat.size:,} numbers, and no more than {MOST_NUMBERS} are tiled "
            "by themselves"
        )
    if len(flat.categories) == flat.size and math.prod(n for _, n in flat.categories.values()) <= MOST_CELLS:
        return TileCoder(n_tilings=1), None
    low, high = flat.low.copy(), flat.high.copy()
    open_ends = ~((np.abs(low) < UNBOUNDED) & (np.abs(high) < UNBOUNDED))
    remark = None
    if open_ends.any():
        rows = random_observations(env, flat, seed)
        margin = MARGIN * np.maximum(np.ptp(rows, axis=0), 1e-6)
        low[open_ends], high[open_ends] = (rows.min(axis=0) - margin)[open_ends], (rows.max(axis=0) + margin)[open_ends]
        remark = (
            f"the space of observations has no bounds for {_listed(flat, open_ends)}: they are taken from "
            f"{RANDOM_STEPS:,} random steps; an encoder with low=[...] and high=[...] has others"
        )
    bounds = [
        [float(f"{x:.3g}") if own else None for x, own in zip(ends, open_ends, strict=True)] for ends in (low, high)
    ]
    if remark is None:
        return TileCoder(8 if flat.size <= 4 else 4, 8, groups=groups_of(flat.size)), None
    tilings = 8 if flat.size <= 4 else 4
    return TileCoder(tilings, 8, low=bounds[0], high=bounds[1], groups=groups_of(flat.size)), remark


def fitted(encoder: Any, env: Any, flat: Flattener, seed: int) -> Any:
    """A copy of the encoder, fitted to the environment's observations where it was not; or the one for it."""
    remark = None
    if encoder is None:
        encoder, remark = encoder_for(env, flat, seed)
    made = as_encoder(encoder)
    if not hasattr(made, "n_features_out_"):
        if isinstance(made, Foreign):
            made = own_copy(made)
            remark = fit_foreign(made, env, flat, seed)
        else:
            made = made.for_space(env.single_observation_space if is_vector(env) else env.observation_space)
    elif made.n_features_in_ != flat.size:
        raise ValueError(f"encoder: it takes {made.n_features_in_} numbers, an observation of env has {flat.size}")
    else:
        made.check_space(flat)
        made = own_copy(made)
    if remark is not None:
        logger.warning("gqlab: %s", remark)
    return made


def groups_of(n: int) -> list[tuple[int, ...]]:
    """Every number, and every pair; of many numbers the pairs of neighbours."""
    pairs = itertools.combinations(range(n), 2) if n <= MOST_PAIRED else zip(range(n - 1), range(1, n), strict=True)
    return [*((i,) for i in range(n)), *pairs]


def fit_foreign(encoder: Any, env: Any, flat: Flattener, seed: int) -> str:
    """Fit a transformer of another library to what random steps show; what a user should know of it."""
    encoder.names = flat.names
    encoder.fit(random_observations(env, flat, seed))
    return f"{type(encoder.transformer).__name__} was not fitted: it is fitted to {RANDOM_STEPS:,} random steps"


def random_observations(env: Any, flat: Flattener, seed: int) -> FloatArray:
    """What an environment shows in random steps, (n, size)."""
    return np.array(list(itertools.islice(_walk(env, flat, seed), RANDOM_STEPS)))


def _walk(env: Any, flat: Flattener, seed: int) -> Iterator[FloatArray]:
    random = np.random.default_rng([seed, 3])
    if is_vector(env):
        yield from flat.flatten_batch(env.reset(seed=seed % 2**31)[0])
        while True:
            actions = random.integers(env.single_action_space.n, size=env.num_envs)
            yield from flat.flatten_batch(env.step(actions)[0])
    over = True
    for number in itertools.count():
        if over:
            yield flat.flatten(env.reset(seed=(seed + number) % 2**31)[0])
        observation, _, terminated, truncated, _ = env.step(int(random.integers(env.action_space.n)))
        over = terminated or truncated
        yield flat.flatten(observation)


def _listed(flat: Flattener, chosen: Any) -> str:
    names = flat.names or [f"number {i}" for i in range(flat.size)]
    return ", ".join(name for name, one in zip(names, chosen, strict=True) if one)
