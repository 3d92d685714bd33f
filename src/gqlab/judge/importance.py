"""Importance sampling along episodes: weighted per-decision, doubly robust, weighted doubly robust; with intervals.

With ρ_t = Π_{u ≤ t} π(a_u|s_u)/p_u of an episode, and the sums at time t over all of them (one that is over keeps its
last weight):

    wpdis   Σ_t γ^t Σ_i ρ_{i,t} y_{i,t} / Σ_i ρ_{i,t},     y = r, and r + γV(s') where an episode was cut off
    dr      mean over i of V(s₀) + Σ_t γ^t ρ_{i,t} δ_{i,t},    V and δ from the other half of the episodes
    wdr     mean V(s₀) + Σ_t γ^t Σ_i ρ_{i,t} δ_{i,t} / Σ_i ρ_{i,t}

A ratio's error is that of its linearisation, Student's t over episodes. Probabilities are never estimated: errors of
theirs would multiply along an episode.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gqlab.judge.estimates import StudentInterval
from gqlab.support.checks import FloatArray

#: What :func:`gqlab.decide` may add; all of them need the behaviour's probabilities.
METHODS = ("wpdis", "dr", "wdr")


class Walk(NamedTuple):
    """The rows of whole episodes, one behind the other."""

    ratio: FloatArray  # (n,)  π(a|s)/p
    y: FloatArray  # (n,)  r, and what comes behind a cut
    delta: FloatArray  # (n,)
    starts: FloatArray  # (m,)  V(s₀)
    first: NDArray[np.intp]  # (m,)  the first row of every episode


class Weighed(NamedTuple):
    """What a method says."""

    interval: StudentInterval
    effective_episodes: float  # (Σρ)²/Σρ² of the weights of whole episodes


def weighed(method: str, walk: Walk, discount: float) -> Weighed:
    """The estimate of a method."""
    values = walk.y if method == "wpdis" else walk.delta
    influence, effective = _along(walk, values, discount, weighted=method != "dr")
    total = influence if method == "wpdis" else influence + walk.starts
    m = len(total)
    se = float(np.sqrt(total.var(ddof=1) / m)) if m > 1 else np.inf
    return Weighed(StudentInterval(float(total.mean()), se, max(m - 1.0, 1.0)), effective)


def _along(walk: Walk, values: FloatArray, discount: float, weighted: bool) -> tuple[FloatArray, float]:
    """What every episode adds, (m,), whose mean is the sum over time, and the effective episodes at the end."""
    lengths = np.diff(np.append(walk.first, len(values)))
    order = np.argsort(-lengths, kind="stable")
    starts, lengths, m = walk.first[order], lengths[order], len(lengths)
    weight, log_scale, out, mean = np.ones(m), 0.0, np.zeros(m), 0.0
    for t in range(int(lengths[0])):
        alive = int(np.searchsorted(-lengths, -t))  # the episodes that are longer than t
        rows = starts[:alive] + t
        weight[:alive] *= walk.ratio[rows]
        largest = float(weight.max())
        if largest == 0:  # the policy does nothing of what was done from here on
            break
        weight /= largest  # products of thousands of ratios leave the finite numbers
        log_scale += float(np.log(largest))
        if weighted:
            share = m * weight / weight.sum()
            at_t = float(share[:alive] @ values[rows]) / m
            out -= discount**t * share * at_t
            out[:alive] += discount**t * share[:alive] * values[rows]
            mean += discount**t * at_t
        else:
            with np.errstate(over="ignore"):
                out[:alive] += discount**t * weight[:alive] * np.exp(log_scale) * values[rows]
    influence = np.empty(m)
    influence[order] = out + mean if weighted else out
    squares = float(weight @ weight)
    return influence, float(weight.sum()) ** 2 / squares if squares > 0 else 0.0
