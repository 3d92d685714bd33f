"""Rates, measured: how many samples Greedy-GQ and VR-Greedy-GQ need to bring E‖∇J(θ_ξ)‖² to ε.

For each problem and each ε the step sizes (and M) that need the fewest samples are chosen on tuning runs; the samples
that count are those of other runs with that choice. ε is a fraction of ‖∇J(θ_0)‖². Beside them: the theorems' own
schedules, the family of estimators with its defaults, and gradient descent with the exact gradient.
:mod:`gqlab.studies.rates.design` has every number that is chosen, :mod:`gqlab.studies.rates.runs` the runs,
:mod:`gqlab.studies.rates.statistics` what is made of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gqlab.studies.keys import Call
from gqlab.studies.rates.choices import edges
from gqlab.studies.rates.design import CLAIMED_ETA, CLAIMED_SIZES, MEMBERS, SCHEDULES, GarnetFamily, RateSettings
from gqlab.studies.rates.measure import exact, remaining, schedules_of, tuned, untuned
from gqlab.studies.rates.statistics import FittedSlope, local_slopes, paired_slope, ratios, slope
from gqlab.studies.study import Result, Study
from gqlab.support.checks import FloatArray
from gqlab.support.plain_json import plain

#: Axes of the grids, in the order of :func:`edges`.
AXES = ("η_θ", "η_ω/η_θ", "M")
#: What an upper bound says of the slope of log samples against log 1/ε.
TUNED = {
    "GreedyGQ": "at most 3 (which the paper cites), 2 (Theorem 4)",
    "VRGreedyGQ": "at most 2 (the paper), 5/3 (Corollary 2)",
}
#: What it says of the error that remains: of its level, for steps that its conditions admit, not of a slope.
REMAINS = "the bounds have C/M, for far smaller steps"


@dataclass
class FamilyRates:
    """What was measured on one family; samples are (n_problems, n_fractions), NaN where ε was not reached."""

    name: str
    n_problems: int
    samples: dict[str, FloatArray] = field(default_factory=dict)
    exact: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))  # (n_problems, n_exact_fractions)
    chosen: dict[str, list[list[str]]] = field(default_factory=dict)
    n_tried: dict[str, int] = field(default_factory=dict)
    at_edge: dict[str, dict[str, float]] = field(default_factory=dict)  # shares of the choices, by axis and of any
    floors: FloatArray = field(default_factory=lambda: np.zeros((0, 0, 0)))  # (n_problems, n_etas, 1 + n_batch_sizes)
    slopes: list[FittedSlope] = field(default_factory=list)  # of log samples against log 1/ε
    floor_slopes: list[FittedSlope] = field(default_factory=list)  # of the log of what remains against log M
    local: dict[str, list[FittedSlope]] = field(default_factory=dict)
    ratios: list[FittedSlope] = field(default_factory=list)


@dataclass
class MeasuredRates:
    """Everything that was measured."""

    settings: RateSettings
    seed: int
    quick: bool
    families: list[FamilyRates] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON; NaN is None."""
        return dict(plain(self))


@dataclass(frozen=True)
class RatesStudy(Study):
    """The study: its design, and the seed of its Garnets and runs."""

    settings: RateSettings
    seed: int = 0
    quick: bool = False
    name: ClassVar[str] = "rates"

    def calls(self) -> list[Call]:
        """Garnet by Garnet: what is tuned, what is not, the exact gradient, and the error that remains."""
        return [task for family in self.settings.families for task in self._of_family(family)]

    def _of_family(self, family: GarnetFamily) -> list[Call]:
        s, search, out = self.settings, self.settings.search, []
        floors = s.floor_algorithms(), s.floor_samples, s.floor_runs, s.watch_every
        for k, draw in enumerate(family.draws(self.seed)):
            where = f"{family.name} {k + 1}"
            for name in TUNED:
                out.append(Call(tuned, (draw, family.grid, name, search), f"{where}: {name}, tuned", cost=20))
            for name in s.members:
                out.append(Call(untuned, (draw, MEMBERS[name], search), f"{where}: {name}"))
            descent = draw, s.exact_etas, s.exact_fractions, s.exact_steps
            out.append(Call(exact, descent, f"{where}: the exact gradient"))
            out.append(Call(remaining, (draw, *floors), f"{where}: what remains", cost=5))
        return out

    def gather(self, results: Sequence[Result]) -> MeasuredRates:
        """All statistics, family by family."""
        out, left = MeasuredRates(self.settings, self.seed, self.quick), iter(results)
        for family in self.settings.families:
            found = list(islice(left, len(self._of_family(family))))
            out.families.append(_gather(family, found, self.settings))
        return out

    def write(self, gathered: MeasuredRates, folder: Path) -> str:
        """``rates.json``, ``.md``, ``.html`` and ``.png``, or ``rates-quick.*``; the tables as text."""
        from gqlab.studies.rates.report import write

        return write(gathered, folder)


