"""Memory for the parts that declare some, and sizes that the compiler knows.

A loop over 4 features runs twice as fast when the compiler knows the 4 and can keep the arrays in registers. A size
is handed to compiled code either as an ordinary integer, or as a tuple of that length: a tuple's length is part of
its type. Small problems use tuples (one compilation for each size, kept on disk), large ones integers.

A part goes to compiled code as a *layout* of itself: the same named tuple with a :class:`Room` for every array that it
declares. :func:`furnish` turns the layout into the part, with arrays, once for each thread.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import carray, types
from numba.core import cgutils
from numba.extending import intrinsic, overload
from numba.np.numpy_support import as_dtype

from gqlab.rules.dispatch import OPTIONS, build, is_parameter, rule, written
from gqlab.rules.memory import COUNT, DOUBLE, INDEX, NUMBER, SAMPLE, Array, Sizes

#: Problems with at most so many features, and numbers d·A, are compiled for their number of features: beyond, unrolled
#: code is slower than loops, because the numbers no longer fit the registers. Loops over more actions than so many are
#: left as loops, which become vectors.
MOST_UNROLLED_FEATURES, MOST_UNROLLED, MOST_UNROLLED_ACTIONS = 8, 64, 6

DTYPES = {DOUBLE: np.float64, SAMPLE: np.uint32, INDEX: np.uint32, COUNT: np.int64}

Size = int | tuple[int, ...]


class Room(NamedTuple):
    """Room for one array of a part."""

    size: Any  # a tuple of that length: on the stack; a whole number: on the heap
    zero: Any  # a number of its dtype
    fill: Any


def is_unrolled(d: int, A: int) -> bool:
    """Whether code for such a problem is compiled for its sizes."""
    return d <= MOST_UNROLLED_FEATURES and d * A <= MOST_UNROLLED


def compiled_size(n: int, unrolled: bool) -> Size:
    """A size as compiled code should get it."""
    return (0,) * n if unrolled else n


def compiled_sizes(d: int, A: int) -> tuple[Size, Size]:
    """d and A as compiled code should get them."""
    unrolled = is_unrolled(d, A)
    return compiled_size(d, unrolled), compiled_size(A, unrolled and A <= MOST_UNROLLED_ACTIONS)


def declared(kind: Any, n: Sizes) -> dict[str, Array]:
    """The arrays that a part declares, checked against its fields."""
    arrays: dict[str, Array] = kind.memory(n) if hasattr(kind, "memory") else {}
    wanted = [name for name in kind._fields if not is_parameter(kind, name)]
    for name, known, where in (
        *((name, arrays, "in memory()") for name in wanted),
        *((name, wanted, "among its fields") for name in arrays),
    ):
        if name not in known:
            raise ValueError(f"{kind.__name__}: {name} is not {where}")
    return arrays


def part(kind: Any, n: Sizes, **values: Any) -> Any:
    """A part with arrays of double precision on the heap, for one thread of Python's own."""
    arrays = {
        name: np.full(array.size, array.fill, dtype_of(array, np.float64)) for name, array in declared(kind, n).items()
    }
    return kind(**arrays, **values)


def dtype_of(array: Array, number: Any) -> Any:
    """The dtype of an array in a run with numbers of the dtype ``number``."""
    return np.dtype(number if array.kind == NUMBER else DTYPES[array.kind])


def length(size: Size) -> int:
    """The number that a size stands for."""
    return size if isinstance(size, int) else len(size)


@overload(length, inline="always")
def _length(size):
    if isinstance(size, types.Integer):
        return lambda size: size
    n = len(size)
    return lambda size: n  # a constant, which the functions that are called with it see as part of its type


# --- Furnishing -----------------------------------------------------------------------------------------------------


def furnish(layout):
    """The part with arrays in place of its rooms."""
    return type(layout)(*(furnish_room(value) if isinstance(value, Room) else value for value in layout))


# Both are inlined before anything is compiled: what is on the stack must be on the stack of the caller, and stay there.
@overload(furnish, inline="always")
def _furnish(layout):
    values = [
        f"furnish_room(layout.{field})" if is_room(value) else f"layout.{field}"
        for field, value in zip(layout.fields, layout.types, strict=True)
    ]
    return build(layout.instance_class, values, "layout", {"furnish_room": furnish_room})


def is_room(value: Any) -> bool:
    """Whether a Numba type is that of a room."""
    return isinstance(value, types.BaseNamedTuple) and value.instance_class is Room


def furnish_room(room):
    """The array of a room, full of its ``fill``."""
    return np.full(length(room.size), room.fill, type(room.zero))


@overload(furnish_room, inline="always")
def _furnish_room(room):
    dtype = as_dtype(room[1])
    if isinstance(room[0], types.Integer):

        def furnished(room):
            array = np.empty(room.size, dtype)
            fill_up(array, room.fill)
            return array

    else:

        def furnished(room):
            array = carray(_stack_memory(room.size, room.zero), (len(room.size),))
            fill_up(array, room.fill)
            return array

    return furnished


@intrinsic
def _stack_memory(context, size, zero):
    def generate(context, builder, signature, args):
        number = context.get_value_type(zero)
        memory = cgutils.alloca_once(builder, ir.ArrayType(number, max(1, len(size))))
        return builder.bitcast(memory, number.as_pointer())

    return types.CPointer(zero)(size, zero), generate


@rule
def fill_up(array, fill):
    for k in range(len(array)):
        array[k] = array.dtype.type(fill)


# --- What is kept between calls -------------------------------------------------------------------------------------


def load(part, kept, runs, run):
    """Fill the part's kept arrays with what ``runs`` holds of them, from the columns ``kept`` on (−1: not kept)."""
    for array, first in zip(_arrays(part), kept, strict=False):
        load_array(array, first, kept_columns(runs, array), run)


def store(part, kept, runs, run):
    """Write the part's kept arrays into ``runs``."""
    for array, first in zip(_arrays(part), kept, strict=False):
        store_array(array, first, kept_columns(runs, array), run)


def _arrays(part):
    return [value for value in part if getattr(value, "ndim", 0) > 0]


def kept_columns(runs, array):
    """Where ``runs`` keeps arrays of such a dtype."""
    return runs.kept_numbers if array.dtype.kind == "f" else runs.kept_counts


@overload(load, jit_options=OPTIONS)
def _load(part, kept, runs, run):
    return _each_kept(load_array, part, kept)


@overload(store, jit_options=OPTIONS)
def _store(part, kept, runs, run):
    return _each_kept(store_array, part, kept)


def _each_kept(function: Any, part: Any, kept: Any) -> Any:
    arrays = [(f, value) for f, value in zip(part.fields, part.types, strict=True) if isinstance(value, types.Array)]
    calls = [
        f"function(part.{field}, kept[{k}], runs.{columns}, run), "
        for k, (field, array) in enumerate(arrays[: len(kept)])
        for columns in ["kept_numbers" if isinstance(array.dtype, types.Float) else "kept_counts"]
    ]
    return written("part, kept, runs, run", f"({''.join(calls)})", {"function": function})


@rule
def load_array(array, first, columns, run):
    if first >= 0:
        for k in range(len(array)):
            array[k] = columns[run, first + k]
    return first


@rule
def store_array(array, first, columns, run):
    if first >= 0:
        for k in range(len(array)):
            columns[run, first + k] = array[k]
    return first
