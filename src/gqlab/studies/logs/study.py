"""The study of logged data: its calls, and the table that is gathered from them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gqlab.studies.keys import Call
from gqlab.studies.logs.runs import (
    BOUND,
    DISCOUNT,
    ENV,
    EPISODES,
    MARK,
    PASSES,
    ROW_ORDER,
    ROWS,
    SEEDS,
    STEP_SIZES,
    measure,
    settings,
)  # fmt: skip
from gqlab.studies.page import Table, fixed, number, whole_page
from gqlab.studies.study import Result, Study, write_texts

#: What the study must show, as it was asked: a row, a column, and how many data sets must, or may, reach the mark.
MARKS = (
    *(("VR-Greedy-GQ", f"{eta:g}", "at least", 17) for eta in STEP_SIZES),
    ("Q-learning", "0.1", "at most", 12),
)

#: "row|column" ↦ [return, max |Q|] on every data set.
Cells = dict[str, list[list[float]]]


@dataclass(frozen=True)
class LogStudy(Study):
    """Algorithms on small logged data."""

    seeds: tuple[int, ...]
    n_passes: int = PASSES
    n_episodes: int = EPISODES

    name = "logs"

    def calls(self) -> list[Call]:
        columns = [setting.row for setting in settings()]
        return [
            Call(
                measure, (seed, row, self.n_passes, self.n_episodes), f"data set {seed}, {row}", cost=columns.count(row)
            )
            for seed in self.seeds
            for row in ROW_ORDER
        ]

    def gather(self, results: Sequence[Result]) -> Cells:
        found: Cells = {}
        places = [row for _ in self.seeds for row in ROW_ORDER]
        for row, result in zip(places, results, strict=True):
            for column, values in result.items():
                if column != "times":
                    found.setdefault(f"{row}|{column}", []).append(values)
        return found

    def write(self, gathered: Cells, folder: Path) -> str:
        text = "\n".join([heading(gathered), table(gathered).text(), *verdicts(gathered)])
        parts = [heading(gathered), "", table(gathered).markdown(), "", *(f"* {line}" for line in verdicts(gathered))]
        html = "".join(f"<p>{line}</p>" for line in verdicts(gathered))
        texts = {
            "logs.txt": f"{text}\n",
            "logs.md": "\n".join(parts).rstrip() + "\n",
            "logs.json": json.dumps(gathered, ensure_ascii=False, indent=1),
            "logs.html": whole_page(
                "Algorithms on small logged data",
                f"<p class=lead>{heading(gathered)}</p>\n{table(gathered).html()}\n{html}",
            ),
        }
        write_texts(folder, texts)
        return text


def _reached(values: Sequence[Sequence[float]]) -> int:
    """On how many data sets the mark is reached."""
    return int(sum(mean >= MARK for mean, _ in values))


def heading(found: Cells) -> str:
    n = len(next(iter(found.values())))
    return (
        f"{ENV}, {ROWS} random transitions, discount {DISCOUNT:g} (no |Q| above {BOUND:g} makes sense): "
        f"on how many of {n} data sets a return of {MARK:g} is reached"
    )


def table(found: Cells) -> Table:
    """A row for every algorithm and setting."""
    rows = []
    for name, values in sorted(found.items(), key=lambda item: ROW_ORDER.index(item[0].split("|")[0])):
        row, column = name.split("|")
        returns, largest = np.median(np.array(values, dtype=float), axis=0)
        rows.append([row, column, f"{_reached(values)}/{len(values)}", fixed(returns, 1), number(float(largest))])
    return Table(["", "step", "reached", "median return", "median max |Q|"], rows)


def verdicts(found: Cells) -> list[str]:
    """What was asked of the whole study, and what was found."""
    lines = []
    for row, column, word, wanted in MARKS:
        values: list[Any] = found.get(f"{row}|{column}", [])
        if len(values) != len(SEEDS):
            continue
        got = _reached(values)
        met = got >= wanted if word == "at least" else got <= wanted
        lines.append(
            f"{row} at {column}: {word} {wanted} of {len(SEEDS)} asked, {got} found: {'met' if met else 'missed'}"
        )
    return lines
