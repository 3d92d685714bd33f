"""Where compiled code is kept: a folder for each state of the sources and of the compiler, wherever the sources lie.

Copies of gqlab with the same sources share it, in different checkouts or virtual environments: what one has compiled,
another can read. Compiled code is trusted when it is read, so a folder is used only if it belongs to this user and no
one else can write to it. When the folders together grow too large, the least recently used are removed, and only those
that contain gqlab's own marker.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np

from gqlab.support.imports import imports_any
from gqlab.support.sources import PACKAGE, read_package

#: Bytes that the folders of all states may hold together; beyond, the least recently used are removed.
MOST_BYTES = 2**28

#: A file in every folder that gqlab made for compiled code.
MARKER = ".gqlab-compiled-code"


#: Everything that compiles functions comes from these.
COMPILERS = ("gqlab.rules", "gqlab.engine.compiled")


def compiled_sources() -> list[Path]:
    """Every file of gqlab that can hold compiled code: those of the rules, and those that import what compiles."""
    return [
        PACKAGE / path
        for path, source in read_package(PACKAGE).items()
        if path.startswith("rules/") or imports_any(source, COMPILERS)
    ]


def source_digest() -> str:
    """A digest of every file that holds compiled code."""
    digest = hashlib.sha256()
    for path in compiled_sources():
        digest.update(read_package(PACKAGE)[path.relative_to(PACKAGE).as_posix()])
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
        return [Path(numba.config.CACHE_DIR) / "gqlab"]  # CACHE_DIR may also hold the files of others
    found = [PACKAGE / "__pycache__"]
    with contextlib.suppress(RuntimeError):  # no home
        found.insert(0, Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gqlab")
    return found


@cache
def code_folder() -> Path | None:
    """The folder for compiled code, writable by this user alone; None if there is none."""
    for place in places():
        folder = place / state()
        with contextlib.suppress(OSError):
            is_new = not folder.is_dir()
            place.parent.mkdir(parents=True, exist_ok=True)
            for made in (place, folder):
                _make_private(made)
            if distrusted(place) or distrusted(folder):
                continue
            (folder / MARKER).touch()
            with tempfile.TemporaryFile(dir=folder):
                pass
            os.utime(folder)
            if is_new:
                prune(place, MOST_BYTES, keep=folder)
            return folder
    return None


def _make_private(folder: Path) -> None:
    """Make a folder that no one else can write to, whatever the umask."""
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
        folder.chmod(0o700)


def distrusted(folder: Path) -> str:
    """Why compiled code from a folder would not be safe to run; "" where it is, or where there is no such folder."""
    try:
        found = folder.lstat()
    except OSError:
        return ""
    if not stat.S_ISDIR(found.st_mode):
        return f"{folder} is not a folder"
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        return f"{folder} belongs to another user"
    if os.name == "posix" and found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"others can write to {folder}"
    return ""


def refusals() -> list[str]:
    """Why folders that could hold compiled code are not used, one line each."""
    return [why for place in places() for why in [distrusted(place) or distrusted(place / state())] if why]


def kept_folders(place: Path) -> list[Path]:
    """The folders of compiled code that gqlab made in a place, the least recently used first."""
    found = [
        (path.stat().st_mtime, path)
        for path in place.glob("code-*")
        if not path.is_symlink() and (path / MARKER).is_file()
    ]
    return [path for _, path in sorted(found)]


def size_of(folder: Path) -> int:
    """Bytes of the files in a folder."""
    return sum(path.stat().st_size for path in folder.iterdir() if path.is_file())


def prune(place: Path, most: int, keep: Path | None = None) -> int:
    """Remove the least recently used folders of a place until at most ``most`` bytes are left; return the bytes freed.

    A process that uses one of them has to compile again.
    """
    folders = [path for path in kept_folders(place) if path != keep]
    sizes = {path: size_of(path) for path in folders}
    total, removed = sum(sizes.values()) + (0 if keep is None else size_of(keep)), 0
    for path in folders:
        if total - removed <= most:
            break
        shutil.rmtree(path, ignore_errors=True)
        removed += sizes[path]
    return removed


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
