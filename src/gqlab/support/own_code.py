"""Code in no file that could be imported again: classes and functions of notebooks, scripts and ``exec``.

Such code counts by what it is: its instructions, the constants in them, and all that it reads from outside itself, by
value where that is plain data, and by its own code where that is another function or class of the kind.
"""

from __future__ import annotations

import hashlib
import inspect
import random
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cached_property, partial
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from gqlab.support.checks import shown

#: What counts by its value.
PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), range, slice)

#: Attributes of classes that Python makes, and that say nothing which their other attributes do not.
MADE = {"__dict__", "__weakref__", "__doc__", "__module__", "__firstlineno__", "__static_attributes__", "_abc_impl"}

#: Generators of random numbers.
MOVING = (np.random.Generator, np.random.BitGenerator, np.random.RandomState, random.Random)


def own_code(things: Iterable[Any]) -> tuple[set[str], list[str]]:
    """The modules that hold the code of these functions and classes, by name; digests of what is in no module.

    ``ValueError`` where such code reads a thing that no digest can stand for.
    """
    walk = _Walk()
    digests = [walk.digest(_name(thing), thing) for thing in things]
    return walk.modules, [digest for digest in digests if digest]


def importable_module(thing: Any) -> str | None:
    """The module that defines a function or class, if another process could import it."""
    name = thing.__name__ if isinstance(thing, ModuleType) else getattr(thing, "__module__", None)
    module = sys.modules.get(name or "")
    if module is None or name in ("__main__", "__mp_main__"):
        return None
    if isinstance(thing, FunctionType) and thing.__globals__ is not vars(module):
        return None  # made by exec, under another's name
    if getattr(module, "__file__", None) is None and name not in sys.builtin_module_names:
        spec = getattr(module, "__spec__", None)
        return name if spec is not None and (spec.origin in ("frozen", "built-in") or spec.loader is None) else None
    return name


def _name(thing: Any) -> str:
    return str(getattr(thing, "__qualname__", type(thing).__qualname__))


class _Walk:
    """Visits things, and all that can be reached from them."""

    def __init__(self) -> None:
        self.modules: set[str] = set()
        self._seen: dict[int, Any] = {}  # they stay alive, so that no two have the same id

    def digest(self, name: str, thing: Any) -> str:
        """A digest of a thing that is in no module; "" for one that is, and its module is noted."""
        text = self._text(name, thing)
        return hashlib.sha256(text.encode()).hexdigest() if text else ""

    def _text(self, name: str, thing: Any) -> str:
        thing = _unwrapped(thing)
        if isinstance(thing, PLAIN):
            return f"{type(thing).__name__} {thing!r}"
        if isinstance(thing, np.ndarray | np.generic):
            array = np.ascontiguousarray(thing)
            if array.dtype.hasobject:
                raise self._refused(name, thing)
            return f"{array.dtype.str}{array.shape} {hashlib.sha256(array.tobytes()).hexdigest()}"
        if isinstance(thing, ModuleType | FunctionType | type) or inspect.isroutine(thing):
            return self._code(name, thing)
        return self._data(name, thing)

    def _code(self, name: str, thing: Any) -> str:
        """The digest of a module, function or class."""
        module = importable_module(thing)
        if module is not None:
            self.modules.add(module)
            return f"{module}:{_name(thing)}" if not isinstance(thing, ModuleType) else module
        if id(thing) in self._seen:
            return f"again {_name(thing)}"
        self._seen[id(thing)] = thing
        if isinstance(thing, FunctionType):
            return "\n".join(self._function(thing))
        if isinstance(thing, type):
            return "\n".join(self._class(thing))
        if isinstance(thing, ModuleType) or getattr(thing, "__module__", None) is None:
            return f"{type(thing).__name__} {_name(thing)}"  # a part of Python
        raise self._refused(name, thing)

    def _function(self, function: FunctionType) -> Iterator[str]:
        yield f"function {function.__qualname__} {_code_text(function.__code__)}"
        yield self._text("defaults", (function.__defaults__ or (), function.__kwdefaults__ or {}))
        for name, value in _read_by(function):
            yield f"{name} = {self._text(name, value)}"

    def _class(self, kind: type) -> Iterator[str]:
        yield f"class {kind.__qualname__}"
        for base in kind.__bases__:
            yield self._text(base.__name__, base)
        for name, value in sorted(vars(kind).items()):
            if name not in MADE and not inspect.ismemberdescriptor(value) and not inspect.isgetsetdescriptor(value):
                yield f"{name} = {self._text(f'{kind.__qualname__}.{name}', value)}"

    def _data(self, name: str, thing: Any) -> str:
        """The digest of an object, by its contents."""
        if id(thing) in self._seen:
            return "again"
        self._seen[id(thing)] = thing
        kind = self._text(name, type(thing))
        if isinstance(thing, Mapping):
            items = [f"{self._text(name, k)}: {self._text(f'{name}[{k!r}]', v)}" for k, v in thing.items()]
            return f"{kind} {items}"
        if isinstance(thing, list | tuple):
            return f"{kind} {[self._text(f'{name}[{k}]', value) for k, value in enumerate(thing)]}"
        if isinstance(thing, set | frozenset):
            return f"{kind} {sorted(self._text(name, value) for value in thing)}"
        own = importable_module(type(thing)) is None and hasattr(thing, "__dict__")
        names = [field.name for field in fields(thing)] if is_dataclass(thing) else sorted(vars(thing)) if own else []
        if names or own:
            parts = [f"{inner} = {self._text(f'{name}.{inner}', getattr(thing, inner))}" for inner in names]
            return f"{kind} {parts}"
        if hasattr(thing, "fingerprint"):  # a problem
            return f"{kind} {thing.fingerprint}"
        return f"{kind} {self._state(name, thing)}"

    def _state(self, name: str, thing: Any) -> str:
        """The contents that a copy of an object would have: its repr may leave out what counts."""
        try:
            if isinstance(thing, MOVING):
                raise TypeError  # its state is another one at every call
            made_of = thing.__reduce_ex__(4)
        except Exception:  # a lock, an open file
            raise self._refused(name, thing) from None
        if isinstance(made_of, str):
            return made_of
        parts = [list(part) if isinstance(part, Iterator) else part for part in made_of]
        return str([self._text(name, part) for part in parts])

    def _refused(self, name: str, thing: Any) -> ValueError:
        return ValueError(
            f"{name} is {shown(thing)}, which the code of a notebook or script reads: no key of a store can stand for "
            "it; move the code into a module of its own, or read plain data"
        )


