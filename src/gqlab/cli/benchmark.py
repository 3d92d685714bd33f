"""``gqlab benchmark``."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from gqlab.support import checks
from gqlab.support.files import check_writable, write_whole
from gqlab.support.plain_json import print_json

#: Where everything goes unless ``--out`` says otherwise, in a folder of its own.
RESULTS = Path("results")


@dataclass(frozen=True)
class Benchmark:
    """Measure what agents reach on environments that everybody knows."""

    what: tyro.conf.Positional[Literal["agents", "lander", "logs"]]
    """agents: Q-learning, QRC, Sarsa(λ), Greedy-GQ and VR-Greedy-GQ on MountainCar, CartPole and Acrobot. lander:
    the same on LunarLander, which needs Box2D (pip install 'gymnasium[box2d]'). logs: the same but Sarsa, and fitted Q
    iteration, on 5,000 logged transitions of CartPole."""

    quick: tyro.conf.FlagCreatePairsOff[bool] = False
    """Few seeds and steps, or data sets, to try the command: at most 3 minutes."""

    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")] = None
    """The folder for what is found. Default: results/agents, results/lander or results/logs."""

    processes: int = 2
    """How many agents learn at a time."""

    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print the numbers as JSON instead of the table."""


def folder_of(options: Benchmark) -> Path:
    """Where the options want it."""
    return options.out or RESULTS / (options.what + "-quick" * options.quick)


def benchmark_logs(options: Benchmark) -> None:
    """The study of logged data."""
    from gqlab.studies.logs.study import QUICK_SEEDS, SEEDS, report, run_study

    folder = folder_of(options)

    def progress(done: int, of: int) -> None:
        print(f"\rgqlab benchmark: {done} of {of} data sets ", end="\n" * (done == of), file=sys.stderr, flush=True)

    found = run_study(folder, QUICK_SEEDS if options.quick else SEEDS, progress)
    text = report(found)
    write_whole(folder / "logs.txt", lambda file: file.write(f"{text}\n".encode()))
    if options.json:
        print_json(found)
        return
    print(f"{text}\nWritten to {folder}: logs.txt")


def benchmark(options: Annotated[Benchmark, tyro.conf.arg(name="")]) -> None:
    """Measure what agents reach on environments that everybody knows.

    Finished agents are kept: a second call, or one after Ctrl-C, does only what is missing.
    """
    if options.what == "logs":
        benchmark_logs(options)
        return
    from gqlab.learn.environments import make_env
    from gqlab.studies.agents import report
    from gqlab.studies.agents.design import SCALES
    from gqlab.studies.agents.runs import cells_of, run_cells

    processes = checks.integer("processes", options.processes, least=1, below=1000)
    folder = folder_of(options)
    check_writable(folder)
    scale = SCALES[options.what][options.quick]
    for name in scale.environments:
        make_env(name).close()  # what it needs is missing: better said before an hour than after

    def progress(done: int, of: int, left: float) -> None:
        ended = "\n" if done == of else ""
        print(
            f"\rgqlab benchmark: {done} of {of} agents, {left / 60:.1f} min left ",
            end=ended,
            file=sys.stderr,
            flush=True,
        )

    found = run_cells(cells_of(scale), folder / "data", processes, progress)
    table = report.table_of(found, scale)
    numbers = report.numbers(table, found)
    for name, text in {"agents.md": report.markdown(table, scale), "agents.json": numbers}.items():
        write_whole(folder / name, lambda file, text=text: file.write(text.encode()))  # type: ignore[misc]
    if options.json:
        print(numbers)
        return
    print(report.text(table, scale))
    print(f"\nWritten to {folder}: agents.md, agents.json")
