"""The command line: ``gqlab``. Each command is a function with typed arguments."""

from __future__ import annotations

import os
import sys

from gqlab.version import __version__

# Nothing else is imported here: Ctrl-C and a broken installation are told in one line while modules load.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

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
            from gqlab.cli.parsing import parse

            parse(arguments)()
        sys.stdout.flush()
    except BrokenPipeError:  # as in ``gqlab list | head -1``
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter would complain at exit
        raise SystemExit(BROKEN_PIPE) from None
    except (ValueError, OSError, ImportError) as error:
        from gqlab.support.printable import in_one_line

        missing = isinstance(error, FileNotFoundError) and error.filename is not None
        message = in_one_line(f"there is no {error.filename}" if missing else error)  # type: ignore[union-attr]
        print(f"gqlab: {message}", file=sys.stderr)
        raise SystemExit(BAD_INPUT) from None
    except (MemoryError, RecursionError) as error:
        what = "too large for the memory" if isinstance(error, MemoryError) else "nested too deeply"
        print(f"gqlab: {what}: {' '.join(str(error).split())}", file=sys.stderr)
        raise SystemExit(BAD_INPUT) from None
    except KeyboardInterrupt:
        print("gqlab: interrupted; the same command goes on from what it kept", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None


def _bash_completion() -> str:
    from gqlab.cli.commands import COMMANDS
    from gqlab.cli.completion import bash_script, known_words

    return bash_script(COMMANDS, known_words())
