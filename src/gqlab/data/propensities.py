"""Behaviour probabilities that cannot be: a test of what is recorded beside the actions.

A row holds p = b(a|s) of the action that was taken. Given s, that action is drawn from b(·|s), so for any function f

    E[f(a, p) | s] = Σ_a b(a|s) f(a, b(a|s)).

Two kinds of f ≥ 0 have a mean of at most 1, whatever the behaviour is:

* too small: f = 1 + λ(1{a = a'}/p − 1) for an action a' and 0 < λ < 1, since 1{a = a'}/p has the mean 1, or 0 where a'
  is never taken. It grows where a' is taken more often than its probabilities allow.
* too large: f = p^(k−1)/(p^k + (1 − p)^k) for k > 1. With g(p) = p^k/(p^k + (1 − p)^k) its mean is Σ_a g(b(a|s)), and
  that is at most 1: g is convex up to 1/2, with g(0) = 0 and g(p) + g(1 − p) = 1. It grows where actions of a large
  probability are taken again and again, and none of those that the rest of the probability belongs to.

So the product of f over the rows has a mean of at most 1 too, however the states depend on each other, and so has the
mean of such products over actions, λ and k. It exceeds 1/α with a probability of at most α (Markov's inequality): that
is how often right probabilities are called wrong.

1/p has, given s, the mean of the number of actions that the behaviour takes there: at least 2 wherever p < 1.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from gqlab.data.assemble import Chunk
from gqlab.data.findings import Finding
from gqlab.data.transitions import Transitions

#: How often right probabilities may be called wrong.
ALPHA = 1e-3

#: Stakes λ of the first kind, exponents k of the second.
STAKES, EXPONENTS = (0.01, 0.1, 0.5), (1.5, 2.0, 4.0)

#: What is off by less is rounding, or an estimate: a note.
OFF = 0.05


#: What the finding is called.
NAME = "mean of 1/p"


class Propensities:
    """Whether the recorded probabilities can be those of the actions beside them."""

    def __init__(self, data: Transitions) -> None:
        self.n, self.known = 0, True
        self.names = data.action_labels or tuple(range(data.n_actions))
        self.inverse = self.below = 0.0
        self.taken = np.zeros(data.n_actions)  # Σ 1{a = a'}/p
        self.counts = np.zeros(data.n_actions)
        self.small = np.zeros((len(STAKES), data.n_actions))  # logarithms of the products
        self.large = np.zeros(len(EXPONENTS))

    def add(self, chunk: Chunk) -> None:
        if chunk.probability is None:
            self.known = False
            return
        p, n, n_actions = chunk.probability, len(chunk), len(self.counts)
        inverse = 1 / np.maximum(p, np.finfo(float).tiny)
        self.n += n
        self.counts += np.bincount(chunk.actions, minlength=n_actions)
        self.below += float((p < 1).sum())
        with np.errstate(over="ignore"):
            self.taken += np.bincount(chunk.actions, inverse, n_actions)
            self.inverse += float(inverse.sum())
            for k, stake in enumerate(STAKES):
                lost = np.log1p(-stake)  # in a row with another action
                gain = log_small(inverse, stake) - lost
                self.small[k] += np.bincount(chunk.actions, gain, n_actions) + n * lost
            for k, exponent in enumerate(EXPONENTS):
                self.large[k] += float(log_large(p, inverse, exponent).sum())

    def findings(self) -> Iterator[Finding]:
        if not self.known or not self.n:
            return
        small, large = _log_mean(self.small), _log_mean(self.large)
        mean = self.inverse / self.n
        about = "How many actions the behaviour may take, in the mean over the rows"
        if not np.logaddexp(small, large) - np.log(2) > -np.log(ALPHA):
            yield Finding(NAME, "ok", mean, f"{about}: the recorded probabilities agree with the actions.")
            return
        most = int(np.argmax(self.taken))
        if small >= large:
            off = self.taken[most] / self.n - 1
            text = (
                f"{about}. Action {self.names[most]!r} was taken {off + 1:.3g} times as often as its probabilities "
                "say: they are too small, or those of other actions or rows."
            )
        else:
            off = (1 + self.below / self.n) / mean - 1
            text = (
                f"{about}: that is at least 2 wherever p < 1. The recorded probabilities are too large, such as those "
                "of the best action instead of the one taken."
            )
        level, more = ("problem", "") if off > OFF else ("note", " They are off by little, as by rounding.")
        yield Finding(
            NAME, level, mean,
            f"{text} Importance sampling with them is wrong. Right probabilities get this finding in at most 1 of "
            f"{round(1 / ALPHA):,} logs.{more}",
        )  # fmt: skip


def log_small(inverse: NDArray[np.float64], stake: float) -> NDArray[np.float64]:
    """log f of the first kind, where a' was taken; elsewhere it is log(1 − λ)."""
    return np.log1p(stake * (inverse - 1))


def log_large(p: NDArray[np.float64], inverse: NDArray[np.float64], exponent: float) -> NDArray[np.float64]:
    """log f of the second kind."""
    return -np.log(p + (1 - p) * ((1 - p) * inverse) ** (exponent - 1))


def _log_mean(logarithms: NDArray[np.float64]) -> float:
    """The logarithm of the mean of numbers that are given by theirs."""
    return float(np.logaddexp.reduce(logarithms.reshape(-1)) - np.log(logarithms.size))
