"""The interval of Student's that every study reports."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from gqlab.support.checks import FloatArray


@dataclass(frozen=True)
class Interval:
    """A mean of ``n`` numbers with its 95 % interval; NaN where there are too few."""

    mean: float
    low: float
    high: float
    n: int


def student(values: ArrayLike) -> Interval:
    """The mean of the finite values, and its 95 % interval by Student's t.

    Examples
    --------
    >>> found = student([1.0, 2.0, 3.0, np.nan])
    >>> f"{found.mean:.1f} [{found.low:.3f}, {found.high:.3f}], n = {found.n}"
    '2.0 [-0.484, 4.484], n = 3'
    """
    each = np.asarray(values, dtype=float)
    each = each[np.isfinite(each)]
    n = len(each)
    mean = float(each.mean()) if n else np.nan
    half = float(stdtrit(n - 1, 0.975) * each.std(ddof=1) / np.sqrt(n)) if n > 1 else np.nan
    return Interval(mean, mean - half, mean + half, n)


def student_of_ratios(logs: FloatArray) -> Interval:
    """The geometric mean of ratios and its interval, from their logarithms."""
    found = student(logs)
    return Interval(float(np.exp(found.mean)), float(np.exp(found.low)), float(np.exp(found.high)), found.n)
