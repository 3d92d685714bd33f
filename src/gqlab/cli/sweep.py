"""``gqlab sweep``."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import tyro

from gqlab.grids.export import export_parquet
from gqlab.grids.grid import grid
from gqlab.grids.grid_result import GridResult
from gqlab.grids.recipe import Recipe, read_recipe
from gqlab.support.own_files import OwnCode
from gqlab.support.printable import say
from gqlab.support.words import counted
from gqlab.tasks.engines import engine_of

#: Rows of the table that are printed.
MOST_ROWS = 50


@dataclass(frozen=True)
class SweepOptions:
    """Run problems × algorithms × seeds, as a file lists them. Finished work is kept: the same command resumes."""

    file: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE.toml")]
    """The sweep: see docs/scale.md."""

    out: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("results/sweep")
    """The store for finished cells; gqlab.open_grid reads it."""

    engine: Annotated[
        Literal["threads", "processes", "ray"] | None,
        tyro.conf.arg(metavar="{threads,processes,ray}", help_behavior_hint=""),
    ] = None
    """Where the cells run. Default: what the file says, or processes."""

    workers: Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="")] = None
    """Default: what the file says, or one for each core, GPU, or core of the cluster."""

    address: Annotated[str | None, tyro.conf.arg(metavar="HOST:PORT", help_behavior_hint="")] = None
    """Of a Ray cluster to join, or auto. Default: what the file says, or this machine alone."""

    code: Annotated[tuple[Path, ...], tyro.conf.arg(metavar="FILE.py ...", help_behavior_hint="")] = ()
    """Files of your own that the sweep may name, as FILE.py:NAME: problems, algorithms, operators."""

    export: Annotated[Path | None, tyro.conf.arg(metavar="FILE.parquet", help_behavior_hint="")] = None
    """Write every record of every run to a Parquet file, too."""

    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print the table as JSON."""


def sweep(options: Annotated[SweepOptions, tyro.conf.arg(name="")]) -> None:
    """Run problems × algorithms × seeds, as a file lists them. Finished work is kept: the same command resumes."""
    recipe = read_recipe(options.file, OwnCode(options.code))
    given = {name: getattr(options, name) for name in ("engine", "workers", "address")}
    chosen = {"engine": "processes", **recipe.engine, **{name: v for name, v in given.items() if v is not None}}
    engine = engine_of(chosen["engine"], chosen.get("workers"), chosen.get("address"))
    begun = time.perf_counter()
    # Ray prints messages about its workers on stdout, which is for the table.
    with contextlib.redirect_stdout(sys.stderr):
        found = grid(recipe.problems, recipe.algorithms, **recipe.arguments, engine=engine, store=options.out)
    seconds = time.perf_counter() - begun
    rows, n_computed = summary(found, recipe), found.results.n_computed  # type: ignore[attr-defined]
    written = export_parquet(found, options.export) if options.export is not None else 0
    if options.json:
        counts = {"cells": len(found), "computed": n_computed, "seconds": seconds}
        print(json.dumps({"store": str(options.out), **counts, "rows": rows}, indent=1))
        return
    say(table(rows))
    say(f"\n{work(len(found), n_computed, seconds)}; gqlab.open_grid({str(options.out)!r}) opens them")
    if options.export is not None:
        say(f"{counted(written, 'row')} in {options.export}")


def work(n_cells: int, n_computed: int, seconds: float) -> str:
    """What was computed, and what was already there."""
    if n_computed == 0:
        return f"All {counted(n_cells, 'cell')} were already in the store: nothing was computed"
    kept = n_cells - n_computed
    rest = f", {kept:,} were already in the store" if kept else ""
    return f"{counted(n_computed, 'cell')} computed in {seconds:.1f} s{rest}"


def summary(found: GridResult, recipe: Recipe) -> list[dict[str, Any]]:
    """A row for every problem and algorithm: the mean of ‖∇J‖² at the end over seeds and runs, where ∇J exists."""
    n_seeds = len(found) // (len(recipe.problems) * len(recipe.algorithms))
    rows = []
    for first in range(0, len(found), n_seeds):
        p = int(found.labels["problem"][first])
        results = [found.results[k] for k in range(first, first + n_seeds)]
        theta = np.concatenate([result.theta[:, -1] for result in results])
        try:
            gradient: float | None = float((recipe.problems[p].exact.gradient(theta) ** 2).sum(axis=-1).mean())
        except ValueError:  # C is singular, or the chain has several recurrent classes
            gradient = None
        rows.append(
            {
                "problem": recipe.names[p],
                "algorithm": repr(results[0].algorithm),
                "gradient": gradient,
                "diverged": int(sum(result.diverged.sum() for result in results)),
                "runs": len(theta),
            }
        )
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as text, by problem; the first of them, where there are many."""
    shown = rows[:MOST_ROWS]
    width = max(len(row["algorithm"]) for row in shown)
    lines = [f"{'':<{width + 2}}  {'‖∇J‖² at the end':>16}  diverged"]
    for k, row in enumerate(shown):
        if k == 0 or row["problem"] != shown[k - 1]["problem"]:
            lines.append(row["problem"])
        value = "-" if row["gradient"] is None else f"{row['gradient']:.4g}"
        lines.append(f"  {row['algorithm']:<{width}}  {value:>16}  {row['diverged']} of {row['runs']}")
    if len(rows) > len(shown):
        lines.append(f"… and {len(rows) - len(shown):,} more rows: --json prints all")
    return "\n".join(lines)
