"""The key of a call: the function, its arguments, and all code that decides what it returns.

Equal keys, equal results: nothing else may decide one, and no list of files is kept by hand
(:mod:`gqlab.support.sources` finds them).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from gqlab.support.checks import shown
from gqlab.support.sources import code_digest


@dataclass(frozen=True, eq=False)
class Call:
    """``function(*arguments)``, a piece of a study whose value is kept on disk.

    Attributes
    ----------
    function : callable
        A function of a module, so that another process can find it. It returns a dictionary of arrays, numbers, text,
        and lists and dictionaries of them; what it measures of time stands under ``"times"``, and is kept apart.
    arguments : tuple
        Data, problems, algorithms, classes and functions: they are part of the key, and travel to the worker.
    label : str
        For messages and the list of times.
    cost : float
        A rough measure of the work, for the progress bar.

    Examples
    --------
    >>> from gqlab.studies.keys import Call
    >>> import gqlab as gq
    >>> Call(gq.garnet, (5, 3)).key == Call(gq.garnet, (5, 3)).key
    True
    >>> Call(gq.garnet, (5, 3)).key == Call(gq.garnet, (5, 4)).key
    False
    """

    function: Callable[..., Mapping[str, Any]]
    arguments: tuple[Any, ...] = ()
    label: str = ""
    cost: float = 1.0

    @cached_property
    def settings(self) -> dict[str, Any]:
        """All that decides the result, ready for JSON."""
        kinds: set[Any] = {self.function}
        arguments = [described(f"argument {k}", value, kinds) for k, value in enumerate(self.arguments)]
        return {"function": _name(self.function), "arguments": arguments, "code": code_digest(*kinds)}

    @cached_property
    def key(self) -> str:
        """Equal calls of equal code have an equal one."""
        return hashlib.sha256(json.dumps(self.settings, sort_keys=True).encode()).hexdigest()[:32]


def _name(thing: Any) -> str:
    return f"{thing.__module__}:{thing.__qualname__}"


def described(name: str, value: Any, kinds: set[Any]) -> Any:
    """A value as JSON, without losing what it is; the classes and functions whose code it brings go into ``kinds``."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return described(name, value.item(), kinds)
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return {"array": f"{value.dtype.str}{value.shape}", "digest": hashlib.sha256(value.tobytes()).hexdigest()}
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, type | FunctionType):
        kinds.add(value)
        return _name(value)
    if hasattr(value, "fingerprint"):  # a Problem
        operator = value.target
        kinds |= {type(value), type(operator), operator.compiled}
        return {"problem": value.fingerprint}
    if is_dataclass(value):
        kinds.add(type(value))
        found = {f.name: described(f"{name}.{f.name}", getattr(value, f.name), kinds) for f in fields(value)}
        return {"class": _name(type(value)), **found}
    if isinstance(value, Mapping):
        return [[described(name, k, kinds), described(f"{name}[{k!r}]", v, kinds)] for k, v in value.items()]
    if isinstance(value, list | tuple):
        if hasattr(value, "_fields"):
            kinds.add(type(value))
        return [described(f"{name}[{k}]", inner, kinds) for k, inner in enumerate(value)]
    raise ValueError(f"{name} is {shown(value)}, which cannot be part of a key; expected data, a problem or a class")
