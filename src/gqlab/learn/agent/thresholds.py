"""When an agent has solved an environment: steps to a threshold that is reached and held."""

from __future__ import annotations

import math
from collections.abc import Sequence

#: The checks after the first one at the threshold that must be at it too.
HELD = 2


def steps_to_threshold(steps: Sequence[float], means: Sequence[float], threshold: float) -> float:
    """The steps at the first check that reaches the threshold, if the next two do too; ∞: there is none.

    Examples
    --------
    >>> steps_to_threshold([500, 1000, 1500, 2000, 2500], [480, 20, 490, 475, 500], threshold=475)
    1500
    >>> steps_to_threshold([500, 1000, 1500], [20, 490, 500], threshold=475)
    inf
    """
    for k in range(len(means) - HELD):
        if all(mean >= threshold for mean in means[k : k + HELD + 1]):
            return steps[k]
    return math.inf
