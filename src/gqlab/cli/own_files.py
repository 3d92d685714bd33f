"""What a user's own file has, named FILE.py:NAME on the command line."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any


def from_file(argument: str, text: str) -> tuple[Any, str]:
    """The thing that FILE.py:NAME names, and its name. The file is run: it is the user's own program."""
    path, _, name = text.rpartition(":")
    source = Path(path)
    if not source.is_file():
        raise ValueError(f"{argument} is {text!r}: there is no file {path}")
    module = source.stem
    if module not in sys.modules:
        _import(module, source)
    found = sys.modules[module]
    if Path(getattr(found, "__file__", None) or "").resolve() != source.resolve():
        raise ValueError(f"{argument} is {text!r}: another module is called {module}; rename the file")
    if not hasattr(found, name):
        raise ValueError(f"{argument} is {text!r}: {path} has nothing of the name {name}")
    return getattr(found, name), name


def own_problem(argument: str, text: str, seed: int) -> Any:
    """The Problem that FILE.py:NAME names, or the one that a function of this name makes of a seed."""
    from gqlab.problems.problem import Problem

    thing, _ = from_file(argument, text)
    if isinstance(thing, Problem):
        return thing
    if not callable(thing):
        raise ValueError(f"{argument} {text!r} is {thing!r}, expected a Problem or a function from a seed to one")
    made = thing(seed)
    if not isinstance(made, Problem):
        raise ValueError(f"{argument} {text!r} made {made!r} of seed {seed}, expected a Problem")
    return made


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
