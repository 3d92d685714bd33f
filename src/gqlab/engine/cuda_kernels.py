"""The GPU's kernels: one thread for each run, around the same compiled loop as on the CPU.

What an update touches at places of its own in every thread is kept as near as it fits:

* θ, ω and the other arrays of d or A numbers: the thread's registers or own memory, sized at compile time; for large
  problems columns of global memory.
* the slots of the reference point: shared memory; where they do not fit, columns of global memory.
* the tables of the problem: shared memory where they fit, else global memory through the caches.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from numba import config, cuda

from gqlab.engine.loop import advance
from gqlab.engine.tables import Chain
from gqlab.estimators import EMPTY, Reference, Work
from gqlab.rules import Samples

#: Threads of a block.
BLOCK = 128
#: Registers of a thread, at most, for numbers of 4 and of 8 bytes: more threads at a time against more at hand.
MAX_REGISTERS = {4: 128, 8: 168}
#: Problems with at most this many numbers d·A are compiled for their sizes.
MOST_LOCAL = 256
#: Bytes of a block's shared memory for the slots, and for the tables: together under the 48 KiB that all GPUs have.
MOST_SHARED_SLOTS = 35 << 10
MOST_SHARED_TABLES = 12 << 10


class Shape(NamedTuple):
    """The sizes that decide which memory is used."""

    d: int
    A: int
    n_states: int  # of the largest problem; 0 without batches
    n_slots: int
    transitions: int  # of all problems together, as the next two
    pairs: int
    states: int
    itemsize: int

    @property
    def local(self) -> bool:
        """The arrays of a run are sized at compile time."""
        return self.d * self.A <= MOST_LOCAL

    @property
    def shared_slots(self) -> bool:
        per_thread = 4 * (self.n_states + self.n_slots + 2) + self.itemsize * (self.n_slots * (self.d + 1) + 2)
        return self.local and BLOCK * per_thread <= MOST_SHARED_SLOTS

    @property
    def shared_tables(self) -> bool:
        size = self.transitions * (20 + 2 * self.itemsize) + self.pairs * self.d * self.itemsize + 5 * self.states + 4
        return self.local and size <= MOST_SHARED_TABLES

    @property
    def scratch(self) -> tuple[int, int]:
        """Numbers, and indices, that a run needs in global memory."""
        slots = (0, 0) if self.shared_slots else (self.n_slots * (self.d + 1), self.n_states + self.n_slots)
        return slots[0] + (0 if self.local else 9 * self.d + 2 * self.A), slots[1]


def options(shape: Shape) -> dict[str, Any]:
    """What the compiler is told; the simulator takes nothing."""
    return {} if config.ENABLE_CUDASIM else {"max_registers": MAX_REGISTERS[shape.itemsize]}


@functools.cache
def make_kernel(shape: Shape, dtype: Any) -> Any:
    """The kernel for problems of this shape: runs ``first`` … ``last − 1``, a thread each."""
    tables = _shared_tables(shape, dtype) if shape.shared_tables else _global_tables
    slots = _shared_slots(shape, dtype) if shape.shared_slots else _global_slots(shape)
    make = _local_kernel if shape.local else _global_kernel
    return make(shape, dtype, tables, slots)


def _local_kernel(shape: Shape, dtype: Any, tables: Any, slots: Any) -> Any:
    d, A, n_states = shape.d, shape.A, shape.n_states

    @cuda.jit(**options(shape))
    def kernel(samples, chain, plan, runs, records, n_runs, stop, batches, numbers, indices):
        samples, chain = tables(samples, chain)
        run = cuda.grid(1)
        if run >= n_runs:
            return
        slot, visited, V, phi_hat = slots(numbers, indices, run)
        for s in range(n_states):
            slot[s] = EMPTY
        theta, omega = cuda.local.array(d, dtype), cuda.local.array(d, dtype)
        work = Work(
            cuda.local.array(A, dtype), cuda.local.array(A, dtype),
            cuda.local.array(d, dtype), cuda.local.array(d, dtype), cuda.local.array(d, dtype),
        )  # fmt: skip
        reference = Reference(
            cuda.local.array(d, dtype), cuda.local.array(d, dtype),
            cuda.local.array(d, dtype), cuda.local.array(d, dtype), slot, visited, V, phi_hat,
        )  # fmt: skip
        batch = batches[:, run]
        advance(samples, chain, plan, runs, records, run, stop, theta, omega, work, reference, batch, d, A)

    return kernel


def _global_kernel(shape: Shape, dtype: Any, tables: Any, slots: Any) -> Any:
    n_states, n_slots = shape.n_states, shape.n_slots

    @cuda.jit(**options(shape))
    def kernel(samples, chain, plan, runs, records, n_runs, stop, batches, numbers, indices):
        run = cuda.grid(1)
        if run >= n_runs:
            return
        slot, visited, V, phi_hat = slots(numbers, indices, run)
        for s in range(n_states):
            slot[s] = EMPTY
        d = runs.theta.shape[1]
        own = numbers[n_slots * (d + 1) :, run]
        A = (len(own) - 9 * d) // 2
        work = Work(
            own[9 * d : 9 * d + A], own[9 * d + A :], own[2 * d : 3 * d], own[3 * d : 4 * d], own[4 * d : 5 * d]
        )  # fmt: skip
        reference = Reference(
            own[5 * d : 6 * d], own[6 * d : 7 * d], own[7 * d : 8 * d], own[8 * d : 9 * d], slot, visited, V, phi_hat
        )  # fmt: skip
        theta, omega, batch = own[:d], own[d : 2 * d], batches[:, run]
        advance(samples, chain, plan, runs, records, run, stop, theta, omega, work, reference, batch, d, A)

    return kernel


def _shared_slots(shape: Shape, dtype: Any) -> Any:
    # Rows of odd length: the same entry of neighbouring threads is in different banks.
    states, slots, slot_numbers = shape.n_states | 1, shape.n_slots | 1, (shape.n_slots * shape.d) | 1

    @cuda.jit(device=True)
    def rows(numbers, indices, run):
        slot = cuda.shared.array((BLOCK, states), np.uint32)
        visited = cuda.shared.array((BLOCK, slots), np.uint32)
        V = cuda.shared.array((BLOCK, slots), dtype)
        phi_hat = cuda.shared.array((BLOCK, slot_numbers), dtype)
        thread = cuda.threadIdx.x
        return slot[thread], visited[thread], V[thread], phi_hat[thread]

    return rows


def _global_slots(shape: Shape) -> Any:
    states, slots, slot_numbers = shape.n_states, shape.n_slots, shape.n_slots * shape.d

    @cuda.jit(device=True)
    def columns(numbers, indices, run):
        return (
            indices[:states, run],
            indices[states : states + slots, run],
            numbers[:slots, run],
            numbers[slots : slots + slot_numbers, run],
        )

    return columns


@cuda.jit(device=True)
def _global_tables(samples, chain):
    return samples, chain


@cuda.jit(device=True)
def _copy_together(source, target):
    """The threads of a block copy an array."""
    for k in range(cuda.threadIdx.x, len(source), cuda.blockDim.x):
        target[k] = source[k]


def _shared_tables(shape: Shape, dtype: Any) -> Any:
    """A function that moves the columns that every update reads into the block's shared memory."""
    n, n_phi, states, n_first = shape.transitions, shape.pairs * shape.d, shape.states, shape.states + 1

    @cuda.jit(device=True)
    def move(samples, chain):
        phi = cuda.shared.array(n_phi, dtype)
        reward = cuda.shared.array(n, dtype)
        gamma = cuda.shared.array(n, dtype)
        pair = cuda.shared.array(n, np.uint32)
        s_next = cuda.shared.array(n, np.uint32)
        alias = cuda.shared.array(n, np.uint32)
        threshold = cuda.shared.array(n, np.uint64)
        first = cuda.shared.array(n_first, np.uint32)
        terminal = cuda.shared.array(states, np.bool_)
        _copy_together(samples.phi, phi)
        _copy_together(samples.reward, reward)
        _copy_together(samples.gamma, gamma)
        _copy_together(samples.pair, pair)
        _copy_together(samples.s_next, s_next)
        _copy_together(chain.alias, alias)
        _copy_together(chain.threshold, threshold)
        _copy_together(chain.first, first)
        _copy_together(chain.terminal, terminal)
        cuda.syncthreads()
        return Samples(
            phi, pair, s_next, reward, gamma, samples.operator, samples.parameter, samples.target, samples.first_state
        ), Chain(
            first, threshold, alias, terminal, chain.start, chain.start_threshold, chain.start_alias,
            chain.first_state, chain.first_start, chain.operator, chain.parameter,
        )  # fmt: skip

    return move
