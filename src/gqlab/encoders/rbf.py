"""Radial basis functions: φ_k = g_k/‖g‖,  g_k(x) = exp(−½ Σ_i ((x_i − c_{k,i})/w_i)²)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gqlab.encoders.base import MOST_DENSE_FEATURES, counts, encode_row
from gqlab.encoders.bounds import Bounded, unit
from gqlab.engine.compiled import entry
from gqlab.rules.numbers import exp
from gqlab.support import checks
from gqlab.support.checks import FloatArray


class RBFRule(NamedTuple):
    """g/‖g‖ of all centres; g is taken relative to the nearest one, so that it never vanishes."""

    scaling: Any  # (3, n_in): low, 1/(high − low), 1/(√2 w)
    centers: Any  # (n_in, K): centres in the same units, c/(√2 w)

    def encode_row(self, observation, first, index, value, first_out):
        phi = value[first_out:]  # indexed from 0, so that the loops below are vectorised
        n_in, K = self.centers.shape
        for k in range(K):
            phi[k] = 0.0
        for i in range(n_in):
            x = self.scaling[2, i] * unit(observation[first + i], self.scaling[0, i], self.scaling[1, i])
            for k in range(K):
                phi[k] += (x - self.centers[i, k]) ** 2
        nearest = phi[0]
        for k in range(K):
            nearest = min(nearest, phi[k])
        square = 0.0
        for k in range(K):
            g = exp(nearest - phi[k])
            phi[k] = g
            square += g * g
        scale = 1.0 / math.sqrt(square)
        for k in range(K):
            phi[k] *= scale


@entry
def _rbf(scaling, centers, observation, out):
    encode_row(RBFRule(scaling, centers), observation, 0, scaling, out, 0)


class RBF(Bounded):
    """Gaussian bumps on a grid, or at given centres, divided by their norm: ‖φ‖ = 1.

    Local like tiles and smooth like Fourier; every feature costs time, so they suit up to about 3 dimensions. They are
    divided by their norm rather than by their sum, so that a step size means the same everywhere, and the same as with
    tiles. Far from all centres the nearest one dominates, instead of all features vanishing.

    Parameters
    ----------
    n_centers : int or sequence of int
        Centres along a dimension, evenly from low to high: one number for all, or one for each.
    centers : (K, n_in) array, optional
        Centres, in the units of the observations, instead of a grid.
    width : float or sequence of float, optional
        Standard deviation w as a fraction of high − low: one for all dimensions, or one for each. Default: the distance
        of neighbours on the grid; for given centres, that of a grid with as many.
    low, high : float or sequence, optional
        Bounds, as of :class:`TileCoder`.

    Attributes
    ----------
    centers_ : (K, n_in) array
        In the units of the observations.
    width_ : (n_in,) array

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> bumps = gq.RBF(n_centers=3, low=0, high=1).fit([[0.0]])
    >>> bumps.encode(np.array([0.5])).round(3)
    array([0.46 , 0.759, 0.46 ])
    """

    kind = "dense"
    _encode_one = staticmethod(_rbf)
    centers_: FloatArray
    width_: FloatArray

    def __init__(
        self, n_centers: Any = 5, centers: Any = None, width: Any = None, low: Any = None, high: Any = None
    ) -> None:
        self.n_centers = n_centers
        self.centers = centers
        self.width = width
        self.low = low
        self.high = high

    def _build(self) -> None:
        n_in = self.n_features_in_
        if self.centers is None:
            each = counts("n_centers", self.n_centers, n_in)
            K = math.prod(each.tolist())
            if K > MOST_DENSE_FEATURES:
                raise ValueError(
                    f"n_centers is {checks.shown(self.n_centers)}: that makes {K:,} centres, more than "
                    f"{MOST_DENSE_FEATURES:,}; use fewer, or give centers"
                )
            grid = np.meshgrid(*(np.linspace(0, 1, m) if m > 1 else [0.5] for m in each), indexing="ij")
            places = np.stack([axis.reshape(-1) for axis in grid])
            self.centers_ = self.low_ + (self.high_ - self.low_) * places.T
            spacing = 1 / np.maximum(each - 1, 1)
        else:
            self.centers_ = checks.array("centers", self.centers, (None, n_in))
            K = len(self.centers_)
            places = ((self.centers_ - self.low_) * self._inverse()).T
            spacing = np.full(n_in, 1 / max(K ** (1 / n_in) - 1, 1))
        self.width_ = spacing if self.width is None else _width(self.width, n_in)
        narrow = 1 / (math.sqrt(2) * self.width_)
        scaled = np.ascontiguousarray(places * narrow[:, None])
        self._set(RBFRule(np.array([self.low_, self._inverse(), narrow]), scaled), K, K)


def _width(value: Any, n_in: int) -> FloatArray:
    """A positive width for each dimension. Widths below 1e-100 would cause overflow."""
    given = checks.numbers("width", value)
    if given.ndim and given.shape != (n_in,):
        raise ValueError(f"width has shape {given.shape}, expected a number or ({n_in},)")
    each = np.broadcast_to(given, n_in).tolist()
    return np.array([checks.number(f"width[{i}]", w, least=1e-100) for i, w in enumerate(each)])
