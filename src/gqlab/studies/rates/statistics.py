"""Statistics of ``gqlab rates``: slopes with intervals, local slopes, paired differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gqlab.studies.intervals import student
from gqlab.support.checks import FloatArray


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
    found = student(values)
    return FittedSlope(name, found.mean, found.low, found.high, found.n, theory)


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
