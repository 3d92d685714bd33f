"""Bounds of observations: given, fitted to data, or taken from a space."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gqlab.encoders.base import Encoder
from gqlab.encoders.spaces import Flattener
from gqlab.rules.dispatch import rule
from gqlab.support import checks
from gqlab.support.checks import FloatArray

#: Spaces use the largest float32 to mean that there is no bound.
UNBOUNDED = 1e30

#: A dimension narrower than this counts as constant: the inverse of its width would overflow.
NARROW = 1e-290


@rule
def unit(x, low, inverse):
    """(x − low) · inverse, clipped to [0, 1]; 0 where x is NaN."""
    u = (x - low) * inverse
    return min(u, 1.0) if u > 0 else 0.0


class Bounded(Encoder):
    """An encoder with parameters ``low`` and ``high``; bounds that are None are fitted.

    Attributes
    ----------
    low_, high_ : (n_in,) arrays
        The bounds in use. Observations outside count as on the edge.
    """

    low: Any
    high: Any
    low_: FloatArray
    high_: FloatArray

    def _build(self) -> None:
        """Make the part from parameters and bounds, and call :meth:`_set`."""
        raise NotImplementedError

    def _fit_data(self, X: FloatArray) -> None:
        self._bound(X.min(axis=0), X.max(axis=0))

    def _fit_space(self, flat: Flattener) -> None:
        self._bound(flat.low, flat.high)

    def _fitted(self) -> dict[str, Any]:
        return {"low": self.low_.tolist(), "high": self.high_.tolist()}

    def _restore(self, fitted: Mapping[str, Any]) -> None:
        n = self.n_features_in_
        self._bound(*(checks.array(name, fitted.get(name, ()), (n,)) for name in ("low", "high")))

    def _bound(self, low: FloatArray, high: FloatArray) -> None:
        """Use the given bounds, and ``low`` and ``high`` where none are given."""
        n = self.n_features_in_
        given_low, given_high = _given("low", self.low, n), _given("high", self.high, n)
        self.low_ = np.where(np.isnan(given_low), low, given_low)
        self.high_ = np.where(np.isnan(given_high), high, given_high)
        known = (np.abs(self.low_) < UNBOUNDED) & (np.abs(self.high_) < UNBOUNDED)
        if not known.all():
            where = ", ".join(map(str, np.flatnonzero(~known)))
            raise ValueError(
                f"low and high: {type(self).__name__} has no finite bounds for dimension {where}: give low=[...] and "
                "high=[...], or fit them to observations with fit(X)"
            )
        wrong = np.flatnonzero((self.low_ > self.high_) | (self.low_ == self.high_) & ~np.isnan(given_low + given_high))
        if len(wrong):
            i = wrong[0]
            raise ValueError(f"low[{i}] is {self.low_[i]:g}, expected less than high[{i}], which is {self.high_[i]:g}")
        self._build()

    def _inverse(self) -> FloatArray:
        """1/(high − low), and 0 where a dimension never changes."""
        width = self.high_ - self.low_
        return np.divide(1.0, width, out=np.zeros(len(width)), where=width > NARROW)


def _given(name: str, value: Any, n: int) -> FloatArray:
    """One bound for each dimension, NaN where none is given."""
    if value is None:
        return np.full(n, np.nan)
    given = checks.plain_array(name, value)
    if given.ndim == 0:
        return np.full(n, checks.number(name, value))
    if given.shape != (n,):
        raise ValueError(f"{name} has shape {given.shape}, expected a number or ({n},)")
    each = [np.nan if v is None else checks.number(f"{name}[{i}]", v) for i, v in enumerate(value)]
    return np.array(each)
