"""Parts that compiled code holds, so that a call need not hand them over each time.

Passing a named tuple of sixty arrays to compiled code takes longer than an agent's step. Held by reference, it takes as
long as passing one array.
"""

from __future__ import annotations

from typing import Any

import numba
from numba import types
from numba.experimental import structref

from gqlab.engine.compiled import entry


@structref.register
class HeldType(types.StructRef):
    """A reference to a part."""


class Held(structref.StructRefProxy):
    """A part, held: compiled code reads it as ``held.part``."""

    def __new__(cls, part: Any) -> Held:
        return structref.StructRefProxy.__new__(cls, part)


structref.define_proxy(Held, HeldType, ["part"])


class HeldPlainly:
    """The same where nothing is compiled."""

    def __init__(self, part: Any) -> None:
        self.part = part


@entry
def _hold(part):
    """The same as ``Held(part)``, but cached on disk: that one would be compiled again in every process."""
    return Held(part)


def hold(part: Any) -> Any:
    """``part`` as compiled functions that are called often should get it."""
    return HeldPlainly(part) if numba.config.DISABLE_JIT else _hold(part)
