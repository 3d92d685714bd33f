"""What ``gqlab decide`` and ``gqlab select`` share: how policies are judged, and what is written of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from gqlab.cli.log_options import LogOptions

#: What is written of a decision.
RECORD, PAGE, PICTURES = "decision.json", "report.html", ("gains.png", "gains.svg")


@dataclass(frozen=True)
class JudgeOptions(LogOptions):
    """How policies are judged."""

    features: Annotated[str, tyro.conf.arg(metavar="trees|tabular|NAME:NUMBER,KEY=VALUE")] = "trees"
    """What values are linear in: leaves of random trees; tabular, where observations are discrete; or an encoder such
    as tiles:8,bins=6."""

    confidence: float = 0.95
    """Of intervals and verdicts."""

    reward_range: Annotated[tuple[float, float] | None, tyro.conf.arg(metavar="LEAST MOST", help_behavior_hint="")] = (
        None
    )
    """What rewards can be, where the log may not have seen all of it. Default: what the log has seen."""

    force: tyro.conf.FlagCreatePairsOff[bool] = False
    """Replace what is in the folder already."""

    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print the decision as JSON instead of the table."""

    @property
    def how(self) -> dict[str, Any]:
        """Arguments of :func:`gqlab.decide` and :func:`gqlab.select`."""
        from gqlab.encoders.specs import encoder_from_text

        known = self.features in ("trees", "tabular")
        return {
            "features": self.features if known else encoder_from_text(self.features),
            "confidence": self.confidence,
            "reward_range": self.reward_range,
        }


def check_unwritten(folder: Path, force: bool, *more: str) -> None:
    """``ValueError`` where something would be overwritten."""
    from gqlab.support.files import check_writable

    if not force:
        for name in (RECORD, PAGE, *PICTURES, *more):
            if (folder / name).exists():
                raise ValueError(
                    f"{folder} holds {'a decision' if name == RECORD else name} already: name another folder with "
                    "--out, or replace it with --force"
                )
    check_writable(folder)


def write_decision(record: dict[str, Any], decision: Any, folder: Path, lead: Sequence[str], facts: Any = ()) -> None:
    """The record, the picture and the page, which begins with the sentences ``lead``."""
    from gqlab.cli.decide_page import page
    from gqlab.support.files import write_whole
    from gqlab.support.plain_json import plain

    if decision is None:  # nothing was judged: no picture of an earlier decision is left beside this one
        for name in PICTURES:
            (folder / name).unlink(missing_ok=True)
    text = page(decision, folder, lead, facts)
    lines = json.dumps(plain(record), ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    write_whole(folder / PAGE, lambda file: file.write(text.encode()))
    write_whole(folder / RECORD, lambda file: file.write(lines.encode()))
