"""Python files of a user's own, imported by their path: they are the user's own program."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any


@dataclass(frozen=True)
class OwnCode:
    """The files that a command line names with ``--code``: what a TOML file names as FILE.py:NAME must be in one."""

    files: tuple[Path, ...] = ()

    @staticmethod
    def is_named(text: Any) -> bool:
        """Whether this has the form FILE.py:NAME."""
        return isinstance(text, str) and ".py:" in text

    def find(self, where: str, text: str) -> Any:
        """The thing of that name; ``ValueError`` where the command line does not name its file."""
        path, _, name = text.rpartition(":")
        if Path(path).resolve() not in {file.resolve() for file in self.files}:
            raise ValueError(f"{where} is {text!r}: no file has another one run; add --code {path} to the command")
        try:
            return getattr(import_file(Path(path)), name)
        except (ValueError, AttributeError) as error:
            why = f"{path} has nothing of the name {name}" if isinstance(error, AttributeError) else error
            raise ValueError(f"{where} is {text!r}: {why}") from None


def import_file(source: Path) -> ModuleType:
    """The module of a file, run once; its name is the file's, by which compiled code and workers know it."""
    if not source.is_file():
        raise ValueError(f"there is no file {source}")
    module = source.stem
    if module not in sys.modules:
        _import(module, source)
    found = sys.modules[module]
    if Path(getattr(found, "__file__", None) or "").resolve() != source.resolve():
        raise ValueError(f"another module is called {module}; rename the file")
    return found


def _import(module: str, source: Path) -> None:
    """Import a file under a name that compiled code, saved results and workers can know it by.

    What stands beside it can be imported too, as if it were run by Python itself.
    """
    spec = importlib.util.spec_from_file_location(module, source.resolve())
    if spec is None or spec.loader is None:
        raise ValueError(f"{source} cannot be imported")
    folder = str(source.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)
    sys.modules[module] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(sys.modules[module])
    except BaseException:
        del sys.modules[module]
        raise
