"""Actions that are not 0, 1, …: those of Discrete(n, start=1), and of MultiDiscrete as one discrete action."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gqlab.support import checks

#: The most combinations of a MultiDiscrete: every one of them has weights of its own.
MOST_ACTIONS = 10_000


class Actions:
    """The actions of a space by numbers 0, 1, …, n − 1; a MultiDiscrete's last part varies fastest.

    Examples
    --------
    >>> from gymnasium.spaces import MultiDiscrete
    >>> from gqlab.encoders.actions import actions_of
    >>> actions = actions_of(MultiDiscrete([2, 3]))
    >>> actions.n, actions.of(4), actions.names[4]
    (6, array([1, 1]), '1, 1')
    """

    def __init__(self, sizes: tuple[int, ...], first: tuple[int, ...], single: bool) -> None:
        self.sizes, self.first, self.single = sizes, first, single
        self.n = math.prod(sizes)

    @property
    def is_plain(self) -> bool:
        """Whether an action is its number."""
        return self.single and self.first == (0,)

    def of(self, numbers: Any) -> Any:
        """The action of a number, or those of several, as the environment takes them."""
        parts = np.stack(np.unravel_index(np.asarray(numbers), self.sizes), axis=-1) + np.array(self.first)
        if not self.single:
            return parts
        return int(parts[0]) if parts.ndim == 1 else parts[:, 0]

    @property
    def names(self) -> tuple[str, ...]:
        """What actions are called."""
        return tuple(", ".join(map(str, row)) for row in self.of(np.arange(self.n)).reshape(self.n, -1).tolist())

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {"sizes": list(self.sizes), "first": list(self.first), "single": self.single}

    @classmethod
    def from_dict(cls, values: Any) -> Actions:
        """What :meth:`to_dict` gave, which may come from a file: ``ValueError`` where it is no such."""
        try:
            sizes, first, single = values["sizes"], values["first"], values["single"]
            good = len(sizes) == len(first) > 0 and all(type(n) is int for n in (*sizes, *first))
            good = good and min(sizes) > 0 and 0 < math.prod(sizes) <= MOST_ACTIONS and single in (True, False)
            good = good and max(map(abs, first)) < 2**53 and (not single or len(sizes) == 1)
        except (KeyError, TypeError):
            good = False
        if not good or not isinstance(values, Mapping):
            raise ValueError(f"actions is {checks.shown(values)}, expected sizes, first and single")
        return cls(tuple(sizes), tuple(first), bool(single))


def actions_of(space: Any) -> Actions:
    """The actions of a space; ``ValueError`` where they are not a few discrete ones."""
    from gymnasium import spaces

    if isinstance(space, spaces.Discrete):
        return Actions((int(space.n),), (int(space.start),), single=True)
    if isinstance(space, spaces.MultiDiscrete) and space.nvec.ndim == 1:
        made = Actions(tuple(map(int, space.nvec)), tuple(map(int, space.start)), single=False)
        if made.n > MOST_ACTIONS:
            raise ValueError(
                f"space is {checks.shown(space)}: {made.n:,} combinations, more than the {MOST_ACTIONS:,} that can be "
                "actions of their own"
            )
        return made
    kind = "continuous actions" if isinstance(space, spaces.Box) else "such actions"
    raise ValueError(f"space is {checks.shown(space)}: {kind} are not supported, expected Discrete(n) or MultiDiscrete")


def discrete_actions(space: Any) -> int:
    """The number of actions of a space.

    Examples
    --------
    >>> import gymnasium
    >>> from gqlab.encoders.actions import discrete_actions
    >>> discrete_actions(gymnasium.spaces.Discrete(3))
    3
    """
    return actions_of(space).n


def by_numbers(env: Any) -> Any:
    """The environment itself where its actions are 0, 1, …, and else one around it that takes numbers."""
    import gymnasium

    vector = isinstance(env, gymnasium.vector.VectorEnv)
    try:
        actions = actions_of(env.single_action_space if vector else env.action_space)
    except ValueError:  # said where actions are asked for
        return env
    if actions.is_plain:
        return env
    single, several = _wrappers()
    return (several if vector else single)(env, actions)


def numbered_actions(env: Any) -> Actions | None:
    """What the numbers of an environment's actions stand for; None where it takes these numbers itself."""
    while env is not None:
        if isinstance(getattr(env, "numbered", None), Actions):
            return env.numbered
        env = getattr(env, "env", None)
    return None


@cache
def _wrappers() -> tuple[Any, Any]:
    """The classes of wrappers: Gymnasium is imported when one is needed."""
    import gymnasium

    class ByNumbers(gymnasium.ActionWrapper):
        """Takes the number of an action."""

        def __init__(self, env: Any, actions: Actions) -> None:
            super().__init__(env)
            self.numbered = actions
            self.action_space = gymnasium.spaces.Discrete(actions.n)

        def action(self, action: Any) -> Any:
            return self.numbered.of(int(action))

    class VectorByNumbers(gymnasium.vector.VectorActionWrapper):
        """Takes the numbers of several actions."""

        def __init__(self, env: Any, actions: Actions) -> None:
            super().__init__(env)
            self.numbered = actions
            self.single_action_space = gymnasium.spaces.Discrete(actions.n)
            self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, env.num_envs)

        def actions(self, actions: NDArray[Any]) -> Any:
            return self.numbered.of(actions)

    return ByNumbers, VectorByNumbers
