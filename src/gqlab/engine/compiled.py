"""``entry``: a compiled function that Python calls, kept on disk between processes.

Numba's own cache notices a change of the file that a function stands in, but not of the files whose functions it
calls: after an edit of a rule it would go on running the old one. Here the key covers all compiled sources.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache

from gqlab.rules import FASTMATH

_PACKAGE = Path(__file__).resolve().parent.parent


def source_digest() -> str:
    """A digest of every file that holds compiled code."""
    digest = hashlib.sha256()
    for path in (_PACKAGE / "rules.py", _PACKAGE / "estimators.py", *sorted((_PACKAGE / "engine").glob("*.py"))):
        digest.update(path.read_bytes())
    return digest.hexdigest()


SOURCES = source_digest()


class _SourceCache(FunctionCache):
    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return super()._index_key(sig, codegen), SOURCES


def entry(function: Callable[..., Any]) -> Any:
    """Compile ``function``, with a cache on disk, to run without the interpreter's lock."""
    dispatcher = numba.njit(nogil=True, error_model="numpy", fastmath=FASTMATH)(function)
    dispatcher._cache = _SourceCache(function)
    return dispatcher
