"""One feature for every value of a whole number; several numbers have a block each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gqlab.encoders.base import Encoder, counts, encode_row
from gqlab.encoders.spaces import Flattener
from gqlab.engine.compiled import entry
from gqlab.support import checks
from gqlab.support.checks import FloatArray

#: float64 represents all whole numbers up to here.
LARGEST = 2.0**53

#: The most values of all numbers together: they are listed, which takes half a second for so many.
MOST_VALUES = 2**26


class OneHotRule(NamedTuple):
    """The place of each number among the values of its dimension; for an unknown one, that of the next lower value."""

    values: Any  # (K,): the values of every dimension, rising
    starts: Any  # (n_in + 1,): where those of each begin

    def encode_row(self, observation, first, index, value, first_out):
        for i in range(self.starts.size - 1):
            x = observation[first + i]
            here, end = self.starts[i], self.starts[i + 1]
            while end - here > 1:  # values[here] ≤ x < values[end]
                middle = (here + end) >> 1
                if self.values[middle] <= x:
                    here = middle
                else:
                    end = middle
            index[first_out + i] = here


@entry
def _one_hot(values, starts, observation, out):
    """The first dimension with an unknown value, or −1."""
    encode_row(OneHotRule(values, starts), observation, 0, out, values, 0)
    for i in range(out.size):
        if values[out[i]] != observation[i]:
            return i
    return -1


class OneHot(Encoder):
    """One feature for every value of a whole number, as in a table; several numbers have a block each.

    Parameters
    ----------
    n_values : int or sequence of int, optional
        The values are 0, 1, …, n_values − 1: one number for all dimensions, or one for each. Default: those that are
        in the data, or in the space.

    Attributes
    ----------
    values_ : list of arrays
        The values of each dimension, rising. Any other is a ``ValueError``.

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> table = gq.OneHot(n_values=3).fit([[0], [1]])
    >>> table.transform([[2], [0]]).toarray()
    array([[0., 0., 1.],
           [1., 0., 0.]])
    >>> table.transform([[5]])
    Traceback (most recent call last):
    ValueError: X[0, 0] is 5, expected one of the 3 values 0, ..., 2 of n_values
    """

    kind = "binary"
    values_: list[FloatArray]

    def __init__(self, n_values: Any = None) -> None:
        self.n_values = n_values

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        return tags

    def _fit_data(self, X: FloatArray) -> None:
        bad = np.argwhere((np.floor(X) != X) | (np.abs(X) > LARGEST))
        if len(bad):
            row, column = bad[0]
            raise ValueError(f"X[{row}, {column}] is {X[row, column]}, expected a whole number")
        self._build([np.unique(column) for column in X.T])
        self._batch(X)

    def _fit_space(self, flat: Flattener) -> None:
        low, high = flat.low, flat.high
        good = flat.whole & (np.abs(low) < LARGEST) & (np.abs(high) < LARGEST)
        if self.n_values is None and not good.all():
            i = int(np.argmin(good))
            raise ValueError(
                f"space: dimension {i} is from {low[i]:g} to {high[i]:g}, expected whole numbers (Discrete)"
            )
        if self.n_values is None:
            if (high - low + 1).sum() > MOST_VALUES:
                raise ValueError(f"space has {(high - low + 1).sum():.3g} values, expected at most {MOST_VALUES:,}")
            self._build([np.arange(a, b + 1) for a, b in zip(low, high, strict=True)])
        else:
            self._build([])
            self.check_space(flat)

    def check_space(self, flat: Flattener) -> None:
        """``ValueError`` where a whole number of the space is none of the values: it would be taken for another one."""
        for i, (low, high, known) in enumerate(zip(flat.low, flat.high, self.values_, strict=True)):
            if not flat.whole[i] or not np.isfinite([low, high]).all():
                continue
            inside = known[(known >= low) & (known <= high)]
            if len(inside) < high - low + 1:
                raise ValueError(
                    f"encoder: OneHot has {len(inside)} of the {high - low + 1:g} values {low:g}, ..., {high:g} that "
                    f"number {i} of an observation may have"
                )

    def _fitted(self) -> dict[str, Any]:
        return {} if self.n_values is not None else {"values": [list(map(int, values)) for values in self.values_]}

    def _restore(self, fitted: Mapping[str, Any]) -> None:
        if self.n_values is not None:
            return self._build([])
        given = fitted.get("values")
        if not isinstance(given, list) or len(given) != self.n_features_in_:
            raise ValueError(f"values is {checks.shown(given)}, expected {self.n_features_in_} lists")
        values = [checks.array(f"values[{i}]", v, (None,)) for i, v in enumerate(given)]
        for i, v in enumerate(values):
            if (np.diff(v) <= 0).any() or (v != np.floor(v)).any():
                raise ValueError(f"values[{i}] is {checks.shown(v.tolist())}, expected rising whole numbers")
        self._build(values)

    def _build(self, values: list[FloatArray]) -> None:
        if self.n_values is not None:
            each = counts("n_values", self.n_values, self.n_features_in_)
            if each.sum() > MOST_VALUES:
                raise ValueError(f"n_values is {checks.shown(self.n_values)}, expected at most {MOST_VALUES:,} in all")
            values = [np.arange(m, dtype=float) for m in each.tolist()]
        K = sum(map(len, values))
        self.values_ = values
        starts = np.cumsum([0, *map(len, values)])
        self._set(OneHotRule(np.concatenate(values), starts), K, len(values))

    @property
    def _encode_one(self) -> Any:
        return self._one_or_error

    def _one_or_error(self, values: FloatArray, starts: Any, observation: NDArray[Any], out: NDArray[Any]) -> None:
        i = _one_hot(values, starts, observation, out)
        if i >= 0:
            self._unknown(f"observation[{i}]", float(observation[i]), i)

    def _batch(self, X: FloatArray) -> NDArray[Any]:
        index = super()._batch(X)
        bad = np.argwhere(self._part.values[index] != X)
        if len(bad):
            row, i = bad[0]
            self._unknown(f"X[{row}, {i}]", X[row, i], i)
        return index

    def _unknown(self, name: str, value: float, i: int) -> None:
        known = self.values_[i]
        values = f"{len(known)} values {known[0]:.12g}, ..., {known[-1]:.12g}"
        why = "" if self.n_values is None else " of n_values"
        raise ValueError(f"{name} is {value:.12g}, expected one of the {values}{why}")
