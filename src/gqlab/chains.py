"""Finite Markov chains: recurrent classes, period, stationary distributions, long-run averages.

``kernel`` is a stochastic matrix, ``kernel[..., s, t]`` the probability of going from s to t; leading axes are a
batch of chains with the same support.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from gqlab.checks import FloatArray


def recurrent_classes(support: NDArray[np.bool_]) -> list[NDArray[np.intp]]:
    """The closed communicating classes of a chain whose possible moves are ``support[s, t]``."""
    _, label = connected_components(csr_array(support), directed=True, connection="strong")
    s, t = np.nonzero(support)
    left = label[s[label[s] != label[t]]]
    return [np.flatnonzero(label == k) for k in np.setdiff1d(label, left)]


def period(support: NDArray[np.bool_]) -> int:
    """The period of an irreducible chain: the greatest common divisor of its cycle lengths."""
    order, before = breadth_first_order(csr_array(support), 0)
    level = np.zeros(len(support), dtype=int)
    for s in order[1:]:
        level[s] = level[before[s]] + 1
    s, t = np.nonzero(support)
    return int(np.gcd.reduce(level[s] + 1 - level[t]))


def stationary_distribution(kernel: FloatArray) -> FloatArray:
    """The stationary distribution of irreducible chains, ``(..., n)``.

    The elimination of Grassmann, Taksar and Heyman (1985) never subtracts, so that every entry has full relative
    accuracy, however unlikely the state.
    """
    K = np.array(kernel, dtype=np.float64)
    n = K.shape[-1]
    for k in range(n - 1, 0, -1):  # leave state k out: its visits are passed on to the states below
        K[..., :k, k] /= K[..., k, :k].sum(axis=-1)[..., None]
        K[..., :k, :k] += K[..., :k, k, None] * K[..., None, k, :k]
    mu = np.zeros(K.shape[:-1])
    mu[..., 0] = 1.0
    for k in range(1, n):
        mu[..., k] = (mu[..., :k] * K[..., :k, k]).sum(axis=-1)
    return mu / mu.sum(axis=-1, keepdims=True)


def long_run_distribution(kernel: FloatArray, start: FloatArray) -> FloatArray:
    """The long-run frequency of each state (the Cesàro limit) of chains started from ``start``, ``(..., n)``."""
    support = kernel.reshape(-1, *kernel.shape[-2:])[0] > 0
    classes = recurrent_classes(support)
    transient = np.setdiff1d(np.arange(kernel.shape[-1]), np.concatenate(classes))
    # Expected visits to the transient states, then where the chain is absorbed.
    visits = np.zeros((*kernel.shape[:-2], len(transient)))
    if len(transient) and start[transient].any():
        stay = np.eye(len(transient)) - kernel[..., transient[:, None], transient]
        enter = np.broadcast_to(start[transient], visits.shape)
        visits = np.linalg.solve(np.swapaxes(stay, -1, -2), enter[..., None])[..., 0]
    out = np.zeros(kernel.shape[:-1])
    for members in classes:
        absorbed = start[members].sum() + np.einsum("...s,...st->...", visits, kernel[..., transient[:, None], members])
        mu = stationary_distribution(kernel[..., members[:, None], members])
        out[..., members] = absorbed[..., None] * mu
    return out
