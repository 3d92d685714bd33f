"""Statistics of ``gqlab rates``: slopes with intervals, local slopes, paired differences, choices at a grid's edge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from gqlab.algorithms import Algorithm
from gqlab.support.checks import FloatArray
from gqlab.theory.choose import constant_steps

#: Numbers of samples are resolved to this: a smaller difference does not decide between two settings.
RESOLUTION = 0.05


@dataclass(frozen=True)
class FittedSlope:
    """A mean over problems with its 95 % t-interval; ``theory`` is what the theorems say ("–": nothing)."""

    name: str
    mean: float
    low: float
    high: float
    n: int
    theory: str = "–"


def interval(name: str, values: Sequence[float] | FloatArray, theory: str = "–") -> FittedSlope:
    """The mean of the finite values and Student's interval for it."""
    each = np.asarray(values, dtype=float)
    each = each[np.isfinite(each)]
    n = len(each)
    if n == 0:
        return FittedSlope(name, np.nan, np.nan, np.nan, 0, theory)
    mean = float(each.mean())
    half = float(stats.t.ppf(0.975, n - 1) * each.std(ddof=1) / np.sqrt(n)) if n > 1 else np.nan
    return FittedSlope(name, mean, mean - half, mean + half, n, theory)


def row_slopes(x: FloatArray, y: FloatArray) -> FloatArray:
    """The least-squares slope of log y on x, row by row; NaN in y is left out; NaN for fewer than two points."""
    out = []
    for row in np.log(y):
        ok = np.isfinite(row)
        out.append(np.polyfit(x[ok], row[ok], 1)[0] if ok.sum() >= 2 else np.nan)
    return np.array(out)


def slope(name: str, x: FloatArray, y: FloatArray, theory: str = "–") -> FittedSlope:
    """The mean over rows of the slope of log y on x."""
    return interval(name, row_slopes(x, y), theory)


def local_slopes(x: FloatArray, y: FloatArray) -> list[FittedSlope]:
    """The slope of log y between each x and the next, over the rows that have both."""
    steps = np.diff(np.log(y), axis=1) / np.diff(x)
    return [interval(f"{x[k]:.4g}", steps[:, k]) for k in range(steps.shape[1])]


def paired_slope(name: str, x: FloatArray, y: FloatArray, other: FloatArray) -> FittedSlope:
    """The mean over rows of the slope of log y less that of log other, each over the points that both have."""
    both = np.isfinite(y) & np.isfinite(other)
    return interval(
        name, row_slopes(x, np.where(both, y, np.nan)) - row_slopes(x, np.where(both, other, np.nan))
    )  # fmt: skip


def ratios(y: FloatArray, other: FloatArray) -> list[FittedSlope]:
    """The geometric mean over rows of other/y with its interval, column by column, over the rows that have both."""
    out = []
    for k in range(y.shape[1]):
        logs = interval(f"{k}", np.log(other[:, k] / y[:, k]))
        mean, low, high = (float(np.exp(v)) for v in (logs.mean, logs.low, logs.high))
        out.append(FittedSlope(logs.name, mean, low, high, logs.n))
    return out


def edges(algorithms: Sequence[Algorithm]) -> NDArray[np.bool_]:
    """Which settings of a grid have η_θ, η_ω/η_θ or M at an end of its range, (n_axes, n_algorithms).

    M = 1 is none: there is no smaller batch, and with it VR-Greedy-GQ is Greedy-GQ.
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
