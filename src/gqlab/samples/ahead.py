"""The chain of a problem that is larger than the caches: what the next steps will read is prefetched.

The trajectory does not depend on θ, and its random numbers can be computed in advance. So while one sample is worked
on, the next one is drawn as well, only to see which parts of the tables it needs: they are then on their way from
memory before they are used. The samples themselves do not change.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

from gqlab.rules.dispatch import OPTIONS, rule
from gqlab.rules.gradient import Dense
from gqlab.samples.random import RESTART, TRAJECTORY, below, word
from gqlab.samples.streams import Chain, begin_anew, is_terminal, key, start
from gqlab.samples.tables import Tables, per_problem

#: Tables of more bytes than this are prefetched: about the size of a core's own cache.
FAR = 2 << 20

#: Numbers of a cache line, and lines of a state's features that are prefetched: the processor itself continues the
#: pattern.
LINE_NUMBERS, MOST_LINES = 8, 16

#: A record of what one draw reads, in words of 32 bits, half a cache line: the threshold of a column in two of them,
#: its alias, the next states of both, where the transitions of these begin, and how many they are, in 16 bits each.
RECORD = 8
ALIAS, NEXT, BEGIN, COUNTS = 2, 3, 5, 7


class AheadChain(NamedTuple):
    """A :class:`Chain`, its draws as records, and the tables that a sample is read from."""

    chain: Any
    records: Any  # (8 n,)  unsigned
    row: Any  # (n,)  that of the samples, beside which their other columns stand
    phi: Any
    state_numbers: int  # how many numbers the features of a state are: A · d; 0 where they are not prefetched

    def start(self, run):
        return start(self.chain, run)

    def draw(self, run, cursor, t):
        chain, trajectory_key = self.chain, key(run, TRAJECTORY)
        s = np.uint32(chain.first_state) + cursor
        begin = chain.first[s]
        x, s_next, begin, n = drawn(self.records, begin, chain.first[s + np.uint32(1)] - begin, word(trajectory_key, t))
        if is_terminal(chain, s_next):
            s_next = begin_anew(chain, key(run, RESTART), t + 1)
            s = np.uint32(chain.first_state) + s_next
            begin = chain.first[s]
            n = chain.first[s + np.uint32(1)] - begin
        look_ahead(self, trajectory_key, begin, n, t + 1)
        return x, s_next


@rule
def drawn(records, begin, n, w):
    """The sample that a word draws from n transitions, the next state, and where the transitions of that one are.

    As :func:`gqlab.samples.random.draw_alias`.
    """
    column = begin + np.uint32(below(w, n))
    first = np.int64(column) * RECORD
    threshold = np.uint64(records[first]) | np.uint64(records[first + 1]) << np.uint64(32)
    own = w * np.uint64(n) < threshold
    counts = records[first + COUNTS]
    x = column if own else records[first + ALIAS]
    s_next = records[first + NEXT] if own else records[first + NEXT + 1]
    begin = records[first + BEGIN] if own else records[first + BEGIN + 1]
    return x, s_next, begin, counts & np.uint32(0xFFFF) if own else counts >> np.uint32(16)


@rule
def look_ahead(ahead, trajectory_key, begin, n, t):
    """Prefetch what sample t, one of n, will read, and what drawing the sample after it will."""
    x, s_next, begin, n = drawn(ahead.records, begin, n, word(trajectory_key, t))
    fetch(ahead.row, x)
    fetch(ahead.records, np.int64(begin + np.uint32(below(word(trajectory_key, t + 1), n))) * RECORD)
    s = np.int64(ahead.chain.first_state) + np.int64(s_next)
    fetch(ahead.chain.first, s)
    for line in range(min(MOST_LINES, (ahead.state_numbers + LINE_NUMBERS - 1) // LINE_NUMBERS)):
        fetch(ahead.phi, s * ahead.state_numbers + line * LINE_NUMBERS)


def fetched_early(tables: Tables, state_numbers: int) -> Tables:
    """The tables, with a chain that looks ahead if they are large; ``state_numbers`` is A · d."""
    samples, chain = tables.samples, tables.stream
    columns = {name: getattr(samples, name) for name in ("row", "next_row", "reward", "discount")}
    phi, lengths = samples.features.phi, np.diff(chain.first)
    if sum(column.nbytes for column in (*columns.values(), phi)) <= FAR or lengths.max() >= 1 << 16:
        return tables
    samples = samples._replace(**_side_by_side(columns))
    numbers = state_numbers if isinstance(samples.features, Dense) else 0
    per = per_problem(np.full(len(samples.first_row), numbers))
    return tables._replace(samples=samples, stream=AheadChain(chain, _records(chain, lengths), samples.row, phi, per))


def _aligned(n_bytes: int) -> NDArray[np.uint8]:
    """Memory that begins at a cache line."""
    room = np.empty(n_bytes + 64, dtype=np.uint8)
    return room[-room.ctypes.data % 64 :][:n_bytes]


def _side_by_side(columns: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Columns as views of records: what is read together is in one cache line."""
    ends = np.cumsum([column.itemsize for column in columns.values()])
    size = 1 << int(ends[-1] - 1).bit_length()  # a power of 2: no record spans two lines
    formats = [column.dtype for column in columns.values()]
    offsets = [0, *ends[:-1].tolist()]
    kind = np.dtype({"names": list(columns), "formats": formats, "offsets": offsets, "itemsize": size})
    records = _aligned(size * len(columns["row"])).view(kind)
    for name, column in columns.items():
        records[name] = column
    return {name: records[name] for name in columns}


def _records(chain: Chain, lengths: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """The records of all columns, from the beginning of a cache line on."""
    n = len(chain.threshold)
    records = _aligned(4 * RECORD * n).view(np.uint32).reshape(n, RECORD)
    problems: Any = chain.first_state  # where the states of each begin
    which = np.searchsorted(problems, np.searchsorted(chain.first, np.arange(n), side="right") - 1, side="right")
    state = chain.next_state + problems[which - 1].astype(np.uint32)  # among those of all problems
    records[:, 0], records[:, 1] = chain.threshold & np.uint64(0xFFFFFFFF), chain.threshold >> np.uint64(32)
    records[:, ALIAS] = chain.alias
    for k, column in enumerate((slice(None), chain.alias)):
        records[:, NEXT + k] = chain.next_state[column]
        records[:, BEGIN + k] = chain.first[state[column]]
    records[:, COUNTS] = lengths[state] | lengths[state[chain.alias]] << np.uint32(16)
    return records.reshape(-1)


def fetch(array, i):
    """Ask for entry i of an array to be brought into the cache. It is only a hint, so i may be out of range."""


@overload(fetch, jit_options=OPTIONS)
def _fetch(array, i):
    return lambda array, i: _prefetch(array, i)


@intrinsic
def _prefetch(context, array, i):
    def generate(context, builder, signature, args):
        made = context.make_array(signature.args[0])(context, builder, args[0])
        index = context.cast(builder, args[1], signature.args[1], types.intp)
        [stride] = cgutils.unpack_tuple(builder, made.strides, 1)
        begin = builder.bitcast(made.data, cgutils.voidptr_t)
        address = builder.gep(begin, [builder.mul(index, stride)])
        read, keep, data_cache = (ir.Constant(ir.IntType(32), k) for k in (0, 3, 1))
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, *[ir.IntType(32)] * 3])
        hint = builder.module.declare_intrinsic("llvm.prefetch", [cgutils.voidptr_t], kind)
        builder.call(hint, [address, read, keep, data_cache])
        return context.get_dummy_value()

    return types.void(array, i), generate
