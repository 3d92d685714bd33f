"""The options that all studies share, and what they mean."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import tyro

from gqlab.studies.study import How

EngineName = Literal["threads", "processes", "ray"]


@dataclass(frozen=True)
class StudyOptions:
    """A study's options: each command inherits them, and adds its own."""

    quick: tyro.conf.FlagCreatePairsOff[bool] = False
    """A small version of everything, to try the command."""

    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")] = None
    """The folder for pages, tables, numbers and finished work. Default: a folder in results/."""

    engine: Annotated[EngineName | None, tyro.conf.arg(metavar="{threads,processes,ray}", help_behavior_hint="")] = None
    """Where the work is done (docs/scale.md). Default: threads, or processes for agents and logs."""

    workers: Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="")] = None
    """How many tasks run at a time. Default: one for each core, here or of the cluster."""

    address: Annotated[str | None, tyro.conf.arg(metavar="HOST:PORT", help_behavior_hint="")] = None
    """Of a Ray cluster to join, or auto. Default: Ray runs on this machine alone."""

    force: tyro.conf.FlagCreatePairsOff[bool] = False
    """Start over: compute what is already finished again."""

    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print the numbers as JSON instead of the tables."""

    quiet: Annotated[bool, tyro.conf.Suppress] = field(default=False)
    """No progress bar."""

    def how(self, engine: EngineName = "threads") -> How:
        """How the work is done, on this engine if no other is asked for."""
        return How(self.engine or engine, self.workers, self.address, self.force, progress=not self.quiet)

    def folder(self, default: Path) -> Path:
        """Where everything goes; a quick version has a folder of its own."""
        if self.out is not None:
            return self.out
        return default.with_name(f"{default.name}-quick") if self.quick else default
