"""From the arguments of the command line to the command that they ask for, not yet started."""

from __future__ import annotations

import contextlib
import difflib
import functools
import io
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tyro

from gqlab.cli.commands import COMMANDS
from gqlab.cli.config_files import expanded

DESCRIPTION = """Off-policy control with linear function approximation: Greedy-GQ and VR-Greedy-GQ.

gqlab --version prints the version, gqlab help COMMAND the options of a command."""

#: The exit status of the parser for arguments that it does not understand.
NOT_UNDERSTOOD = 2

#: The narrowest terminal for help texts: the parser never ends if not even one word fits a line.
LEAST_COLUMNS = 40


@contextlib.contextmanager
def _wide_enough() -> Iterator[None]:
    """Let the parser assume a terminal of at least this many columns."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(max(shutil.get_terminal_size().columns, LEAST_COLUMNS))
    try:
        yield
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before


def parse(arguments: Sequence[str] | None) -> Callable[[], None]:
    """The command that the arguments ask for, not yet started."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["help"]:  # as other programs have it
        given = [*given[1:2], "--help"]
    name = next(iter(given), "")
    if name and not name.startswith("-") and name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, 1)
        wanted = f"did you mean {near[0]}?" if near else f"expected one of {', '.join(COMMANDS)}"
        raise ValueError(f"there is no command {name!r}: {wanted}")
    if name in COMMANDS:
        given = expanded(given, COMMANDS[name])
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors), _wide_enough():
            command: Callable[[], None] = tyro.extras.subcommand_cli_from_dict(
                {name: _later(command) for name, command in COMMANDS.items()},
                prog="gqlab",
                description=DESCRIPTION,
                args=given,
            )
        return command
    except SystemExit as end:
        if end.code == NOT_UNDERSTOOD:
            raise ValueError(_one_line(errors.getvalue(), name if name in COMMANDS else "")) from None
        raise


def _later(command: Callable[..., None]) -> Callable[..., Callable[[], None]]:
    """``command`` with its arguments, to be called once they have been checked."""

    @functools.wraps(command)
    def bound(*args: Any, **kwargs: Any) -> Callable[[], None]:
        return functools.partial(command, *args, **kwargs)

    return bound


def _one_line(box: str, command: str) -> str:
    """The text of a box of several lines up to its first rule, and where to find more."""
    words: list[str] = []
    for line in box.splitlines():
        text = line.strip("│╭╮╰╯ \t")
        if words and text.startswith("─"):
            break
        if text and not text.startswith("─"):
            words.append(text)
    return " ".join([*words, f"({' '.join(filter(None, ('gqlab', command)))} --help tells more)"])
