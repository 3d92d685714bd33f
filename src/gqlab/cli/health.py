"""``gqlab health``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import tyro

from gqlab.cli.log_options import LogOptions, read_log
from gqlab.support.plain_json import print_json
from gqlab.support.printable import say


@dataclass(frozen=True)
class HealthOptions(LogOptions):
    """What is in logged data, and what it means for learning."""

    encoder: Annotated[str | None, tyro.conf.arg(metavar="NAME:NUMBER,KEY=VALUE", help_behavior_hint="")] = None
    """Adds what features see of the data, e.g. tiles:16,bins=8 or fourier:3. Bounds that are not given
    (low=-1/-2,high=1/2) are fitted to the data."""

    discount: float = 0.99
    """γ, for the largest |Q| that makes sense."""

    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print the findings as JSON instead of the table."""


def health(options: Annotated[HealthOptions, tyro.conf.arg(name="")]) -> None:
    """What is in logged data, and what it means for learning."""
    from gqlab.data.report import health as measure
    from gqlab.encoders.specs import encoder_from_text

    encoder = None if options.encoder is None else encoder_from_text(options.encoder)
    data = read_log(options)
    found = measure(data, encoder, discount=options.discount)
    if options.json:
        print_json(found.to_dict())
    else:
        say(found.table())
