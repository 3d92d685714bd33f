"""What a worker makes of a part of the files: it reads, checks and encodes the rows, and hands back little of them.

Every function gets first what all of them share: the files and how their parts are cut, the encoder,
the target, the number of actions and γ.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gqlab.data.assemble import Chunk, arrays_of
from gqlab.data.parts import Part, chunks_of, pieces_of
from gqlab.engine.compiled import entry
from gqlab.engine.memory import part as made
from gqlab.estimators.svrg import add_reference, mean_reference, start_reference
from gqlab.lab.check import svrg_part
from gqlab.learn.fit.empirical import LinearSums, LogSums
from gqlab.learn.fit.log_table import Encoded, encode_log, joined, rows_of, samples_of
from gqlab.rules.dispatch import at
from gqlab.rules.memory import Sizes
from gqlab.rules.point import DensePoint
from gqlab.support.checks import FloatArray

Shared = Mapping[str, Any]

#: Rows whose pseudo-gradients are added up before they are added to those of other rows.
BLOCK_ROWS = 2**14


class Look(NamedTuple):
    """What is found at a first look."""

    counts: list[int]  # the transitions of each piece
    r_max: float
    rows: list[dict[str, NDArray[Any]]]  # every so many-th
    digest: bytes  # of the content


class Measured(NamedTuple):
    """What a search for the least J needs of a part."""

    sums: LinearSums
    largest_q: float


def look(shared: Shared, part: Part, every: int) -> Look:
    """Count the transitions of a part, and pick every so many-th row of the files."""
    counts, r_max, picked, whole = [], 0.0, [], hashlib.sha256()
    for piece in _pieces(shared, part):
        counts.append(0)
        for chunk in _chunks(shared, piece):
            r_max = max(r_max, float(np.abs(chunk.rewards).max(initial=0.0)))
            picked.append(rows_of(chunk, slice(-(piece.row + chunk.first_row) % every, None, every)))
            counts[-1] += len(chunk)
            for name, array in arrays_of(chunk).items():
                if name != "episode":  # counted from the piece's first
                    whole.update(f"{name} {array.dtype} {array.shape}".encode())
                    whole.update(np.ascontiguousarray(array).data)
    return Look(counts, r_max, picked, whole.digest())


def encode(shared: Shared, part: Part) -> list[Encoded]:
    """The rows of a part, in their order."""
    return list(_logs(shared, part))


def sample(shared: Shared, part: Part, piece: int, n: int, size: int, seed: list[int]) -> list[Encoded]:
    """So many of the n transitions of a piece, drawn at random with replacement; nothing else of the part is read."""
    random = np.random.default_rng(seed)
    picks = np.sort(random.integers(n, size=size))
    rows = []
    for chunk in _chunks(shared, _pieces(shared, part)[piece]):
        first, last = np.searchsorted(picks, [chunk.first_row, chunk.first_row + len(chunk)])
        rows.append(rows_of(chunk, picks[first:last] - chunk.first_row))
    return [_encoded(shared, joined(rows), random.permutation(size))]


def reference(shared: Shared, part: Part, theta: FloatArray, omega: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Σ G_x(θ̃, ω̃) and Σ H_x(θ̃, ω̃) over the transitions of a part, (d,) each."""
    A, d = shared["n_actions"], len(theta)
    point = made(DensePoint, Sizes(d, A))._replace(theta=theta, omega=omega)
    G, H = np.zeros((2, d))
    for log in _blocks(shared, part):
        samples = samples_of(log, shared["encoder"], shared["target"], A)
        svrg = svrg_part(d, A, len(log.features), len(log.action))
        _sum_reference(at(samples, 0), point, svrg, d, A)
        G += svrg.G_tilde
        H += svrg.H_tilde
    return G, H


@entry
def _sum_reference(samples, point, svrg, d, A):
    """G̃, H̃ ← the sums over all samples: the means, times their number."""
    start_reference(svrg, point, d)
    for x in range(len(samples.row)):
        add_reference(svrg, samples, x, d, A)
    mean_reference(svrg, samples, 1, d, A)


def grams(shared: Shared, part: Part) -> FloatArray:
    """Σ φφᵀ, a block for each action."""
    return np.sum([sums.grams() for sums in _sums(shared, part)], axis=0)


def measure(shared: Shared, part: Part, theta: FloatArray) -> Measured:
    """All that is to be known of J at θ."""
    d, largest_q = theta.size, 0.0
    total = LinearSums(np.zeros(theta.shape), np.zeros((d, d)), np.zeros(d))
    for sums in _sums(shared, part):
        for all_so_far, new in zip(total, sums.linear_sums(theta), strict=True):
            all_so_far += new
        largest_q = max(largest_q, sums.largest_q(theta))
    return Measured(total, largest_q)


def means(shared: Shared, part: Part, thetas: list[FloatArray]) -> FloatArray:
    """Σ δφ at several θ, (len(thetas), A, K)."""
    return np.sum([[sums.block_sums(sums.delta(theta)) for theta in thetas] for sums in _sums(shared, part)], axis=0)


# --- Rows -----------------------------------------------------------------------------------------------------------


def _pieces(shared: Shared, part: Part) -> list[Part]:
    return pieces_of(shared["files"], part, shared["piece_rows"])


def _chunks(shared: Shared, part: Part) -> Iterator[Chunk]:
    """The transitions of a part, until ``stop`` is set."""
    _one_thread()
    stop = shared.get("stop")
    for chunk in chunks_of(shared["files"], part):
        if stop is not None and stop[0]:
            raise InterruptedError("stopped")
        yield chunk


def _encoded(shared: Shared, chunk: Any, order: Any = None) -> Encoded:
    return encode_log(chunk, shared["encoder"], shared["target"], shared["n_actions"], shared["discount"], order)


def _logs(shared: Shared, part: Part) -> Iterator[Encoded]:
    return (_encoded(shared, chunk) for chunk in _chunks(shared, part))


def _blocks(shared: Shared, part: Part) -> Iterator[Encoded]:
    """The same in blocks of one size, however many rows are read at a time: sums over them have the same digits."""
    waiting: list[dict[str, NDArray[Any]]] = []
    n = 0
    for chunk in _chunks(shared, part):
        first = 0
        while first < len(chunk):
            rows = slice(first, first + BLOCK_ROWS - n)
            waiting.append(rows_of(chunk, rows))
            taken = len(waiting[-1]["actions"])
            first, n = first + taken, n + taken
            if n == BLOCK_ROWS:
                yield _encoded(shared, joined(waiting))
                waiting, n = [], 0
    if waiting:
        yield _encoded(shared, joined(waiting))


def _sums(shared: Shared, part: Part) -> Iterator[LogSums]:
    return (LogSums(log, shared["encoder"], shared["target"], shared["n_actions"]) for log in _logs(shared, part))


@cache
def _one_thread() -> None:
    """Matrix products on one thread: on several their last digits depend on how many there are."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(1, user_api="blas")
