"""``gqlab compare``."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any

import tyro

from gqlab.algorithms import ALGORITHMS, Algorithm, is_kind
from gqlab.algorithms.places import way_in
from gqlab.cli.own_files import from_file
from gqlab.cli.study_options import StudyOptions
from gqlab.lab.execute import PLACES
from gqlab.problems.problem import Problem
from gqlab.studies.compare.design import FAMILIES, FULL, LINEUP, QUICK, RADIUS, Budget, Problems
from gqlab.studies.compare.leaderboard import Leaderboard
from gqlab.studies.study import run_study
from gqlab.support import checks
from gqlab.support.printable import say

#: Where everything goes unless ``--out`` says otherwise: a folder for each family of problems.
OUT, OUT_QUICK = Path("results/compare"), Path("results/compare-quick")


@dataclass(frozen=True)
class Compare(StudyOptions):
    """Compare estimators in units of the statistical floor: what samples allow who does not know the behaviour."""

    problem: Annotated[str, tyro.conf.arg(metavar="NAME|FILE.py:NAME")] = "garnet"
    """A family of problems (garnet, frozen-lake, garnet-50, …; an unknown name lists them), or a file of your own with
    a Problem, or a function from a seed to one, of that name."""

    algorithm: Annotated[tuple[str, ...], tyro.conf.arg(metavar="[NAME|FILE.py:NAME ...]", help_behavior_hint="")] = ()
    """Only these, by class (SAGAGreedyGQ) or by the name in the table. Files of your own join the whole table, or the
    names beside them."""

    problems: Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="")] = None
    """How many problems are drawn. Default: 12, or 4 with --quick."""

    n_samples: Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="")] = None
    """The budget of each run. Default: 300,000, or 30,000 with --quick."""


def compare(options: Annotated[Compare, tyro.conf.arg(name="")]) -> None:
    """Compare estimators in units of the statistical floor.

    compare.html, .json, .md, .png and .svg go to results/compare/PROBLEM, or to --out. Finished work is kept: a second
    call, or one after Ctrl-C, does only what is missing.
    """
    budget = budget_of(options)
    title, problems, name = problems_of(options.problem, budget.seeds)
    lineup = lineup_of(options.algorithm)
    budget = replace(budget, n_problems=len(problems.seeds))
    folder = options.out or (OUT_QUICK if options.quick else OUT) / name
    done = run_study(Leaderboard(title, problems, lineup, budget, command_of(options)), folder, options.how())
    if options.json:
        print((folder / "compare.json").read_text(encoding="utf-8"))
        return
    say(f"{done.text}\n\nWritten to {folder}: compare.html, .json, .md, .png and .svg")


def command_of(options: Compare) -> str:
    """The command that makes this page."""
    parts = ["gqlab", "compare", "--problem", options.problem]
    parts += ["--algorithm", *options.algorithm] if options.algorithm else []
    parts += ["--problems", str(options.problems)] if options.problems is not None else []
    parts += ["--n-samples", str(options.n_samples)] if options.n_samples is not None else []
    return shlex.join(parts + (["--quick"] if options.quick else []))


def budget_of(options: Compare) -> Budget:
    budget = QUICK if options.quick else FULL
    if options.problems is not None:
        budget = replace(budget, n_problems=checks.integer("problems", options.problems, least=1, below=10_000))
    if options.n_samples is not None:
        budget = replace(budget, n_samples=checks.integer("n_samples", options.n_samples, least=3000, below=2**40))
    return budget


def problems_of(text: str, seeds: tuple[int, ...]) -> tuple[str, Problems, str]:
    """The problems that an argument names: in words, as data, and the name of their folder."""
    if text in FAMILIES:
        return FAMILIES[text].title, Problems(text, seeds), text
    if ".py:" not in text:
        raise ValueError(f"problem is {text!r}, expected one of {', '.join(FAMILIES)}, or FILE.py:NAME")
    thing, name = from_file("problem", text)
    if isinstance(thing, Problem):
        return f"{name}: {thing!r}", Problems(text, seeds[:1], thing), f"{name} (one problem)"
    if not callable(thing):
        raise ValueError(f"problem {text!r} is {thing!r}, expected a Problem or a function from a seed to one")
    prints = []
    for seed in seeds:
        made = thing(seed)
        if not isinstance(made, Problem):
            raise ValueError(f"problem {text!r} made {made!r} of seed {seed}, expected a Problem")
        prints.append(made.fingerprint)
    return name, Problems(name, seeds, thing, tuple(prints)), name


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
    if is_kind(kind):
        radius = {"radius": RADIUS} if "radius" in {field.name for field in fields(kind)} else {}
        kind = kind(**radius)
    if not isinstance(kind, Algorithm) or not kind.follows_trajectory:
        raise ValueError(f"algorithm {text!r} is {kind!r}, expected one that follows the trajectory of the run")
    way_in(PLACES["cpu"], kind)
    return kind
