"""The tile coder against the textbook, in exact fractions, and what holds for every tiling."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import gqlab as gq

QUICK = settings(max_examples=150, deadline=None)


def textbook(x, low, high, n_tilings, bins, groups):
    """The active tiles as Sutton and Barto (9.5.4) describe them: move the observation, cut it into tiles, count them."""
    active, first = [], 0
    for group in groups:
        for t in range(n_tilings):
            tile = 0
            for j, i in enumerate(group):
                inside = Fraction(x[i] - low[i]) / Fraction(high[i] - low[i]) * bins[i]
                offset = Fraction((2 * j + 1) * t % n_tilings, n_tilings)
                tile = tile * (bins[i] + 1) + math.floor(inside + offset)
            active.append(first + tile)
            first += math.prod(bins[i] + 1 for i in group)
    return active, first


@st.composite
def coders(draw, most=4):
    n_in = draw(st.integers(1, most))
    groups = draw(
        st.none()
        | st.lists(st.lists(st.integers(0, n_in - 1), min_size=1, unique=True).map(tuple), min_size=1, max_size=3)
    )
    bins = draw(st.lists(st.integers(1, 6), min_size=n_in, max_size=n_in))
    n_tilings = draw(st.integers(1, 17))
    # Powers of 2 as widths, and below whole multiples of 1/1024 as places: then floating point numbers are exact.
    low = np.array(draw(st.lists(st.integers(-8, 8), min_size=n_in, max_size=n_in)), float)
    width = 2.0 ** np.array(draw(st.lists(st.integers(-3, 5), min_size=n_in, max_size=n_in)))
    hash_size = draw(st.none() | st.integers(3 * 17, 2000))
    return gq.TileCoder(n_tilings, bins, low, low + width, groups, hash_size).fit(low[None])


def places(draw, coder, lowest=0, highest=1):
    unit = draw(
        st.lists(st.integers(1024 * lowest, 1024 * highest - 1), min_size=len(coder.low_), max_size=len(coder.low_))
    )
    return coder.low_ + (coder.high_ - coder.low_) * np.array(unit) / 1024


@QUICK
@given(data=st.data(), coder=coders().filter(lambda coder: coder.hash_size is None))
def test_the_tiles_are_those_of_the_textbook(data, coder):
    x = places(data.draw, coder)
    groups = coder.groups or [tuple(range(len(x)))]
    active, K = textbook(x, coder.low_, coder.high_, coder.n_tilings, coder.bins, groups)
    assert coder.encode(x).tolist() == active
    assert coder.n_features_out_ == K
    assert coder.n_active_ == len(active)


@QUICK
@given(data=st.data(), coder=coders())
def test_indices_are_in_range_distinct_and_rising(data, coder):
    index = coder.encode(places(data.draw, coder, -2, 3))
    assert len(index) == coder.n_active_
    assert index[0] >= 0
    assert index[-1] < coder.n_features_out_
    assert (np.diff(index) > 0).all()


@QUICK
@given(data=st.data(), coder=coders())
def test_outside_is_the_edge(data, coder):
    x = places(data.draw, coder, -2, 3)
    clipped = np.clip(x, coder.low_, coder.high_)
    assert coder.encode(x).tolist() == coder.encode(clipped).tolist()
    below = coder.encode(np.nextafter(coder.high_, -np.inf))
    assert coder.encode(coder.high_ + 1).tolist() == below.tolist()


@QUICK
@given(data=st.data(), coder=coders())
def test_points_within_the_finest_cell_share_all_tiles_and_neighbours_all_but_one_a_dimension(data, coder):
    """All tilings together cut a dimension of a group into cells of a tile over n: each border belongs to one tiling
    where 2j + 1 and n have no common divisor, and to several where they have."""
    x = places(data.draw, coder)
    cell = (coder.high_ - coder.low_) / (np.array(coder.bins) * coder.n_tilings)
    corner = coder.low_ + np.floor((x - coder.low_) / cell + 1e-9) * cell
    inside, same = corner + 0.25 * cell, corner + 0.75 * cell
    assert coder.encode(inside).tolist() == coder.encode(same).tolist()
    groups = coder.groups or [tuple(range(len(x)))]
    beside = np.minimum(inside + cell, np.nextafter(coder.high_, -np.inf))
    most = sum(min(coder.n_tilings, sum(math.gcd(2 * j + 1, coder.n_tilings) for j in range(len(g)))) for g in groups)
    different = (coder.encode(inside) != coder.encode(beside)).sum()
    assert different <= most


@QUICK
@given(coder=coders(most=2).filter(lambda coder: coder.hash_size is None))
def test_the_offsets_cover_a_tile_evenly(coder):
    """Along the first dimension of a group every tiling has its border at another n-th of a tile."""
    n, i = coder.n_tilings, (coder.groups or [(0,)])[0][0]
    tile = (coder.high_[i] - coder.low_[i]) / coder.bins[i]
    borders = []
    for k in range(n):
        x = coder.low_.copy()
        x[i] += tile * (k + 0.5) / n
        borders.append(coder.encode(x)[:n])
    moved = np.diff(np.array(borders), axis=0) != 0
    assert (moved.sum(axis=1) == 1).all()  # from one n-th to the next one tiling goes on
    assert (moved.sum(axis=0) <= 1).all()  # and never the same again


def test_hashing_spreads_evenly_and_depends_on_every_dimension():
    coder = gq.TileCoder(4, 7, low=0, high=1, hash_size=4 * 1000).fit(np.zeros((1, 30)))
    rng = np.random.default_rng(0)
    X = rng.random((20_000, 30))
    counts = np.bincount(coder.encode_batch(X)[:, 0], minlength=1000)[:1000]
    assert abs(((counts - 20) ** 2 / 20).sum() - 999) < 6 * math.sqrt(2 * 999)  # χ²: 6 standard deviations
    for i in range(30):
        moved = X[:500].copy()
        moved[:, i] = (moved[:, i] + 0.5) % 1
        assert (coder.encode_batch(moved) == coder.encode_batch(X[:500])).mean() < 0.02
