"""``gqlab health``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import tyro

from gqlab.support.plain_json import print_json


@dataclass(frozen=True)
class HealthOptions:
    """What is in logged data, and what it means for learning."""

    files: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="FILE...", help_behavior_hint="")]
    """Parquet files, patterns or folders, in the order of time."""

    encoder: Annotated[str | None, tyro.conf.arg(metavar="NAME:NUMBER,KEY=VALUE", help_behavior_hint="")] = None
    """Adds what features see of the data, e.g. tiles:16,bins=8 or fourier:3. Bounds that are not given
    (low=-1/-2,high=1/2) are fitted to the data."""

    column: Annotated[tuple[str, ...], tyro.conf.arg(metavar="[ROLE=NAME ...]", help_behavior_hint="")] = ()
    """What a column means, where its name does not say so: action=lever, observation=x,v."""

    discount: float = 0.99
    """γ, for the largest |Q| that makes sense."""

    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print the findings as JSON instead of the table."""


def health(options: Annotated[HealthOptions, tyro.conf.arg(name="")]) -> None:
    """What is in logged data, and what it means for learning."""
    from gqlab.data.report import health as measure
    from gqlab.data.transitions import Transitions
    from gqlab.encoders.specs import encoder_from_text

    if not options.files:
        raise ValueError("files: none is given, expected Parquet files")
    encoder = None if options.encoder is None else encoder_from_text(options.encoder)
    data = Transitions.from_parquet(list(options.files), columns_of(options.column))
    found = measure(data, encoder, discount=options.discount)
    if options.json:
        print_json(found.to_dict())
    else:
        print(found.table())


def columns_of(texts: tuple[str, ...]) -> dict[str, list[str]] | None:
    """ROLE=NAME or ROLE=NAME,NAME as the dictionary that ``from_parquet`` takes."""
    out: dict[str, list[str]] = {}
    for text in texts:
        role, equals, names = text.partition("=")
        if not equals or not names:
            raise ValueError(f"column is {text!r}, expected ROLE=NAME, as in action=lever")
        out[role] = names.split(",")
    return out or None
