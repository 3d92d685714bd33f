"""What bad input gets: a ``ValueError`` that names the argument, the place and the value."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]

#: A probability row may miss 1 by this much: rounding, not a mistake.
ROW_TOLERANCE = 1e-9

#: The most characters of a value that a message shows.
SHOWN = 100

#: The most entries of a list of things to do.
MOST_SEVERAL = 10**7

#: Bytes of this machine's memory; infinite if it cannot be determined.
MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 2**63


def place(index: Any) -> str:
    """An index as a reader would write it: ``[2, 0, 1]``, or nothing for a scalar."""
    return f"[{', '.join(str(int(i)) for i in index)}]" if len(index) else ""


def shown(value: Any) -> str:
    """A value in one short line."""
    try:
        text = " ".join(repr(value).split())
    except Exception as error:  # an object of the user's own
        text = f"a {type(value).__name__} whose repr raises {type(error).__name__}"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def array(name: str, value: ArrayLike, shape: tuple[int | None, ...]) -> FloatArray:
    """A finite float64 copy of ``value`` whose shape fits (None: any length above 0)."""
    out = numbers(name, value)
    wanted = "(" + ", ".join("*" if n is None else str(n) for n in shape) + ("," if len(shape) == 1 else "") + ")"
    fits = out.ndim == len(shape) and all(n is None or m == n for m, n in zip(out.shape, shape, strict=True))
    if not fits or 0 in out.shape:
        raise ValueError(f"{name} has shape {out.shape}, expected {wanted}")
    finite(name, out)
    return out


def plain_array(name: str, value: ArrayLike) -> NDArray[Any]:
    """``value`` as an array of any dtype; its rows must have the same length, and no entry may be masked."""
    try:
        out = np.array(value)
    except Exception as error:  # the object's own conversion may raise anything
        raise ValueError(f"{name} is not an array: {' '.join(str(error).split())}") from None
    if np.ma.is_masked(value):
        raise ValueError(f"{name} has masked entries, expected numbers")
    return out


def numbers(name: str, value: ArrayLike) -> FloatArray:
    """A float64 copy of ``value``: no text, no complex numbers, no dates."""
    out = plain_array(name, value)
    if out.dtype.kind not in "biufO":
        raise ValueError(f"{name} is not an array of numbers, but of {out.dtype}")
    try:
        with np.errstate(over="ignore"):  # from long doubles, which become infinite
            return out.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} is not an array of numbers: {' '.join(str(error).split())}") from None


def instance(name: str, value: Any, kind: type | tuple[type, ...], example: str) -> None:
    """``value`` is a ``kind``."""
    if not isinstance(value, kind):
        raise ValueError(f"{name} is {shown(value)}, expected {example}")


def one_of(name: str, value: Any, known: Iterable[str]) -> str:
    """One of the words ``known``."""
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{name} is {shown(value)}, expected one of {', '.join(map(repr, known))}")
    return str(value)


def several(name: str, value: Any) -> list[Any]:
    """One thing, or a sequence of them, as a list that is not empty."""
    try:
        n = operator.length_hint(value, 1)
        n = operator.length_hint(value, 1)
        values = [value] if not isinstance(value, Iterable) else list(value) if n <= MOST_SEVERAL else None
    except Exception:
        raise ValueError(f"{name} is {shown(value)}, expected one or several in a list") from None
    if values is None:
        raise ValueError(f"{name} has {n:,} entries, expected at most {MOST_SEVERAL:,}")
    if not values:
        raise ValueError(f"{name} is empty")
    return values


def finite(name: str, value: FloatArray) -> None:
    """No NaN and no infinity."""
    good = np.isfinite(value)
    if not good.all():
        bad = np.argwhere(~good)[0]
        raise ValueError(f"{name}{place(bad)} is {value[tuple(bad)]}, expected a finite number")


def vectors(name: str, value: ArrayLike, d: int) -> FloatArray:
    """A finite float64 array whose last axis has length ``d``, with any leading axes."""
    out = numbers(name, value)
    if out.ndim == 0 or out.shape[-1] != d:
        raise ValueError(f"{name} has shape {out.shape}, expected (..., {d})")
    finite(name, out)
    return out


def memory(name: str, value: Any, count: int, itemsize: int = 8) -> None:
    """``ValueError`` if ``count`` numbers, which ``name`` asks for, do not fit into this machine's memory."""
    if count * itemsize > MEMORY:
        raise ValueError(
            f"{name} is {shown(value)}: that needs {count * itemsize / 2**30:,.1f} GiB of memory, "
            f"and this machine has {MEMORY / 2**30:,.1f}"
        )