def _unwrapped(thing: Any) -> Any:
    """The function inside its decorators."""
    while True:
        if isinstance(thing, staticmethod | classmethod):
            thing = thing.__func__
        elif isinstance(thing, property):
            return thing.fget, thing.fset
        elif isinstance(thing, cached_property):
            thing = thing.func
        elif isinstance(thing, partial):
            return thing.func, thing.args, thing.keywords
        elif inspect.ismethod(thing):
            return thing.__func__, thing.__self__
        elif isinstance(getattr(thing, "py_func", None), FunctionType):
            thing = thing.py_func  # compiled
        elif hasattr(thing, "__wrapped__") and not isinstance(thing, FunctionType | type):
            thing = thing.__wrapped__
        else:
            return thing


def _code_text(code: CodeType) -> str:
    """What a function does, regardless of where it is defined."""
    constants = [_code_text(c) if isinstance(c, CodeType) else _constant(c) for c in code.co_consts]
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    return f"{code.co_code.hex()} {constants} {names} {code.co_argcount} {code.co_kwonlyargcount} {code.co_flags}"


def _constant(value: Any) -> str:
    if isinstance(value, frozenset):
        return f"frozenset {sorted(map(repr, value))}"
    return f"{type(value).__name__} {value!r}"


def codes(code: CodeType) -> Iterator[CodeType]:
    """A function's code and that of the functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


def _read_by(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """What a function takes from outside itself, with its name: globals, attributes of modules, its closure."""
    names = sorted({name for code in codes(function.__code__) for name in code.co_names})
    scopes: list[dict[str, Any]] = [function.__globals__]
    for scope in scopes:
        for name in names:
            if name not in scope:
                continue
            value = scope[name]
            if not isinstance(value, ModuleType):
                if scope is function.__globals__ or isinstance(value, FunctionType | type):
                    yield name, value
            elif value.__name__.partition(".")[0] not in sys.stdlib_module_names:
                yield name, value
                if all(vars(value) is not s for s in scopes):
                    scopes.append(vars(value))  # of ``module.name``
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not filled yet
            continue
