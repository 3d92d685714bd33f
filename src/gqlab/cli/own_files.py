"""What a user's own file has, named FILE.py:NAME on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gqlab.support import checks
from gqlab.support.own_files import import_file


def from_file(argument: str, text: str) -> tuple[Any, str]:
    """The thing that FILE.py:NAME names, and its name. The file is run: it is the user's own program."""
    path, _, name = text.rpartition(":")
    try:
        found = import_file(Path(path))
    except ValueError as error:
        raise ValueError(f"{argument} is {text!r}: {error}") from None
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


def named_kind(text: str, known: Mapping[str, Any]) -> Any:
    """The class of an algorithm: one of those that are known, or what FILE.py:NAME names."""
    from gqlab.algorithms import is_kind

    if ".py:" not in text:
        return known[checks.one_of("algorithm", text, known)]
    kind, _ = from_file("algorithm", text)
    if not is_kind(kind):
        raise ValueError(f"algorithm {text!r} is {checks.shown(kind)}, expected a class of algorithms")
    return kind
