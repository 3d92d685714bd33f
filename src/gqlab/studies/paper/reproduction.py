"""The reproduction as a study: the experiments' jobs are its calls; figures, verdicts and one page what is written.

Experiments share jobs, and each is done once. The page is there from the first finished experiment on.
"""

from __future__ import annotations

import platform
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import ClassVar

from gqlab.studies.keys import Call
from gqlab.studies.paper import words
from gqlab.studies.paper.claims import CLAIMS, Judged, judge_all
from gqlab.studies.paper.design import Experiment, Request
from gqlab.studies.paper.experiments import EXPERIMENTS
from gqlab.studies.paper.figures import write_figure
from gqlab.studies.paper.jobs import measure
from gqlab.studies.paper.overview import write_overview
from gqlab.studies.paper.panels import Panel, panels
from gqlab.studies.paper.report import About, page
from gqlab.studies.paper.results import Results
from gqlab.studies.paper.sections import BASELINES, COMPOSITES, composite_kinds
from gqlab.studies.paper.theory_claims import judge_theory
from gqlab.studies.study import Finished, How, Result, Runner, Study, write_texts, write_times
from gqlab.support.files import writing

#: The packages whose versions the verdicts are given with.
PACKAGES = ("numpy", "scipy", "numba", "gymnasium", "matplotlib")


@dataclass(frozen=True)
class Reproduction(Study):
    """Experiments at the size, seed and device of a request; ``command`` gives the same from nothing."""

    experiments: Sequence[Experiment]
    request: Request
    command: str = "gqlab reproduce"
    name: ClassVar[str] = "reproduce"

    def calls(self) -> list[Call]:
        """Those of all experiments; what two of them share stands there twice."""
        return [call for experiment in self.experiments for call in self.calls_of[experiment.name]]

    @cached_property
    def calls_of(self) -> dict[str, list[Call]]:
        """The calls of every experiment of the paper, asked for or not."""
        request = self.request
        return {
            e.name: [
                Call(measure, (job,), f"{e.name}, {part.name}: {entry.label} on {number}", job.work)
                for (part, number, entry), job in zip(request.places(e), request.jobs(e), strict=True)
            ]
            for e in EXPERIMENTS
        }

    def gather(self, results: Sequence[Result]) -> dict[str, Results]:
        """By experiment."""
        left = iter(results)
        return {
            e.name: Results.of(e, self.request, [next(left) for _ in self.calls_of[e.name]]) for e in self.experiments
        }

    def write(self, gathered: Mapping[str, Results], folder: Path) -> str:
        """Figures, verdicts and page."""
        return Publication(self, folder).write(gathered)


def run_reproduction(study: Reproduction, folder: Path, how: How) -> Finished:
    """Make the calls that are missing, experiment by experiment, and write what is finished after each.

    The report covers all experiments whose calls are in the folder, asked for or not.
    """
    found: dict[str, Results] = {}
    publication, text = Publication(study, folder), ""
    with Runner(folder, how) as runner:
        for k, experiment in enumerate(study.experiments):
            runner.results(study.calls_of[experiment.name], experiment.name)
            later = study.experiments[k + 1 :] if how.force else ()  # what they left before is to be done again
            found |= dict(_finished(study, runner, {*found, *(e.name for e in later)}))
            with writing(folder):
                text = publication.write(found, last=experiment is study.experiments[-1])
        calls = [call for name in found for call in study.calls_of[name]]
        with writing(folder):
            write_times(folder, calls, runner.kept(calls) or [])
        return Finished(publication.verdicts, text, len(study.calls()), runner.n_computed)


def _finished(study: Reproduction, runner: Runner, besides: Container[str]) -> Iterator[tuple[str, Results]]:
    """The other experiments that are finished."""
    for experiment in EXPERIMENTS:
        kept = None if experiment.name in besides else runner.kept(study.calls_of[experiment.name])
        if kept is not None:
            yield experiment.name, Results.of(experiment, study.request, kept)


class Publication:
    """What is written of the results, again and again as they grow: what was drawn already is not drawn again."""

    def __init__(self, study: Reproduction, folder: Path) -> None:
        self.study, self.folder = study, folder
        self.panels: dict[str, tuple[Panel, ...]] = {}
        self.drawn: dict[str, list[str]] = {}  # the panels on the page
        self.composites: set[str] = set()
        self.judged: dict[str, tuple[Judged, ...]] = {}  # by experiment
        self.verdicts: tuple[Judged, ...] = ()

    def write(self, found: Mapping[str, Results], last: bool = True) -> str:
        """Figures, verdicts and page; with the ``last`` experiment the picture of all verdicts, too."""
        request, command = self.study.request, self.study.command
        results = {e.name: found[e.name] for e in EXPERIMENTS if e.name in found}  # in the paper's order
        theory, note = judge_theory(self.folder, request.seed)
        self.judged |= {name: judge_all({name: new}) for name, new in results.items() if name not in self.judged}
        by_key = {j.claim.key: j for group in (*self.judged.values(), theory) for j in group}
        judged = self.verdicts = tuple(by_key[claim.key] for claim in CLAIMS if claim.key in by_key)
        self._draw(results)
        if last:
            write_overview(self.folder, judged, request.quick)
        versions = {"gqlab": version("gqlab"), "Python": platform.python_version()}
        versions |= {name: version(name) for name in PACKAGES}
        about = About(request, command, versions, note, self.drawn)
        facts = {"command": command, "seed": request.seed, "quick": request.quick, "versions": versions}
        texts = {
            "claims.json": words.claims_json(judged, facts),
            "claims.md": words.claims_markdown(judged, request.quick, note),
            "report.html": page(judged, results, about),
        }
        write_texts(self.folder, texts)
        return words.verdict_list(judged, request.quick)

    def _draw(self, results: Mapping[str, Results]) -> None:
        for name, found in results.items():
            if name not in self.panels:
                self.panels[name] = panels(found)
                write_figure(self.folder, name, self.panels[name])
        for name, _, experiments in (*COMPOSITES, BASELINES):
            if name not in self.composites and all(e in self.panels for e in experiments):
                every = name == BASELINES[0]
                drawn = [panel for e in experiments for panel in self.panels[e][: None if every else 1]]
                write_figure(self.folder, name, drawn, composite_kinds(self.study.request.quick))
                self.composites.add(name)
