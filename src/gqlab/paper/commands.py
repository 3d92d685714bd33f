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
from gqlab.engine.execute import load_cuda
from gqlab.files import check_writable, write_whole
from gqlab.paper import words
from gqlab.paper.claims import Judged, judge_all, summary
from gqlab.paper.design import Scale
from gqlab.paper.experiments import EXPERIMENTS, chosen
from gqlab.paper.figures import write_figure
from gqlab.paper.overview import write_overview
from gqlab.paper.panels import panels
from gqlab.paper.report import About, page
from gqlab.paper.runner import Results, collect, run_missing
from gqlab.paper.store import Store

#: Where the results go unless ``--out`` says otherwise.
OUT, OUT_QUICK = Path("results/paper"), Path("results/quick")


@dataclass(frozen=True)
class Reproduce:
    """Run every experiment of the paper, draw its figures, and say of every claim whether it holds."""

    experiment: Annotated[tuple[str, ...], tyro.conf.arg(metavar="[NAME ...]", help_behavior_hint="")] = ()
    """Run only these experiments (names: gqlab list). The report covers all that are finished."""

    quick: tyro.conf.FlagCreatePairsOff[bool] = False
    """Every experiment, but smaller: seconds instead of minutes, and verdicts that are only a preview."""

    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")] = None
    """The folder for figures, data, verdicts and the report. Default: results/paper, or results/quick with --quick."""

    seed: int = 0
    """Of all random numbers: problems, features, trajectories."""

    device: Annotated[str, tyro.conf.arg(metavar="{" + ",".join(DEVICES) + "}")] = "cpu"
    """Where the runs are computed."""

    slippery: bool = True
    """Frozen Lake with slippery ice, or (--no-slippery) without."""

    force: tyro.conf.FlagCreatePairsOff[bool] = False
    """Start over: do again what is already finished."""

    quiet: Annotated[bool, tyro.conf.Suppress] = field(default=False)
    """No progress bars."""


def reproduce(options: Annotated[Reproduce, tyro.conf.arg(name="")]) -> None:
    """Run every experiment of the paper, draw its figures, and say of every claim whether it holds.

    Finished work is kept: a second call, or one after Ctrl-C, does only what is missing.
    """
    wanted = chosen(options.experiment)
    if options.device not in DEVICES:
        raise ValueError(f"device is {options.device!r}, expected one of {', '.join(map(repr, DEVICES))}")
    if options.device == "cuda":
        load_cuda()
    if options.seed < 0:
        raise ValueError(f"seed is {options.seed}, expected at least 0")
    scale = Scale(options.quick, options.seed, options.slippery, options.device)
    folder = options.out or (OUT_QUICK if options.quick else OUT)
    check_writable(folder)
    store = Store(folder / "data")
    for experiment in wanted:
        run_missing(experiment, scale, store, force=options.force, quiet=options.quiet)
    results = _finished(scale, store)
    judged = judge_all(results)
    _write(folder, scale, options, results, judged)
    for j in judged:
        print(f"{j.verdict.outcome:<14} {j.claim.statement}")
    print(f"{summary(judged)}. Report: {folder / 'report.html'}")


def list_experiments() -> None:
    """List the experiments of the paper."""
    width = max(len(e.name) for e in EXPERIMENTS)
    for e in EXPERIMENTS:
        print(f"{e.name:<{width}}  {e.figure:<22}  {e.title}")


def _finished(scale: Scale, store: Store) -> dict[str, Results]:
    """All experiments whose results are there, in the paper's order."""
    found: dict[str, Results] = {}
    for experiment in EXPERIMENTS:
        results = collect(experiment, scale, store)
        if results is not None:
            found[experiment.name] = results
    return found


def _write(
    folder: Path, scale: Scale, options: Reproduce, results: dict[str, Results], judged: tuple[Judged, ...]
) -> None:
    versions = {"gqlab": version("gqlab"), "Python": platform.python_version()}
    versions |= {name: version(name) for name in ("numpy", "scipy", "numba", "gymnasium", "matplotlib")}
    about = About(scale, _command(options), versions)
    for name, found in results.items():
        write_figure(folder, name, panels(found))
    write_overview(folder, judged)
    facts = {"command": about.command, "seed": scale.seed, "quick": scale.quick, "versions": versions}
    note = "From a quick run: a preview." if scale.quick else ""
    texts = {
        "claims.json": words.claims_json(judged, facts),
        "claims.md": words.claims_markdown(judged, note),
        "report.html": page(judged, results, about),
    }
    for name, text in texts.items():
        write_whole(folder / name, lambda file, text=text: file.write(text.encode()))  # type: ignore[misc]


def _command(options: Reproduce) -> str:
    """The command that gives this report from nothing."""
    parts = ["gqlab", "reproduce"]
    parts += ["--quick"] if options.quick else []
    parts += ["--seed", str(options.seed)] if options.seed else []
    parts += ["--device", options.device] if options.device != "cpu" else []
    parts += [] if options.slippery else ["--no-slippery"]
    return shlex.join(parts)
