"""What bad input gets: a ``ValueError`` that names the argument, the place and the value."""

from __future__ import annotations

import math
import operator
import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]

#: A probability row may miss 1 by this much: rounding, not a mistake.
ROW_TOLERANCE = 1e-9


def place(index: Any) -> str:
    """An index as a reader would write it: ``[2, 0, 1]``, or nothing for a scalar."""
    return f"[{', '.join(str(int(i)) for i in index)}]" if len(index) else ""


def array(name: str, value: ArrayLike, shape: tuple[int | None, ...]) -> FloatArray:
    """A finite float64 copy of ``value`` whose shape fits (None: any length above 0)."""
    try:
        out = np.array(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} is not an array of numbers: {error}") from None
    wanted = "(" + ", ".join("*" if n is None else str(n) for n in shape) + ("," if len(shape) == 1 else "") + ")"
    fits = out.ndim == len(shape) and all(n is None or m == n for m, n in zip(out.shape, shape, strict=True))
    if not fits or 0 in out.shape:
        raise ValueError(f"{name} has shape {out.shape}, expected {wanted}")
    finite(name, out)
    return out


def plain_array(name: str, value: ArrayLike) -> NDArray[Any]:
    """``value`` as an array of whatever it holds; its rows must have the same length."""
    try:
        return np.array(value)
    except ValueError as error:
        raise ValueError(f"{name} is not an array: {error}") from None


def instance(name: str, value: Any, kind: type, example: str) -> None:
    """``value`` is a ``kind``."""
    if not isinstance(value, kind):
        raise ValueError(f"{name} is {value!r}, expected {example}")


def finite(name: str, value: FloatArray) -> None:
    """No NaN and no infinity."""
    bad = np.argwhere(~np.isfinite(value))
    if len(bad):
        raise ValueError(f"{name}{place(bad[0])} is {value[tuple(bad[0])]}, expected a finite number")


def vectors(name: str, value: ArrayLike, d: int) -> FloatArray:
    """A float64 array whose last axis has length ``d``, with any leading axes; not checked for NaN."""
    out = plain_array(name, value)
    if out.dtype.kind not in "biuf":
        raise ValueError(f"{name} is not an array of numbers, but of {out.dtype}")
    if out.ndim == 0 or out.shape[-1] != d:
        raise ValueError(f"{name} has shape {out.shape}, expected (..., {d})")
    return out.astype(np.float64)


def probabilities(name: str, value: FloatArray, skip: NDArray[np.bool_] | None = None) -> None:
    """Rows (the last axis) are non-negative and sum to 1; rows whose first index is in ``skip`` are not read."""
    used = value if skip is None else np.where(skip.reshape(-1, *[1] * (value.ndim - 1)), 1 / value.shape[-1], value)
    bad = np.argwhere(used < 0)
    if len(bad):
        raise ValueError(f"{name}{place(bad[0])} is {used[tuple(bad[0])]}, a negative probability")
    total = used.sum(axis=-1)
    bad = np.argwhere(np.abs(total - 1) > ROW_TOLERANCE)
    if len(bad):
        raise ValueError(f"{name}{place(bad[0])} sums to {total[tuple(bad[0])]:.12g}, expected 1")


def number(name: str, value: Any, *, above: float | None = None, least: float | None = None,
           most: float | None = None, below: float | None = None, infinite: bool = False) -> float:  # fmt: skip
    """A float within the bounds that are given."""
    try:
        out = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} is {value!r}, expected a number") from None
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
        raise ValueError(
            f"{name} is {value!r}, expected a {'' if infinite else 'finite '}number {' and '.join(bounds)}".rstrip()
        )
    return out


def integer(name: str, value: Any, *, least: int, below: int | None = None) -> int:
    """A whole number, ``least`` or more and under ``below``."""
    try:
        out = operator.index(value)
    except TypeError:
        raise ValueError(f"{name} is {value!r}, expected a whole number") from None
    if isinstance(value, bool | np.bool_):  # Python counts True as 1
        raise ValueError(f"{name} is {value!r}, expected a whole number")
    if out < least or (below is not None and out >= below):
        limit = f"at least {least}" + ("" if below is None else f" and below {below}")
        raise ValueError(f"{name} is {out}, expected {limit}")
    return out


def path(name: str, value: Any) -> str:
    """The name of a file: text, or an object that stands for some; a number would be an open file."""
    try:
        out = os.fspath(value)
    except TypeError:
        out = None
    if not isinstance(out, str) or not out or "\0" in out:
        raise ValueError(f"{name} is {value!r}, expected the name of a file")
    return out


def frozen(value: NDArray[Any]) -> NDArray[Any]:
    """The same array, closed for writing."""
    value.setflags(write=False)
    return value
