"""Sums over the rows of a block: what the system of a policy is made of, and what its residuals say.

Notation as in :mod:`gqlab.learn.fit.shrunk`. The behaviour's own value is a function of the state alone: the same
system with one action, which every policy shares.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from gqlab.judge.features import Features
from gqlab.judge.rows import LogBlock
from gqlab.support.checks import FloatArray

#: Up to so many features of (s, a) a matrix is dense; beyond, it is kept sparse where states have one feature.
MOST_DENSE, MOST_JOINT = 2500, 6000

#: A pair (s, a) with more leverage than this was seen fewer than three times, or not with its like: its value is a
#: guess. Two rows and λ = 1 are exactly a third: rounding decides nothing.
UNSEEN = 1 / 3 + 1e-9


class PolicyMoments(NamedTuple):
    """Of one policy."""

    ahead: Any  # (d, d)  Σ γφφ̄'ᵀ
    start: FloatArray  # (d,)  Σ φ̄ over the first states of episodes
    lost: FloatArray  # (d,)  Σ γρφ, with ρ the probability of next pairs that are left out
    start_lost: float  # Σ ρ over the first states


class LogMoments(NamedTuple):
    """Of the log alone."""

    b: FloatArray  # (d,)  Σ φ r
    gram: FloatArray  # (A, K, K) or (A, K)  Σ φφᵀ
    features: FloatArray  # (K,)  Σ x
    ahead: Any  # (K, K)  Σ γ x x'ᵀ, of the behaviour
    tail: FloatArray  # (K,)  Σ γ^T x(s_T) over the episodes that were cut off


class RefinedWeights(NamedTuple):
    """Of the solve after one step of refinement, θ₂, which gains are made of."""

    theta: FloatArray  # (A, K)  θ₂ = θ + (A + λI)⁻¹(b − Aθ)
    v: FloatArray  # (A, K)  u + λu₂,  u₂ = (A + λI)⁻ᵀu
    prior: float  # κ₂ = λ²u₂ᵀc / Σ(1 − γ·live)


class PolicyWeights(NamedTuple):
    """What the residuals of a policy are computed with."""

    theta: FloatArray  # (A, K)
    u: FloatArray  # (A, K)
    inverse: Any  # (C + λI)⁻¹; None where no leverage is asked for
    left_out: float | None = None  # the value of pairs whose leverage is above UNSEEN; None: they are not left out
    v0: float = 0.0
    prior: float = 0.0  # κ = λuᵀc / Σ(1 − γ·live): how much of the answer is v0, for each unit of its denominator
    refined: RefinedWeights | None = None


class Residuals(NamedTuple):
    """Of one policy: numbers over all rows, and sums for each episode of the block."""

    numbers: FloatArray  # (len(NUMBERS),)
    corrections: FloatArray  # (n_episodes,)  Σ (wδ₂ + λw₂δ + κ₂e)
    starts: FloatArray  # (2, n_starts)  V(s₀) by θ, and by θ₂


#: What is summed of every row.
NUMBERS = ("w", "ww", "wwdd", "wwh", "ww1", "wwww1", "dd", "vvh", "vvh0", "dd0")


class Matrices:
    """Features of pairs as matrices, (n, d): sparse where they are binary."""

    def __init__(self, features: Features, n_actions: int) -> None:
        self.features, self.A, self.K = features, n_actions, features.K
        self.d = n_actions * features.K
        self.dense = self.d <= MOST_DENSE or features.n_active > 1
        if self.dense and self.d > MOST_JOINT:
            raise ValueError(
                f"features: {features.K} of a state for {n_actions} actions are {self.d}, expected at most {MOST_JOINT}"
            )

    def lifted(self, x: NDArray[Any], weights: FloatArray) -> Any:
        """Σ_a weights[:, a] φ(s, a), (n, A·K), of features x of n states."""
        n, A = weights.shape
        if not self.features.binary:
            return (weights[:, :, None] * x[:, None, :]).reshape(n, A * self.K)
        row, action = np.nonzero(weights)
        width = self.features.n_active
        places = (action * self.K)[:, None] + x[row]
        values = np.repeat(weights[row, action] * self.features.value, width)
        ends = np.append(0, np.cumsum(np.bincount(row, minlength=n) * width))
        return scipy.sparse.csr_array((values, places.reshape(-1), ends), shape=(n, A * self.K))

    def product(self, left: Any, right: Any) -> Any:
        """leftᵀ right, dense where matrices are."""
        out = left.T @ right
        return out.toarray() if self.dense and scipy.sparse.issparse(out) else out

    def zeros(self, A: int) -> Any:
        d = A * self.K
        return np.zeros((d, d)) if self.dense else scipy.sparse.csc_array((d, d))

    def total(self, x: NDArray[Any], weights: FloatArray) -> FloatArray:
        """Σ over the states of Σ_a weights[:, a] φ(s, a), (A·K,)."""
        return np.asarray(self.lifted(x, weights).sum(axis=0)).reshape(-1)

    def values(self, x: NDArray[Any], theta: FloatArray) -> FloatArray:
        """φ(s, a)ᵀθ of all actions, (n, A); theta is (A, K)."""
        if not self.features.binary:
            return np.asarray(x @ theta.T)
        out = theta.T[x[:, 0]]
        for place in x.T[1:]:
            out += theta.T[place]
        return np.asarray(out * self.features.value)

    def gram(self, x: NDArray[Any], action: NDArray[np.int64]) -> FloatArray:
        """Σ φφᵀ, (A, K, K), or its diagonal (A, K) where a state has one feature."""
        if self.features.binary and self.features.n_active == 1:
            counts = np.bincount(action * self.K + x[:, 0], minlength=self.d).astype(np.float64)
            return (counts * self.features.value**2).reshape(self.A, self.K)
        out = np.zeros((self.A, self.K, self.K))
        for a in range(self.A):
            states = x[action == a]
            matrix = self.lifted(states, np.ones((len(states), 1)))
            product = matrix.T @ matrix
            out[a] = product.toarray() if scipy.sparse.issparse(product) else product
        return out

    def leverage(self, x: NDArray[Any], action: Any, inverse: FloatArray) -> FloatArray:
        """h = φᵀ(C + λI)⁻¹φ of pairs, (n,)."""
        if not self.features.binary:
            out = np.zeros(len(x))
            for a in range(self.A):
                rows = np.flatnonzero(np.broadcast_to(action, len(x)) == a)
                out[rows] = ((x[rows] @ inverse[a]) * x[rows]).sum(axis=1)
            return out
        square = self.features.value**2
        if inverse.ndim == 2:
            return np.asarray(inverse[action, x[:, 0]] * square)
        total = np.zeros(len(x))
        for j, place in enumerate(x.T):
            total += inverse[action, place, place]
            for other in x.T[:j]:
                total += 2 * inverse[action, place, other]
        return total * square

    def kept(self, x: NDArray[Any], pi: FloatArray, inverse: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The probabilities of the pairs that the log has seen enough of, (n, A), and of all others, ρ (n,)."""
        kept = np.zeros_like(pi)
        for a in range(self.A):
            rows = np.flatnonzero(pi[:, a])
            good = rows[self.leverage(x[rows], a, inverse) <= UNSEEN]
            kept[good, a] = pi[good, a]
        return kept, pi.sum(axis=1) - kept.sum(axis=1)


