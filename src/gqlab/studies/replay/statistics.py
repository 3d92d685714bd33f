"""What is gathered from runs: steps to threshold, step sizes that solve, values in units of their bound, verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gqlab.learn.agent.presets import REPLAYING_PRESETS
from gqlab.studies.decisions.statistics import CriterionVerdict
from gqlab.studies.replay.design import (
    BASE,
    CLASSIC,
    CORRECTED,
    CRITERIA,
    ENVIRONMENTS,
    PLAIN,
    ReplayPart,
)
from gqlab.studies.replay.runs import Place
from gqlab.support.checks import FloatArray


@dataclass(frozen=True)
class RowRuns:
    """The runs of one row at one step size, one for each seed."""

    to_threshold: FloatArray  # (n_seeds,)
    steps: tuple[FloatArray, ...]  # of the checks of each
    means: tuple[FloatArray, ...]
    max_q: tuple[FloatArray, ...]
    q_bound: float
    diverged: int

    @property
    def median(self) -> float:
        """Of steps to threshold, ∞ where at least half of the seeds have none."""
        ordered = np.sort(self.to_threshold)
        n = len(ordered)
        low, high = ordered[(n - 1) // 2], ordered[n // 2]
        return float(high if np.isinf(high) else (low + high) / 2)

    @property
    def worst(self) -> float:
        """The largest of steps to threshold."""
        return float(self.to_threshold.max())

    @property
    def largest_value(self) -> float:
        """Of max |Q| at all checks of all seeds, in units of the bound; NaN: not measured."""
        each = np.concatenate(self.max_q)
        return float("nan") if np.isnan(each).all() else float(np.nanmax(each) / self.q_bound)

    @property
    def median_value(self) -> float:
        """The median over seeds of the largest of each."""
        each = [np.nanmax(one) if not np.isnan(one).all() else np.nan for one in self.max_q]
        return float(np.median(each) / self.q_bound)

    def curve(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Steps; least, median and largest mean return, as far as all seeds were checked."""
        n = min(map(len, self.steps))
        rows = np.array([means[:n] for means in self.means])
        return self.steps[0][:n], rows.min(axis=0), np.median(rows, axis=0), rows.max(axis=0)


#: ReplayPart, environment, row, discount, factor ↦ runs.
ReplayEntries = dict[tuple[str, str, str, float | None, float], RowRuns]


def entries_of(found: Mapping[Place, Mapping[str, Any]]) -> ReplayEntries:
    """The runs of every row and step size."""
    groups: dict[tuple[str, str, str, float | None, float], list[Mapping[str, Any]]] = {}
    for place, result in found.items():
        groups.setdefault(place[:5], []).append(result)
    return {
        key: RowRuns(
            to_threshold=np.array([float(one["to_threshold"]) for one in each]),
            steps=tuple(one["steps"] for one in each),
            means=tuple(one["means"] for one in each),
            max_q=tuple(one["max_q"] for one in each),
            q_bound=q_bound(key[1], key[3]),
            diverged=sum(bool(one["diverged"]) for one in each),
        )
        for key, each in groups.items()
    }


def q_bound(environment: str, discount: float | None) -> float:
    """r_max/(1 − γ)."""
    gamma = REPLAYING_PRESETS[environment].discount if discount is None else discount
    return ENVIRONMENTS[environment].r_max / (1 - gamma)


def n_solve(entries: ReplayEntries, environment: str, row: str, part: ReplayPart) -> float:
    """How many step sizes of a scan solve; NaN: it is not in it."""
    found = [entries.get(("step sizes", environment, row, None, factor)) for factor in part.factors]
    if any(one is None for one in found):
        return float("nan")
    return sum(one.median <= part.share * ENVIRONMENTS[environment].bound for one in found if one is not None)


def criteria_values(entries: ReplayEntries, design: Mapping[str, ReplayPart]) -> dict[str, float]:
    """The number of every criterion that the design has runs for."""
    values: dict[str, float] = {}
    for name in CLASSIC:
        if (main := entries.get(("main", name, BASE, None, 1.0))) is not None:
            values[f"median {name}"], values[f"worst {name}"] = main.median, main.worst
        if (scan := design.get("step sizes")) is not None:
            with_it, without = (n_solve(entries, name, row, scan) for row in (BASE, PLAIN))
            values[f"step sizes {name}"] = with_it - without
    if (again := entries.get(("again", "Acrobot-v1", BASE, None, 1.0))) is not None:
        values["again median"], values["again worst"] = again.median, again.worst
    for gamma in (0.95, 0.99):
        rows = [entries.get(("values", "CartPole-v1", row, gamma, 1.0)) for row in CORRECTED]
        values[f"values {gamma:g}"] = max((row.largest_value for row in rows if row is not None), default=float("nan"))
    if (lander := entries.get(("lander", "LunarLander-v3", BASE, None, 1.0))) is not None:
        values["lander"] = lander.median
    for name in ("Taxi-v4", "CliffWalking-v1"):
        ours = entries.get(("discrete", name, BASE, None, 1.0))
        theirs = entries.get(("discrete", name, "Q-learning, the same features", None, 1.0))
        if ours is not None and theirs is not None:
            values[f"factor {name}"] = 0.0 if np.isinf(ours.median) else theirs.median / ours.median
    return values


def judge_all(entries: ReplayEntries, design: Mapping[str, ReplayPart]) -> list[CriterionVerdict]:
    """Every criterion that the design has runs for."""
    values = criteria_values(entries, design)
    found = {name: value for name, value in values.items() if not np.isnan(value)}
    return [CriterionVerdict(criterion, found[criterion.name]) for criterion in CRITERIA if criterion.name in found]
