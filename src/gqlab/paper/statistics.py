"""What decides a claim: a log-ratio for each run of a problem, its interval, and the rule for a verdict.

A claim is about a ratio, "VR-Greedy-GQ ÷ Greedy-GQ" of some quantity. On one problem every run gives one log-ratio,
paired: run k of either algorithm begins at the same point and sees the same trajectory. The claim is borne out there
when the 95 % interval of their mean lies on the claimed side: below 1 or above 1, for "much" below ½ or above 2.

* *holds*: borne out in the paper's setting and on at least 80 % of the further problems;
* *does not hold*: not in the paper's setting, and on at most 20 % of the further problems;
* *holds in part*: otherwise.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gqlab.checks import FloatArray
from gqlab.paper.jobs import REWARD_STEPS, Measured
from gqlab.paper.panels import batch_sizes, interval, running, tail, tail_mean
from gqlab.paper.runner import Results

HOLDS, IN_PART, FAILS = "holds", "holds in part", "does not hold"
MOST, FEWEST = 0.8, 0.2

#: A walk of N steps that earned nothing counts half of the least that it could have earned: 0 has no logarithm.
LEAST_REWARD = 0.5 / REWARD_STEPS


class Statistic(ABC):
    """Gives the log-ratios of one problem, one for each run."""

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
    "all" (the mean over all records), up to the last point of the axis ``common`` that both have reached; ``running``
    is as in a view.
    """

    part: str
    metric: str
    what: str
    window: str
    over: str = "VR-Greedy-GQ"
    under: str = "Greedy-GQ"
    running: str = ""
    common: str = "updates"

    @property
    def words(self) -> str:
        return f"{self.what}: {self.over} ÷ {self.under}"

    def log_ratios(self, results: Results, number: int) -> FloatArray:
        found = results[self.part, number]
        pair = found[self.over], found[self.under]
        end = min(int(m.counts(self.common, self.metric)[-1]) for m in pair)
        part = results.experiment.part(self.part)
        if part.unit == "iterations":
            end = min(end, results.scale.budget(part, number).n)
        over, under = (self._value(m, end) for m in pair)
        return np.log(over) - np.log(under)

    def _value(self, measured: Measured, end: int) -> FloatArray:
        kept = measured.counts(self.common, self.metric) <= end
        at = measured.counts("updates", self.metric)[kept].astype(np.float64)
        values = running(measured.values[self.metric], self.running)[:, kept]
        if self.window == "end":
            out = values[:, -1]
        elif self.window == "tail":
            out = tail_mean(values, at)
        elif self.window == "median":
            out = np.median(tail(values, at), axis=1)
        else:
            out = values.mean(axis=1)
        return np.maximum(out, LEAST_REWARD) if self.metric == "sampled_reward" else out


@dataclass(frozen=True)
class Growth(Statistic):
    """log of a metric of one algorithm at its last record over that at its first."""

    part: str
    metric: str
    what: str
    algorithm: str

    @property
    def words(self) -> str:
        return f"{self.what} of {self.algorithm}: end ÷ start"

    def log_ratios(self, results: Results, number: int) -> FloatArray:
        values = results[self.part, number][self.algorithm].values[self.metric]
        return np.log(values[:, -1]) - np.log(values[:, 0])


@dataclass(frozen=True)
class Slope(Statistic):
    """The slope of the log error against log M over the batch sizes of VR-Greedy-GQ, times log 2: a doubling of M."""

    part: str
    metric: str
    what: str

    @property
    def words(self) -> str:
        return f"{self.what}: factor for each doubling of M"

    def log_ratios(self, results: Results, number: int) -> FloatArray:
        found = results[self.part, number]
        sizes = {name: M for name, M in batch_sizes(results, self.part).items() if M > 1}
        errors = [
            np.log(tail_mean(found[name].values[self.metric], found[name].counts("updates", self.metric).astype(float)))
            for name in sizes
        ]
        x = np.log(np.array(list(sizes.values()), dtype=np.float64))
        return np.polyfit(x, np.stack(errors), 1)[0] * math.log(2)


@dataclass(frozen=True)
class Side:
    """The claimed side: the ratio is "below" or "above" ``factor`` (1; ½ or 2 for "much")."""

    direction: str
    factor: float = 1.0

    @property
    def words(self) -> str:
        return f"{self.direction} {self.factor:g}"

    def holds(self, low: float, high: float) -> bool:
        """Whether an interval of log-ratios lies on this side."""
        edge = math.log(self.factor)
        return high < edge if self.direction == "below" else low > edge

    def reversed(self, low: float, high: float) -> bool:
        """Whether it lies on the other side of 1."""
        return low > 0 if self.direction == "below" else high < 0


@dataclass(frozen=True)
class Effect:
    """A ratio and its 95 % interval."""

    ratio: float
    low: float
    high: float

    @classmethod
    def of(cls, log_ratios: FloatArray) -> Effect:
        """From log-ratios."""
        return cls(*(math.exp(min(v, 700.0)) for v in interval(log_ratios)))


@dataclass(frozen=True)
class Verdict:
    """What the data say of a claim."""

    outcome: str
    paper: Effect
    paper_holds: bool
    further: Effect
    n_hold: int
    n_reversed: int
    problems: tuple[Effect, ...] = field(repr=False)

    @property
    def n_further(self) -> int:
        """How many problems there are beyond the paper's setting."""
        return len(self.problems) - 1

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""

        def plain(effect: Effect) -> dict[str, float | None]:
            return {k: v if math.isfinite(v) else None for k, v in vars(effect).items()}

        return {
            "verdict": self.outcome,
            "paper_setting": {**plain(self.paper), "holds": self.paper_holds},
            "further_problems": {
                **plain(self.further), "n": self.n_further, "n_hold": self.n_hold, "n_reversed": self.n_reversed
            },
            "problems": [plain(effect) for effect in self.problems],
        }  # fmt: skip


def decide(per_problem: list[FloatArray], side: Side) -> Verdict:
    """The verdict from the log-ratios of each problem's runs; the first problem is the paper's setting."""
    intervals = [interval(log_ratios) for log_ratios in per_problem]
    borne_out = [side.holds(low, high) for _, low, high in intervals]
    n_hold, n = sum(borne_out[1:]), len(per_problem) - 1
    share = n_hold / n if n else float(borne_out[0])
    if borne_out[0] and share >= MOST:
        outcome = HOLDS
    elif not borne_out[0] and share <= FEWEST:
        outcome = FAILS
    else:
        outcome = IN_PART
    means = np.array([mean for mean, _, _ in intervals])
    return Verdict(
        outcome=outcome,
        paper=Effect.of(per_problem[0]),
        paper_holds=borne_out[0],
        further=Effect.of(means[1:] if n else means),
        n_hold=n_hold,
        n_reversed=sum(side.reversed(low, high) for _, low, high in intervals[1:]),
        problems=tuple(Effect.of(log_ratios) for log_ratios in per_problem),
    )
