"""Parts: named tuples whose methods compiled code chooses by their type.

A *part* is a named tuple with methods. Compiled code calls ``improve(operator, …)``, and the compiler picks the
``improve`` that belongs to the type of ``operator``: it is inlined and costs nothing. The same source runs on a CPU
thread, on a GPU thread and as plain Python (``NUMBA_DISABLE_JIT=1``).

    @by_type
    def improve(self, row, q, w, A):
        \"\"\"What every operator can do.\"\"\"

    class GreedyRule(NamedTuple):
        epsilon: float

        def improve(self, row, q, w, A): ...

A field annotated ``float`` or ``int`` is a *parameter*: where many problems or runs share one call it holds an array
with an entry for each, and :func:`at` picks one. Every other field is shared by all.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core.registry import CPUDispatcher
from numba.extending import overload

#: All that speed needs and nothing that assumes away NaN or infinity: divergence must stay visible.
FASTMATH = {"reassoc", "contract", "arcp", "nsz"}

#: How every compiled function of an update is compiled. Python calls none of them, so the wrappers that would let it
#: do so are left out: they took a third of the compile time.
OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": FASTMATH,
    "forceinline": True,
    "_nrt": False,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}


class Called(CPUDispatcher):
    """A compiled function that compiled code calls; called from Python, it runs as plain Python."""

    def __call__(self, *args: Any) -> Any:
        with np.errstate(all="ignore"):  # compiled code warns of nothing
            return self.py_func(*args)


def compiled(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """``function`` compiled, for compiled code to call."""
    dispatcher = numba.njit(**options)(function)
    if isinstance(dispatcher, CPUDispatcher):  # not with NUMBA_DISABLE_JIT=1
        dispatcher.__class__ = Called
    return dispatcher


def rule(function: Callable[..., Any]) -> Any:
    """The decorator of a compiled function that others call, on the CPU and on the GPU alike."""
    return compiled(function, OPTIONS)


def routine(function: Callable[..., Any]) -> Any:
    """The same for one that is long and seldom called: it stays a function of its own, which is compiled faster."""
    return compiled(function, {**OPTIONS, "forceinline": False})


def by_type(face: Callable[..., Any]) -> Callable[..., Any]:
    """``face(self, …)`` is the method of that name of the part ``self``, chosen when compiled, and inlined.

    The body of ``face`` is what happens for a part without such a method, and for arguments that are not parts
    (arrays). If the body is a docstring alone, every part must have the method, which :func:`require` checks before
    compiling.
    """
    name = face.__name__

    @functools.wraps(face)
    def call(self, *args):
        return getattr(self, name, functools.partial(face, self))(*args)

    def choose(self, *args):
        return getattr(self.instance_class, name, face) if isinstance(self, types.BaseNamedTuple) else face

    choose.__signature__ = inspect.signature(face)  # type: ignore[attr-defined]
    # Without ``prefer_literal`` the sizes d and A are no longer constants inside: 1.8 times slower.
    overload(call, jit_options=OPTIONS, prefer_literal=True)(choose)
    return call


def require(kind: type, faces: Iterable[Callable[..., Any]], what: str, optional: Iterable[Any] = ()) -> None:
    """``kind`` is a named tuple with these methods, each with the parameters of its face; else ``ValueError``.

    A method of ``optional`` may be missing. As a side effect the class gets a name that is unique in compiled code.
    """
    if not (isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")):
        raise ValueError(f"{what}: its compiled form is {kind!r}, expected a NamedTuple class")
    for face in (*faces, *(face for face in optional if hasattr(kind, face.__name__))):
        name = face.__name__
        wanted = list(inspect.signature(face).parameters)
        method = getattr(kind, name, None)
        shown = f"{name}({', '.join(wanted)})"
        if method is None:
            raise ValueError(f"{what}: its compiled form {kind.__name__} has no method {shown}")
        given = list(inspect.signature(method).parameters)
        if len(given) != len(wanted):
            raise ValueError(f"{what}: {kind.__name__}.{name} takes ({', '.join(given)}), expected {shown}")
    name_apart(kind)


#: The parts that :func:`require` has seen, by the name that Numba calls them.
_named: dict[str, type] = {}


def name_apart(kind: type) -> None:
    """Give ``kind`` a name that no other part has.

    Numba makes the symbols of compiled code from names: of two classes of one name, such as a class that is defined
    again after an edit, the second would run the code of the first.
    """
    name, n = kind.__name__, 1
    while _named.setdefault(kind.__name__, kind) is not kind:
        n += 1
        kind.__name__ = f"{name}_{n}"


def annotated(kind: type, field: str) -> str:
    """What a field of a part is annotated with, as text: ``typing`` wraps what it finds as text."""
    annotation = kind.__annotations__.get(field)
    return str(getattr(annotation, "__forward_arg__", getattr(annotation, "__name__", annotation)))


def is_parameter(kind: type, field: str) -> bool:
    """Whether a field of a part is a number that differs from problem to problem, or from run to run."""
    return annotated(kind, field) in ("float", "int")


def parameters(kind: type) -> list[str]:
    """The names of a part's parameters."""
    return [field for field in kind._fields if is_parameter(kind, field)]  # type: ignore[attr-defined]


def at(part, k):
    """``part`` with its parameters of problem, or run, number k."""
    if not hasattr(part, "_fields"):
        return tuple(at(inner, k) for inner in part)
    kind = type(part)
    values = (
        value[k] if is_parameter(kind, field) else at(value, k) if isinstance(value, tuple) else value
        for field, value in zip(kind._fields, part, strict=True)
    )
    return kind(*values)


@overload(at, jit_options=OPTIONS)
def _at(part, k):
    if not isinstance(part, types.BaseNamedTuple):
        return build(tuple, [f"at(part[{i}], k)" for i in range(len(part))], "part, k", {"at": at})
    kind = part.instance_class
    values = [
        f"part.{field}[k]"
        if is_parameter(kind, field)
        else f"at(part.{field}, k)"
        if isinstance(value, types.BaseTuple)
        else f"part.{field}"
        for field, value in zip(kind._fields, part.types, strict=True)
    ]
    return build(kind, values, "part, k", {"at": at})


def build(kind: type, values: list[str], arguments: str, names: dict[str, Any]) -> Callable[..., Any]:
    """The function ``(arguments) ↦ kind(*values)``: compiled code cannot loop over the fields of a named tuple."""
    made = f"({', '.join(values)},)" if kind is tuple else f"kind({', '.join(values)})"
    return written(arguments, made, {"kind": kind, **names})


def written(arguments: str, expression: str, names: dict[str, Any]) -> Callable[..., Any]:
    """The function ``(arguments) ↦ expression``. Its text comes from the fields of classes, never from data."""
    scope = dict(names)
    exec(f"def written_function({arguments}):\n    return {expression}", scope)  # noqa: S102
    return scope["written_function"]
