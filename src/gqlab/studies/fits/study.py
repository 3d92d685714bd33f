"""The study of variance reduction in fits: its calls, and the table that is gathered from them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gqlab.studies.fits.runs import LOGS, PASSES, RIVALS, ROWS, STEP_SIZES, FitRival, measure
from gqlab.studies.intervals import student_of_ratios
from gqlab.studies.keys import Call
from gqlab.studies.page import Table, number, whole_page
from gqlab.studies.study import Result, Study, write_texts

#: ‖∇J‖² at the end: log ↦ algorithm ↦ one for each step size.
FitGradients = dict[str, dict[str, list[float | None]]]

TITLE = f"‖∇J‖² of the data after {PASSES} passes over {ROWS:,} rows, best of {len(STEP_SIZES)} step sizes"


@dataclass(frozen=True)
class FitStudy(Study):
    """SAGA and STORM against VR-Greedy-GQ."""

    logs: tuple[tuple[str, int, int], ...] = LOGS

    name = "fits"

    def places(self) -> list[tuple[tuple[str, int, int], FitRival]]:
        """What every call is of."""
        return [(log, rival) for log in self.logs for rival in RIVALS]

    def calls(self) -> list[Call]:
        return [
            Call(measure, (*log, rival.name, rival.rows), f"{log[0]} {log[2]}, {rival.label}")
            for log, rival in self.places()
        ]

    def gather(self, results: Sequence[Result]) -> FitGradients:
        found: FitGradients = {}
        for (log, rival), result in zip(self.places(), results, strict=True):
            found.setdefault(f"{log[0]}, seed {log[2]}", {})[rival.label] = result["gradient"]
        return found

    def write(self, gathered: FitGradients, folder: Path) -> str:
        table, lines = found_table(gathered), sentences(gathered)
        listed = "\n".join(f"* {line}" for line in lines)
        texts = {
            "fits.md": f"{TITLE}\n\n{table.markdown()}\n\n{listed}\n",
            "fits.html": whole_page(TITLE, table.html("plain") + "".join(f"<p>{line}</p>" for line in lines)),
            "fits.json": json.dumps({"gradient": gathered, "ratios": ratios(gathered)}, ensure_ascii=False, indent=1),
        }  # fmt: skip
        write_texts(folder, texts)
        return "\n".join([TITLE, table.text(), *lines])


def best(values: list[float | None]) -> float:
    """The least, of the step sizes at which values stayed finite."""
    return min((value for value in values if value is not None), default=np.inf)


def found_table(found: FitGradients) -> Table:
    """A row for each log, with the step size that was best."""
    rows = []
    for log, by_name in found.items():
        cells = [f"{number(best(values))} (η = {STEP_SIZES[_best_place(values)]:g})" for values in by_name.values()]
        rows.append([log, *cells])
    return Table(["log", *(rival.label for rival in RIVALS)], rows)


def _best_place(values: list[float | None]) -> int:
    return int(np.argmin([np.inf if value is None else value for value in values]))


def ratios(found: FitGradients) -> dict[str, dict[str, Any]]:
    """The geometric mean over logs of each algorithm's ratio to VR-Greedy-GQ, with its interval."""
    base, out = RIVALS[0].label, {}
    for rival in RIVALS[1:]:
        logs = np.array([np.log(best(each[rival.label]) / best(each[base])) for each in found.values()])
        mean = student_of_ratios(logs)
        out[rival.label] = {"ratio": mean.mean, "low": mean.low, "high": mean.high, "logs": mean.n}
    return out


def sentences(found: FitGradients) -> list[str]:
    """The statistic, in words."""
    return [
        f"{name}: {number(one['ratio'])} × VR-Greedy-GQ's ‖∇J‖² [{number(one['low'])}, {number(one['high'])}], "
        f"the geometric mean over {one['logs']} logs with its 95 % interval."
        for name, one in ratios(found).items()
    ]
