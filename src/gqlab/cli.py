"""The command line: ``gqlab``. Each command is a function with typed arguments; this file only lists them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import tyro

from gqlab.paper.commands import list_experiments, reproduce
from gqlab.theory.commands import rates, theory

COMMANDS: dict[str, Callable[..., Any]] = {
    "reproduce": reproduce,
    "list": list_experiments,
    "theory": theory,
    "rates": rates,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point. Bad input: one line on stderr and exit status 2."""
    try:
        tyro.extras.subcommand_cli_from_dict(
            COMMANDS, prog="gqlab", description="Provably convergent off-policy control.", args=arguments
        )
    except (ValueError, OSError) as error:
        print(f"gqlab: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        print("gqlab: interrupted; what was finished is kept, and the same command goes on from there", file=sys.stderr)
        raise SystemExit(130) from None
