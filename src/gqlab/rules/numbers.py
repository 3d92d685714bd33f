"""Functions of one number for which the compiler has no good code of its own."""

from __future__ import annotations

import functools
import math

import numpy as np
from numba import types
from numba.extending import overload

from gqlab.rules.dispatch import OPTIONS, compiled

#: Evaluated as written: elsewhere the compiler may regroup sums for speed, here it may not.
LITERAL = OPTIONS | {"fastmath": False}


@functools.partial(compiled, options=LITERAL)
def minus(a, b):
    """a − b, exactly as written: (q − top) − mean must not become q − (top + mean), which loses digits."""
    return a - b


def exp(x):
    """e^x for x ≤ 0.

    In double precision a polynomial that is compiled into the step: a call of the system's exp in its middle would
    send every register to memory and back (a fifth of the whole step). Relative error below 3e-16; below −708 the
    result stays at 3e-308 instead of falling to 0.
    """
    return math.exp(x)


@overload(exp)
def _exp(x):
    if x != types.float64:
        return lambda x: math.exp(x)

    def exp64(x):
        x = max(x, -708.0)
        k = math.floor(x * 1.4426950408889634 + 0.5)  # x = k log 2 + y, |y| ≤ ½ log 2
        y = (x - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10
        y2 = y * y
        y4 = y2 * y2
        low = (1.0 + y) + y2 * (1 / 2 + y * (1 / 6)) + y4 * ((1 / 24 + y * (1 / 120)) + y2 * (1 / 720 + y * (1 / 5040)))
        high = (1 / 40320 + y * (1 / 362880)) + y2 * (1 / 3628800 + y * (1 / 39916800))
        high += y4 * (1 / 479001600 + y * (1 / 6227020800))
        return (low + y4 * y4 * high) * np.int64((np.int64(k) + 1023) << 52).view(np.float64)

    return exp64


def expm1(x):
    """e^x − 1 for x ≤ 0, in double precision a polynomial like that of :func:`exp`: relative error below 4e-16."""
    return math.expm1(x)


@overload(expm1, jit_options=LITERAL)
def _expm1(x):
    if x != types.float64:
        return lambda x: math.expm1(x)

    def expm1_64(x):
        x = max(x, -708.0)
        k = math.floor(x * 1.4426950408889634 + 0.5)  # x = k log 2 + y, |y| ≤ ½ log 2
        y = (x - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10
        y2 = y * y
        y4 = y2 * y2
        low = y + (y2 * (1 / 2 + y * (1 / 6)) + y4 * ((1 / 24 + y * (1 / 120)) + y2 * (1 / 720 + y * (1 / 5040))))
        high = (1 / 40320 + y * (1 / 362880)) + y2 * (1 / 3628800 + y * (1 / 39916800))
        high += y4 * (1 / 479001600 + y * (1 / 6227020800))
        power = np.int64((np.int64(k) + 1023) << 52).view(np.float64)
        return (low + y4 * y4 * high) * power + (power - 1.0)

    return expm1_64
