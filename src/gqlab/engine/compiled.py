"""``entry``: a compiled function that Python calls, kept on disk between processes.

Numba's own cache notices a change of the file that a function stands in, but not of the files whose functions it
calls: after an edit of a rule it would go on running the old one. Here the key covers all compiled sources: gqlab's
own, and the files of the parts that a user wrote.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numba
from numba import types
from numba.core.caching import FunctionCache

from gqlab.rules.dispatch import FASTMATH

PACKAGE = Path(__file__).resolve().parent.parent


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


def parts_of(value: Any) -> Iterator[type]:
    """The classes of all parts in a Numba type, or in a tuple of them."""
    if isinstance(value, types.BaseNamedTuple):
        yield value.instance_class
    if isinstance(value, types.BaseTuple | tuple):
        for inner in value:
            yield from parts_of(inner)


def foreign_files(kind: type) -> set[Path] | None:
    """The files outside gqlab that a part's methods come from, directly or through what they call.

    None where one has no file: a notebook, or the interpreter's prompt.
    """
    files: set[Path] = set()
    seen: set[int] = set()
    waiting: list[Any] = [kind]
    while waiting:
        thing = waiting.pop()
        thing = getattr(thing, "py_func", thing)
        module = sys.modules.get(getattr(thing, "__module__", None) or "")
        if id(thing) in seen or module is None or not _is_foreign(module):
            continue
        seen.add(id(thing))
        source = getattr(module, "__file__", None)
        if module.__name__ == "__main__" or source is None:
            return None
        files.add(Path(source))
        if isinstance(thing, FunctionType):
            names = [name for code in _codes(thing.__code__) for name in code.co_names]
            waiting.extend(thing.__globals__[name] for name in names if name in thing.__globals__)
        elif inspect.isclass(thing):
            waiting.extend(vars(thing).values())
    return files


def _codes(code: Any) -> Iterator[Any]:
    yield code
    for constant in code.co_consts:
        if inspect.iscode(constant):
            yield from _codes(constant)


def _is_foreign(module: ModuleType) -> bool:
    """Whether a module is a user's own: neither gqlab's nor an installed library's."""
    source = getattr(module, "__file__", None)
    if source is None:
        return module.__name__ == "__main__"
    path = Path(source).resolve()
    library = {"site-packages", "dist-packages", Path(functools.__file__).parent.name}
    return PACKAGE not in path.parents and not library & set(path.parts)


class _SourceCache(FunctionCache):
    """Numba's cache, whose keys are digests: they name no class, so that any process can read the index."""

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        digest = hashlib.sha256(f"{SOURCES} {sig}".encode())
        for kind in parts_of(sig):
            digest.update(f"{kind.__module__}.{kind.__qualname__} ".encode())
            for path in sorted(foreign_files(kind) or ()):
                digest.update(path.read_bytes())
        return digest.hexdigest(), codegen.magic_tuple()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        return super().load_overload(sig, target_context) if _on_disk(sig) else None

    def save_overload(self, sig: Any, data: Any) -> None:
        if _on_disk(sig):
            super().save_overload(sig, data)


def _on_disk(sig: Any) -> bool:
    """Whether code for these types can be kept: all its sources are files."""
    return all(foreign_files(kind) is not None for kind in parts_of(sig))


def entry(function: Callable[..., Any]) -> Any:
    """Compile ``function``, with a cache on disk, to run without the interpreter's lock."""
    dispatcher = numba.njit(nogil=True, error_model="numpy", fastmath=FASTMATH)(function)
    dispatcher._cache = _SourceCache(function)
    return dispatcher
