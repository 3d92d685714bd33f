"""The study of replay on the framework: its calls, and what is gathered from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gqlab.studies.keys import Call
from gqlab.studies.replay.design import ReplayPart
from gqlab.studies.replay.runs import label_of, learners_of, measure
from gqlab.studies.replay.statistics import ReplayEntries, entries_of
from gqlab.studies.study import Result, Study


@dataclass(frozen=True)
class ReplayStudy(Study):
    """How many steps agents need that learn again from what they keep, and what makes the difference."""

    design: Mapping[str, ReplayPart]
    beside: Path | None = None  # curves of another library's agents

    name = "replay"

    def calls(self) -> list[Call]:
        return [
            Call(measure, (one,), label_of(place), cost=one.budget * (3 if one.environment == "Acrobot-v1" else 1))
            for place, one in learners_of(self.design)
        ]

    def gather(self, results: Sequence[Result]) -> ReplayEntries:
        places = [place for place, _ in learners_of(self.design)]
        return entries_of(dict(zip(places, results, strict=True)))

    def write(self, gathered: ReplayEntries, folder: Path) -> str:
        from gqlab.studies.replay.beside import read_beside
        from gqlab.studies.replay.report import write_report

        others = {} if self.beside is None else read_beside(self.beside)
        return write_report(gathered | others, self.design, folder)
