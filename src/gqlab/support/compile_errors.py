"""What the compiler says of a user's own code, with the cause and its place first.

Numba's message begins with the types of all arguments of gqlab's own loop; the cause stands somewhere in its middle.
"""

from __future__ import annotations

import inspect
import linecache
import re
import sysconfig
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from numba.core.errors import NumbaError

#: Where code stands that is not the user's.
LIBRARIES = (Path(__file__).parents[1], *(Path(sysconfig.get_path(name)) for name in ("purelib", "platlib", "stdlib")))

#: Where in Numba's text one compilation's own account begins.
FAILED = re.compile(r"Failed in \w+ mode pipeline \(step: [^)]*\)\n")

PLACE = re.compile(r'File "([^"\n]+)", line (\d+):')


@contextmanager
def cause_first(kinds: Iterable[type | None] = ()) -> Iterator[None]:
    """Errors of the compiler become a ``ValueError`` that begins with the cause, in the user's file and line.

    ``kinds`` are the compiled classes that may be the user's own.
    """
    try:
        yield
    except NumbaError as error:
        text = _caused(str(error), [kind for kind in kinds if kind is not None])
        if text is None:  # gqlab's own code
            raise
        raise ValueError(text) from None


def _caused(text: str, kinds: list[type]) -> str | None:
    """The cause, and where it is; None where no code of the user's is named."""
    account = FAILED.split(text)[-1]
    cause = _shortened(account)
    for path, line in PLACE.findall(account):
        if _is_own(Path(path)):
            return _message(cause, path, int(line))
    name = re.search(r"name '(\w+)' is not defined", cause)
    for kind in kinds if name is not None else []:
        place = _place_of(name[1], kind) if name is not None else None
        if place is not None:
            return _message(cause, *place)
    return None


def _shortened(account: str) -> str:
    """The first sentence of an account, without the fields of types."""
    lines = [line.strip() for line in account.splitlines()]
    ends = (k for k, line in enumerate(lines) if k and (not line or line.startswith(("During:", "File ", "raised "))))
    cause = " ".join(lines[: next(ends, len(lines))])
    while (bare := re.sub(r"\b([A-Za-z_]\w*)\([^()]*\)", r"\1", cause)) != cause:
        cause = bare
    return cause.removeprefix("NameError: ").strip().rstrip(".")


def _message(cause: str, path: str, line: int) -> str:
    shown = linecache.getline(path, line).strip()
    code = f": {shown}" if shown else ""
    return f"{cause}, in {path}, line {line}{code} (NUMBA_DISABLE_JIT=1 runs it as plain Python)"


def _is_own(path: Path) -> bool:
    return not any(path.resolve().is_relative_to(folder) for folder in LIBRARIES)


def _place_of(name: str, kind: type) -> tuple[str, int] | None:
    """The file and the line in which a class of the user's mentions a name."""
    try:
        path = inspect.getfile(kind)
        lines, first = inspect.getsourcelines(kind)
    except (OSError, TypeError):
        return None
    for k, line in enumerate(lines):
        if re.search(rf"\b{name}\b", line) and _is_own(Path(path)):
            return path, first + k
    return None
