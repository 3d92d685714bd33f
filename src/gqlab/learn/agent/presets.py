"""Agents for known environments: an encoder, an algorithm and its step sizes, as data.

Those that learn once from each transition were chosen on seeds from 1000 on, and ``gqlab benchmark agents`` and
``gqlab benchmark lander`` report others; the one-hot ones are not part of these, and were not tuned. Those that replay
were chosen on a few seeds from 2000 on (Acrobot's in many trials, with ten seeds at the end; CartPole's and
MountainCar's with ten, the others' with one to five), and ``gqlab benchmark replay`` reports others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gqlab.algorithms import Algorithm, SAGAGreedyGQ, SAGAQLearning, Sarsa
from gqlab.algorithms.schedules import Decay, LinearDecay
from gqlab.encoders import Fourier, OneHot, TileCoder
from gqlab.learn.agent.replay import Replay

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


@dataclass(frozen=True)
class Preset:
    """The arguments of :class:`gqlab.Agent` for an environment, but its seed."""

    encoder: Any
    algorithm: Algorithm
    epsilon: LinearDecay
    discount: float = 0.99
    replay: Replay | None = None
    initial_value: float = 0.0

    def arguments(self) -> dict[str, Any]:
        """By their names."""
        return dict(vars(self))


def _once(encoder: Any, algorithm: Algorithm, steps: int) -> Preset:
    """Learns once from each transition, over so many steps: more do no harm."""
    return Preset(encoder, algorithm, LinearDecay(0.1, 0.0, over=steps))


#: Without replay.
PRESETS: Mapping[str, Preset] = {
    "MountainCar-v0": _once(TileCoder(n_tilings=16, bins=8), Sarsa(0.25, trace=0.9), 100_000),
    "CartPole-v1": _once(
        TileCoder(n_tilings=8, bins=8, groups=PAIRS, low=[-x for x in CARTPOLE], high=CARTPOLE),
        Sarsa(0.25, trace=0.9),
        50_000,
    ),
    "Acrobot-v1": _once(TileCoder(n_tilings=8, bins=10, groups=ANGLES), Sarsa(0.25, trace=0.9), 100_000),
    "LunarLander-v3": _once(
        TileCoder(n_tilings=4, bins=6, groups=TRIPLES, low=LANDER_LOW, high=LANDER_HIGH),
        Sarsa(0.4, trace=0.9),
        300_000,
    ),
    "FrozenLake8x8-v1": _once(OneHot(), Sarsa(0.25, trace=0.9), 100_000),
    "Taxi-v4": _once(OneHot(), Sarsa(0.25, trace=0.9), 100_000),
    "CliffWalking-v1": _once(OneHot(), Sarsa(0.25, trace=0.9), 100_000),
}

#: With replay: SAGA over what is kept, and a slow average of θ to act by.
REPLAYING_PRESETS: Mapping[str, Preset] = {
    "MountainCar-v0": Preset(
        TileCoder(n_tilings=32, bins=6),
        SAGAQLearning(0.1),
        LinearDecay(0.02, 0.0, over=8000),
        replay=Replay(updates=16, n_step=2),
        initial_value=-20.0,
    ),
    "CartPole-v1": Preset(
        Fourier(3, low=[-x for x in CARTPOLE], high=CARTPOLE),
        SAGAGreedyGQ(0.3, 0.03),
        LinearDecay(0.1, 0.0, over=2000),
        discount=0.95,
        replay=Replay(updates=16, n_step=2, average=0.0005),
        initial_value=20.0,
    ),
    "Acrobot-v1": Preset(
        Fourier(2, max_interactions=2),
        SAGAQLearning(Decay(0.5, after=3000)),
        LinearDecay(0.01, 0.01),
        replay=Replay(updates=4, n_step=5, average=0.0003),
        initial_value=-20.0,
    ),
    "LunarLander-v3": Preset(
        TileCoder(n_tilings=4, bins=6, groups=TRIPLES, low=LANDER_LOW, high=LANDER_HIGH),
        SAGAQLearning(0.1),
        LinearDecay(0.05, 0.0, over=60_000),
        replay=Replay(updates=4, n_step=5),
    ),
    "FrozenLake8x8-v1": Preset(
        OneHot(), SAGAQLearning(0.1), LinearDecay(0.05, 0.05), replay=Replay(updates=16, n_step=1), initial_value=1.0
    ),
    "Taxi-v4": Preset(
        OneHot(), SAGAQLearning(0.3), LinearDecay(0.05, 0.05), replay=Replay(updates=16, n_step=1, average=0.01)
    ),
    "CliffWalking-v1": Preset(
        OneHot(), SAGAQLearning(0.3), LinearDecay(0.05, 0.05), replay=Replay(updates=16, n_step=1, average=0.01)
    ),
}


#: Where replay was never worse, in the median or in the mean over tuning seeds, at any budget that was tried
#: (``python -m benchmarks --only presets``).
REPLAYS = frozenset({"CartPole-v1", "FrozenLake8x8-v1", "CliffWalking-v1"})


def preset_of(env: Any, replay: bool | None = False) -> Preset:
    """The arguments of an agent for an environment; None: with replay where that is always better."""
    known = REPLAYING_PRESETS if replay or (replay is None and isinstance(env, str) and env in REPLAYS) else PRESETS
    if not isinstance(env, str) or env not in known:
        raise ValueError(f"env is {env!r}, expected one of {', '.join(map(repr, known))}: others have no preset")
    return known[env]