def log_sums(m: Matrices, block: LogBlock, discount: float) -> LogMoments:
    """The sums of the log alone."""
    x, after = block.x[block.first], block.x[block.after]
    gamma: FloatArray = discount * block.live.astype(np.float64)
    ones = np.ones((len(x), 1))
    taken = np.zeros((len(x), m.A))
    taken[np.arange(len(x)), block.action] = block.reward
    state = m.lifted(x, ones)
    cut = np.flatnonzero(block.cut)
    tail: FloatArray = np.power(discount, block.time[cut] + 1.0)[:, None]
    return LogMoments(
        b=m.total(x, taken),
        gram=m.gram(x, block.action),
        features=np.asarray(state.sum(axis=0)).reshape(-1),
        ahead=m.product(state, m.lifted(after, gamma[:, None])),
        tail=m.total(after[cut], tail),
    )


def policy_sums(m: Matrices, block: LogBlock, pi: FloatArray, discount: float, inverse: Any = None) -> PolicyMoments:
    """The sums of a policy with probabilities ``pi`` at the block's observations.

    With ``inverse`` the pairs that were hardly seen are left out, and summed apart.
    """
    lost = np.zeros(len(pi))
    if inverse is not None:
        pi, lost = m.kept(block.x, pi, inverse)
    x, gamma = block.x[block.first], discount * block.live
    taken = np.zeros((len(x), m.A))
    taken[np.arange(len(x)), block.action] = 1
    phi = m.lifted(x, taken)
    begin = block.first[block.starts]
    return PolicyMoments(
        ahead=m.product(phi, m.lifted(block.x[block.after], gamma[:, None] * pi[block.after])),
        start=m.total(block.x[begin], pi[begin]),
        lost=np.asarray(phi.T @ (gamma * lost[block.after])),
        start_lost=float(lost[begin].sum()),
    )


