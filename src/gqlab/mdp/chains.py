"""Finite Markov chains: recurrent classes, period, stationary distributions, long-run averages.

``kernel`` is a stochastic matrix, ``kernel[..., s, t]`` the probability of going from s to t; leading axes are a
batch of chains with the same support.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from gqlab.support.checks import FloatArray

#: Replaces the probability of a move that is too small for a float.
TINY = 1e-300


def recurrent_classes(support: Any) -> list[NDArray[np.intp]]:
    """The closed communicating classes of a chain whose possible moves are ``support[s, t]``, dense or sparse."""
    _, label = connected_components(csr_array(support), directed=True, connection="strong")
    s, t = support.nonzero()
    closed = np.setdiff1d(label, label[s[label[s] != label[t]]])
    order = np.argsort(label, kind="stable")
    ends = np.searchsorted(label[order], closed, side="right")
    return [order[begin:end] for begin, end in zip(np.searchsorted(label[order], closed), ends, strict=True)]


def period(support: Any) -> int:
    """The period of an irreducible chain: the greatest common divisor of its cycle lengths."""
    order, before = breadth_first_order(csr_array(support), 0)
    level, earlier = [0] * support.shape[0], before.tolist()
    for s in order[1:].tolist():
        level[s] = level[earlier[s]] + 1
    s, t = support.nonzero()
    depth = np.array(level)
    return int(np.gcd.reduce(depth[s] + 1 - depth[t]))


def stationary_distribution(kernel: FloatArray) -> FloatArray:
    """The stationary distribution of irreducible chains, ``(..., n)``.

    The elimination of Grassmann, Taksar and Heyman (1985) never subtracts, so that every entry has full relative
    accuracy, however unlikely the state.
    """
    K = np.array(kernel, dtype=np.float64)
    n = K.shape[-1]
    for k in range(n - 1, 0, -1):  # eliminate state k: its visits are passed on to the states below
        K[..., :k, k] /= np.maximum(K[..., k, :k].sum(axis=-1), TINY)[..., None]
        K[..., :k, :k] += K[..., :k, k, None] * K[..., None, k, :k]
    mu = np.zeros(K.shape[:-1])
    mu[..., 0] = 1.0
    for k in range(1, n):
        mu[..., k] = (mu[..., :k] * K[..., :k, k]).sum(axis=-1)
        mu /= mu.max(axis=-1, keepdims=True)  # no overflow, however unlikely the first states
    return mu / mu.sum(axis=-1, keepdims=True)


def long_run_distribution(kernel: FloatArray, start: FloatArray) -> FloatArray:
    """The long-run frequency of each state (the Cesàro limit) of chains started from ``start``, ``(..., n)``."""
    support = kernel.reshape(-1, *kernel.shape[-2:])[0] > 0
    classes = recurrent_classes(support)
    transient = np.setdiff1d(np.arange(kernel.shape[-1]), np.concatenate(classes))
    # Where the chain is absorbed: eliminate the transient states one by one, again without a subtraction.
    K = np.array(kernel, dtype=np.float64)
    mass = np.array(np.broadcast_to(start, K.shape[:-1]))
    for k in transient:
        leave = K[..., k, :].copy()
        leave[..., k] = 0.0
        leave /= np.maximum(leave.sum(axis=-1, keepdims=True), TINY)
        mass += mass[..., k, None] * leave
        mass[..., k] = 0.0
        K += K[..., :, k, None] * leave[..., None, :]
        K[..., :, k] = 0.0
    out = np.zeros(kernel.shape[:-1])
    for members in classes:
        mu = stationary_distribution(kernel[..., members[:, None], members])
        out[..., members] = mass[..., members].sum(axis=-1, keepdims=True) * mu
    return out
