"""Memory for parts that declare arrays, and sizes that the compiler knows.

A loop over 4 features runs twice as fast when the compiler knows the 4 and can keep the arrays in registers. A size
is handed to compiled code either as an ordinary integer, or as a tuple of that length: a tuple's length is part of
its type. Small problems use tuples (one compilation for each size, kept on disk), large ones integers.

A part is passed to compiled code as a *layout*: the same named tuple with a :class:`Room` for every array that it
declares. :func:`allocate` makes the arrays on the heap, in Python, and :func:`furnish` those on the stack, in compiled
code, once for each thread.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import lower_builtin, overload, type_callable
from numba.np.arrayobj import populate_array
from numpy.typing import NDArray

from gqlab.rules.dispatch import OPTIONS, is_parameter, rule, written
from gqlab.rules.memory import COUNT, DOUBLE, INDEX, NUMBER, SAMPLE, Array, Sizes

#: Problems with at most this many features, and numbers d·A, are compiled for their number of features: beyond that,
#: unrolled code is slower than loops, because the numbers no longer fit the registers. Loops over more actions than
#: this stay loops, which are vectorised.
MOST_UNROLLED_FEATURES, MOST_UNROLLED, MOST_UNROLLED_ACTIONS = 8, 64, 6

DTYPES = {DOUBLE: np.float64, SAMPLE: np.uint32, INDEX: np.uint32, COUNT: np.int64}

Size = int | tuple[int, ...]


class Room(NamedTuple):
    """Room for one array of a part."""

    size: Any  # a tuple of that length: on the stack; a whole number: on the heap
    zero: Any  # a number of its dtype
    fill: Any


def is_unrolled(d: int, A: int) -> bool:
    """Whether code for a problem of these sizes is compiled for exactly these."""
    return d <= MOST_UNROLLED_FEATURES and d * A <= MOST_UNROLLED


def compiled_size(n: int, unrolled: bool) -> Size:
    """A size in the form in which compiled code takes it."""
    return (0,) * n if unrolled else n


def compiled_sizes(d: int, A: int) -> tuple[Size, Size]:
    """d and A in the form in which compiled code takes them."""
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
    for name, array in arrays.items():
        if array.within is None and array.kind in (SAMPLE, INDEX, COUNT):
            raise ValueError(f"{kind.__name__}: {name} holds whole numbers: say in memory() what they are within")
    return arrays


def part(kind: Any, n: Sizes, **values: Any) -> Any:
    """A part with arrays of double precision on the heap, for a call from a single Python thread."""
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


# This and ``furnish`` are intrinsics. Functions that Numba inlines would do as well, but around them it drops stores
# into arrays that are reached through fields, taking them for dead code.
@type_callable(length)
def _type_length(context):
    # A constant, which callees see as part of its type.
    return lambda size: size if isinstance(size, types.Integer) else types.literal(len(size))


@lower_builtin(length, types.Any)
def _lower_length(context, builder, signature, args):
    [size] = signature.args
    return args[0] if isinstance(size, types.Integer) else context.get_constant(types.intp, len(size))


# --- Furnishing -----------------------------------------------------------------------------------------------------


def allocate(layout: Any) -> Any:
    """The layout with arrays in place of its heap rooms."""
    on_heap = [isinstance(room, Room) and isinstance(room.size, int) for room in layout]
    return type(layout)(*(_array(room.size, room) if on else room for room, on in zip(layout, on_heap, strict=True)))


def _array(n: int, room: Room) -> NDArray[Any]:
    return np.full(n, room.fill, type(room.zero))


def furnish(layout):
    """The part with arrays in place of its stack rooms."""
    return type(layout)(*(_array(len(room.size), room) if isinstance(room, Room) else room for room in layout))


def _is_room(field: Any) -> bool:
    return isinstance(field, types.BaseNamedTuple) and field.instance_class is Room


@type_callable(furnish)
def _type_furnish(context):
    def typer(layout):
        fields = [types.Array(field[1], 1, "C") if _is_room(field) else field for field in layout.types]
        return types.BaseTuple.from_types(fields, layout.instance_class)

    return typer


@lower_builtin(furnish, types.BaseNamedTuple)
def _lower_furnish(context, builder, signature, args):
    [layout], part = signature.args, signature.return_type
    values = [
        _stack_array(context, builder, field, array, value) if _is_room(field) else value
        for field, array, value in zip(layout.types, part.types, cgutils.unpack_tuple(builder, args[0]), strict=True)
    ]
    return context.make_tuple(builder, part, values)


def _stack_array(context, builder, room, array_type, value):
    """The array of a room, on the stack of the function that is being compiled."""
    dtype, (size, _, fill) = array_type.dtype, room.types
    number, n = context.get_data_type(dtype), context.get_constant(types.intp, len(size))
    memory = cgutils.alloca_once(builder, ir.ArrayType(number, max(1, len(size))))
    data = builder.bitcast(memory, number.as_pointer())
    filling = context.cast(builder, builder.extract_value(value, 2), fill, dtype)
    with cgutils.for_range(builder, n) as loop:
        builder.store(filling, builder.gep(data, [loop.index]))
    itemsize = context.get_constant(types.intp, context.get_abi_sizeof(number))
    array = context.make_array(array_type)(context, builder)
    populate_array(array, data=data, shape=[n], strides=[itemsize], itemsize=itemsize, meminfo=None)
    return array._getvalue()


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
