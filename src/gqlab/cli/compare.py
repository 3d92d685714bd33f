"""``gqlab compare``."""

from __future__ import annotations

import shlex
import sys
import time
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any

import tyro

from gqlab.algorithms import ALGORITHMS, Algorithm
from gqlab.cli.own_files import from_file
from gqlab.problems.problem import Problem
from gqlab.studies.compare import report
from gqlab.studies.compare.design import FAMILIES, FULL, LINEUP, QUICK, RADIUS, Family, Scale
from gqlab.studies.compare.store import Store
from gqlab.support import checks
from gqlab.support.files import write_whole

#: Where everything goes unless ``--out`` says otherwise: a folder for each family of problems.
OUT, OUT_QUICK = Path("results/compare"), Path("results/compare-quick")


@dataclass(frozen=True)
class Compare:
    """Compare estimators in units of the statistical floor: what the samples of a run allow, whatever the algorithm."""

    problem: Annotated[str, tyro.conf.arg(metavar="NAME|FILE.py:NAME")] = "garnet"
    """A family of problems (garnet, frozen-lake, garnet-50, …; an unknown name lists them), or a file of your own with
    a Problem, or a function from a seed to one, of that name."""

    algorithm: Annotated[tuple[str, ...], tyro.conf.arg(metavar="[NAME|FILE.py:NAME ...]", help_behavior_hint="")] = ()
    """Only these, by class (SAGAGreedyGQ) or by the name in the table. Files of your own join the whole table, or the
    names beside them."""

    seeds: Annotated[int | None, tyro.conf.arg(help_behavior_hint="")] = None
    """How many problems are drawn. Default: 12, or 4 with --quick."""

    n_samples: Annotated[int | None, tyro.conf.arg(help_behavior_hint="")] = None
    """The budget of each run. Default: 300,000, or 30,000 with --quick."""

    quick: tyro.conf.FlagCreatePairsOff[bool] = False
    """Few problems and samples, to try the command."""

    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")] = None
    """The folder for compare.html, .json, .md, .png and .svg. Default: results/compare/PROBLEM."""

    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print the numbers as JSON instead of the table."""


def compare(options: Annotated[Compare, tyro.conf.arg(name="")]) -> None:
    """Compare estimators in units of the statistical floor.

    Finished work is kept: a second call, or one after Ctrl-C, does only what is missing.
    """
    from gqlab.studies.compare.figure import write_figure
    from gqlab.studies.compare.measure import compare as measure

    family, name = family_of(options.problem)
    lineup = lineup_of(options.algorithm)
    scale = scale_of(options, name)
    folder = options.out or (OUT_QUICK if options.quick else OUT) / name
    folder.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()

    def progress(what: str) -> None:
        print(f"gqlab compare: {what}, {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)

    found = measure(family, lineup, scale, Store(folder / "data"), progress)
    svg = write_figure(found, folder)
    texts = {
        "compare.json": report.numbers(found),
        "compare.md": report.markdown(found),
        "compare.html": report.page(found, svg, command_of(options)),
    }
    for file_name, text in texts.items():
        write_whole(folder / file_name, lambda file, text=text: file.write(text.encode()))  # type: ignore[misc]
    print(texts["compare.json"] if options.json else report.text(found))
    if not options.json:
        print(f"\nWritten to {folder}: compare.html, .json, .md, .png and .svg")


def command_of(options: Compare) -> str:
    """The command that makes this page."""
    parts = ["gqlab", "compare", "--problem", options.problem]
    parts += ["--algorithm", *options.algorithm] if options.algorithm else []
    parts += ["--seeds", str(options.seeds)] if options.seeds is not None else []
    parts += ["--n-samples", str(options.n_samples)] if options.n_samples is not None else []
    return shlex.join(parts + (["--quick"] if options.quick else []))


def scale_of(options: Compare, name: str) -> Scale:
    scale = QUICK if options.quick else FULL
    if options.seeds is not None:
        scale = replace(scale, n_problems=checks.integer("seeds", options.seeds, least=1, below=10_000))
    if options.n_samples is not None:
        scale = replace(scale, n_samples=checks.integer("n_samples", options.n_samples, least=3000, below=2**40))
    return replace(scale, n_problems=1) if name.endswith(" (one problem)") else scale


def family_of(text: str) -> tuple[Family, str]:
    """The family of problems that an argument names, and the name of its folder."""
    if text in FAMILIES:
        return FAMILIES[text], text
    if ".py:" not in text:
        raise ValueError(f"problem is {text!r}, expected one of {', '.join(FAMILIES)}, or FILE.py:NAME")
    thing, name = from_file("problem", text)
    if isinstance(thing, Problem):
        return Family(f"{name}: {thing!r}", lambda seed: thing), f"{name} (one problem)"
    if not callable(thing):
        raise ValueError(f"problem {text!r} is {thing!r}, expected a Problem or a function from a seed to one")

    def build(seed: int) -> Problem:
        made = thing(seed)
        if not isinstance(made, Problem):
            raise ValueError(f"problem {text!r} made {made!r} of seed {seed}, expected a Problem")
        return made

    return Family(name, build), name


def lineup_of(names: tuple[str, ...]) -> dict[str, Algorithm]:
    """The algorithms that the arguments name; all, where none or only files are given."""
    out: dict[str, Algorithm] = {} if any(".py:" not in name for name in names) else dict(LINEUP)
    for text in names:
        if ".py:" in text:
            kind, name = from_file("algorithm", text)
            out[name] = instance_of(text, kind)
            continue
        found = {name: a for name, a in LINEUP.items() if text in (name, type(a).__name__)}
        if not found and text in ALGORITHMS:
            found = {text: instance_of(text, ALGORITHMS[text])}
        if not found:
            raise ValueError(
                f"algorithm is {text!r}, expected one of {', '.join([*LINEUP, *ALGORITHMS])}, or FILE.py:NAME"
            )
        out |= found
    return out


def instance_of(text: str, kind: Any) -> Algorithm:
    """An algorithm of a class, with its defaults and the radius of all others; or the algorithm itself."""
    if isinstance(kind, type) and issubclass(kind, Algorithm) and hasattr(kind, "estimator"):
        radius = {"radius": RADIUS} if "radius" in {field.name for field in fields(kind)} else {}  # type: ignore[arg-type]
        kind = kind(**radius)
    if not isinstance(kind, Algorithm) or not kind.follows_trajectory:
        raise ValueError(f"algorithm {text!r} is {kind!r}, expected one that follows the trajectory of the run")
    return kind
