"""What decides a claim: one log-ratio a problem, their interval across problems, and the rule for a verdict.

A claim is about a ratio, "VR-Greedy-GQ ÷ the other" of some quantity. On one problem every run gives one log-ratio,
paired: run k of either algorithm begins at the same point and sees the same trajectory. The problem's log-ratio is the
mean of its runs'. The pooled ratio is the geometric mean over problems, with a 95 % interval by Student's t *across
problems*. With τ = 1, or 2 where the paper says "much" or "significantly":

* *holds*: the interval lies beyond τ on the claimed side;
* *weaker than claimed*: beyond 1, but not beyond τ;
* *reversed*: beyond 1 on the other side;
* *undecided*: otherwise.

A slope is judged in the same words: on which side of 0 it lies, or within which band.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gqlab.algorithms import Algorithm, VRGreedyGQ
from gqlab.studies.paper.jobs import REWARD_STEPS, Measurement
from gqlab.studies.paper.panels import batch_sizes, interval, tail, tail_mean
from gqlab.studies.paper.results import Results
from gqlab.support.checks import FloatArray

HOLDS, WEAKER, REVERSED, UNDECIDED = "holds", "weaker than claimed", "reversed", "undecided"
OUTCOMES = HOLDS, WEAKER, UNDECIDED, REVERSED

#: A walk of N steps that earned nothing counts half of the least that it could have earned: 0 has no logarithm.
LEAST_REWARD = 0.5 / REWARD_STEPS

#: The counts of a result that an axis stands for.
COUNTS = {
    "computations": "gradient_evaluations", "samples": "samples", "updates": "updates", "iterations": "updates",
}  # fmt: skip


@dataclass(frozen=True)
class Axis:
    """Where two algorithms are compared: at equal "computations", "samples", "updates" or "iterations".

    ``n`` counts them; with ``of`` it counts samples: "both", the last computation that both reach with n samples each;
    "VR-Greedy-GQ", the computations of its n samples.
    """

    unit: str
    n: int
    of: str = ""

    @property
    def words(self) -> str:
        n = f"{self.n // 1000}k"
        if self.of == "both":
            return f"at the last computation that both reach with {n} samples each"
        return f"at the computations of {self.of}'s {n} samples" if self.of else f"at {n} {self.unit}"

    def end(self, pair: tuple[Algorithm, Algorithm]) -> int:
        """The last count that is looked at."""
        if not self.of:
            return self.n
        asked = [a for a in pair if self.of == "both" or isinstance(a, VRGreedyGQ)]
        return min(int(a.gradient_evaluations(np.array([a.n_updates(self.n)]))[0]) for a in asked)

    def common_end(self, pair: tuple[Algorithm, Algorithm], reached: list[NDArray[np.int64]]) -> int:
        """The last count, among those that were recorded of either, up to which both are compared."""
        end = min(self.end(pair), *(int(counts[-1]) for counts in reached))
        if self.unit == "samples":  # whole batches and whole trajectories: as many as both have drawn
            end = min(int(counts[counts <= end][-1]) for counts in reached)
        return end


class Statistic(ABC):
    """Gives the log-ratios of one problem, one for each run."""

    part: str
    axis: Axis

    @abstractmethod
    def log_ratios(self, results: Results, number: int) -> FloatArray:
        """(n_runs,) on problem ``number``."""

    @property
    @abstractmethod
    def words(self) -> str:
        """What the ratio is, in words."""


@dataclass(frozen=True)
class Ratio(Statistic):
    """log of a metric of one algorithm over that of another.

    ``window`` is "end" (the last record), "tail" (the mean over the last tenth), "median" (the median over it) or
    "all" (the mean over all records), up to the last point of the axis that both have reached.
    """

    part: str
    metric: str
    what: str
    window: str
    axis: Axis
    over: str = "VR-Greedy-GQ"
    under: str = "Greedy-GQ"

    @property
    def words(self) -> str:
        return f"{self.what}, {self.axis.words}: {self.over} ÷ {self.under}"

    def log_ratios(self, results: Results, number: int) -> FloatArray:
        part = results.experiment.part(self.part)
        found, names = results[self.part, number], (self.over, self.under)
        counts = COUNTS[self.axis.unit]
        reached = [found[name].counts(counts, self.metric) for name in names]
        end = self.axis.common_end((part.entry(self.over).algorithm, part.entry(self.under).algorithm), reached)
        over, under = (np.log(self._value(found[name], counts, end)) for name in names)
        n = min(len(over), len(under))  # run k is run k, however many there are of either
        return over[:n] - under[:n]

    def _value(self, measured: Measurement, counts: str, end: int) -> FloatArray:
        kept = measured.counts(counts, self.metric) <= end
        at = measured.counts("updates", self.metric)[kept].astype(np.float64)
        values = measured.values[self.metric][:, kept]
        if self.window == "end":
            out = values[:, -1]
        elif self.window == "tail":
            out = tail_mean(values, at)
        elif self.window == "median":
            out = np.median(tail(values, at), axis=1)
        else:
            out = values.mean(axis=1)
        return np.maximum(out, LEAST_REWARD) if self.metric == "largest_reward" else out


@dataclass(frozen=True)
class Slope(Statistic):
    """The slope of the log error against log M over the batch sizes of VR-Greedy-GQ, times log 2: a doubling of M."""

    part: str
    metric: str
    what: str
    axis: Axis
    window: str = "tail"

    @property
    def words(self) -> str:
        return f"{self.what}, {self.axis.words}: factor for each doubling of M"

    def log_ratios(self, results: Results, number: int) -> FloatArray:
        found = results[self.part, number]
        sizes = {name: M for name, M in batch_sizes(results, self.part).items() if M > 1}
        errors = []
        for name in sizes:
            values, at = found[name].values[self.metric], found[name].counts("updates", self.metric).astype(float)
            last = tail(values, at)
            errors.append(np.log(np.median(last, axis=1) if self.window == "median" else
                                 last[:, -1] if self.window == "end" else last.mean(axis=1)))  # fmt: skip
        x = np.log(np.array(list(sizes.values()), dtype=np.float64))
        return np.asarray(np.polyfit(x, np.stack(errors), 1)[0] * math.log(2))


@dataclass(frozen=True)
class Side:
    """The claimed side: a ratio "below" or "above" 1, and beyond τ of it for the claim to hold."""

    direction: str
    tau: float = 1.0

    @property
    def factor(self) -> float:
        """The edge that the claim needs: 1/τ below, τ above."""
        return 1 / self.tau if self.direction == "below" else self.tau

    @property
    def words(self) -> str:
        return f"{self.direction} {self.factor:g}"

    def outcome(self, low: float, high: float) -> str:
        """By an interval of log-ratios."""
        toward, beyond = (-high, -low) if self.direction == "below" else (low, high)
        if toward > math.log(self.tau):
            return HOLDS
        if toward > 0:
            return WEAKER
        return REVERSED if beyond < 0 else UNDECIDED


@dataclass(frozen=True)
class Band:
    """The claimed band of a slope; falling, but more slowly, is weaker than claimed; rising is reversed."""

    least: float
    most: float

    @property
    def words(self) -> str:
        if self.least == -math.inf:
            return f"below {self.most:g}"
        return f"within [{self.least:g}, {self.most:g}]".replace("-", "−")

    def outcome(self, low: float, high: float) -> str:
        """By an interval of slopes."""
        if self.least <= low and high < self.most:
            return HOLDS
        if high < 0 and high > self.most:
            return WEAKER
        return REVERSED if low > 0 else UNDECIDED


@dataclass(frozen=True)
class Effect:
    """A ratio (or a slope) and its 95 % interval."""

    ratio: float
    low: float
    high: float

    @classmethod
    def of(cls, log_ratios: FloatArray) -> Effect:
        """From log-ratios."""
        return cls(*(math.exp(min(v, 700.0)) for v in interval(log_ratios)))

    def to_dict(self) -> dict[str, float | None]:
        """Ready for JSON, with ten digits: the last ones of a sum may differ between machines."""
        return {k: float(f"{v:.10g}") if math.isfinite(v) else None for k, v in vars(self).items()}


@dataclass(frozen=True)
class Verdict:
    """What the data say of a claim: the pooled effect, and how many problems bear it out, or reverse it, alone."""

    outcome: str
    pooled: Effect
    n_problems: int
    n_borne_out: int | None = None
    n_reversed: int | None = None
    problems: tuple[Effect, ...] = field(default=(), repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "outcome": self.outcome, "pooled": self.pooled.to_dict(), "n_problems": self.n_problems,
            "n_borne_out": self.n_borne_out, "n_reversed": self.n_reversed,
            "problems": [effect.to_dict() for effect in self.problems],
        }  # fmt: skip


def decide(per_problem: list[FloatArray], side: Side) -> Verdict:
    """The verdict from the log-ratios of each problem's runs."""
    means = np.array([log_ratios.mean() for log_ratios in per_problem])
    _, low, high = interval(means)
    alone = [side.outcome(*interval(log_ratios)[1:]) for log_ratios in per_problem]
    return Verdict(
        outcome=side.outcome(low, high),
        pooled=Effect.of(means),
        n_problems=len(per_problem),
        n_borne_out=alone.count(HOLDS),
        n_reversed=alone.count(REVERSED),
        problems=tuple(Effect.of(log_ratios) for log_ratios in per_problem),
    )
