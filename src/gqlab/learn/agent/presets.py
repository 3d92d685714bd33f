"""Agents that were tested: an encoder, an algorithm and its step sizes for an environment, as data.

They were chosen on seeds from 1000 on; ``gqlab benchmark agents`` and ``gqlab benchmark lander`` report others.
"""

from __future__ import annotations

from typing import Any

from gqlab.algorithms import Sarsa
from gqlab.algorithms.schedules import LinearDecay
from gqlab.encoders import TileCoder

#: Bounds that CartPole's space does not give: its speeds are unbounded.
CARTPOLE = (2.4, 3.0, 0.21, 3.5)

#: Every pair of CartPole's four numbers.
PAIRS = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))

#: Acrobot shows cosine and sine of two angles, and two speeds: each angle with the speeds, and both angles.
ANGLES = ((0, 1, 4, 5), (2, 3, 4, 5), (0, 1, 2, 3))

#: LunarLander shows place, speed, angle, its speed, and which legs touch the ground: triples that belong together.
TRIPLES = ((0, 2, 4), (1, 3, 4), (2, 4, 5), (0, 1, 3), (2, 3, 4), (0, 4, 5), (1, 3, 6), (0, 6, 7), (4, 6, 7))

#: Where LunarLander's flights take place: its space is many times as large.
LANDER_LOW = (-1.0, -0.1, -1.5, -1.5, -1.0, -1.5, 0.0, 0.0)
LANDER_HIGH = (1.0, 1.5, 1.5, 1.5, 1.0, 1.5, 1.0, 1.0)

ENCODERS: dict[str, Any] = {
    "MountainCar-v0": TileCoder(n_tilings=16, bins=8),
    "CartPole-v1": TileCoder(n_tilings=8, bins=8, groups=PAIRS, low=[-x for x in CARTPOLE], high=CARTPOLE),
    "Acrobot-v1": TileCoder(n_tilings=8, bins=10, groups=ANGLES),
    "LunarLander-v3": TileCoder(n_tilings=4, bins=6, groups=TRIPLES, low=LANDER_LOW, high=LANDER_HIGH),
}

#: With these numbers of steps; more do no harm.
STEPS = {"MountainCar-v0": 100_000, "CartPole-v1": 50_000, "Acrobot-v1": 100_000, "LunarLander-v3": 300_000}

ALGORITHMS = {
    "MountainCar-v0": Sarsa(0.25, trace=0.9),
    "CartPole-v1": Sarsa(0.25, trace=0.9),
    "Acrobot-v1": Sarsa(0.25, trace=0.9),
    "LunarLander-v3": Sarsa(0.4, trace=0.9),
}


def preset_of(env: Any) -> dict[str, Any]:
    """The arguments of an agent for an environment."""
    if not isinstance(env, str) or env not in ALGORITHMS:
        raise ValueError(f"env is {env!r}, expected one of {', '.join(map(repr, ALGORITHMS))}: others have no preset")
    return {
        "encoder": ENCODERS[env],
        "algorithm": ALGORITHMS[env],
        "epsilon": LinearDecay(0.1, 0.0, over=STEPS[env]),
    }
