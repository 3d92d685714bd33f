"""``gqlab reproduce`` and ``gqlab list``."""

from __future__ import annotations

import platform
import shlex
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import tyro

from gqlab.engine.cells import DEVICES
from gqlab.lab.execute import load_cuda
from gqlab.studies.paper import words
from gqlab.studies.paper.claims import CLAIMS, Judged, alarms, judge_all
from gqlab.studies.paper.design import Request
from gqlab.studies.paper.experiments import EXPERIMENTS, chosen
from gqlab.studies.paper.figures import write_figure
from gqlab.studies.paper.overview import write_overview
from gqlab.studies.paper.panels import Panel, panels
from gqlab.studies.paper.report import REGISTERED_SEED, About, page
from gqlab.studies.paper.runner import Results, collect, run_missing
from gqlab.studies.paper.sections import BASELINES, COMPOSITES, composite_kinds
from gqlab.studies.paper.store import Store
from gqlab.studies.paper.theory_claims import judge_theory
from gqlab.support.files import check_writable, write_whole
from gqlab.support.plain_json import print_json

#: Where the results go unless ``--out`` says otherwise.
OUT, OUT_QUICK = Path("results/paper"), Path("results/quick")


@dataclass(frozen=True)
class Reproduce:
    """Run every experiment of the paper, draw its figures, and judge every claim of the register."""

    experiment: Annotated[tuple[str, ...], tyro.conf.arg(metavar="[NAME ...]", help_behavior_hint="")] = ()
    """Run only these experiments (names: gqlab list). The report covers all that are finished."""

    quick: tyro.conf.FlagCreatePairsOff[bool] = False
    """Every experiment on few problems: seconds instead of minutes, and a preview instead of verdicts."""

    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")] = None
    """The folder for figures, data, verdicts and the report. Default: results/paper, or results/quick with --quick."""

    seed: int = REGISTERED_SEED
    """Of all random numbers: problems, features, trajectories."""

    device: Annotated[str, tyro.conf.arg(metavar="{" + ",".join(DEVICES) + "}")] = "cpu"
    """Where the runs are computed."""

    slippery: bool = True
    """Frozen Lake with slippery ice, or (--no-slippery) without."""

    force: tyro.conf.FlagCreatePairsOff[bool] = False
    """Start over: do again what is already finished."""

    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print the verdicts, as in claims.json, as JSON instead of the list."""

    quiet: Annotated[bool, tyro.conf.Suppress] = field(default=False)
    """No progress bars."""


def reproduce(options: Annotated[Reproduce, tyro.conf.arg(name="")]) -> None:
    """Run every experiment of the paper, draw its figures, and judge every claim of the register.

    The page is there from the first finished experiment on. Finished work is kept: a second call, or one after Ctrl-C,
    does only what is missing.
    """
    wanted = chosen(options.experiment)
    if options.device not in DEVICES:
        raise ValueError(f"device is {options.device!r}, expected one of {', '.join(map(repr, DEVICES))}")
    if options.device == "cuda":
        load_cuda()
    if options.seed < 0:
        raise ValueError(f"seed is {options.seed}, expected at least 0")
    request = Request(options.quick, options.seed, options.slippery, options.device)
    folder = options.out or (OUT_QUICK if options.quick else OUT)
    check_writable(folder)
    store = Store(folder / "data")
    report = Report(folder, request, options)
    for experiment in wanted:
        run_missing(experiment, request, store, force=options.force, quiet=options.quiet)
        if experiment is not wanted[-1]:
            report.write(_finished(request, store), last=False)
    judged = report.write(_finished(request, store))
    if options.json:
        print((folder / "claims.json").read_text(encoding="utf-8").rstrip())
        return
    for j in judged:
        print(f"{j.claim.key:<4} {words.PREVIEW if request.quick else j.verdict.outcome:<20} "
              f"{j.claim.place}: {j.claim.statement}")  # fmt: skip
    print(f"{words.headline(judged, request.quick)}. {alarms(judged)}. Report: {folder / 'report.html'}")


@dataclass(frozen=True)
class List:
    """List the experiments of the paper."""

    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print names, figures and titles as JSON."""


