"""The options of ``gqlab train`` for agents that keep their transitions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

if TYPE_CHECKING:
    from gqlab.learn.agent.presets import Preset

#: Those that say how transitions are replayed, by the names of gqlab.Replay.
SETTINGS = ("updates", "n_step", "size", "sampling", "average")


@dataclass(frozen=True)
class ReplayOptions:
    """Whether and how transitions are kept and learned from again."""

    replay: tyro.conf.FlagCreatePairsOff[bool] = False
    """Keep all transitions and learn from them again and again: far fewer steps, each of which costs more. The preset
    for it is another one; the options below change it."""

    updates: Annotated[float | None, tyro.conf.arg(metavar="FLOAT", help_behavior_hint="")] = None
    """With --replay: updates for each step. Default: the preset's, or 16."""

    n_step: Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="")] = None
    """With --replay: the steps of a window. Default: the preset's, or 2."""

    size: Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="")] = None
    """With --replay: keep the newest so many. Default: all."""

    sampling: Annotated[
        Literal["uniform", "recent"] | None, tyro.conf.arg(metavar="{uniform,recent}", help_behavior_hint="")
    ] = None
    """With --replay: draw all alike, or the newest more often. Default: uniform."""

    average: Annotated[float | None, tyro.conf.arg(metavar="FLOAT", help_behavior_hint="")] = None
    """With --replay: the rate of the slow average that it acts by; 0: none. Default: the preset's, or 0.002."""


def replay_of(options: ReplayOptions, preset: Preset | None) -> Any:
    """A gqlab.Replay as the options ask for, None without."""
    from gqlab.learn.agent.replay import Replay

    given = {name: getattr(options, name) for name in SETTINGS if getattr(options, name) is not None}
    if options.replay:
        begun = preset.replay if preset is not None and preset.replay is not None else Replay()
        return replace(begun, **given)
    for name, value in given.items():
        raise ValueError(f"{name} is {value}, which is for --replay")
    return None
