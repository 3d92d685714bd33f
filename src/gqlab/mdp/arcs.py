"""The transitions of a finite MDP as arrays, and the forms in which they may be given.

*Place* (s·A + a)·S + s' is the position of (s, a, s') in a flattened array of shape (S, A, S). Whatever the form in
which an MDP is given, its transitions are kept in the order of their places, without those of probability 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from gqlab.support import checks
from gqlab.support.checks import FloatArray

#: Up to this many states rows are summed in full, zeros included, as NumPy sums those of an array: the order of a sum
#: decides its last digit, and with it the MDP that belongs to a given seed.
WHOLE_ROWS = 2000

#: Numbers of the rows that are laid out at a time.
BLOCK_NUMBERS = 1 << 22


class Arcs(NamedTuple):
    """The n transitions (s, a, s') with ``P(s'|s,a) > 0``, in order; row s·A + a owns those from first[row] on."""

    first: NDArray[np.intp]  # (S·A + 1,)
    s_next: NDArray[np.intp]  # (n,)
    probability: FloatArray  # (n,)
    reward: FloatArray  # (n,)
    discount: FloatArray  # (n,)

    @property
    def row(self) -> NDArray[np.intp]:
        """s·A + a of every transition, (n,)."""
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))


@dataclass(frozen=True)
class SparseEntries:
    """Numbers at some places of an (S, A, S) array, in rising order; the others are 0."""

    n_states: int
    n_actions: int
    place: NDArray[np.int64]  # (n,)
    value: FloatArray  # (n,)

    def where(self, k: Any) -> str:
        """Number k's place as a reader would write it: ``[s, a, s']``."""
        return checks.place(np.unravel_index(self.place[k], (self.n_states, self.n_actions, self.n_states)))

    def at(self, place: NDArray[np.int64]) -> FloatArray:
        """The numbers at other places."""
        if place is self.place or not len(self.place):
            return self.value if len(self.place) else np.zeros(len(place))
        k = np.minimum(np.searchsorted(self.place, place), len(self.place) - 1)
        return np.where(self.place[k] == place, self.value[k], 0.0)


def is_sparse(value: Any) -> bool:
    """Whether a kernel, or rewards or discounts, come in a sparse form."""
    return isinstance(value, SparseEntries) or sparse.issparse(value) or _one_per_action(value)


def _one_per_action(value: Any) -> bool:
    return isinstance(value, list | tuple) and any(sparse.issparse(matrix) for matrix in value)


def entries(name: str, value: Any) -> SparseEntries:
    """One sparse (S·A, S) matrix, or one (S, S) matrix for each action."""
    if isinstance(value, SparseEntries):
        return value
    if _one_per_action(value):
        A, S = len(value), value[0].shape[-1] if sparse.issparse(value[0]) else -1
        for a, matrix in enumerate(value):
            if not sparse.issparse(matrix) or matrix.shape != (S, S):
                shape = f"has shape {matrix.shape}" if sparse.issparse(matrix) else "is not sparse"
                size = "(S, S)" if S < 0 else f"({S}, {S})"
                raise ValueError(f"{name}[{a}] {shape}, expected a sparse matrix of shape {size} for each action")
        _check_size(name, S, A)
        parts = [triples(f"{name}[{a}]", matrix) for a, matrix in enumerate(value)]
        place = np.concatenate([(s * A + a) * S + s_next for a, (s, s_next, _) in enumerate(parts)])
        order = np.argsort(place, kind="stable")
        found = SparseEntries(S, A, place[order], np.concatenate([data for _, _, data in parts])[order])
    else:
        if len(value.shape) != 2 or value.shape[1] == 0 or value.shape[0] == 0 or value.shape[0] % value.shape[1]:
            raise ValueError(f"{name} has shape {value.shape}, expected (S·A, S), or (S, S) for each action in a list")
        _check_size(name, value.shape[1], value.shape[0] // value.shape[1])
        row, s_next, data = triples(name, value)
        found = SparseEntries(value.shape[1], value.shape[0] // value.shape[1], row * value.shape[1] + s_next, data)
    bad = np.flatnonzero(~np.isfinite(found.value))
    if len(bad):
        raise ValueError(f"{name}{found.where(bad[0])} is {found.value[bad[0]]}, expected a finite number")
    return found


def _check_size(name: str, S: int, A: int) -> None:
    """Catch a mistyped index before it asks for a terabyte."""
    checks.memory(name, f"for {S} states and {A} actions", 4 * S * A)
    if S * A * S >= 2**63:
        raise ValueError(f"{name} is for {S} states and {A} actions, more than 64-bit numbers can index")


def triples(name: str, matrix: Any) -> tuple[NDArray[np.int64], NDArray[np.int64], FloatArray]:
    """Row, column and value of a sparse matrix, sorted, each place once."""
    if matrix.dtype.kind not in "biuf":
        raise ValueError(f"{name} is not a matrix of numbers, but of {matrix.dtype}")
    try:
        if hasattr(matrix, "check_format"):  # before a conversion trusts its indices
            matrix.check_format(full_check=True)
        rows = sparse.csr_array(matrix, dtype=np.float64, copy=True)
        rows.check_format(full_check=True)
    except ValueError as error:
        raise ValueError(f"{name} is not a valid sparse matrix: {' '.join(str(error).split())}") from None
    rows.sum_duplicates()
    row = np.repeat(np.arange(rows.shape[0], dtype=np.int64), np.diff(rows.indptr))
    return row, rows.indices.astype(np.int64), rows.data


def dense_entries(value: FloatArray) -> SparseEntries:
    """The numbers of a dense (S, A, S) array that are not 0."""
    place = np.flatnonzero(value).astype(np.int64)
    return SparseEntries(value.shape[0], value.shape[1], place, value.reshape(-1)[place])


def gathered(columns: dict[str, ArrayLike], n_states: int | None, n_actions: int | None) -> list[SparseEntries]:
    """P, r and γ of the transitions in the columns s, a, s_next, probability, reward and discount.

    Where several have the same (s, a, s'), probabilities are summed, and rewards and discounts averaged.
    """
    s, a, s_next = (_indices(name, columns[name]) for name in ("s", "a", "s_next"))
    n = len(s)
    S = 1 + max(int(s.max()), int(s_next.max())) if n_states is None else checks.integer("n_states", n_states, least=1)
    A = 1 + int(a.max()) if n_actions is None else checks.integer("n_actions", n_actions, least=1)
    for name, index, most in (("s", s, S), ("a", a, A), ("s_next", s_next, S)):
        if len(index) != n:
            raise ValueError(f"{name} has shape {index.shape}, expected ({n},), as s has")
        bad = np.flatnonzero((index < 0) | (index >= most))
        if len(bad):
            raise ValueError(f"{name}[{bad[0]}] is {index[bad[0]]}, expected at least 0 and below {most}")
    p, r, gamma = (_column(name, columns[name], n) for name in ("probability", "reward", "discount"))
    bad = np.flatnonzero(p < 0)
    if len(bad):
        raise ValueError(f"probability[{bad[0]}] is {p[bad[0]]}, a negative probability")
    bad = np.flatnonzero((gamma < 0) | (gamma >= 1))
    if len(bad):
        raise ValueError(f"discount[{bad[0]}] is {gamma[bad[0]]}, expected at least 0 and below 1")
    _check_size("n_states", S, A)
    used = np.flatnonzero(p)
    place = (s[used] * A + a[used]) * S + s_next[used]
    order = np.argsort(place, kind="stable")
    used = used[order]
    return [SparseEntries(S, A, *column) for column in _merged(place[order], p[used], r[used], gamma[used])]


def _merged(place: NDArray[np.int64], p: FloatArray, *others: FloatArray) -> list[tuple[NDArray[np.int64], FloatArray]]:
    """Each place once: the sums of p, and the means of the others with weights p."""
    begin = np.flatnonzero(np.diff(place, prepend=-1))
    if len(begin) == len(place):
        return [(place, column) for column in (p, *others)]
    kept = place[begin]
    total = np.add.reduceat(p, begin)
    alone = np.diff(begin, append=len(place)) == 1  # as it was given, not rounded
    means = [np.where(alone, x[begin], np.add.reduceat(p * x, begin) / total) for x in others]
    return [(kept, column) for column in (total, *means)]


def _indices(name: str, value: ArrayLike) -> NDArray[np.int64]:
    out = checks.plain_array(name, value)
    if out.ndim != 1 or len(out) == 0 or out.dtype.kind not in "iu":
        raise ValueError(f"{name} has shape {out.shape} and dtype {out.dtype}, expected one axis of whole numbers")
    return out.astype(np.int64)


def _column(name: str, value: ArrayLike, n: int) -> FloatArray:
    """One number for each transition, or one for all."""
    if checks.plain_array(name, value).ndim == 0:
        return np.full(n, checks.number(name, value))
    return checks.array(name, value, (n,))


# --- Kernels --------------------------------------------------------------------------------------------------------


def check_kernel(P: SparseEntries, terminal: NDArray[np.bool_]) -> None:
    """Every row of a state that is not terminal holds probabilities that sum to 1."""
    S, A = P.n_states, P.n_actions
    bad = np.flatnonzero((P.value < 0) & ~terminal[P.place // (S * A)])
    if len(bad):
        raise ValueError(f"transition{P.where(bad[0])} is {P.value[bad[0]]}, a negative probability")
    total = np.bincount(P.place // S, weights=P.value, minlength=S * A).reshape(S, A)
    wrong = np.argwhere((np.abs(total - 1) > checks.ROW_TOLERANCE) & ~terminal[:, None])
    if len(wrong):
        s, a = wrong[0]
        if not total[s].any():
            raise ValueError(
                f"transition[{s}]: no action leaves state {s}, expected probabilities that sum to 1 for every action, "
                f"or terminal[{s}] = True"
            )
        raise ValueError(f"transition[{s}, {a}] sums to {total[s, a]:.12g}, expected 1")


def normalised(P: SparseEntries, terminal: NDArray[np.bool_]) -> SparseEntries:
    """The transitions of states that are not terminal, with rows that sum to 1."""
    S, A = P.n_states, P.n_actions
    keep = (P.value > 0) & ~terminal[P.place // (S * A)]
    place, value = (P.place, P.value) if keep.all() else (P.place[keep], P.value[keep])
    return SparseEntries(S, A, place, value / row_sums(place, value, S, S * A)[place // S])


def row_sums(place: NDArray[np.int64], value: FloatArray, S: int, n_rows: int) -> FloatArray:
    """The sum of every row of an (n_rows, S) array with such numbers at such places, (n_rows,)."""
    if S > WHOLE_ROWS:
        return np.asarray(np.bincount(place // S, weights=value, minlength=n_rows), dtype=np.float64)
    out = np.empty(n_rows)
    size = max(1, BLOCK_NUMBERS // S)
    for first in range(0, n_rows, size):
        last = min(first + size, n_rows)
        inside = slice(*np.searchsorted(place, [first * S, last * S]))
        block = np.zeros((last - first, S))
        block.reshape(-1)[place[inside] - first * S] = value[inside]
        out[first:last] = block.sum(axis=-1)
    return out


class Given(NamedTuple):
    """Rewards or discounts: those of the kernel's transitions, and what is known about all other places."""

    of_arcs: FloatArray  # (n,)
    dense: FloatArray | None  # (S, A, S), where that was given
    elsewhere: FloatArray  # (S, A, 1) or (1, 1, 1): at places without a transition


def given(name: str, value: Any, P: SparseEntries) -> Given:
    """A number, an (S, A) array, an (S, A, S) array or a sparse form."""
    S, A = P.n_states, P.n_actions
    if is_sparse(value):
        numbers = entries(name, value)
        if (numbers.n_states, numbers.n_actions) != (S, A):
            raise ValueError(
                f"{name} has {numbers.n_states} states and {numbers.n_actions} actions, expected {S} and {A}"
            )
        return Given(numbers.at(P.place), None, np.zeros((1, 1, 1)))
    ndim = checks.plain_array(name, value).ndim
    if ndim == 0:
        number = np.full((1, 1, 1), checks.number(name, value))
        return Given(np.broadcast_to(number[0, 0], len(P.place)), None, number)
    if ndim == 2:
        rows = checks.array(name, value, (S, A))
        return Given(rows.reshape(-1)[P.place // S], None, rows[:, :, None])
    dense = checks.array(name, value, (S, A, S))
    return Given(dense.reshape(-1)[P.place], dense, np.zeros((1, 1, 1)))


def rows_by_length(first: NDArray[Any]) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """For each length among the rows first[k] … first[k + 1] − 1: its rows k, (R,), and their indices, (R, length)."""
    lengths = np.diff(first)
    for n in np.unique(lengths[lengths > 0]):
        yield np.flatnonzero(lengths == n), first[:-1][lengths == n, None] + np.arange(n)
