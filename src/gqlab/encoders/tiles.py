"""Tile coding: several grids over the same space, each shifted; one active tile in each.

A tiling of a group of dimensions j = 0, 1, … cuts dimension j into tiles of the width (high − low)/bins. Tiling t of n
is shifted by ((2j + 1) t mod n)/n of a tile along dimension j: the displacement vector (1, 3, 5, …) of Miller and
Glanz, which spreads the tilings better than equal shifts (Sutton and Barto, 2018, section 9.5.4). With
u = bins (x − low)/(high − low):

    coordinate_j = ⌊u + ((2j + 1) t mod n)/n⌋ = ⌊u⌋ + [⌊n (u − ⌊u⌋)⌋ + ((2j + 1) t mod n) ≥ n]

from 0 to bins: bins + 1 tiles, of which the first and the last are cut off by the bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gqlab.encoders.base import MOST_FEATURES, counts, encode_row
from gqlab.encoders.bounds import Bounded
from gqlab.encoders.spaces import Flattener
from gqlab.engine.compiled import entry
from gqlab.rules.dispatch import rule
from gqlab.support import checks
from gqlab.support.checks import FloatArray


@rule
def tile(x, low, scale, bins, n):
    """⌊u⌋ and ⌊n (u − ⌊u⌋)⌋ of u = (x − low) · scale, which is clipped to [0, bins); 0 where x is NaN."""
    u = (x - low) * scale
    if not u > 0:
        return np.int32(0), np.int32(0)
    if u >= bins:
        return np.int32(bins - 1), np.int32(n - 1)
    whole = np.int32(u)
    return whole, np.int32((u - whole) * n)


class TileRule(NamedTuple):
    """Exact indices: Σ_j stride_j · coordinate_j, after the first tile of the tiling."""

    scaling: Any  # (3, n_in): low, bins / (high − low), bins
    members: Any  # (m, 4): a dimension of a group, its stride, the first output of its group, its place j in the group
    shifts: Any  # (j, n): (2j + 1) t mod n
    starts: Any  # (n_active,): the first tile of every tiling

    def encode_row(self, observation, first, index, value, first_out):
        n = self.shifts.shape[1]
        for k in range(self.starts.size):
            index[first_out + k] = self.starts[k]
        for m in range(self.members.shape[0]):
            i, stride = self.members[m, 0], self.members[m, 1]
            out, j = self.members[m, 2], self.members[m, 3]
            whole, part = tile(observation[first + i], self.scaling[0, i], self.scaling[1, i], self.scaling[2, i], n)
            least = np.int32(n - part)
            inside = np.int32(stride * whole)
            tilings = index[first_out + out :]  # indexed from 0, so that the loop below is vectorised
            for t in range(n):
                beyond = stride if self.shifts[j, t] >= least else np.int32(0)
                tilings[t] += inside + beyond


@rule
def mixed(h, coordinate):
    """A 32-bit number that depends on all bits of h and of the coordinate (the last steps of MurmurHash3)."""
    h = ((h ^ coordinate) * 0x85EBCA6B) & 0xFFFFFFFF
    h = ((h ^ (h >> 13)) * 0xC2B2AE35) & 0xFFFFFFFF
    return h ^ (h >> 16)


class HashedTileRule(NamedTuple):
    """The coordinates of each tiling, hashed into a block of its own: no two active features coincide."""

    scaling: Any  # as of TileRule
    members: Any
    shifts: Any
    starts: Any  # (n_active,): the first feature of every block
    block: Any  # (1,): features of a block

    def encode_row(self, observation, first, index, value, first_out):
        n = self.shifts.shape[1]
        for k in range(self.starts.size):
            index[first_out + k] = k
        for m in range(self.members.shape[0]):
            i, out, j = self.members[m, 0], self.members[m, 2], self.members[m, 3]
            whole, part = tile(observation[first + i], self.scaling[0, i], self.scaling[1, i], self.scaling[2, i], n)
            tilings = index[first_out + out :]
            for t in range(n):
                coordinate = int(whole) + (1 if self.shifts[j, t] >= n - part else 0)
                h = mixed(int(tilings[t]) & 0xFFFFFFFF, coordinate)
                tilings[t] = h - (1 << 32) if h >> 31 else h  # the same bits, as a signed number
        for k in range(self.starts.size):
            h = int(index[first_out + k]) & 0xFFFFFFFF
            index[first_out + k] = self.starts[k] + ((h * int(self.block[0])) >> 32)


@entry
def _tiles(scaling, members, shifts, starts, observation, out):
    encode_row(TileRule(scaling, members, shifts, starts), observation, 0, out, scaling, 0)


@entry
def _hashed_tiles(scaling, members, shifts, starts, block, observation, out):
    encode_row(HashedTileRule(scaling, members, shifts, starts, block), observation, 0, out, scaling, 0)


class TileCoder(Bounded):
    """Tile coding: ``n_tilings`` shifted grids; the features are the tiles that an observation lies in.

    The first choice for a few dimensions: local, cheap (only ``n_active_`` features are not 0), and it generalises over
    the width of a tile, at the resolution of a tile width divided by ``n_tilings``.

    Parameters
    ----------
    n_tilings : int
        Best a power of 2 that is at least 4 times the dimensions of a group.
    bins : int or sequence of int
        Tiles that cover a dimension from low to high: one number for all, or one for each.
    low, high : float or sequence, optional
        Bounds, one for all dimensions or one for each; None, or None for some dimension: fitted. Observations outside
        count as on the edge.
    groups : sequence of tuples of int or str, optional
        Dimensions that are tiled together, by number or by name: a key of a Dict (all its numbers), ``"place[0]"``, a
        column of data; each group has ``n_tilings`` tilings of its own. Default: one group of all.
        A tiling of a group has Π(bins + 1) tiles, so many dimensions need small groups: ``[(0, 1), (2, 3)]``.
    hash_size : int, optional
        Number of features, where exact indices would be too many: the tiles of each tiling share ``hash_size`` /
        ``n_active_`` features by hashing. Default: exact indices, no collisions.

    Attributes
    ----------
    low_, high_ : (n_in,) arrays
    n_active_ : int
        n_tilings times the number of groups.

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> coder = gq.TileCoder(n_tilings=8, bins=4, low=[-1, 0], high=[1, 10]).fit([[0, 0]])
    >>> coder.n_features_out_, coder.n_active_
    (200, 8)
    >>> here, near, far = (set(coder.encode(np.array(x))) for x in ([0.1, 5.0], [0.2, 5.0], [0.9, 1.0]))
    >>> len(here & near), len(here & far)
    (6, 0)
    """

    kind = "binary"

    def __init__(
        self,
        n_tilings: int = 8,
        bins: Any = 8,
        low: Any = None,
        high: Any = None,
        groups: Any = None,
        hash_size: int | None = None,
    ) -> None:
        self.n_tilings = n_tilings
        self.bins = bins
        self.low = low
        self.high = high
        self.groups = groups
        self.hash_size = hash_size

    def _build(self) -> None:
        n_in = self.n_features_in_
        n = checks.integer("n_tilings", self.n_tilings, least=1, below=2**24)
        bins, groups = self._bins(), self._groups()
        n_active = n * len(groups)
        checks.memory("n_tilings", n, 4 * (n_active + n * n_in))
        tiles = [math.prod(int(bins[i]) + 1 for i in group) for group in groups]
        scaling = np.array([self.low_, bins * self._inverse(), bins])
        shifts = (np.outer(2 * np.arange(max(map(len, groups))) + 1, np.arange(n)) % n).astype(np.int32)
        if self.hash_size is None:
            K = n * sum(tiles)
            if K > MOST_FEATURES:
                raise ValueError(
                    f"bins is {checks.shown(self.bins)}: {n} tilings of {len(groups)} groups have {K:,} tiles, more "
                    f"than {MOST_FEATURES:,}; use fewer bins, smaller groups, or hash_size"
                )
            starts = np.cumsum([0, *np.repeat(tiles, n)])[:-1].astype(np.int32)
            members = _members(groups, n, lambda group, j: math.prod(int(bins[i]) + 1 for i in group[j + 1 :]))
            self._set(TileRule(scaling, members, shifts, starts), K, n_active)
        else:
            K = checks.integer("hash_size", self.hash_size, least=n_active, below=MOST_FEATURES + 1)
            starts = (K // n_active * np.arange(n_active)).astype(np.int32)
            members = _members(groups, n, lambda group, j: 0)
            self._set(HashedTileRule(scaling, members, shifts, starts, np.array([K // n_active])), K, n_active)

    # --- Names and categories ----------------------------------------------------------------------------------------

    #: What is known of the numbers of an observation: names, and which are categories.
    _names: tuple[str, ...] | None = None
    _categories: Mapping[int, tuple[int, int]] = MappingProxyType({})
    _restored: Mapping[str, Any] = MappingProxyType({})

    def describe(self, names: Sequence[str] | None, categories: Mapping[int, tuple[int, int]]) -> None:
        """Say what the numbers of an observation are, before they are fitted."""
        self._names = None if names is None else tuple(names)
        self._categories = dict(categories)

    def _fit_space(self, flat: Flattener) -> None:
        self.describe(flat.names, flat.categories)
        super()._fit_space(flat)

    def _bound(self, low: FloatArray, high: FloatArray) -> None:
        """Every value of a category has tiles of its own: it stands where one begins, and no shift reaches the next."""
        low, high = low.copy(), high.copy()
        for i, (first, n) in self._categories.items():
            low[i], high[i] = first, first + _width(n)
        super()._bound(low, high)

    def _bins(self) -> NDArray[np.int64]:
        """The tiles of each dimension."""
        if "bins" in self._restored:
            return counts("bins", self._restored["bins"], self.n_features_in_)
        bins = counts("bins", self.bins, self.n_features_in_)
        if np.ndim(self.bins) == 0:
            for i, (first, n) in self._categories.items():
                if (self.low_[i], self.high_[i]) == (first, first + _width(n)):
                    bins[i] = _width(n)
        return bins

    def _groups(self) -> list[tuple[int, ...]]:
        """The groups of dimensions, by their numbers."""
        given = self._restored.get("groups", self.groups)
        known = self._names
        if known is None and hasattr(self, "feature_names_in_"):
            known = tuple(map(str, self.feature_names_in_))
        return _groups(given, self.n_features_in_, known)

    def _fitted(self) -> dict[str, Any]:
        named = any(isinstance(i, str) for group in self.groups or () for i in group)
        more: dict[str, Any] = {"bins": self._bins().tolist()} if self._categories or "bins" in self._restored else {}
        return super()._fitted() | more | ({"groups": [list(group) for group in self._groups()]} if named else {})

    def _restore(self, fitted: Mapping[str, Any]) -> None:
        self._restored = {name: fitted[name] for name in ("bins", "groups") if name in fitted}
        super()._restore(fitted)

    @property
    def _encode_one(self) -> Any:
        return _tiles if self.hash_size is None else _hashed_tiles


def _members(groups: list[tuple[int, ...]], n: int, stride: Callable[[tuple[int, ...], int], int]) -> NDArray[np.int32]:
    """A row for every dimension of every group, as TileRule reads them."""
    rows = [(i, stride(group, j), g * n, j) for g, group in enumerate(groups) for j, i in enumerate(group)]
    return np.array(rows, np.int32)


def _width(n: int) -> int:
    """The tiles of a category with n values: a power of 2, so that coordinates are exact."""
    return 1 << (n - 1).bit_length()


def _named(place: str, value: Any, names: Sequence[str] | None) -> list[Any]:
    """The numbers of what is named: one, or all that a key leads to; a number stands for itself."""
    if not isinstance(value, str):
        return [value]
    found = [i for i, name in enumerate(names or ()) if name == value or name.startswith((f"{value}[", f"{value}."))]
    if not found:
        listed = ", ".join(names[:20]) if names else "nothing, as these observations have no names"
        raise ValueError(f"{place} is {value!r}, expected a name among {listed}")
    return found


def _groups(value: Any, n_in: int, names: Sequence[str] | None = None) -> list[tuple[int, ...]]:
    """Groups of dimensions: none empty, and none with a dimension twice."""
    if value is None:
        return [tuple(range(n_in))]
    try:
        given = [
            tuple(i for j, each in enumerate(group) for i in _named(f"groups[{g}][{j}]", each, names))
            for g, group in enumerate([each] if isinstance(each, str) else each for each in value)
        ]
    except TypeError:
        given = []
    if not given or not all(given):
        raise ValueError(f"groups is {checks.shown(value)}, expected tuples of dimensions like [(0, 1), (2,)]")
    groups = [
        tuple(checks.integer(f"groups[{g}][{j}]", i, least=0, below=n_in) for j, i in enumerate(group))
        for g, group in enumerate(given)
    ]
    for g, group in enumerate(groups):
        if len(set(group)) < len(group):
            raise ValueError(f"groups[{g}] is {checks.shown(group)}, which has a dimension twice")
    return groups
