"""The observation itself, and a constant."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gqlab.encoders.base import encode_row
from gqlab.encoders.bounds import Bounded
from gqlab.engine.compiled import entry
from gqlab.support import checks
from gqlab.support.checks import FloatArray


class IdentityRule(NamedTuple):
    """(x − middle) · factor, kept within ±limit; then the constant."""

    scaling: Any  # (3, n_in): middle, factor, limit
    bias: Any  # (0,) or (1,): the constant

    def encode_row(self, observation, first, index, value, first_out):
        n_in = self.scaling.shape[1]
        for i in range(n_in):
            limit = self.scaling[2, i]
            x = (observation[first + i] - self.scaling[0, i]) * self.scaling[1, i]
            value[first_out + i] = min(max(x, -limit), limit)
        for k in range(self.bias.size):
            value[first_out + n_in + k] = self.bias[k]


@entry
def _identity(scaling, bias, observation, out):
    encode_row(IdentityRule(scaling, bias), observation, 0, scaling, out, 0)


class Identity(Bounded):
    """The observation itself, scaled to [−1, 1], and a constant; all divided by √K, so that ‖φ‖ ≤ 1.

    For observations that already are features, or were computed elsewhere.

    Parameters
    ----------
    bias : bool
        Whether a constant feature comes last.
    low, high : float or sequence, optional
        Bounds, as of :class:`TileCoder`; from low to high becomes −1 to 1.
    scale : bool
        False: the observation as it is and 1, without bounds and without a bound on ‖φ‖.

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> gq.Identity(low=0, high=10).fit([[0.0]]).encode(np.array([7.5])) * np.sqrt(2)
    array([0.5, 1. ])
    >>> gq.Identity(scale=False).fit([[0.0]]).encode(np.array([7.5]))
    array([7.5, 1. ])
    """

    kind = "dense"
    _encode_one = staticmethod(_identity)

    def __init__(self, bias: bool = True, low: Any = None, high: Any = None, scale: bool = True) -> None:
        self.bias = bias
        self.low = low
        self.high = high
        self.scale = scale

    def _bound(self, low: FloatArray, high: FloatArray) -> None:
        for name, value in (("bias", self.bias), ("scale", self.scale)):
            checks.instance(name, value, (bool, np.bool_), "True or False")
        if self.scale:
            super()._bound(low, high)
        else:  # unused bounds need not be finite
            n = self.n_features_in_
            self.low_, self.high_ = np.zeros(n), np.zeros(n)
            self._build()

    def _build(self) -> None:
        n_in = self.n_features_in_
        K = n_in + int(self.bias)
        if self.scale:
            each = 1 / math.sqrt(K)
            # Halves first: the sum of two large bounds may overflow.
            scaling = [0.5 * self.low_ + 0.5 * self.high_, 2 * each * self._inverse(), np.full(n_in, each)]
        else:
            each = 1.0
            scaling = [np.zeros(n_in), np.ones(n_in), np.full(n_in, np.inf)]
        self._set(IdentityRule(np.array(scaling), np.full(int(self.bias), each)), K, K)
