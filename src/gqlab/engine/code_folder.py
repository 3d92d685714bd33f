"""Where compiled code is kept: a folder for each state of the sources and of the compiler, wherever the sources lie.

Two copies of gqlab with the same sources share it, in two checkouts or in two virtual environments: what one of them
has compiled the other reads. A folder that belongs to none of the latest states is removed, if gqlab's own marker lies
in it: nothing else is ever removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np

PACKAGE = Path(__file__).resolve().parent.parent

#: The states whose folders stay; older ones are removed when a new one is made.
STATES = 8

#: A file in every folder that gqlab made for compiled code.
MARKER = ".gqlab-compiled-code"


def compiled_sources() -> list[Path]:
    """Every file of gqlab that can hold compiled code: what makes a function compiled comes from two places alone."""
    return sorted(
        path
        for path in PACKAGE.rglob("*.py")
        if path.parent.name == "rules"
        or any(name in path.read_bytes() for name in (b"gqlab.rules", b"gqlab.engine.compiled"))
    )


def source_digest() -> str:
    """A digest of every file that holds compiled code."""
    digest = hashlib.sha256()
    for path in compiled_sources():
        digest.update(path.read_bytes())
    return digest.hexdigest()


SOURCES = source_digest()


def state() -> str:
    """A name for the sources, the versions and the compiler's settings, of which compiled code is made."""
    flags = ("BOUNDSCHECK", "OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "DEBUGINFO_DEFAULT")
    settings = [f"{name}={getattr(numba.config, name, None)}" for name in flags]
    made_of = [SOURCES, numba.__version__, np.__version__, sys.implementation.cache_tag, *settings]
    return "code-" + hashlib.sha256("\n".join(map(str, made_of)).encode()).hexdigest()[:20]


def places() -> list[Path]:
    """The folders that may hold such folders, the best first."""
    if numba.config.CACHE_DIR:
        return [Path(numba.config.CACHE_DIR) / "gqlab"]  # others may keep their files in CACHE_DIR
    found = [PACKAGE / "__pycache__"]
    with contextlib.suppress(RuntimeError):  # no home
        found.insert(0, Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gqlab")
    return found


@cache
def code_folder() -> Path | None:
    """The folder for compiled code, which can be written; None where there is none."""
    for place in places():
        folder = place / state()
        with contextlib.suppress(OSError):
            is_new = not folder.is_dir()
            folder.mkdir(parents=True, exist_ok=True)
            (folder / MARKER).touch()
            with tempfile.TemporaryFile(dir=folder):
                pass
            os.utime(folder)
            if is_new:
                _remove_old(place)
            return folder
    return None


def _remove_old(place: Path) -> None:
    """Remove all but the latest folders that carry the marker: who runs with one of them compiles anew."""
    found = [
        (path.stat().st_mtime, path)
        for path in place.glob("code-*")
        if not path.is_symlink() and (path / MARKER).is_file()
    ]
    for _, path in sorted(found)[:-STATES]:
        shutil.rmtree(path, ignore_errors=True)


class CodeFolder:
    """The same, as Numba's cache asks for it."""

    def __init__(self, function: Any, file: str, folder: Path) -> None:
        self._py_file, self._lineno = file, function.__code__.co_firstlineno
        self._folder = folder

    @classmethod
    def from_function(cls, function: Any, file: str) -> CodeFolder | None:
        folder = code_folder()
        return None if folder is None else cls(function, file, folder)

    def get_cache_path(self) -> str:
        return str(self._folder)

    def ensure_cache_path(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)

    def get_source_stamp(self) -> str:
        return self._folder.name

    def get_disambiguator(self) -> str:
        return str(self._lineno)
