"""Finished work on disk: one JSON file for each task, named by the digest of all that decides it."""

from __future__ import annotations

import hashlib
import inspect
import json
from pathlib import Path
from typing import Any

from gqlab.algorithms import Algorithm
from gqlab.engine.code_folder import SOURCES
from gqlab.support.files import write_whole
from gqlab.version import __version__


def digest(value: Any) -> str:
    """Of anything that JSON can write."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def code_of(algorithm: Algorithm) -> str:
    """A digest of the code that runs an algorithm: gqlab's, and the file of one of a user's own."""
    kind = type(algorithm)
    own = b"" if kind.__module__.startswith("gqlab.") else Path(inspect.getfile(kind)).read_bytes()
    return hashlib.sha256(f"{__version__} {SOURCES} ".encode() + own).hexdigest()


class Store:
    """The finished tasks in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def load(self, key: dict[str, Any]) -> Any | None:
        """What was saved under a key; None where there is nothing, or something damaged."""
        try:
            content = json.loads(self._path(key).read_bytes())
            return content["result"] if content["sum"] == digest([key, content["result"]]) else None
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None

    def save(self, key: dict[str, Any], result: Any) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"key": key, "result": result, "sum": digest([key, result])})
        write_whole(self._path(key), lambda file: file.write(text.encode()))

    def _path(self, key: dict[str, Any]) -> Path:
        return self.folder / f"{digest(key)}.json"
