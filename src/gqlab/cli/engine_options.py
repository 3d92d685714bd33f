"""The options of commands whose workers share files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import tyro


@dataclass(frozen=True)
class EngineOptions:
    """Who reads the files."""

    engine: Annotated[
        Literal["threads", "processes", "ray"] | None,
        tyro.conf.arg(metavar="{threads,processes,ray}", help_behavior_hint=""),
    ] = None
    """Share Parquet files among workers, for data that do not fit one machine. Default: one process reads them."""

    workers: Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="")] = None
    """Of the engine. Default: one for each core, of this machine or of the cluster."""

    address: Annotated[str | None, tyro.conf.arg(metavar="HOST:PORT", help_behavior_hint="")] = None
    """Of a Ray cluster to join, or auto. Default: this machine alone."""


def engine_from(options: EngineOptions) -> Any:
    """The engine that was asked for, if one was."""
    from gqlab.tasks.engines import engine_of

    if options.engine is None:
        for name in ("workers", "address"):
            if getattr(options, name) is not None:
                raise ValueError(f"{name} is {getattr(options, name)}, but there is no engine: --engine names one")
        return None
    return engine_of(options.engine, options.workers, options.address)
