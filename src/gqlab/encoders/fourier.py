"""The Fourier basis: φ_c(x) = cos(π c·x)/√K, x scaled to [0, 1] (Konidaris, Osentoski and Thomas, 2011)."""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gqlab.encoders.base import MOST_DENSE_FEATURES, encode_row
from gqlab.encoders.bounds import Bounded, unit
from gqlab.engine.compiled import entry
from gqlab.rules.dispatch import rule
from gqlab.support import checks

#: sin(πu)/u in powers of u²; for |u| ≤ ½ what is left out is below 3e-16.
SINE = tuple((-1) ** k * math.pi ** (2 * k + 1) / math.factorial(2 * k + 1) for k in range(11))


@rule
def cos_pi(x):
    """cos(πx), as a polynomial that the compiler can vectorise: the system's cos takes 5 times as long."""
    u = 0.5 - abs(x - 2.0 * np.floor(0.5 * x + 0.5))  # cos(πx) = sin(πu), |u| ≤ ½
    v = u * u
    s = SINE[10]
    s = s * v + SINE[9]
    s = s * v + SINE[8]
    s = s * v + SINE[7]
    s = s * v + SINE[6]
    s = s * v + SINE[5]
    s = s * v + SINE[4]
    s = s * v + SINE[3]
    s = s * v + SINE[2]
    s = s * v + SINE[1]
    s = s * v + SINE[0]
    return s * u


class FourierRule(NamedTuple):
    """cos(π c·x)/√K for every frequency c."""

    scaling: Any  # (2, n_in): low, 1/(high − low)
    frequencies: Any  # (n_in, K): c

    def encode_row(self, observation, first, index, value, first_out):
        phi = value[first_out:]  # indexed from 0, so that the loops below are vectorised
        n_in, K = self.frequencies.shape
        for k in range(K):
            phi[k] = 0.0
        for i in range(n_in):
            x = unit(observation[first + i], self.scaling[0, i], self.scaling[1, i])
            for k in range(K):
                phi[k] += x * self.frequencies[i, k]
        scale = 1.0 / math.sqrt(K)
        for k in range(K):
            phi[k] = scale * cos_pi(phi[k])


@entry
def _fourier(scaling, frequencies, observation, out):
    encode_row(FourierRule(scaling, frequencies), observation, 0, scaling, out, 0)


class Fourier(Bounded):
    """The Fourier basis: cos(π c·x)/√K for all c in {0, …, order}^n_in; ‖φ‖ ≤ 1.

    Global and smooth: with few dimensions (up to 6 or so) often the fastest learner. Steps may be scaled by frequency,
    η_c = η/‖c‖ (η where c = 0): ``frequencies_`` has the c.

    Parameters
    ----------
    order : int
        Largest frequency of a dimension.
    low, high : float or sequence, optional
        Bounds, as of :class:`TileCoder`.
    max_interactions : int, optional
        Keep only the c with at most this many nonzero coefficients. Without it there are (order + 1)^n_in, too many
        where there are many dimensions.

    Attributes
    ----------
    frequencies_ : (K, n_in) array
        c of every feature, in lexicographic order.

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> basis = gq.Fourier(order=2, low=0, high=1).fit([[0.0]])
    >>> np.round(np.sqrt(3) * basis.encode(np.array([0.5])), 12)
    array([ 1.,  0., -1.])
    >>> gq.Fourier(order=3, max_interactions=2, low=0, high=1).fit([[0.0] * 4]).n_features_out_
    67
    """

    kind = "dense"
    _encode_one = staticmethod(_fourier)
    frequencies_: NDArray[np.int64]

    def __init__(self, order: int = 3, low: Any = None, high: Any = None, max_interactions: int | None = None) -> None:
        self.order = order
        self.low = low
        self.high = high
        self.max_interactions = max_interactions

    def _build(self) -> None:
        n_in = self.n_features_in_
        order = checks.integer("order", self.order, least=1)
        most = n_in
        if self.max_interactions is not None:
            most = min(n_in, checks.integer("max_interactions", self.max_interactions, least=1))
        K = 0
        for k in range(most + 1):
            K += math.comb(n_in, k) * order**k
            if K > MOST_DENSE_FEATURES:
                raise ValueError(
                    f"order is {order}: with {n_in} dimensions that is more than {MOST_DENSE_FEATURES:,} features; "
                    "use a lower order, or max_interactions=2 for pairs of dimensions"
                )
        self.frequencies_ = _frequencies(n_in, order, most)
        table = np.ascontiguousarray(self.frequencies_.T, dtype=np.float64)
        self._set(FourierRule(np.array([self.low_, self._inverse()]), table), K, K)


def _frequencies(n_in: int, order: int, most: int) -> NDArray[np.int64]:
    """All c in {0, …, order}^n_in with at most ``most`` nonzero coefficients, in lexicographic order."""
    blocks = []
    for k in range(most + 1):
        values = 1 + np.indices((order,) * k).reshape(k, order**k).T
        for dimensions in itertools.combinations(range(n_in), k):
            block = np.zeros((order**k, n_in), np.int64)
            block[:, dimensions] = values
            blocks.append(block)
    c = np.concatenate(blocks)
    return c[np.lexsort(c.T[::-1])]
