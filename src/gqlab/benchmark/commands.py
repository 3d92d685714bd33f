"""``gqlab benchmark``."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from gqlab import checks
from gqlab.files import check_writable, write_whole
from gqlab.plain_json import print_json

#: Where everything goes unless ``--out`` says otherwise.
OUT, OUT_QUICK = Path("results/agents"), Path("results/agents-quick")


@dataclass(frozen=True)
class Benchmark:
    """Measure what agents reach on environments that everybody knows."""

    what: tyro.conf.Positional[Literal["agents", "logs"]]
    """agents: Q-learning, QRC, Sarsa(λ), Greedy-GQ and VR-Greedy-GQ on MountainCar, CartPole and Acrobot. logs: the
    same but Sarsa, and fitted Q iteration, on 5,000 logged transitions of CartPole."""

    quick: tyro.conf.FlagCreatePairsOff[bool] = False
    """Few seeds and steps, or data sets, to try the command: at most 3 minutes."""

    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")] = None
    """The folder for what is found. Default: results/agents, or results/logs."""

    processes: int = 2
    """How many agents learn at a time."""

    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print the numbers as JSON instead of the table."""


def benchmark_logs(options: Benchmark) -> None:
    """The study of logged data."""
    from gqlab.learn.log_study import QUICK_SEEDS, SEEDS, report, run_study

    folder = options.out or Path("results/logs-quick" if options.quick else "results/logs")

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
    from gqlab.benchmark import report
    from gqlab.benchmark.design import FULL, QUICK
    from gqlab.benchmark.runs import cells_of, run_cells

    processes = checks.integer("processes", options.processes, least=1, below=1000)
    folder = options.out or (OUT_QUICK if options.quick else OUT)
    check_writable(folder)
    scale = QUICK if options.quick else FULL

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
