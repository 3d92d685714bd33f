"""Which setting of a grid is taken for an ε, and which settings lie at an edge of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gqlab.algorithms import Algorithm
from gqlab.support.checks import FloatArray
from gqlab.theory.choose import constant_steps

#: Numbers of samples are resolved to this: a smaller difference does not decide between two settings.
RESOLUTION = 0.05


def edges(algorithms: Sequence[Algorithm]) -> NDArray[np.bool_]:
    """Which settings of a grid have η_θ, η_ω/η_θ or M at an end of its range, (n_axes, n_algorithms).

    M = 1 does not count as an edge: there is no smaller batch, and with it VR-Greedy-GQ is Greedy-GQ.
    """
    axes = [[e for e, _ in map(constant_steps, algorithms)], [o / e for e, o in map(constant_steps, algorithms)]]
    if all(a.epoch_size for a in algorithms):
        axes.append([float(a.epoch_size) for a in algorithms])
    values = np.array(axes)
    ends = np.isclose(values, values.min(axis=1, keepdims=True)) | np.isclose(values, values.max(axis=1, keepdims=True))
    ends[2:] &= values[2:] > 1
    return ends & (np.ptp(values, axis=1, keepdims=True) > 0)


def choose(needed: FloatArray, at_edge: NDArray[np.bool_]) -> NDArray[np.intp]:
    """The setting for each ε, (n_epsilons,); −1 where none reached it.

    Of those within the resolution of the least number of samples, the best of the inner ones; the least of all where
    every one of them lies at an edge.

    Parameters
    ----------
    needed : (n_algorithms, n_epsilons) array
    at_edge : (n_algorithms,) array
    """
    filled = np.where(np.isnan(needed), np.inf, needed)
    least = filled.min(axis=0)
    inner = np.where(at_edge[:, None], np.inf, filled)
    pick = np.where(inner.min(axis=0) <= (1 + RESOLUTION) * least, inner.argmin(axis=0), filled.argmin(axis=0))
    return np.where(np.isfinite(least), pick, -1)
