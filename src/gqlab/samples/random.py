"""Counter-based random numbers: word c of a key is a 64-bit mix of (key, c).

A key belongs to (seed, run, stream), a counter to the time step. So run k of a seed draws the same numbers
whatever the number of runs or threads and whatever the device, and a checkpoint is a counter.

All keys walk through one sequence of 2⁶⁴ words, each from a place of its own. Two of K walks of length N overlap
somewhere with a probability of about K² N / 2⁶⁴: 2·10⁻⁵ for a thousand runs of 10⁷ samples, four streams each.
"""

from __future__ import annotations

import numpy as np

from gqlab.rules.dispatch import rule
from gqlab.support.checks import FloatArray

#: What the words of a run are for: its transitions, its restarts, Algorithm 1's indices, the output iterate; the
#: transitions and the first states of policy gradient's own trajectories; walks and Monte Carlo draws that measure
#: it; where its watches begin, and the walks that they take.
TRAJECTORY, RESTART, BATCH_INDEX, OUTPUT = range(4)
EPISODE, EPISODE_START, WALK, MONTE_CARLO, WATCH_OFFSET, WATCH_WALK = range(16, 22)

_WEYL = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_27, _30, _31, _32 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_ONE = np.uint64(1)


@rule
def word(key, counter):
    """Word ``counter`` of ``key``: SplitMix64 (Steele, Lea and Flood, 2014) at a given place of its sequence."""
    z = key + _WEYL * (np.uint64(counter) + _ONE)
    z = (z ^ (z >> _30)) * _MIX_1
    z = (z ^ (z >> _27)) * _MIX_2
    return z ^ (z >> _31)


@rule
def stream_key(seed, run, stream):
    """The key of one stream of one run."""
    return word(word(word(np.uint64(0), seed), run), stream)


@rule
def below(w, n):
    """A whole number under n (n < 2³²) from the word w: the high half of the product w·n."""
    n = np.uint64(n)
    return ((w >> _32) * n + (((w & _LOW) * n) >> _32)) >> _32


@rule
def unit(w):
    """A number in (0, 1] from the word w."""
    return (np.float64(w >> np.uint64(11)) + 0.5) * 1.1102230246251565e-16


@rule
def draw_alias(threshold, alias, first, n, w):
    """An entry of the alias table at ``first`` … ``first + n − 1``, by one word.

    The high half of w·n picks a column and the low half, again uniform, decides between the column and its alias.
    """
    column = first + np.uint32(below(w, n))
    if w * np.uint64(n) < threshold[column]:
        return column
    return alias[column]


def alias_table(weights: FloatArray) -> tuple[np.ndarray, np.ndarray]:
    """Walker's alias table of a distribution, by Vose's method: thresholds in units of 2⁻⁶⁴, and aliases."""
    n = len(weights)
    share = (weights / weights.sum() * n).tolist()
    alias = list(range(n))
    small = [k for k in range(n) if share[k] < 1]
    large = [k for k in range(n) if share[k] >= 1]
    while small and large:
        k, giver = small.pop(), large.pop()
        alias[k] = giver
        share[giver] -= 1 - share[k]
        (small if share[giver] < 1 else large).append(giver)
    for k in small + large:  # full up to rounding: each is its own alias
        share[k] = 1.0
    return thresholds(np.array(share)), np.array(alias, dtype=np.uint32)


def alias_tables(weights: FloatArray) -> tuple[np.ndarray, np.ndarray]:
    """The same for many distributions, (R, n), all advanced together step by step, with exactly the same numbers."""
    R, n = weights.shape
    share = weights / weights.sum(axis=1, keepdims=True) * n
    alias = np.broadcast_to(np.arange(n, dtype=np.uint32), (R, n)).copy()
    is_large = share >= 1
    small, large = (np.argsort(x, axis=1, kind="stable") for x in (is_large, ~is_large))  # lists, and their lengths
    n_small, n_large = n - is_large.sum(axis=1), is_large.sum(axis=1)
    row = np.flatnonzero((n_small > 0) & (n_large > 0))
    while len(row):
        n_small[row] -= 1
        n_large[row] -= 1
        k, giver = small[row, n_small[row]], large[row, n_large[row]]
        alias[row, k] = giver
        left = share[row, giver] - (1 - share[row, k])
        share[row, giver] = left
        down = left < 1
        small[row[down], n_small[row[down]]] = giver[down]
        n_small[row[down]] += 1
        large[row[~down], n_large[row[~down]]] = giver[~down]
        n_large[row[~down]] += 1
        row = row[(n_small[row] > 0) & (n_large[row] > 0)]
    for remaining, count in ((small, n_small), (large, n_large)):
        row, place = np.nonzero(np.arange(n) < count[:, None])
        share[row, remaining[row, place]] = 1.0
    return thresholds(share), alias


def thresholds(share: FloatArray) -> np.ndarray:
    """Shares in units of 2⁻⁶⁴, at most 2⁶⁴ − 1."""
    full = share >= 1
    return np.where(full, np.uint64(2**64 - 1), (np.where(full, 0.0, share) * 2.0**64).astype(np.uint64))
