"""An environment with a Dict of observations, whose actions are 1 and 2, or pairs."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete


class Room(gymnasium.Env):
    """Five steps; the second action pays 1 in room 2, and nothing elsewhere."""

    observation_space = Dict(place=Box(0, 1, (2,)), room=Discrete(3, start=1))
    action_space: Any = Discrete(2, start=1)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.t = 0
        return self._seen(), {}

    def _seen(self) -> dict[str, Any]:
        return {"place": self.np_random.random(2).astype(np.float32), "room": np.int64(1 + self.t % 3)}

    def step(self, action: Any) -> Any:
        assert self.action_space.contains(action)
        paid = float(1 + self.t % 3 == 2 and self._pays(action))
        self.t += 1
        return self._seen(), paid, self.t >= 5, False, {}

    def _pays(self, action: Any) -> bool:
        return bool(action == 2)


class PairRoom(Room):
    """The same with two knobs: both must be up."""

    action_space = MultiDiscrete([2, 3], start=[0, 1])

    def _pays(self, action: Any) -> bool:
        return action.tolist() == [1, 3]


for _name, _kind in (("Room-v0", Room), ("PairRoom-v0", PairRoom)):
    if f"tests/{_name}" not in gymnasium.registry:
        gymnasium.register(f"tests/{_name}", _kind)
