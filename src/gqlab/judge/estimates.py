"""Values of policies from a log, and their gains over what runs now: one solve each, with intervals.

    u = (A + λI)⁻ᵀ x₀,  w = φᵀu        the density ratio of each row, from the same factorisation
    value = mean V(s₀)                 over the m first states of episodes
    e     = r − v0(1 − γ·live),  κ = unsupported/Σ(1 − γ·live)     v0 is made of rows as well: how it moves the answer
    se²   = var V(s₀)/m + Σ (wδ + κe)² + Σ w²hσ² + λ²τ²[(Σ_unseen u c)² + Σ_seen u²] + (Σ wδ)²
    unsupported = λ uᵀc                the share of the answer that is the prior's, not the rows'
    ess   = (Σw)²/Σw²                  effective rows

    θ₂  = θ + (A + λI)⁻¹(b − Aθ)       one step of refinement: x₀ᵀθ₂ = x₀ᵀθ + Σ wδ
    ψ_i = V₂(s₀ᵢ) + m Σ_{t∈i} (wδ₂ + λw₂δ + κ₂e)         what episode i says of x₀ᵀθ₂, with u₂ = (A + λI)⁻ᵀu
    G_i = Σ γ^t r + γ^T V_b(s_T) + m Σ_{t∈i} w_b δ_b     and of what runs now; the last two where it was cut off

    gain = x₀ᵀθ₂ − mean G,  its variance that of ψ − G over m, plus the terms of leverage and prior

Σ wδ = λ uᵀ(θ − v0 c) is what shrinking moved the value by, to first order: all of its error where nothing is random.
V_b is the on-policy solve, and w_b what the states behind the cuts weigh in it. Where the log is thin, or in a table
pairs that were hardly seen may matter, the policy is solved for twice more, such pairs valued at the least and at the
most that rewards allow; the interval is the hull of the three.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from gqlab.judge.sums import NUMBERS
from gqlab.learn.fit.shrunk import Gram, Shrunk
from gqlab.support.checks import FloatArray

#: More of the answer than this comes from the prior: the log is thin. Of a value, 5 % is what a gain often is.
MOST_UNSUPPORTED = 0.05

#: Fewer effective rows than this: the log is thin. A standard error from fewer is itself off by 7 % and more.
LEAST_EFFECTIVE = 100.0


def is_thin(unsupported: float, effective_rows: float) -> bool:
    """Whether the log holds too little of what a policy does."""
    return not (abs(unsupported) <= MOST_UNSUPPORTED and effective_rows >= LEAST_EFFECTIVE)


@dataclass(frozen=True)
class StudentInterval:
    """An estimate, with its standard error and the degrees of freedom of Student's t."""

    estimate: float
    se: float
    df: float

    def bound(self, probability: float) -> float:
        """The quantile of the estimate's distribution at such a probability."""
        if self.se == 0:
            return self.estimate
        return self.estimate + float(stats.t.ppf(probability, self.df)) * self.se

    def tail(self) -> float:
        """The probability of such an estimate, or a larger one, where the truth is 0."""
        if self.se == 0:
            return 0.0 if self.estimate > 0 else 1.0
        return float(stats.t.sf(self.estimate / self.se, self.df))

    def other_tail(self) -> float:
        """The probability of such an estimate, or a smaller one, where the truth is 0."""
        return StudentInterval(-self.estimate, self.se, self.df).tail()


@dataclass(frozen=True)
class Estimate:
    """What the log says of one policy."""

    #: The solve; where the log lacks rows, those with the least and the most values of what was hardly seen, too.
    values: tuple[StudentInterval, ...]
    gains: tuple[StudentInterval, ...]
    effective_rows: float
    unsupported: float
    theta: FloatArray  # (A, K)
    lam: float
    inverse: FloatArray  # (C + λI)⁻¹

    @property
    def thin(self) -> bool:
        """Whether too little of the answer comes from rows."""
        return is_thin(self.unsupported, self.effective_rows)

    @property
    def bracketed(self) -> bool:
        """Whether the intervals span what pairs that were hardly seen may be worth."""
        return len(self.values) > 1

    def with_bracket(self, values: tuple[StudentInterval, ...], gains: tuple[StudentInterval, ...]) -> Estimate:
        """The same, with the intervals of further solves."""
        return replace(self, values=self.values + values, gains=self.gains + gains)

    def value_range(self, confidence: float) -> tuple[float, float]:
        """The two-sided interval of the value."""
        out = (1 - confidence) / 2
        return min(one.bound(out) for one in self.values), max(one.bound(1 - out) for one in self.values)

    def gain_range(self, confidence: float) -> tuple[float, float]:
        """Bounds of the gain, each one-sided."""
        return min(one.bound(1 - confidence) for one in self.gains), max(one.bound(confidence) for one in self.gains)

    def gain_tails(self) -> tuple[float, float]:
        """The probabilities of so large, and of so small, a gain where there is none: the largest of the intervals."""
        return max(one.tail() for one in self.gains), max(one.other_tail() for one in self.gains)


