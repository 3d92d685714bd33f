"""The files that a name, a pattern or a folder stands for."""

from __future__ import annotations

import glob
import os
import re
import stat
from typing import Any

from gqlab.support import checks

#: How the names of text files end, compressed or not.
TEXT = re.compile(r"\.(csv|tsv|txt)(\.(gz|bz2|zst|lz4|br))?$", re.IGNORECASE)


def printable(path: str) -> str:
    """The name of a file in one line."""
    return path if path.isprintable() else repr(path)


def check_regular(path: str) -> None:
    """``ValueError`` where no file is: a pipe would keep the reader waiting for ever."""
    try:
        kind = os.stat(path).st_mode
    except OSError as error:
        reason = "is not there" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror}"
        raise ValueError(f"path: {printable(path)} {reason}") from None
    if not stat.S_ISREG(kind):
        what = "folder" if stat.S_ISDIR(kind) else "pipe or a device"
        raise ValueError(f"path: {printable(path)} is a {what}, expected a file")


def found(path: Any, endings: str | tuple[str, ...] = ".parquet") -> tuple[str, ...]:
    """The files that a name, a pattern, a folder or a list of these stands for; numbers in names count as numbers.

    Of a folder those whose names end in one of ``endings``.
    """
    if isinstance(path, list | tuple):
        return tuple(name for part in path for name in found(part, endings)) or _none(path)
    name = checks.path("path", path)
    if os.path.isdir(name):
        inside = glob.glob(os.path.join(glob.escape(name), "*"))
        return _sorted([file for file in inside if file.lower().endswith(endings)]) or _none(path)
    if os.path.exists(name):
        return (name,)
    return _sorted(glob.glob(name, recursive=True)) or _none(path)


def is_text(path: str) -> bool:
    """Whether the name is that of a text file."""
    return TEXT.search(path) is not None


def _sorted(names: list[str]) -> tuple[str, ...]:
    """part-2 before part-10: an episode may continue in the next file."""
    return tuple(
        sorted(
            names,
            key=lambda name: [(p.isdecimal(), int(p) if p.isdecimal() else 0, p) for p in re.split(r"(\d+)", name)],
        )
    )


def _none(path: Any) -> tuple[str, ...]:
    raise ValueError(f"path is {checks.shown(path)}: there is no such file")


def described(paths: tuple[str, ...]) -> str:
    """The first file, and how many there are."""
    named = printable(paths[0])
    return named if len(paths) == 1 else f"{len(paths)} files from {named}"
