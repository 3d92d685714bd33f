"""Gymnasium's spaces: observations as one vector, and the number of actions."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gqlab.support import checks
from gqlab.support.checks import FloatArray

if TYPE_CHECKING:
    import gymnasium


class _Leaf(NamedTuple):
    """A space of numbers inside a space."""

    path: tuple[Any, ...]  # the keys that lead to it
    shape: tuple[int, ...]
    first: int
    end: int


class Flattener:
    """Observations of a Gymnasium space as one float64 vector.

    A number of a Discrete space stays one number, its value; arrays are flattened; the members of a Tuple or a Dict are
    concatenated in the space's own order.

    Parameters
    ----------
    space : gymnasium.Space
        Box, Discrete, MultiDiscrete, MultiBinary, and Tuple and Dict of these, also nested.

    Attributes
    ----------
    size : int
        Numbers of an observation.
    low, high : (size,) arrays
        Its bounds; infinite where there are none.
    whole : (size,) bool array
        Which of them are whole numbers.

    Examples
    --------
    >>> from gymnasium.spaces import Box, Dict, Discrete
    >>> from gqlab.encoders.spaces import Flattener
    >>> flat = Flattener(Dict(place=Box(0, 1, (2,)), room=Discrete(3, start=1)))
    >>> flat.flatten({"place": [0.5, 0.25], "room": 2})
    array([0.5 , 0.25, 2.  ])
    >>> flat.high
    array([1., 1., 3.])
    """

    def __init__(self, space: gymnasium.Space[Any]) -> None:
        leaves: list[_Leaf] = []
        bounds: list[tuple[FloatArray, FloatArray, bool]] = []
        for path, leaf, *bound in _leaves(space, ()):
            first = leaves[-1].end if leaves else 0
            shape = tuple(leaf.shape or ())
            leaves.append(_Leaf(path, shape, first, first + int(np.prod(shape))))
            bounds.append((np.ravel(bound[0]), np.ravel(bound[1]), bound[2]))
        self.size = leaves[-1].end if leaves else 0
        if self.size == 0:
            raise ValueError(f"space is {checks.shown(space)}, which has no numbers")
        self.low = np.concatenate([low for low, _, _ in bounds])
        self.high = np.concatenate([high for _, high, _ in bounds])
        self.whole = np.concatenate([np.full(len(low), whole) for low, _, whole in bounds])
        self._leaves = leaves
        plain = len(leaves) == 1 and not leaves[0].path and len(leaves[0].shape) == 1
        #: write(observation, out): put an observation into the vector ``out``.
        self.write: Callable[[Any, FloatArray], None] = self._write_plain if plain else self._write_leaves

    def _write_plain(self, observation: Any, out: FloatArray) -> None:
        # An array of the right shape is the usual case; NumPy would fill ``out`` from shorter ones too.
        usual = type(observation) is np.ndarray and observation.shape == out.shape
        out[:] = observation if usual else self.flatten(observation)

    def _write_leaves(self, observation: Any, out: FloatArray) -> None:
        for leaf in self._leaves:
            value = observation
            for key in leaf.path:
                value = value[key]
            if leaf.shape:
                out[leaf.first : leaf.end] = np.ravel(value)
            else:
                out[leaf.first] = value

    def flatten(self, observation: Any) -> FloatArray:
        """One observation as a new vector (size,)."""
        return self._flat(observation, batched=False)[0]

    def flatten_batch(self, observation: Any) -> FloatArray:
        """The observations of a vector environment, batched as Gymnasium does it: (n, size)."""
        return self._flat(observation, batched=True)

    def rows(self, observation: Any) -> tuple[FloatArray, bool]:
        """Observations as rows (n, size), and whether it is a single one: of the space, batched, or an array of rows.

        Examples
        --------
        >>> from gymnasium.spaces import Discrete
        >>> from gqlab.encoders.spaces import Flattener
        >>> flat = Flattener(Discrete(4))
        >>> flat.rows(3), flat.rows([3]), flat.rows(np.array([[3.0]]))
        ((array([[3.]]), True), (array([[3.]]), False), (array([[3.]]), False))
        """
        if isinstance(observation, np.ndarray) and observation.ndim == 2 and observation.shape[1] == self.size:
            given = checks.numbers("observation", observation)
            checks.finite("observation", given)
            return given, False
        try:
            return self.flatten(observation)[None], True
        except ValueError as error:
            try:
                return self.flatten_batch(observation), False
            except ValueError:
                raise error from None

    def _flat(self, observation: Any, *, batched: bool) -> FloatArray:
        parts: list[FloatArray] = []
        for leaf in self._leaves:
            name, value = "observation", observation
            for key in leaf.path:
                value = _inner(value, key, name)
                name += f"[{key!r}]"
            given = checks.numbers(name, value)
            n = len(given) if batched and given.ndim else 1
            wanted = (n, *leaf.shape) if batched else leaf.shape
            if given.shape != wanted or (parts and len(parts[0]) != n):
                shown = ", ".join(map(str, (len(parts[0]) if parts else "n", *leaf.shape) if batched else leaf.shape))
                raise ValueError(f"{name} has shape {given.shape}, expected ({shown})")
            checks.finite(name, given)
            parts.append(given.reshape(n, leaf.end - leaf.first))
        return np.concatenate(parts, axis=1)


def _inner(value: Any, key: Any, name: str) -> Any:
    """value[key] of a dict or a tuple."""
    with contextlib.suppress(KeyError, IndexError, TypeError):
        if isinstance(value, Mapping | tuple | list):
            return value[key]
    raise ValueError(f"{name} is {checks.shown(value)}, expected an entry {key!r} in it")


def _leaves(space: Any, path: tuple[Any, ...]) -> Any:
    """(path, space, low, high, whole) of every space of numbers inside ``space``."""
    from gymnasium import spaces

    match space:
        case spaces.Box():
            yield path, space, space.low.astype(float), space.high.astype(float), space.dtype.kind in "iub"
        case spaces.Discrete():
            yield path, space, float(space.start), float(space.start + space.n - 1), True
        case spaces.MultiDiscrete():
            yield path, space, space.start.astype(float), (space.start + space.nvec - 1).astype(float), True
        case spaces.MultiBinary():
            yield path, space, np.zeros(space.shape), np.ones(space.shape), True
        case spaces.Tuple():
            for k, inner in enumerate(space.spaces):
                yield from _leaves(inner, (*path, k))
        case spaces.Dict():
            for key, inner in space.spaces.items():
                yield from _leaves(inner, (*path, key))
        case _:
            where = "".join(f"[{key!r}]" for key in path)
            raise ValueError(
                f"space{where} is {checks.shown(space)}, expected Box, Discrete, MultiDiscrete, MultiBinary, "
                "or a Tuple or Dict of these"
            )


def discrete_actions(space: gymnasium.Space[Any]) -> int:
    """The number of actions of a Discrete space that begins at 0; ``ValueError`` for every other space.

    Examples
    --------
    >>> import gymnasium
    >>> from gqlab.encoders.spaces import discrete_actions
    >>> discrete_actions(gymnasium.spaces.Discrete(3))
    3
    """
    from gymnasium import spaces

    if not isinstance(space, spaces.Discrete):
        kind = "continuous actions" if isinstance(space, spaces.Box) else "such actions"
        raise ValueError(f"space is {checks.shown(space)}: {kind} are not supported, expected Discrete(n)")
    if space.start != 0:
        raise ValueError(
            f"space is {checks.shown(space)}, expected actions that begin at 0: gymnasium.wrappers.TransformAction "
            "can shift them"
        )
    return int(space.n)
