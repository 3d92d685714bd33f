"""Gymnasium's spaces: observations as one vector, the number of actions, and what a step gives."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gqlab.support import checks
from gqlab.support.checks import FloatArray

if TYPE_CHECKING:
    import gymnasium


#: The kinds of arrays that are written as they are.
NUMBERS = "biuf"


class _Leaf(NamedTuple):
    """A space of numbers inside a space."""

    path: tuple[Any, ...]  # the keys that lead to it
    shape: tuple[int, ...]
    first: int
    end: int


class Layout:
    """How the members of an observation stand one after another in one float64 vector.

    Parameters
    ----------
    parts : sequence of (path, shape)
        The keys that lead to each array of numbers, and its shape.

    Attributes
    ----------
    size : int
        Numbers of an observation.
    parts : list of (path, shape)
        As JSON can write them.

    Examples
    --------
    >>> from gqlab.encoders.spaces import Layout
    >>> Layout([(["place"], [2]), (["room"], [])]).rows({"place": [0.5, 0.25], "room": 2})
    (array([[0.5 , 0.25, 2.  ]]), True)
    """

    def __init__(self, parts: Any) -> None:
        leaves: list[_Leaf] = []
        for path, shape in parts:
            first = leaves[-1].end if leaves else 0
            leaves.append(_Leaf(tuple(path), tuple(shape), first, first + math.prod(shape)))
        self.size = leaves[-1].end if leaves else 0
        self.parts = [[list(leaf.path), list(leaf.shape)] for leaf in leaves]
        self._leaves = leaves
        self._plain = len(leaves) == 1 and not leaves[0].path and len(leaves[0].shape) == 1
        #: write(observation, out): put an observation into the vector ``out``.
        self.write: Callable[[Any, NDArray[Any]], None] = self._write_plain if self._plain else self._write_leaves

    @property
    def is_vector(self) -> bool:
        """Whether an observation is a vector, or one number, to begin with."""
        return len(self._leaves) == 1 and not self._leaves[0].path and len(self._leaves[0].shape) <= 1

    @property
    def names(self) -> tuple[str, ...] | None:
        """What the numbers of an observation are called, by the keys that lead to them; None where there are none.

        >>> from gqlab.encoders.spaces import Layout
        >>> Layout([(["place"], [2]), (["car", "room"], [])]).names
        ('place[0]', 'place[1]', 'car.room')
        """
        if any(not leaf.path for leaf in self._leaves):
            return None
        return tuple(
            f"{'.'.join(map(str, leaf.path))}{''.join(f'[{i}]' for i in place)}"
            for leaf in self._leaves
            for place in np.ndindex(leaf.shape)
        )

    def _write_plain(self, observation: Any, out: NDArray[Any]) -> None:
        # Nothing is broadcast, and no part of a complex number dropped, silently.
        if type(observation) is np.ndarray and observation.shape == out.shape and observation.dtype.kind in NUMBERS:
            out[:] = observation
        else:
            out[:] = self.flatten(observation)

    def _write_leaves(self, observation: Any, out: NDArray[Any]) -> None:
        try:
            for leaf in self._leaves:
                value = observation
                for key in leaf.path:
                    value = value[key]
                if type(value) is np.ndarray and value.shape == leaf.shape and value.dtype.kind in NUMBERS:
                    out[leaf.first : leaf.end] = value.ravel()
                elif not leaf.shape and isinstance(value, int | float | np.integer | np.floating):
                    out[leaf.first] = value
                else:
                    break
            else:
                return
        except Exception:  # noqa: S110 - what is wrong is named below
            pass
        out[:] = self.flatten(observation)

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
        shape: tuple[int, ...] = observation.shape if isinstance(observation, np.ndarray) else ()
        single = shape == (self.size,) and not self.is_vector
        if single or (len(shape) == 2 and shape[1] == self.size):
            given = checks.numbers("observation", observation)
            checks.finite("observation", given)
            return given.reshape(-1, self.size), single
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


def layout_of(parts: Any) -> Layout:
    """The layout with these ``parts``, which may come from a file: ``ValueError`` where they are no such."""
    good = isinstance(parts, list) and all(
        isinstance(part, list)
        and len(part) == 2
        and all(isinstance(inner, list) for inner in part)
        and all(type(key) in (str, int) for key in part[0])
        and all(type(n) is int and 0 <= n < 2**31 for n in part[1])
        for part in parts
    )
    if not good:
        raise ValueError(f"space is {checks.shown(parts)}, expected [path, shape] of each part of an observation")
    return Layout(parts)


class Flattener(Layout):
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
    categories : dict
        Of the numbers that stand for a Discrete space inside a Dict or a Tuple: their first value, and how many.

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
        leaves = list(_leaves(space, ()))
        super().__init__([(path, leaf.shape or ()) for path, leaf, *_ in leaves])
        if self.size == 0:
            raise ValueError(f"space is {checks.shown(space)}, which has no numbers")
        bounds = [(np.ravel(low), np.ravel(high), whole) for _, _, low, high, whole in leaves]
        self.low = np.concatenate([low for low, _, _ in bounds])
        self.high = np.concatenate([high for _, high, _ in bounds])
        self.whole = np.concatenate([np.full(len(low), whole) for low, _, whole in bounds])
        places = np.cumsum([0, *(len(low) for low, _, _ in bounds)])
        self.categories = {
            int(place): (int(leaf.start), int(leaf.n))
            for place, (path, leaf, *_) in zip(places, leaves, strict=False)
            if path and hasattr(leaf, "n") and hasattr(leaf, "start")
        }


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


#: What an environment answers.
ANSWERS = {"step": "(observation, reward, terminated, truncated, info)", "reset": "(observation, info)"}


def answer_of(name: str, answer: Any) -> Any:
    """What ``env.step`` or ``env.reset`` returned; ``ValueError`` unless it is as many things as it should be."""
    if not isinstance(answer, tuple | list) or len(answer) != ANSWERS[name].count(",") + 1:
        raise ValueError(f"env: {name} returned {checks.shown(answer)}, expected {ANSWERS[name]}")
    return answer


def reward_of(reward: Any, step: int) -> float:
    """The reward of a step of an environment as a number; ``ValueError`` where it is none.

    Examples
    --------
    >>> from gqlab.encoders.spaces import reward_of
    >>> reward_of(None, step=3)
    Traceback (most recent call last):
    ValueError: env: the reward of step 3 is None, expected a number
    """
    if isinstance(reward, float | int):
        return float(reward)
    return checks.number(f"env: the reward of step {step}", reward)


def flags_of(name: str, flags: Any, n: int) -> NDArray[np.bool_]:
    """What a vector environment says of its n episodes, ``terminated`` or ``truncated``: truth values, or 0 and 1."""
    given = np.asarray(flags)
    if given.shape != (n,):
        raise ValueError(f"env: {name} has shape {given.shape}, expected ({n},)")
    if given.dtype.kind not in "biu" or not ((given == 0) | (given == 1)).all():
        raise ValueError(f"env: {name} is {checks.shown(flags)}, expected truth values")
    return given.astype(bool)


def rewards_of(reward: Any, n: int) -> FloatArray:
    """The rewards of a step of n environments, (n,)."""
    given = checks.numbers("env: its reward", reward)
    if given.shape != (n,):
        raise ValueError(f"env: its reward has shape {given.shape}, expected ({n},)")
    return given
