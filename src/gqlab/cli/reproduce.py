"""``gqlab reproduce`` and ``gqlab list``."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import tyro

from gqlab.cli.study_options import StudyOptions
from gqlab.engine.cells import DEVICES
from gqlab.lab.execute import load_cuda
from gqlab.studies.paper.design import Request
from gqlab.studies.paper.experiments import EXPERIMENTS, chosen
from gqlab.studies.paper.report import REGISTERED_SEED
from gqlab.studies.paper.reproduction import Reproduction, run_reproduction
from gqlab.support import checks
from gqlab.support.plain_json import print_json

#: Where the results go unless ``--out`` says otherwise.
OUT, OUT_QUICK = Path("results/paper"), Path("results/quick")


@dataclass(frozen=True)
class Reproduce(StudyOptions):
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

    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print the verdicts, as in claims.json, as JSON instead of the list."""


def reproduce(options: Annotated[Reproduce, tyro.conf.arg(name="")]) -> None:
    """Run every experiment of the paper, draw its figures, and judge every claim of the register.

    The page is there from the first finished experiment on. Finished work is kept: a second call, or one after Ctrl-C,
    does only what is missing.
    """
    wanted = chosen(options.experiment)
    checks.one_of("device", options.device, DEVICES)
    if options.device == "cuda":
        load_cuda()
    seed = checks.integer("seed", options.seed, least=0)
    study = Reproduction(
        wanted, Request(options.quick, seed, options.slippery, options.device), command=_command(options)
    )
    how = replace(options.how(), device=options.device)
    folder = options.out or (OUT_QUICK if options.quick else OUT)
    done = run_reproduction(study, folder, how)
    if options.json:
        print((folder / "claims.json").read_text(encoding="utf-8").rstrip())
    else:
        print(f"{done.text} Report: {folder / 'report.html'}")


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


def _command(options: Reproduce) -> str:
    """The command that gives this report from nothing."""
    parts = ["gqlab", "reproduce"]
    parts += ["--quick"] if options.quick else []
    parts += ["--seed", str(options.seed)] if options.seed != REGISTERED_SEED else []
    parts += ["--device", options.device] if options.device != "cpu" else []
    parts += [] if options.slippery else ["--no-slippery"]
    return shlex.join(parts)
