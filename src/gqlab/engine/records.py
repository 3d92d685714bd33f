"""Which updates are recorded, and where: the first, every n-th and the last."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gqlab.rules.dispatch import rule


def recorded_updates(n_updates: int, every: int) -> NDArray[np.int64]:
    """The updates of a run that are recorded."""
    return np.append(np.arange(0, n_updates, every), n_updates)


def record_count(n_updates: Any, every: int) -> Any:
    """How many they are."""
    return -(-n_updates // every) + 1


@rule
def record_row(first, u, every, n_updates):
    """The row of update u in the records of a run that begin at row ``first``; −1 if it is not recorded."""
    if u % every == 0 or u == n_updates:
        return first + (u + every - 1) // every
    return -1


@rule
def next_recorded(u, every, n_updates):
    """The first recorded update after u; ``n_updates`` where there is none."""
    return min((u // every + 1) * every, n_updates)