@dataclass(frozen=True)
class Estimates:
    """What the log says of what runs now, and of each policy."""

    now: StudentInterval
    policies: list[Estimate]
    value_now: FloatArray  # (K,)  V_b


class ComparedPolicy(NamedTuple):
    """One policy of a comparison, as the second pass leaves it."""

    solution: Shrunk
    u: FloatArray  # (d,)
    numbers: dict[str, float]  # by the names of NUMBERS
    starts: FloatArray  # (m,)  V(s₀)
    refined: FloatArray  # (m,)  V₂(s₀)
    corrections: FloatArray  # (m,)  Σ (wδ₂ + λw₂δ + κ₂e)

    @property
    def psi(self) -> FloatArray:
        """ψ of every episode, (m,), with the mean x₀ᵀθ₂."""
        return self.refined + len(self.starts) * (self.corrections - self.corrections.mean())


def named(numbers: FloatArray) -> dict[str, float]:
    """Sums over the rows, by name."""
    return dict(zip(NUMBERS, map(float, numbers), strict=True))


def noise(numbers: dict[str, float], n: int, gram: Gram, lam: float) -> float:
    """σ² = Σδ²/(n − Σh), over all rows."""
    return numbers["dd"] / max(n - gram.degrees(lam), 1.0)


def prior_variance(u: FloatArray, c: FloatArray, seen: NDArray[np.bool_], lam: float, tau2: float) -> float:
    """λ²τ²[(Σ_unseen u c)² + Σ_seen u²]: pairs that were never seen are off together, the others each for itself."""
    unseen = float(u[~seen] @ c[~seen])
    return lam**2 * tau2 * (unseen**2 + float(u[seen] @ u[seen]))


def satterthwaite(parts: list[tuple[float, float]]) -> float:
    """The degrees of freedom of a sum of variances, each with its own."""
    total = sum(variance for variance, _ in parts)
    spread = sum(variance**2 / df for variance, df in parts)
    return max(total**2 / spread, 1.0) if spread > 0 else np.inf


def value_of(side: ComparedPolicy, estimate: float, gram: Gram, c: FloatArray, n: int) -> StudentInterval:
    """The value of a policy with its standard error: first states, rows with their leverage, prior, shrinkage."""
    m, numbers = len(side.starts), side.numbers
    lam, tau2 = side.solution.lam, side.solution.tau2
    sigma2 = noise(numbers, n, gram, lam)
    left = max(n - gram.degrees(lam), 1.0)
    rows = numbers["ww1"] ** 2 / numbers["wwww1"] if numbers["wwww1"] > 0 else left
    parts = [
        (float(side.starts.var(ddof=1)) / m if m > 1 else 0.0, max(m - 1, 1)),
        (numbers["wwdd"], max(rows, 1.0)),
        (numbers["wwh"] * sigma2, left),
        (prior_variance(side.u, c, gram.seen, lam, tau2), np.inf),
        (float(side.refined.mean() - side.starts.mean()) ** 2, np.inf),
    ]
    return StudentInterval(estimate, float(np.sqrt(sum(variance for variance, _ in parts))), satterthwaite(parts))


def gain_of(
    side: ComparedPolicy, base: ComparedPolicy | FloatArray, gram: Gram, c: FloatArray, n: int
) -> StudentInterval:
    """The gain over ``base``, paired by episode: another policy, or G of what runs now, (m,)."""
    lam, tau2, u, numbers = side.solution.lam, side.solution.tau2, side.u, side.numbers
    left = max(n - gram.degrees(lam), 1.0)
    leverage = numbers["vvh"] * numbers["dd"] / left
    if isinstance(base, ComparedPolicy):
        u = u - base.u
        lam, tau2 = max(lam, base.solution.lam), max(tau2, base.solution.tau2)
        both = base.numbers["vvh"] * base.numbers["dd"] - 2 * numbers["vvh0"] * numbers["dd0"]
        leverage = max(leverage + both / left, 0.0)
    difference = side.psi - (base.psi if isinstance(base, ComparedPolicy) else base)
    m = len(difference)
    if m < 2:
        return StudentInterval(float(difference.mean()), np.inf, 1.0)
    parts = [
        (float(difference.var(ddof=1)) / m, m - 1.0),
        (leverage, left),
        (prior_variance(u, c, gram.seen, lam, tau2), np.inf),
    ]
    return StudentInterval(
        float(difference.mean()), float(np.sqrt(sum(variance for variance, _ in parts))), satterthwaite(parts)
    )
