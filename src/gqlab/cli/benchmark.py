"""``gqlab benchmark``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from gqlab.cli.study_options import StudyOptions
from gqlab.support.printable import say

#: Where everything goes unless ``--out`` says otherwise, in a folder of its own.
RESULTS = Path("results")


@dataclass(frozen=True)
class _What:
    what: tyro.conf.Positional[Literal["agents", "lander", "logs", "fits", "decisions", "replay"]]
    """agents: Q-learning, QRC, Sarsa(λ), Greedy-GQ and VR-Greedy-GQ on MountainCar, CartPole and Acrobot. lander:
    the same on LunarLander, which needs Box2D (pip install 'gymnasium[box2d]'). logs: the same but Sarsa, and fitted Q
    iteration, on 5,000 logged transitions of CartPole. fits: SAGA and STORM against VR-Greedy-GQ in passes over eight
    logs. decisions: values, intervals, verdicts and choices by gqlab decide and select, on problems whose values are
    known exactly. replay: steps until agents that replay have solved CartPole, MountainCar, Acrobot, LunarLander (which
    needs Box2D), Taxi and CliffWalking, and what makes the difference."""


@dataclass(frozen=True)
class Benchmark(StudyOptions, _What):
    """Measure what agents reach on environments that everybody knows."""

    beside: Annotated[Path | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="")] = None
    """replay: curves of another library's agents, shown beside (python -m benchmarks --only dqn writes some)."""


def benchmark(options: Annotated[Benchmark, tyro.conf.arg(name="")]) -> None:
    """Measure what agents reach on environments that everybody knows.

    agents.html, .md and .json (or logs.*, fits.*, decisions.*, replay.*) go to results/agents, results/lander,
    results/logs, results/fits, results/decisions or results/replay, or to --out. Finished work is kept: a second call,
    or one after Ctrl-C, does only what is missing.
    """
    from gqlab.studies.study import Study, run_study

    study: Study
    if options.beside is not None and options.what != "replay":
        raise ValueError(f"beside is {options.beside}, which is for replay alone, not {options.what}")
    if options.what == "logs":
        from gqlab.studies.logs.runs import QUICK_SEEDS, SEEDS
        from gqlab.studies.logs.study import LogStudy

        study = LogStudy(QUICK_SEEDS if options.quick else SEEDS)
    elif options.what == "fits":
        from gqlab.studies.fits.runs import LOGS, QUICK_LOGS
        from gqlab.studies.fits.study import FitStudy

        study = FitStudy(QUICK_LOGS if options.quick else LOGS)
    elif options.what == "decisions":
        from gqlab.studies.decisions.design import DecisionDesign
        from gqlab.studies.decisions.study import Decisions

        study = Decisions(DecisionDesign(options.quick))
    elif options.what == "replay":
        from gqlab.learn.environments import make_env
        from gqlab.studies.replay.beside import read_beside
        from gqlab.studies.replay.design import FULL, QUICK
        from gqlab.studies.replay.study import ReplayStudy

        parts = QUICK if options.quick else FULL
        for name in {name for part in parts.values() for name in part.environments}:
            make_env(name).close()  # what it needs is missing: better said before an hour than after
        if options.beside is not None:
            read_beside(options.beside)  # what it lacks is better said before an hour than after
        study = ReplayStudy(parts, options.beside)
    else:
        from gqlab.learn.environments import make_env
        from gqlab.studies.agents.benchmark import AgentBenchmark
        from gqlab.studies.agents.design import PROGRAMMES

        programme = PROGRAMMES[options.what][options.quick]
        for name in programme.environments:
            make_env(name).close()  # what it needs is missing: better said before an hour than after
        study = AgentBenchmark(programme)
    folder = options.folder(RESULTS / options.what)
    done = run_study(study, folder, options.how("processes"))  # environments are Python: threads would wait for them
    if options.json:
        print((folder / f"{study.name}.json").read_text(encoding="utf-8"))
        return
    say(f"{done.text}\n\nWritten to {folder}: {study.name}.html, .md and .json")
