"""Agents that were tested: an encoder, an algorithm and its step sizes for an environment, as data."""

from __future__ import annotations

from typing import Any

from gqlab.algorithms import Sarsa
from gqlab.encoders import TileCoder
from gqlab.schedules import Linear

#: Bounds that CartPole's space does not give: its speeds are unbounded.
CARTPOLE = (2.4, 3.0, 0.21, 3.5)

#: Every pair of CartPole's four numbers.
PAIRS = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))

PRESETS: dict[str, dict[str, Any]] = {
    "MountainCar-v0": {
        "encoder": TileCoder(n_tilings=16, bins=8),
        "algorithm": Sarsa(0.5, trace=0.9),
        "epsilon": Linear(0.1, 0.0, over=100_000),
    },
    "CartPole-v1": {
        "encoder": TileCoder(n_tilings=8, bins=8, groups=PAIRS, low=[-x for x in CARTPOLE], high=CARTPOLE),
        "algorithm": Sarsa(0.25, trace=0.9),
        "epsilon": Linear(0.1, 0.0, over=50_000),
    },
    "Acrobot-v1": {
        "encoder": TileCoder(n_tilings=16, bins=6, groups=((0, 1, 2, 3, 4, 5),)),
        "algorithm": Sarsa(0.25, trace=0.9),
        "epsilon": Linear(0.1, 0.0, over=100_000),
    },
}


def preset_of(env: str) -> dict[str, Any]:
    """The arguments of an agent for an environment."""
    if env not in PRESETS:
        raise ValueError(f"env is {env!r}, expected one of {', '.join(map(repr, PRESETS))}: others have no preset")
    return PRESETS[env]
