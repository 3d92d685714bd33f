"""The spaces of an environment, or of a data set: how many actions, and observations as vectors."""

from __future__ import annotations

from typing import Any

from gqlab.encoders.actions import discrete_actions
from gqlab.encoders.spaces import Flattener


def spaces_of(world: Any, name: str) -> tuple[int, Any]:
    """How many actions an environment, or a data set, has, and what makes a vector of its observations."""
    try:
        return discrete_actions(world.action_space), Flattener(world.observation_space)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
