"""The command line: ``gqlab``. Each command is a function with typed arguments."""

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

from gqlab.version import __version__

DESCRIPTION = """Off-policy control with linear function approximation: Greedy-GQ and VR-Greedy-GQ.

gqlab --version prints the version, gqlab help COMMAND the options of a command."""

#: Exit statuses; docs/cli.md explains them.
BAD_INPUT, INTERRUPTED, BROKEN_PIPE = 2, 130, 141


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point. Bad input or a missing package: one line on stderr and exit status 2."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed, as in a daemon: discard what is printed
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
        elif hasattr(getattr(sys, name), "reconfigure"):
            getattr(sys, name).reconfigure(errors="replace")  # a terminal without θ shows a question mark
    try:
        given = sys.argv[1:] if arguments is None else list(arguments)
        if given == ["--version"]:
            print(f"gqlab {__version__}")
        elif given == ["--tyro-print-completion", "bash"]:
            print(_bash_completion())
        else:
            _parse(arguments)()
        sys.stdout.flush()
    except BrokenPipeError:  # as in ``gqlab list | head -1``
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter would complain at exit
        raise SystemExit(BROKEN_PIPE) from None
    except (ValueError, OSError, ImportError) as error:
        missing = isinstance(error, FileNotFoundError) and error.filename is not None
        print(f"gqlab: {f'there is no {error.filename}' if missing else error}", file=sys.stderr)  # type: ignore[union-attr]
        raise SystemExit(BAD_INPUT) from None
    except (MemoryError, RecursionError) as error:
        what = "too large for the memory" if isinstance(error, MemoryError) else "nested too deeply"
        print(f"gqlab: {what}: {' '.join(str(error).split())}", file=sys.stderr)
        raise SystemExit(BAD_INPUT) from None
    except KeyboardInterrupt:
        print("gqlab: interrupted; the same command goes on from what it kept", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None


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


def _bash_completion() -> str:
    from gqlab.cli.commands import COMMANDS
    from gqlab.cli.completion import bash_script, known_words

    return bash_script(COMMANDS, known_words())


def _parse(arguments: Sequence[str] | None) -> Callable[[], None]:
    """The command that the arguments ask for, not yet started."""
    import tyro  # imported here, so that Ctrl-C and a broken installation are reported in one line while modules load

    from gqlab.cli.commands import COMMANDS
    from gqlab.cli.config_files import expanded

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
        if end.code == BAD_INPUT:
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