class RowError(ValueError):
    """Bad input in a row: whoever knows where the row comes from may add it."""

    def __init__(self, message: str, where: NDArray[np.intp]) -> None:
        super().__init__(message)
        self.row = int(where[0]) if len(where) else 0


def probabilities(name: str, value: FloatArray, skip: NDArray[np.bool_] | None = None) -> None:
    """Rows (the last axis) are non-negative and sum to 1; rows whose first index is in ``skip`` are not read."""
    used = value if skip is None else np.where(skip.reshape(-1, *[1] * (value.ndim - 1)), 1 / value.shape[-1], value)
    bad = np.argwhere(used < 0)
    if len(bad):
        raise RowError(f"{name}{place(bad[0])} is {used[tuple(bad[0])]}, a negative probability", bad[0])
    total = used.sum(axis=-1)
    bad = np.argwhere(np.abs(total - 1) > ROW_TOLERANCE)
    if len(bad):
        raise RowError(f"{name}{place(bad[0])} sums to {total[tuple(bad[0])]:.12g}, expected 1", bad[0])


def number(name: str, value: Any, *, above: float | None = None, least: float | None = None,
           most: float | None = None, below: float | None = None, infinite: bool = False) -> float:  # fmt: skip
    """A float within the bounds that are given."""
    try:
        if isinstance(value, str | bytes) or np.ndim(value):
            raise TypeError
        out = float(value)
    except Exception:
        raise ValueError(f"{name} is {shown(value)}, expected a number") from None
    wrong = (
        math.isnan(out)
        or (math.isinf(out) and not infinite)
        or (above is not None and not out > above)
        or (least is not None and not out >= least)
        or (most is not None and not out <= most)
        or (below is not None and not out < below)
    )
    if wrong:
        bounds = [
            f"{text} {bound:g}"
            for text, bound in (("above", above), ("at least", least), ("at most", most), ("below", below))
            if bound is not None
        ]
        kind = "number" if infinite else "finite number"
        raise ValueError(f"{name} is {shown(value)}, expected a {kind} {' and '.join(bounds)}".rstrip())
    return out


def integer(name: str, value: Any, *, least: int, below: int | None = None) -> int:
    """A whole number, ``least`` or more and under ``below``; in any case one that fits 64 bits."""
    try:
        if isinstance(value, bool | np.bool_) or np.ndim(value):  # Python counts True as 1
            raise TypeError
        out = int(operator.index(value))  # a plain int, not a member of an enumeration
    except Exception:
        raise ValueError(f"{name} is {shown(value)}, expected a whole number") from None
    if out < least or out >= (2**63 if below is None else below):
        limit = f" and below {2**63 if below is None else below}" if below is not None or out >= 2**63 else ""
        raise ValueError(f"{name} is {shown(out)}, expected at least {least}{limit}")
    return out


def path(name: str, value: Any) -> str:
    """The name of a file: text, or a path object; a number would mean an open file."""
    try:
        out = os.fspath(value)
    except TypeError:
        out = None
    if not isinstance(out, str) or not out or "\0" in out:
        raise ValueError(f"{name} is {shown(value)}, expected the name of a file")
    return out


def frozen(value: NDArray[Any]) -> NDArray[Any]:
    """The same array, made read-only."""
    value.setflags(write=False)
    return value


class Frozen:
    """An object whose arrays are read-only, and stay so when it is copied or pickled."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        waiting = list(state.values())
        while waiting:
            value = waiting.pop()
            if isinstance(value, np.ndarray):
                frozen(value)
            elif isinstance(value, tuple):
                waiting.extend(value)
            elif hasattr(value, "indptr"):  # a sparse matrix
                waiting.extend((value.data, value.indices, value.indptr))
