"""What an estimator needs of the data, beyond the next sample, one at a time.

An estimator says so by a static method ``needs``, which returns a set of these. One that says nothing is asked what its
memory depends on: see :func:`needs_of`. Where it runs is decided by nothing else: see :mod:`gqlab.algorithms.places`.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import Any

from gqlab.rules.memory import Sizes


class Need(Enum):
    """A need, in the words of the message where it is not met."""

    SEVERAL = "several samples for one update"
    BATCH = "the next M samples as a batch"
    REPLAY = "the samples from the first one again"
    GROWING = "memory that grows with the number of updates"
    NUMBERED = "samples that are numbered, with memory for each"
    EPISODES = "samples in the order of time, with the ends of episodes"
    NEXT_ACTION = "the action that is taken next"
    STATES = "samples of a finite number of states"
    BEHAVIOR = "the behaviour policy's probabilities of all actions"
    SIMULATION = "trajectories that are drawn at will"
    KEPT = "transitions that are kept, and told when they come and go"
    CPU = "the linear algebra of a CPU"
    WHOLE_MEAN = "means over all rows of a log, again for every epoch"
    SUMS = "sums over all rows of a log"
    ROWS = "all rows of a log in memory at once"


Needs = frozenset[Need]

#: What estimators need whose memory depends on a size.
BY_SIZE = {"states": Need.STATES, "samples": Need.NUMBERED, "updates": Need.GROWING}

#: Two sets of sizes that differ in one of them are told apart by the arrays that depend on it.
PROBE = Sizes(d=2, A=2, states=3, samples=5, updates=7)


def needs_of(kind: Any) -> Needs:
    """What an estimator needs; of one that does not say so, what follows from its memory and its ``next_begin``.

    Examples
    --------
    >>> from gqlab.estimators.needs import needs_of
    >>> from gqlab.estimators.saga import SAGA
    >>> [need.value for need in needs_of(SAGA)]
    ['samples that are numbered, with memory for each']
    """
    if hasattr(kind, "needs"):
        return frozenset(kind.needs())
    found = {Need.BATCH, Need.REPLAY} if hasattr(kind, "next_begin") else set()
    if hasattr(kind, "memory"):
        found |= {need for size, need in BY_SIZE.items() if _depends(kind, size)}
    return frozenset(found)


def _depends(kind: Any, size: str) -> bool:
    """Whether the memory of an estimator depends on a size."""

    class AnyNumber(dict[str, int]):
        def __missing__(self, name: str) -> int:
            return 2

    sizes = replace(PROBE, most=AnyNumber())
    other: dict[str, Any] = {size: 100}
    return bool(kind.memory(sizes) != kind.memory(replace(sizes, **other)))
