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
    PESSIMISM_ROWS,
    RIVAL_LOGS,
    SELECTION_LOGS,
    SELECTION_ROWS,
    VERDICT_LOGS,
    VERDICTS_A_TASK,
    DecisionDesign,
)
from gqlab.studies.decisions.problems import SHIFTS, finite, numeric
from gqlab.studies.decisions.statistics import (
    cell_of,
    criteria_values,
    judge_all,
    pessimism_gains,
    standard_error,
    verdict_shares,
)
from gqlab.studies.keys import Call
from gqlab.studies.study import Result, Study

#: What a call is of: the part of the study, and the problem, size, shift … that tell it apart.
DecisionPlace = tuple[Any, ...]


class Decisions(Study):
    """Whether decisions from logs are right."""

    name: ClassVar[str] = "decisions"

    def __init__(self, design: DecisionDesign) -> None:
        self.design = design

    def calls(self) -> Sequence[Call]:
        return [call for _, call in self.placed_calls()]

    def placed_calls(self) -> Iterator[tuple[DecisionPlace, Call]]:
        """Every call with what it is of."""
        design, seed = self.design, self.design.seed

        arguments: tuple[Any, ...]

        def call(
            place: DecisionPlace, function: Callable[..., Any], *arguments: Any, cost: float
        ) -> tuple[DecisionPlace, Call]:
            return place, Call(function, arguments, " ".join(map(str, place)), cost)

        logs = design.logs
        for k in design.finite:
            yield call(("bounds", k), measure.bounds, k, design.sizes, cost=0.5)
            for n in design.sizes:
                for first in range(0, logs(LOGS), LOGS_A_TASK):
                    block = min(LOGS_A_TASK, logs(LOGS) - first)
                    arguments = k, n, first, block, logs(RIVAL_LOGS), seed
                    yield call(("coverage", k, n), measure.coverage, *arguments, cost=block * (0.02 + n / 400_000))
            for gamma in DISCOUNTS:
                arguments = k, gamma, design.sizes[-1] if design.quick else EVALUATION_ROWS, logs(EVALUATION_LOGS), seed
                yield call(("evaluation", k, gamma), measure.evaluation, *arguments, cost=logs(EVALUATION_LOGS) * 0.1)
            yield call(("null", k), measure.null, k, logs(NULL_LOGS), seed, cost=logs(NULL_LOGS) * 0.3)
            for n in SELECTION_ROWS:
                arguments = k, n, logs(SELECTION_LOGS), seed
                yield call(("selection", k, n), measure.selection, *arguments, cost=logs(SELECTION_LOGS) * 0.5)
            for share in EXPLORATION:
                arguments = k, share, PESSIMISM_ROWS, logs(PESSIMISM_LOGS), seed
                yield call(("pessimism", k, share), measure.pessimism, *arguments, cost=logs(PESSIMISM_LOGS) * 0.5)
        for k in design.numeric:
            for known in (True, False):
                for first in range(0, logs(VERDICT_LOGS), VERDICTS_A_TASK):
                    block = min(VERDICTS_A_TASK, logs(VERDICT_LOGS) - first)
                    arguments = k, first, block, known, seed
                    yield call(("verdicts", k, known), measure.verdicts, *arguments, cost=4.0 * block)

    def gather(self, results: Sequence[Result]) -> dict[str, Any]:
        by_place: dict[DecisionPlace, list[Result]] = {}
        for (place, _), result in zip(self.placed_calls(), results, strict=True):
            by_place.setdefault(place, []).append(result)
        design, problems = self.design, self.design.finite

        def joined(name: str, *place: Any) -> Any:
            return np.concatenate([result[name] for result in by_place[place]])

        def of_all(name: str, part: str, *rest: Any) -> Any:
            return np.concatenate([joined(name, part, k, *rest) for k in problems])

        truth = {k: by_place["bounds", k][0] for k in problems}
        relative = {g: [joined("relative", "evaluation", k, g) for k in problems] for g in DISCOUNTS}
        found: dict[str, Any] = {
            "problems": [finite(k).name for k in problems],
            "numeric": [numeric(k).name for k in design.numeric],
            "rare": {
                (n, shift): np.array([truth[k]["rare"][j, i] for k in problems])
                for j, n in enumerate(design.sizes)
                for i, shift in enumerate(SHIFTS)
            },
            "evaluation": {g: np.array([one.mean() for one in relative[g]]) for g in DISCOUNTS},
            "evaluation errors": {g: np.array([standard_error(one) for one in relative[g]]) for g in DISCOUNTS},
            "null": [v for k in problems for result in by_place["null", k] for v in result["verdicts"]],
            "selection": {n: of_all("gain", "selection", n) for n in SELECTION_ROWS},
            "pessimism": {share: pessimism_gains(of_all("gain", "pessimism", share)) for share in EXPLORATION},
            "cells": {},
            "verdicts": {},
        }
        for n in design.sizes:
            logs = [(joined("estimates", "coverage", k, n), joined("rivals", "coverage", k, n)) for k in problems]
            for i, shift in enumerate(SHIFTS):
                bounds = [np.asarray(truth[k]["bounds"])[i] for k in problems]
                each = [cell_of(e[:, i], r[:, i], bound, n) for (e, r), bound in zip(logs, bounds, strict=True)]
                found["cells"][n, shift] = {name: np.array([one[name] for one in each]) for name in each[0]}
        for known, name in ((True, "known"), (False, "unknown")):
            made = [result for k in design.numeric for result in by_place["verdicts", k, known]]
            verdicts = [verdict for result in made for verdict in result["verdicts"]]
            found["verdicts"][name] = verdict_shares(verdicts, np.concatenate([result["truth"] for result in made]))
        found["criteria"] = judge_all(criteria_values(found, design.sizes))
        return found

    def write(self, gathered: dict[str, Any], folder: Path) -> str:
        from gqlab.studies.decisions.report import write_report

        return write_report(gathered, self.design, folder)
