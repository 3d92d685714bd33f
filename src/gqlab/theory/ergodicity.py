"""Geometric ergodicity, certified: Λ and ρ with sup_s d_TV(P(s_t|s_0 = s), μ) ≤ Λρᵗ for every t > 0.

    d(t) = max_s d_TV(Pᵗ(s,·), μ)          d̄(t) = max_{s,s'} d_TV(Pᵗ(s,·), Pᵗ(s',·))

d ≤ d̄, and d̄(t + u) ≤ d̄(t) d̄(u) with d̄ ≤ 1. So a single t₀ with d̄(t₀) < 1 certifies every t: t = k t₀ + r with
r < t₀ gives d(t) ≤ d̄(t₀)ᵏ = ρ^{t−r} ≤ Λρᵗ for ρ = d̄(t₀)^{1/t₀} and Λ = ρ^{−(t₀−1)}.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gqlab.mdp import chains
from gqlab.problems.problem import Problem
from gqlab.support.checks import FloatArray

#: The number of powers of the kernel that are tried one by one, times the number of states.
MOST_POWERS = 20_000

#: No power beyond this one is tried.
LONGEST = 10**7

#: Smaller distances are rounding, and not used as certificates.
SMALLEST = 1e-10


@dataclass(frozen=True)
class Ergodicity:
    """A certified pair. ``rho`` may be 0: then the chain forgets its state in one step."""

    Lambda: float
    rho: float
    t0: int
    d_bar: float

    @property
    def mixing(self) -> float:
        """Λρ/(1−ρ), the sum of the certified distances over t ≥ 1."""
        return self.Lambda * self.rho / (1 - self.rho)

    def tail(self, t: int) -> float:
        """Σ_{u ≥ t} Λρᵘ for t ≥ 1: an upper bound on the sum of the distances from t on."""
        return self.Lambda * self.rho**t / (1 - self.rho)


def behaviour_chain(problem: Problem) -> tuple[NDArray[np.intp], FloatArray]:
    """The states in which a sample can be drawn, and the chain of the behaviour policy between them, restarts included.

    States that a trajectory can never be in (terminal ones, and those out of reach of the start) are left out.
    """
    mdp = problem.mdp
    K = mdp.chain(problem.behavior)
    seen = mdp.start > 0
    while True:
        grown = seen | (K[seen] > 0).any(axis=0)
        if (grown == seen).all():
            break
        seen = grown
    states = np.flatnonzero(seen & ~mdp.terminal)
    return states, K[np.ix_(states, states)]


def period(problem: Problem) -> int:
    """The period of the behaviour policy's recurrent class."""
    recurrent = problem.exact.stationary > 0
    K = problem.mdp.chain(problem.behavior)[np.ix_(recurrent, recurrent)]
    return chains.period(K > 0)


def certify(problem: Problem) -> Ergodicity:
    """The certified pair whose Λρ/(1−ρ) is smallest; ``ValueError`` for a periodic chain.

    Examples
    --------
    >>> import gqlab as gq
    >>> from gqlab.theory.ergodicity import certify
    >>> mdp = gq.FiniteMDP([[[0.75, 0.25]], [[0.25, 0.75]]], [[0.0], [0.0]], discount=0.5)
    >>> pair = certify(gq.Problem(mdp, [[[1.0, 0.0]], [[0.0, 1.0]]]))  # d̄(t) = 2⁻ᵗ
    >>> round(pair.Lambda, 6), round(pair.rho, 6), pair.t0
    (1.0, 0.5, 1)
    """
    p = period(problem)
    if p > 1:
        raise ValueError(
            f"the behaviour policy's chain has period {p}: it is not geometrically ergodic (Assumption 4 fails)"
        )
    _, K = behaviour_chain(problem)
    best: Ergodicity | None = None
    for t, power in _powers(K):
        d_bar = worst_pair(power)
        # A margin, so that rounding does not make the certificate too small.
        d_bar = min(d_bar * (1 + 1e-12) + 1e-15 * t * len(K), 1.0) if d_bar > 0 else 0.0
        if d_bar >= 1 - 1e-9:
            continue
        pair = _pair(t, d_bar)
        if best is None or pair.mixing < best.mixing:
            best = pair
        # Λρ/(1−ρ) ≥ d̄(t)^{−(t−2)/t} ≥ d̄(t)^{−1/2} from t = 4 on, and d̄ falls: no later t can do better.
        if d_bar < SMALLEST or (t >= 4 and best.mixing <= d_bar**-0.5):
            break
    if best is None:
        raise ValueError("the behaviour policy's chain mixes too slowly to certify geometric ergodicity in float64")
    return best


def _powers(K: FloatArray) -> Iterator[tuple[int, FloatArray]]:
    """(t, Kᵗ) for t = 1, 2, 3, … up to a number of powers that the size allows, from there on in steps of a fifth."""
    each = max(8, MOST_POWERS // len(K))
    power, t = K, 1
    doubled = [K]  # K, K², K⁴, …
    while t < LONGEST:
        yield t, power
        step = 1 if t < each else max(1, t // 5)
        while 2 ** len(doubled) <= step:
            doubled.append(_stochastic(doubled[-1] @ doubled[-1]))
        for k in range(step.bit_length()):
            if step >> k & 1:
                power = power @ doubled[k]
        power, t = _stochastic(power), t + step


def _stochastic(kernel: FloatArray) -> FloatArray:
    return np.asarray(kernel / kernel.sum(axis=1, keepdims=True))


def worst_pair(kernel: FloatArray) -> float:
    """max_{s,s'} d_TV between two rows."""
    from scipy.spatial.distance import pdist

    return 0.5 * float(pdist(kernel, "cityblock").max(initial=0.0))


def distances(problem: Problem, below: float = 1e-12, most: int = 100_000) -> FloatArray:
    """d(0), d(1), …: max_s d_TV(P(s_t|s_0 = s), μ) until it falls below ``below``, (n,)."""
    states, K = behaviour_chain(problem)
    mu = problem.exact.stationary[states]
    out = []
    power = np.eye(len(K))
    for _ in range(most):
        out.append(float(0.5 * np.abs(power - mu).sum(axis=1).max()))
        if out[-1] < below:
            break
        power = power @ K
    return np.array(out)


def _pair(t: int, d_bar: float) -> Ergodicity:
    # Where d̄ is 0, any ρ would serve; for t > 1 take one that keeps Λ finite.
    rho = (d_bar if d_bar > 0 or t == 1 else SMALLEST) ** (1 / t)
    rho = min(rho * (1 + 1e-14), 1 - 1e-16)
    return Ergodicity(Lambda=1.0 if t == 1 else rho ** -(t - 1.0), rho=rho, t0=t, d_bar=d_bar)
