"""``entry``: a compiled function that Python calls, kept on disk between processes.

Numba's own cache notices a change of the file in which a function is defined, but not of the files whose functions it
calls: after an edit of a rule it would keep running the old one. Here the key covers all compiled sources: gqlab's
own, and for a user's parts their files and the constants that they read.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core.caching import CompileResultCacheImpl, FunctionCache, NullCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.serialize import dumps

from gqlab.engine.code_folder import SOURCES, CodeFolder, refusals
from gqlab.rules.dispatch import FASTMATH
from gqlab.support.files import write_whole

#: The packages whose code need not be followed: Numba's key has their versions, or ``SOURCES`` covers them.
LIBRARIES = frozenset({"gqlab", "numba", "numpy", "scipy", "llvmlite"}) | sys.stdlib_module_names

#: Types that compiled code embeds as constants.
CONSTANTS = (int, float, complex, str, bytes, np.generic, np.ndarray)


def parts_of(value: Any) -> Iterator[type]:
    """The classes of all parts in a Numba type, in a tuple of them, or in one that is held."""
    if isinstance(value, types.StructRef):
        yield from parts_of(tuple(value.field_dict.values()))
    if isinstance(value, types.BaseNamedTuple):
        yield value.instance_class
    if isinstance(value, types.BaseTuple | tuple):
        for inner in value:
            yield from parts_of(inner)


def foreign_sources(kind: type) -> set[bytes] | None:
    """The sources of a part outside gqlab: the files of its methods and of what they call, and the global constants
    that these read.

    None if something has no file: code in a notebook, or at the interpreter's prompt.
    """
    found: set[bytes] = set()
    seen: set[int] = set()
    waiting: list[tuple[str, Any]] = [(kind.__qualname__, kind)]
    while waiting:
        name, thing = waiting.pop()
        thing = getattr(thing, "py_func", thing)
        if isinstance(thing, tuple):
            waiting.extend((f"{name}[{k}]", value) for k, value in enumerate(thing))
            continue
        if isinstance(thing, CONSTANTS):
            found.add(name.encode() + _constant(thing))
            continue
        module = thing if isinstance(thing, ModuleType) else sys.modules.get(getattr(thing, "__module__", None) or "")
        if id(thing) in seen or (module is None and not _is_written(thing)) or not _is_foreign(module):
            continue
        seen.add(id(thing))
        source = getattr(module, "__file__", None)
        if module is None or source is None or module.__name__ == "__main__":
            return None
        found.add(Path(source).read_bytes())
        if isinstance(thing, FunctionType):
            waiting.extend(_read_by(thing))
        elif inspect.isclass(thing):
            waiting.extend((name, value) for name, value in vars(thing).items() if callable(value))
    return found


def _constant(value: Any) -> bytes:
    array = isinstance(value, np.ndarray)
    return f"{value.dtype}{value.shape}".encode() + value.tobytes() if array else repr(value).encode()


def _is_written(thing: Any) -> bool:
    """Whether this class or function is user code: ``namedtuple`` generates some that belong to no module."""
    made = str(getattr(thing, "__module__", "")).startswith("namedtuple_")
    return not made and (inspect.isclass(thing) or isinstance(thing, FunctionType))


def _is_foreign(module: ModuleType | None) -> bool:
    """Whether a module is the user's own; a module without a name is."""
    return module is None or module.__name__.partition(".")[0] not in LIBRARIES


def _read_by(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """The global values that a function reads, with their names."""
    names = sorted({name for code in _codes(function.__code__) for name in code.co_names})
    scopes: list[dict[str, Any]] = [function.__globals__]
    for scope in scopes:
        for name in names:
            if name in scope:
                value = scope[name]
                yield name, value
                if isinstance(value, ModuleType) and _is_foreign(value) and all(vars(value) is not s for s in scopes):
                    scopes.append(vars(value))  # of ``module.name``
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield name, cell.cell_contents
    yield "defaults", function.__defaults__ or ()


def _codes(code: Any) -> Iterator[Any]:
    yield code
    for constant in code.co_consts:
        if inspect.iscode(constant):
            yield from _codes(constant)


class _CodeFolderImpl(CompileResultCacheImpl):
    _locator_classes = (CodeFolder,)


class _SourceCache(FunctionCache):
    """Numba's cache, with a file for each key, whose name is a digest of it.

    What is kept is sealed with a digest of its key and itself. A file that is damaged, or holds the code of another
    key, is replaced by freshly compiled code.
    """

    _impl_class = _CodeFolderImpl

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        digest = hashlib.sha256(f"{SOURCES} {sig}".encode())
        for kind in parts_of(sig):
            digest.update(f"{kind.__module__}.{kind.__qualname__} ".encode())
            for source in sorted(foreign_sources(kind) or ()):
                digest.update(hashlib.sha256(source).digest())
        return digest.hexdigest(), codegen.magic_tuple()

    def _path(self, key: Any) -> Path:
        name = hashlib.sha256(repr(key).encode()).hexdigest()[:32]
        return Path(self._cache_path) / f"{self._impl.filename_base}.{name}.nbc"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        if not _on_disk(sig):
            return None
        target_context.refresh()
        key = self._index_key(sig, target_context.codegen())
        try:
            data = self._path(key).read_bytes()
            seal, code = data[:SEAL], data[SEAL:]
            if seal != _seal(key, code):
                return None
            return self._impl.rebuild(target_context, pickle.loads(code))  # noqa: S301 - Numba's own form
        except Exception:  # no file; a damaged one can raise anything
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        if not _on_disk(sig) or not self._impl.check_cachable(data):
            return
        try:
            key, code = self._index_key(sig, data.codegen), dumps(self._impl.reduce(data))
            self._impl.locator.ensure_cache_path()
            write_whole(self._path(key), lambda file: file.write(_seal(key, code) + code))
        except Exception:  # a full disk
            _warn()

    def flush(self) -> None:
        """Nothing to do: no two pieces of code share a key."""


class _NoCache(NullCache):
    """Where no folder can be written."""

    def save_overload(self, sig: Any, data: Any) -> None:
        _warn()


#: The bytes of a seal.
SEAL = 32


def _seal(key: Any, code: bytes) -> bytes:
    return hashlib.sha256(repr(key).encode() + code).digest()


@cache
def _warn() -> None:
    """Warn once in a process, whatever the reasons."""
    why = "; ".join(refusals())
    warnings.warn(
        f"gqlab cannot keep compiled code on disk{f' ({why})' if why else ''}: every process has to compile again. "
        "NUMBA_CACHE_DIR names a folder for it",
        RuntimeWarning,
        stacklevel=2,
    )


def _on_disk(sig: Any) -> bool:
    """Whether code for these types can be kept: all its sources are files."""
    return all(foreign_sources(kind) is not None for kind in parts_of(sig))


def entry(function: Callable[..., Any], **options: Any) -> Any:
    """Compile ``function``, with a cache on disk, to run without the interpreter's lock."""
    dispatcher = numba.njit(nogil=True, error_model="numpy", fastmath=FASTMATH, **options)(function)
    if not numba.config.DISABLE_JIT:
        try:
            dispatcher._cache = _SourceCache(function)
        except (RuntimeError, OSError):  # no folder that can be written
            dispatcher._cache = _NoCache()
    return dispatcher


if hasattr(os, "register_at_fork"):
    # A child that is forked while another thread compiles would wait for the compiler for ever; so the fork waits.
    os.register_at_fork(
        before=global_compiler_lock.acquire,
        after_in_parent=global_compiler_lock.release,
        after_in_child=global_compiler_lock.release,
    )