def _gather(family: GarnetFamily, found: Sequence[Result], settings: RateSettings) -> FamilyRates:
    """One family, of the results of its tasks; every Garnet has as many."""
    out = FamilyRates(family.name, family.n_problems)
    per_draw = len(found) // family.n_problems
    columns = [found[k::per_draw] for k in range(per_draw)]  # one for each kind of task
    candidates = family.grid.candidates()
    for name, column in zip(TUNED, columns, strict=False):
        for row, title in enumerate((name, *schedules_of(name))):
            out.samples[title] = np.array([result["samples"][row] for result in column])
        picks = np.array([result["chosen"] for result in column])
        out.chosen[name] = [[repr(candidates[name][j]) if j >= 0 else "" for j in row] for row in picks]
        out.n_tried[name] = len(candidates[name])
        ends = edges(candidates[name])[:, picks[picks >= 0]]
        out.at_edge[name] = {axis: float(row.mean()) for axis, row in zip(AXES, ends, strict=False)}
        out.at_edge[name]["any"] = float(ends.any(axis=0).mean())
    for name, column in zip(settings.members, columns[len(TUNED) :], strict=False):
        out.samples[name] = np.array([result["samples"] for result in column])
    out.samples = {name: out.samples[name] for name in (*TUNED, *SCHEDULES, *settings.members)}
    out.exact = np.array([result["steps"] for result in columns[-2]])
    out.floors = np.array([result["floors"].reshape(len(settings.floor_etas), -1) for result in columns[-1]])
    _fit(out, settings)
    return out


def _fit(out: FamilyRates, settings: RateSettings) -> None:
    """All slopes, local slopes and paired differences of a family."""
    x, exact_x = -np.log(settings.fractions), -np.log(settings.exact_fractions)
    greedy, vr = out.samples["GreedyGQ"], out.samples["VRGreedyGQ"]
    out.slopes = [slope(f"{name}, tuned", x, out.samples[name], theory) for name, theory in TUNED.items()]
    out.slopes.append(paired_slope("VR-Greedy-GQ less Greedy-GQ, tuned, paired", x, vr, greedy))
    out.slopes += [slope(name, x, out.samples[name], f"at most {law.samples}") for name, law in SCHEDULES.items()]
    out.slopes += [slope(f"{name}, defaults", x, out.samples[name], "none known") for name in settings.members]
    out.slopes.append(slope("exact gradient", exact_x, out.exact, "at least 1"))
    out.local = {name: local_slopes(x, samples) for name, samples in out.samples.items()}
    out.local["exact"] = local_slopes(exact_x, out.exact)
    out.ratios = ratios(vr, greedy)
    out.floor_slopes = _floor_slopes(out.floors, settings)


def _floor_slopes(found: FloatArray, settings: RateSettings) -> list[FittedSlope]:
    """What remains against M, where an epoch leaves its batch unsolved (Mη_θ ≤ 10) and where it solves it (≥ 100).

    And over the range that the paper's claim is about, with its η_θ.
    """
    M = np.array(settings.floor_batch_sizes, dtype=float)
    out = []
    for label in ("Mη_θ ≤ 10", "Mη_θ ≥ 100"):
        for j, eta in enumerate(settings.floor_etas):
            kept = M * eta <= 10 * (1 + 1e-9) if label == "Mη_θ ≤ 10" else M * eta >= 100 * (1 - 1e-9)
            if kept.sum() >= 2:
                out.append(slope(f"{label}, η_θ = {eta:g}", np.log(M[kept]), found[:, j, 1:][:, kept], REMAINS))
    first, last = CLAIMED_SIZES
    if CLAIMED_ETA in settings.floor_etas:
        kept, j = (first <= M) & (last >= M), settings.floor_etas.index(CLAIMED_ETA)
        name = f"M = {first} … {last}, η_θ = {CLAIMED_ETA:g}"
        out.append(slope(name, np.log(M[kept]), found[:, j, 1:][:, kept], REMAINS))
    return out
