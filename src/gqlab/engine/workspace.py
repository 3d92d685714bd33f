"""Sizes that the compiler knows, and work arrays on the stack.

A loop over 4 features runs twice as fast when the compiler knows the 4 and can keep the arrays in registers. A size
is handed to compiled code either as an ordinary integer, or as a tuple of that length: a tuple's length is part of
its type. Small problems use tuples (one compilation for each size, kept on disk), large ones integers.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import carray, types
from numba.core import cgutils
from numba.extending import intrinsic, overload

#: Problems with at most so many features, and numbers d·A, are compiled for their sizes: beyond, unrolled code is
#: slower than loops, because the numbers no longer fit the registers.
MOST_FEATURES, MOST_NUMBERS = 8, 64

Size = int | tuple[int, ...]


def sizes(d: int, A: int) -> tuple[Size, Size]:
    """``d`` and ``A`` as compiled code should get them."""
    return ((0,) * d, (0,) * A) if d <= MOST_FEATURES and d * A <= MOST_NUMBERS else (d, A)


def length(size: Size) -> int:
    """The number that a size stands for."""
    return size if isinstance(size, int) else len(size)


@overload(length, inline="always")
def _length(size):
    if isinstance(size, types.Integer):
        return lambda size: size
    n = len(size)
    return lambda size: n  # a constant, which the functions that are called with it see as part of its type


def work_array(size: Size, like: np.ndarray) -> np.ndarray:
    """An uninitialised array of ``size`` numbers of the dtype of ``like``."""
    return np.empty(length(size), dtype=like.dtype)


@overload(work_array, inline="always")
def _work_array(size, like):
    if isinstance(size, types.Integer):
        return lambda size, like: np.empty(size, dtype=like.dtype)
    return lambda size, like: carray(_stack_memory(size, like), (len(size),))


@intrinsic
def _stack_memory(context, size, like):
    def generate(context, builder, signature, args):
        number = context.get_value_type(like.dtype)
        memory = cgutils.alloca_once(builder, ir.ArrayType(number, len(size)))
        return builder.bitcast(memory, number.as_pointer())

    return types.CPointer(like.dtype)(size, like), generate
