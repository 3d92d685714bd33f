"""Whether features can hold a policy's values: can trees predict δ from (s, a), out of fold?

Where they hold them δ has the mean 0 in every pair, whatever one looks at. Two folds of episodes; x_e = Σ pred·δ of an
episode, z = Σx_e/√Σx_e². The residuals of both folds are of one solve, so what the features do hold makes z negative:
a misfit shows when it is larger than that, and so large that it matters. (Solved for in each fold apart, z is above 3
long before an answer is off by its standard error.) δ are martingale differences: where there are few episodes, pieces
of them count as much as whole ones.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gqlab.support.checks import FloatArray

#: Above this the features cannot hold the values.
MOST_MISFIT = 3.0

#: Trees of a fold, and the least rows of a leaf, as a number and as a share of the rows: δ is nearly all noise.
N_TREES, LEAST_ROWS, LEAST_SHARE = 25, 10, 1 / 300

#: Episodes are cut into pieces where there are fewer than so many: z of m of them is at most √m.
PIECES = 40


def misfit(inputs: FloatArray, delta: FloatArray, episode: NDArray[np.int64], seed: int) -> float:
    """z of residuals (n,) at inputs (n, k): large where they can be predicted."""
    from sklearn.ensemble import ExtraTreesRegressor

    n, scale = len(delta), float(np.abs(delta).max())
    if n < 4 * LEAST_ROWS or scale == 0:
        return 0.0
    fold, predicted = folds(episode, seed), np.zeros(n)
    leaf = int(max(LEAST_ROWS, n * LEAST_SHARE))
    for k in (0, 1):
        trees = ExtraTreesRegressor(N_TREES, min_samples_leaf=leaf, random_state=seed + k, n_jobs=1)
        trees.fit(inputs[fold == k], delta[fold == k] / scale)
        predicted[fold != k] = trees.predict(inputs[fold != k])
    x = np.bincount(pieces(episode), weights=predicted * delta / scale)
    total = float(np.sqrt(x @ x))
    return float(x.sum()) / total if total > 0 else 0.0


def folds(episode: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """0 or 1 for every row: half of the episodes each, drawn at random; of one episode the two halves."""
    number = np.cumsum(np.append(False, np.diff(episode) != 0))
    m = int(number[-1]) + 1
    if m == 1:
        return (np.arange(len(episode)) >= len(episode) // 2).astype(np.int64)
    return (np.random.default_rng([seed, 1]).permutation(m) % 2)[number]


def pieces(episode: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number of every row's piece: an episode, or a part of one that is longer than the rows of PIECES pieces."""
    n = len(episode)
    new = np.append(True, np.diff(episode) != 0)
    begin = np.maximum.accumulate(np.where(new, np.arange(n), 0))
    longest = max(n // PIECES, 1) if int(new.sum()) < PIECES else n
    return np.cumsum(new | ((np.arange(n) - begin) % longest == 0)) - 1