def list_experiments(options: Annotated[List, tyro.conf.arg(name="")]) -> None:
    """List the experiments of the paper."""
    if options.json:
        print_json([{"name": e.name, "figure": e.figure, "title": e.title} for e in EXPERIMENTS])
        return
    width = max(len(e.name) for e in EXPERIMENTS)
    for e in EXPERIMENTS:
        print(f"{e.name:<{width}}  {e.figure:<22}  {e.title}")


def _finished(request: Request, store: Store) -> dict[str, Results]:
    """All experiments whose results are there, in the paper's order."""
    found: dict[str, Results] = {}
    for experiment in EXPERIMENTS:
        results = collect(experiment, request, store)
        if results is not None:
            found[experiment.name] = results
    return found


class Report:
    """What is written of the results, again and again as they grow: what was drawn already is not drawn again."""

    def __init__(self, folder: Path, request: Request, options: Reproduce) -> None:
        self.folder, self.request, self.command = folder, request, _command(options)
        self.panels: dict[str, tuple[Panel, ...]] = {}
        self.drawn: dict[str, list[str]] = {}  # the panels on the page
        self.composites: set[str] = set()
        self.judged: dict[str, tuple[Judged, ...]] = {}  # by experiment

    def write(self, results: dict[str, Results], last: bool = True) -> tuple[Judged, ...]:
        """Figures, verdicts and page; with the ``last`` experiment the picture of all verdicts, too."""
        theory, note = judge_theory(self.folder, self.request.seed)
        new = {name: found for name, found in results.items() if name not in self.judged}
        self.judged |= {name: judge_all({name: found}) for name, found in new.items()}
        by_key = {j.claim.key: j for group in (*self.judged.values(), theory) for j in group}
        judged = tuple(by_key[claim.key] for claim in CLAIMS if claim.key in by_key)
        self._draw(results)
        quick = self.request.quick
        if last:
            write_overview(self.folder, judged, quick)
        versions = {"gqlab": version("gqlab"), "Python": platform.python_version()}
        versions |= {name: version(name) for name in ("numpy", "scipy", "numba", "gymnasium", "matplotlib")}
        about = About(self.request, self.command, versions, note, self.drawn)
        facts = {"command": self.command, "seed": self.request.seed, "quick": quick, "versions": versions}
        texts = {
            "claims.json": words.claims_json(judged, facts),
            "claims.md": words.claims_markdown(judged, quick, note),
            "report.html": page(judged, results, about),
        }
        for name, text in texts.items():
            write_whole(self.folder / name, lambda file, text=text: file.write(text.encode()))  # type: ignore[misc]
        return judged

    def _draw(self, results: dict[str, Results]) -> None:
        for name, found in results.items():
            if name not in self.panels:
                self.panels[name] = panels(found)
                write_figure(self.folder, name, self.panels[name])
        for name, _, experiments in (*COMPOSITES, BASELINES):
            if name not in self.composites and all(e in self.panels for e in experiments):
                every = name == BASELINES[0]
                drawn = [panel for e in experiments for panel in self.panels[e][: None if every else 1]]
                write_figure(self.folder, name, drawn, composite_kinds(self.request.quick))
                self.composites.add(name)


def _command(options: Reproduce) -> str:
    """The command that gives this report from nothing."""
    parts = ["gqlab", "reproduce"]
    parts += ["--quick"] if options.quick else []
    parts += ["--seed", str(options.seed)] if options.seed != REGISTERED_SEED else []
    parts += ["--device", options.device] if options.device != "cpu" else []
    parts += [] if options.slippery else ["--no-slippery"]
    return shlex.join(parts)
