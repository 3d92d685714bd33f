"""Python files of a user's own, imported by their path: they are the user's own program."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType


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
