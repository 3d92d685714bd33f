"""The leaderboard as a study: its calls, and the statistics that are gathered from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gqlab.algorithms import Algorithm
from gqlab.studies.compare.bounds import measure_bounds
from gqlab.studies.compare.design import FACTORS, NEAR, ROBUST_WITHIN, Budget, Problems
from gqlab.studies.compare.measure import has_steps, measure_factor, measure_floors, measure_rivals, measure_runs
from gqlab.studies.keys import Call
from gqlab.studies.study import Result, Study, write_texts
from gqlab.support.checks import FloatArray

#: J at a stationary point below which it is a zero of E[δφ].
ZERO = 1e-12


@dataclass(frozen=True)
class Row:
    """What was measured of one algorithm; arrays are (n_problems, n_moments) if nothing else is said."""

    name: str
    algorithm: str
    multiple: FloatArray  # of the floor: mean of ‖∇J‖² over runs ÷ mean of the floors
    evaluations: float  # of (G_x, H_x), a sample
    nanoseconds: float  # of one core, a sample; a measured time, which no file but times.json holds
    bytes: int  # of a run: θ, ω and what the estimator declares
    diverged: int  # runs
    factors: (
        FloatArray  # (n_factors,)  the median multiple at the last moment with steps times FACTORS; empty: no steps
    )
    samples: FloatArray  # (n_records,)  of the curve
    curve: FloatArray  # (n_records,)  ‖∇J‖², mean over runs, median over problems

    @property
    def near(self) -> FloatArray:
        """The share of problems within ``NEAR`` times the floor, (n_moments,)."""
        return np.asarray((self.multiple <= NEAR).mean(axis=0))

    @property
    def robust(self) -> float | None:
        """The share of step sizes within ``ROBUST_WITHIN`` times the best; None without step sizes."""
        if not len(self.factors):
            return None
        return float((self.factors <= ROBUST_WITHIN * self.factors.min()).mean())


@dataclass(frozen=True)
class Rival:
    """What solves E[δφ] = 0 on the same samples, at the last moment."""

    name: str
    multiple: FloatArray  # (n_problems,)
    mspbe: FloatArray  # (n_problems,)  J, mean over runs
    value: FloatArray  # (n_problems,)  μᵀV^π ÷ μᵀV*, mean over runs
    converged: float  # share of runs


@dataclass(frozen=True)
class Comparison:
    """The leaderboard."""

    title: str
    budget: Budget
    seeds: tuple[int, ...]
    floor: FloatArray  # (n_problems, n_moments)
    J_star: FloatArray  # (n_problems,)  J at the stationary point that Newton's method reaches from θ₀
    bounds: FloatArray  # (n_problems, 2)  tr Σ and tr Σ_b there: the limits of n E‖∇J‖² without and with π_b
    rows: tuple[Row, ...]
    rivals: tuple[Rival, ...]

    @property
    def moments(self) -> tuple[int, ...]:
        return self.budget.moments

    def of_bounds(self, row: Row) -> FloatArray:
        """n times the mean of ‖∇J‖² at the last moment, as multiples of both bounds, (n_problems, 2)."""
        scaled = row.multiple[:, -1] * self.floor[:, -1] * self.moments[-1]
        return np.asarray(scaled[:, None] / self.bounds)


def multiples(gradient: FloatArray, floor: FloatArray) -> FloatArray:
    """Mean ‖∇J‖² over runs ÷ mean floor, (n_problems, n_moments); runs without a floor are left out.

    Both are (n_problems, n_moments, n_runs); of the floor's moments the last, and of its runs the first.
    """
    floor = floor[:, -gradient.shape[1] :, : gradient.shape[2]]
    known = ~np.isnan(floor)
    return np.asarray(np.where(known, gradient, 0).sum(axis=-1) / np.where(known, floor, 0).sum(axis=-1))


@dataclass(frozen=True)
class Leaderboard(Study):
    """Algorithms on the problems of a family, in units of the floor."""

    title: str
    problems: Problems
    algorithms: Mapping[str, Algorithm]
    budget: Budget
    command: str = ""

    name = "compare"

    def calls(self) -> list[Call]:
        own = Call(measure_bounds, (self.problems,), "efficiency bounds", self.budget.n_problems)
        return [
            *self._floor_calls(),
            self._rival_call(),
            own,
            *(c for a in self.algorithms for c in self._row_calls(a)),
        ]

    def _floor_calls(self) -> list[Call]:
        b = self.budget
        cost = b.n_runs * b.n_samples
        return [
            Call(measure_floors, (problem, b.moments, b.n_runs), f"floor, seed {problem.seeds[0]}", cost)
            for problem in self.problems.each()
        ]

    def _rival_call(self) -> Call:
        b = self.budget
        cost = b.n_problems * b.n_runs * b.n_samples
        return Call(measure_rivals, (self.problems, b.moments[-1], b.n_runs), "rivals", cost)

    def _row_calls(self, name: str) -> list[Call]:
        b, algorithm = self.budget, self.algorithms[name]
        each = b.n_problems * b.n_samples
        main = (self.problems, algorithm, b.moments, b.n_runs, b.n_samples)
        calls = [Call(measure_runs, main, name, each * b.n_runs)]
        for factor in FACTORS if has_steps(algorithm) else ():
            given = (self.problems, algorithm, factor, b.moments, b.robust_runs, b.n_samples)
            calls.append(Call(measure_factor, given, f"{name}, steps × {factor:g}", each * b.robust_runs))
        return calls

    def gather(self, results: Sequence[Result]) -> Comparison:
        waiting = list(results)
        floors = [waiting.pop(0) for _ in self._floor_calls()]
        floor = np.concatenate([found["floor"] for found in floors])
        rivals, bounds = waiting.pop(0), waiting.pop(0)
        rows = []
        for name, algorithm in self.algorithms.items():
            main, *others = [waiting.pop(0) for _ in self._row_calls(name)]
            rows.append(_row(name, algorithm, main, others, floor))
        return Comparison(
            title=self.title,
            budget=self.budget,
            seeds=self.problems.seeds,
            floor=np.nanmean(floor, axis=-1),
            J_star=np.concatenate([found["J_star"] for found in floors]),
            bounds=bounds["bounds"],
            rows=tuple(sorted(rows, key=lambda row: float(np.median(row.multiple[:, -1])))),
            rivals=tuple(_rival(name, found, floor) for name, found in rivals.items() if name != "times"),
        )

    def write(self, gathered: Comparison, folder: Path) -> str:
        from gqlab.studies.compare import report
        from gqlab.studies.compare.figure import write_figure

        svg = write_figure(gathered, folder)
        texts = {
            "compare.json": report.numbers(gathered),
            "compare.md": report.markdown(gathered),
            "compare.html": report.page(gathered, svg, self.command),
        }
        write_texts(folder, texts)
        return report.text(gathered)


def _row(name: str, algorithm: Algorithm, main: Result, others: Sequence[Result], floor: FloatArray) -> Row:
    factors = [float(np.median(multiples(found["gradient"], floor))) for found in others]
    return Row(
        name=name,
        algorithm=repr(algorithm),
        multiple=multiples(main["gradient"], floor),
        nanoseconds=float(main["times"].get("nanoseconds", np.nan)),
        factors=np.array(factors, dtype=float),
        **{key: main[key] for key in ("evaluations", "bytes", "diverged", "samples", "curve")},
    )


def _rival(name: str, found: Mapping[str, Any], floor: FloatArray) -> Rival:
    multiple = multiples(found["gradient"], floor)[:, 0]
    return Rival(name, multiple, found["mspbe"], found["value"], found["converged"])
