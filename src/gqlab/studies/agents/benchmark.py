"""The benchmark of agents as a study: its calls, and the table that is gathered from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gqlab.studies.agents.design import ENVIRONMENTS, PRESET, Programme
from gqlab.studies.agents.runs import Learner, learners_of, measure
from gqlab.studies.keys import Call
from gqlab.studies.study import Result, Study, write_texts
from gqlab.support.checks import FloatArray


@dataclass(frozen=True)
class Entry:
    """One row on one environment."""

    step_sizes: tuple[float | None, ...]
    means: FloatArray  # (n_step_sizes, n_seeds)  the mean return of each agent's greedy policy
    solved: float
    diverged: int  # agents

    @property
    def medians(self) -> FloatArray:
        """Over seeds, (n_step_sizes,)."""
        return np.median(self.means, axis=1)

    @property
    def best(self) -> int:
        """Which step size has the largest median."""
        return int(self.medians.argmax())

    @property
    def n_solve(self) -> int:
        """How many step sizes solve it, in the median over seeds."""
        return int((self.medians >= self.solved).sum())


#: Row ↦ environment ↦ entry.
AgentEntries = dict[str, dict[str, Entry]]


@dataclass(frozen=True)
class AgentBenchmark(Study):
    """What agents reach on environments that everybody knows."""

    programme: Programme

    name = "agents"

    def calls(self) -> list[Call]:
        return [
            Call(measure, (learner,), _label(learner), cost=learner.steps) for learner in learners_of(self.programme)
        ]

    def gather(self, results: Sequence[Result]) -> AgentEntries:
        found = dict(zip(learners_of(self.programme), results, strict=True))
        return entries_of(found, self.programme)

    def write(self, gathered: AgentEntries, folder: Path) -> str:
        from gqlab.studies.agents import report

        texts = {
            "agents.md": report.markdown(gathered, self.programme),
            "agents.json": report.numbers(gathered),
            "agents.html": report.page(gathered, self.programme),
        }
        write_texts(folder, texts)
        return report.text(gathered, self.programme)


def _label(learner: Learner) -> str:
    step = "" if learner.step_size is None else f", η = {learner.step_size:g}"
    return f"{learner.environment}, {learner.row}{step}, seed {learner.seed}"


def entries_of(found: dict[Learner, Any], programme: Programme) -> AgentEntries:
    """Row ↦ environment ↦ entry."""
    entries: AgentEntries = {}
    results = {(a.environment, a.row, a.step_size, a.seed): result for a, result in found.items()}
    for row in (PRESET, *programme.rows):
        etas: tuple[float | None, ...] = (None,) if row == PRESET else programme.step_sizes
        entries[row] = {}
        for name in programme.environments:
            each = [[results[name, row, eta, seed] for seed in programme.seeds] for eta in etas]
            entries[row][name] = Entry(
                etas,
                np.array([[r["mean"] for r in of_eta] for of_eta in each]),
                ENVIRONMENTS[name].solved,
                sum(r["diverged"] for of_eta in each for r in of_eta),
            )
    return entries
