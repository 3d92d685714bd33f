"""The study on the framework: its calls, and what is gathered from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gqlab.studies.decisions import measure
from gqlab.studies.decisions.design import (
    DISCOUNTS,
    EVALUATION_LOGS,
    EVALUATION_ROWS,
    EXPLORATION,
    LOGS,
    LOGS_A_TASK,
    NULL_LOGS,
    PESSIMISM_LOGS,
    RARE_SHARE,
    RIVAL_LOGS,
    SELECTION_LOGS,
    SELECTION_ROWS,
    VERDICT_LOGS,
    DecisionDesign,
)
from gqlab.studies.decisions.problems import SHIFTS, finite, numeric
from gqlab.studies.decisions.statistics import cell_of, criteria_values, judge_all, verdict_shares
from gqlab.studies.keys import Call
from gqlab.studies.study import Result, Study

#: What a call is of: the part of the study, and the problem, size, shift … that tell it apart.
Place = tuple[Any, ...]


class Decisions(Study):
    """Whether decisions from logs are right."""

    name: ClassVar[str] = "decisions"

    def __init__(self, design: DecisionDesign) -> None:
        self.design = design

    def calls(self) -> Sequence[Call]:
        return [call for _, call in self.placed_calls()]

    def placed_calls(self) -> Iterator[tuple[Place, Call]]:
        """Every call with what it is of."""
        design, seed = self.design, self.design.seed

        def call(place: Place, function: Callable[..., Any], *arguments: Any, cost: float) -> tuple[Place, Call]:
            return place, Call(function, arguments, " ".join(map(str, place)), cost)

        for k in design.finite:
            yield call(("bounds", k), measure.bounds, k, design.sizes, cost=0.5)
            for n in design.sizes:
                logs = design.logs(LOGS)
                for first in range(0, logs, LOGS_A_TASK):
                    some_logs = min(LOGS_A_TASK, logs - first)
                    arguments = k, n, first, some_logs, design.logs(RIVAL_LOGS), seed
                    yield call(("coverage", k, n), measure.coverage, *arguments, cost=some_logs * (0.02 + n / 400_000))
            for gamma in DISCOUNTS:
                logs, rows = design.logs(EVALUATION_LOGS), design.sizes[-1] if design.quick else EVALUATION_ROWS
                yield call(("evaluation", k, gamma), measure.evaluation, k, gamma, rows, logs, seed, cost=logs * 0.1)
            yield call(("null", k), measure.null, k, design.logs(NULL_LOGS), seed, cost=design.logs(NULL_LOGS) * 0.3)
            for n in SELECTION_ROWS:
                logs = design.logs(SELECTION_LOGS)
                yield call(("selection", k, n), measure.selection, k, n, logs, seed, cost=logs * 0.5)
            for e in EXPLORATION:
                logs = design.logs(PESSIMISM_LOGS)
                yield call(("pessimism", k, e), measure.pessimism, k, e, logs, seed, cost=logs * 0.2)
        for k in design.numeric:
            for known in (True, False):
                for first in range(0, design.logs(VERDICT_LOGS), 5):
                    some_logs = min(5, design.logs(VERDICT_LOGS) - first)
                    yield call(
                        ("verdicts", k, known), measure.verdicts, k, first, some_logs, known, seed, cost=4.0 * some_logs
                    )

    def gather(self, results: Sequence[Result]) -> dict[str, Any]:
        by_place: dict[Place, list[Result]] = {}
        for (place, _), result in zip(self.placed_calls(), results, strict=True):
            by_place.setdefault(place, []).append(result)
        design, problems = self.design, self.design.finite

        def joined(name: str, *place: Any) -> Any:
            return np.concatenate([result[name] for result in by_place[place]])

        truth = {k: by_place["bounds", k][0] for k in problems}
        found: dict[str, Any] = {
            "problems": [finite(k).name for k in problems],
            "numeric": [numeric(k).name for k in design.numeric],
            "rare": {
                (n, shift): np.array([truth[k]["rare"][j, i] > RARE_SHARE for k in problems])
                for j, n in enumerate(design.sizes)
                for i, shift in enumerate(SHIFTS)
            },
            "cells": {},
            "evaluation": {g: np.array([joined("relative", "evaluation", k, g).mean() for k in problems]) for g in DISCOUNTS},
            "evaluation errors": {
                g: np.array([_standard_error(joined("relative", "evaluation", k, g)) for k in problems]) for g in DISCOUNTS
            },
            "null": [v for k in problems for result in by_place["null", k] for v in result["verdicts"]],
            "selection": {n: np.concatenate([joined("gain", "selection", k, n) for k in problems]) for n in SELECTION_ROWS},
            "pessimism": {e: np.concatenate([joined("gains", "pessimism", k, e) for k in problems]) for e in EXPLORATION},
            "verdicts": {},
        }  # fmt: skip
        for n in design.sizes:
            for i, shift in enumerate(SHIFTS):
                each = [
                    cell_of(joined("estimates", "coverage", k, n)[:, i], joined("rivals", "coverage", k, n)[:, i],
                            np.asarray(truth[k]["bounds"])[i], n)
                    for k in problems
                ]  # fmt: skip
                found["cells"][n, shift] = {name: np.array([one[name] for one in each]) for name in each[0]}
        for known, name in ((True, "known"), (False, "unknown")):
            results_of = [result for k in design.numeric for result in by_place["verdicts", k, known]]
            all_verdicts = [v for result in results_of for v in result["verdicts"]]
            found["verdicts"][name] = verdict_shares(all_verdicts, np.concatenate([r["truth"] for r in results_of]))
        found["criteria"] = judge_all(criteria_values(found, design.sizes))
        return found

    def write(self, gathered: dict[str, Any], folder: Path) -> str:
        from gqlab.studies.decisions.report import write_report

        return write_report(gathered, self.design, folder)


def _standard_error(values: Any) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))
