"""How a part declares the arrays that it needs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

#: What an array holds: numbers in the precision of the run or always in double, samples, rows and the like, counts.
NUMBER, DOUBLE, SAMPLE, INDEX, COUNT = "number", "double", "sample", "index", "count"

#: Counts of updates, steps and samples are below this: no run gets so far.
MOST = 2**48

#: For ``within``: numbers that are never indices and may be infinite, or none at all.
ANYTHING = (-math.inf, math.inf)


@dataclass(frozen=True)
class Sizes:
    """The sizes that a part may need to know.

    Attributes
    ----------
    d, A : int
        Features and actions.
    states, samples : int
        Of the largest problem: the states, and the different samples that can be drawn.
    updates : int
        The largest number of updates that a run of this call makes, from its beginning. The size of a kept array must
        not depend on it.
    most : mapping
        The largest value of each parameter among the runs, by its name.
    trajectories : int
        That samples come from side by side, as from several environments.
    """

    d: int
    A: int
    states: int = 0
    samples: int = 0
    updates: int = 0
    most: Mapping[str, float] = field(default_factory=dict)
    trajectories: int = 1


class Array(NamedTuple):
    """One array that a part declares: see :func:`near` and :func:`far`."""

    size: int
    near: bool
    kind: str
    kept: bool
    fill: float
    within: tuple[float, float] | None


def near(
    size: int, kind: str = NUMBER, kept: bool = False, fill: float = 0, within: tuple[float, float] | None = None
) -> Array:
    """A short array, in registers where it fits: its size may depend on d and A alone, and is compiled in.

    It is filled with ``fill`` once, when a thread starts. With ``kept`` it belongs to the run instead: filled when the
    run begins, and carried along to its end, across calls.

    An array of whole numbers must have ``within``: the least number that may be in it, and the one behind the largest.
    Compiled code uses them as indices, so they are checked where a file brings them; all others must be finite there.
    """
    return Array(size, True, kind, kept, fill, within)


def far(
    size: int, kind: str = NUMBER, kept: bool = False, fill: float = 0, within: tuple[float, float] | None = None
) -> Array:
    """An array of any size, in memory; otherwise like :func:`near`."""
    return Array(size, False, kind, kept, fill, within)