class RowValues(NamedTuple):
    """Of every row of a block: the weight, the residual, the leverage, and how the row moves the answer."""

    w: FloatArray
    delta: FloatArray
    h: FloatArray
    moved: FloatArray  # wδ + κe, e = r − v0(1 − γ·live): by its residual, and through v0
    v: FloatArray  # w + λw₂: the weight of the row in x₀ᵀθ₂,
    refined: FloatArray  # wδ₂ + λw₂δ + κ₂e: and how the row moves that
    starts: FloatArray  # (2, n_starts)  V(s₀) of the rows that begin an episode, by θ and by θ₂


def deltas(
    m: Matrices, block: LogBlock, pi: FloatArray, discount: float, judged: PolicyWeights
) -> tuple[FloatArray, FloatArray]:
    """δ of every row, (n,), and V of every observation."""
    lost, value = np.zeros(len(pi)), judged.left_out or 0.0
    if judged.left_out is not None:
        pi, lost = m.kept(block.x, pi, judged.inverse)
    q = m.values(block.x, judged.theta)
    V = (pi * q).sum(axis=1) + lost * value
    return block.reward + discount * block.live * V[block.after] - q[block.first, block.action], V


def row_values(m: Matrices, block: LogBlock, pi: FloatArray, discount: float, judged: PolicyWeights) -> RowValues:
    """w, δ, h and the like of every row, under a policy with probabilities ``pi`` at the block's observations."""
    refined = judged.refined
    assert refined is not None
    delta, V = deltas(m, block, pi, discount, judged)
    delta2, V2 = deltas(m, block, pi, discount, judged._replace(theta=refined.theta))
    x, taken = block.x[block.first], (np.arange(len(block.first)), block.action)
    w, v = m.values(x, judged.u)[taken], m.values(x, refined.v)[taken]
    e = block.reward - judged.v0 * (1 - discount * block.live)
    begin = block.first[block.starts]
    return RowValues(
        w, delta, m.leverage(x, block.action, judged.inverse), w * delta + judged.prior * e, v,
        w * delta2 + (v - w) * delta + refined.prior * e, np.stack([V[begin], V2[begin]]),
    )  # fmt: skip


def residuals(block: LogBlock, rows: RowValues, base: RowValues | None = None) -> Residuals:
    """The sums of a policy's rows; ``base``: those of the policy that it is compared with."""
    w, delta, h, moved, v, refined, starts = rows
    left = np.maximum(1 - h, 0.0)
    with_base = (0.0, 0.0) if base is None else ((v * base.v * h).sum(), delta @ base.delta)
    squares = w * w
    numbers = (
        w.sum(), squares.sum(), moved @ moved, (squares * h).sum(), (squares * left).sum(),
        (squares * squares * left).sum(), delta @ delta, (v * v * h).sum(), *with_base,
    )  # fmt: skip
    return Residuals(np.array(numbers), _by_episode(block, refined), starts)


class BehaviorSums(NamedTuple):
    """Of what runs now, for each episode of a block."""

    returns: FloatArray  # Σ γ^t r, plus γ^T V_b(s_T) where it was cut off
    corrections: FloatArray  # Σ wδ of the part behind the cuts
    square: float  # Σ δ²


def behavior_sums(m: Matrices, block: LogBlock, discount: float, theta: FloatArray, u: FloatArray) -> BehaviorSums:
    """The returns of episodes; theta and u are (1, K): V_b, and what its values behind the cuts weigh."""
    V = m.values(block.x, theta)[:, 0]
    delta = block.reward + discount * block.live * V[block.after] - V[block.first]
    w = m.values(block.x[block.first], u)[:, 0]
    discounts = discount ** block.time.astype(np.float64)
    tail = np.where(block.cut, discounts * discount * V[block.after], 0.0)
    returns = _by_episode(block, discounts * block.reward + tail)
    return BehaviorSums(returns, _by_episode(block, w * delta), float(delta @ delta))


def _by_episode(block: LogBlock, values: FloatArray) -> FloatArray:
    return np.bincount(block.episode - block.episode[0], weights=values).astype(np.float64)


def added(total: Any, new: Sequence[Any]) -> Any:
    """Sums of the same kind, field by field; None stands for nothing yet."""
    return type(new)(*(a + b for a, b in zip(total, new, strict=True))) if total is not None else new
