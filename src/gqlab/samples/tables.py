"""A finite problem as the compiled functions read it: one sample for every transition that can happen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gqlab.mdp.arcs import rows_by_length
from gqlab.operators.switch import join_operators
from gqlab.problems.problem import Problem
from gqlab.rules.gradient import Dense, Samples
from gqlab.rules.rows import SparseRows
from gqlab.samples.random import alias_table, alias_tables
from gqlab.samples.streams import Chain
from gqlab.support.checks import FloatArray

#: Rows, transitions and feature values are counted in 32 bits.
MOST_ENTRIES = 2**32


class Tables(NamedTuple):
    """The samples of one or more problems, the stream that draws them, and the exact tables for a watch."""

    samples: Any
    stream: Any
    exact: Any


class NoTables(NamedTuple):
    """Stands in for the exact tables where nothing is watched."""

    nothing: int


@dataclass(frozen=True)
class ProblemTables:
    """One problem's own tables, in double precision; ``transitions`` are the (s, a, s') of the samples, (n, 3)."""

    samples: Samples
    chain: Chain
    transitions: NDArray[np.intp]


_known: WeakKeyDictionary[Problem, ProblemTables] = WeakKeyDictionary()


def problem_tables(problem: Problem) -> ProblemTables:
    """The tables of a problem, made once for each."""
    if problem not in _known:
        _known[problem] = _make_tables(problem)
    return _known[problem]


def sample_table(
    problem: Problem, s: NDArray[Any], a: NDArray[Any], s_next: NDArray[Any], kinds: Sequence[type]
) -> Samples:
    """Given samples (s, a, s') of a problem; ``kinds`` as for :func:`join_tables`."""
    s, a, s_next = (np.asarray(column, dtype=np.intp) for column in (s, a, s_next))
    _, reward, discount = problem.mdp.at(s, a, s_next)
    table = _samples(problem, s * problem.mdp.n_actions + a, s_next, reward, discount)
    return table._replace(operator=join_operators([problem.target], [problem.behavior.size], kinds, np.float64))


def _samples(problem: Problem, row: NDArray[Any], s_next: NDArray[Any], reward: Any, discount: Any) -> Samples:
    A = problem.mdp.n_actions
    return Samples(
        features=_features(problem),
        operator=join_operators([problem.target], [problem.mdp.n_states * A], [problem.target.compiled], np.float64),
        row=row.astype(np.uint32),
        next_row=(s_next * A).astype(np.uint32),
        reward=np.array(reward),
        discount=np.array(discount),
        behavior=problem.behavior.flatten(),
        first_row=per_problem([0]),
        first_sample=per_problem([0]),
    )


def _features(problem: Problem) -> Dense | SparseRows:
    """The features of a problem, as the part that reads them."""
    phi = problem.rows
    if not problem.has_sparse_features:
        return Dense(phi.flatten())
    return SparseRows(phi.indptr.astype(np.uint32), phi.indices.astype(np.uint32), phi.data.copy())


def join_features(problems: Sequence[Problem], dtype: Any) -> Dense | SparseRows:
    """The features of several problems, concatenated, all dense or all sparse."""
    parts: list[Any] = [problem_tables(problem).samples.features for problem in problems]
    phi = _joined((part.phi for part in parts), dtype)
    if len(phi) >= MOST_ENTRIES:
        raise ValueError(f"too large: {len(phi)} feature values in all")
    if not problems[0].has_sparse_features:
        return Dense(phi)
    shift = offsets([len(part.phi) for part in parts])
    first = np.append(_joined((part.first[:-1] for part in parts), shift=shift), np.uint32(shift[-1]))
    return SparseRows(first, _joined(part.places for part in parts), phi)


def alias_rows(weights: FloatArray, first: NDArray[np.intp]) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    """One alias table for each row: the weights first[k] … first[k+1] − 1."""
    threshold, alias = np.empty(len(weights), dtype=np.uint64), np.empty(len(weights), dtype=np.uint32)
    for _, rows in rows_by_length(first):
        if len(rows) >= rows.shape[1]:
            threshold[rows], columns = alias_tables(weights[rows])
            alias[rows] = columns + rows[:, :1].astype(np.uint32)
        else:
            for row in rows:  # few and long
                threshold[row], columns = alias_table(weights[row])
                alias[row] = columns + np.uint32(row[0])
    return threshold, alias


def _make_tables(problem: Problem) -> ProblemTables:
    """Every transition that the behaviour policy can make, and the chain over them."""
    mdp, arcs = problem.mdp, problem.mdp.arcs
    joint = problem.behavior.reshape(-1)[arcs.row] * arcs.probability  # P(a, s' | s); terminal states have no row
    taken = np.flatnonzero(joint)
    row, s_next = arcs.row[taken], arcs.s_next[taken]
    s, a = np.divmod(row, mdp.n_actions)
    first = np.searchsorted(s, np.arange(mdp.n_states + 1))
    threshold, alias = alias_rows(joint[taken], first)
    start = np.flatnonzero(mdp.start)
    start_threshold, start_alias = alias_rows(mdp.start[start], np.array([0, len(start)]))
    chain = Chain(
        first=first.astype(np.uint32),
        threshold=threshold,
        alias=alias,
        next_state=s_next.astype(np.uint32),
        terminal=mdp.terminal.copy(),
        start_state=start.astype(np.uint32),
        start_threshold=start_threshold,
        start_alias=start_alias,
        first_state=per_problem([0]),
        n_states=per_problem([mdp.n_states]),
        first_start=per_problem([0]),
        n_start=per_problem([len(start)]),
    )
    samples = _samples(problem, row, s_next, arcs.reward[taken], arcs.discount[taken])
    return ProblemTables(samples, chain, np.stack([s, a, s_next], axis=1))


def join_tables(problems: Sequence[Problem], kinds: Sequence[type], dtype: Any = np.float64) -> Tables:
    """The tables of several problems, concatenated, with numbers of ``dtype``.

    ``kinds`` are the operators' compiled parts: with several of them each problem's own is chosen by a switch.
    """
    tables = [problem_tables(problem) for problem in problems]
    samples, chains = [table.samples for table in tables], [table.chain for table in tables]
    A = problems[0].mdp.n_actions
    n = offsets([len(x.row) for x in samples])
    S = offsets([len(chain.terminal) for chain in chains])
    starts = offsets([len(chain.start_state) for chain in chains])
    if max(n[-1], S[-1] * A) >= MOST_ENTRIES:
        raise ValueError(f"too large: {n[-1]} transitions and {S[-1] * A} rows of features in all")
    return Tables(
        samples=Samples(
            features=join_features(problems, dtype),
            operator=join_operators([problem.target for problem in problems], np.diff(S) * A, kinds, dtype),
            row=_joined((x.row for x in samples), shift=S * A),
            next_row=_joined((x.next_row for x in samples), shift=S * A),
            reward=_joined((x.reward for x in samples), dtype),
            discount=_joined((x.discount for x in samples), dtype),
            behavior=_joined((x.behavior for x in samples), dtype),
            first_row=per_problem(S[:-1] * A),
            first_sample=per_problem(n[:-1]),
        ),
        stream=Chain(
            first=np.append(_joined((c.first[:-1] for c in chains), shift=n), np.uint32(n[-1])),
            threshold=_joined((c.threshold for c in chains), np.uint64),
            alias=_joined((c.alias for c in chains), shift=n),
            next_state=_joined(c.next_state for c in chains),
            terminal=_joined((c.terminal for c in chains), bool),
            start_state=_joined(c.start_state for c in chains),
            start_threshold=_joined((c.start_threshold for c in chains), np.uint64),
            start_alias=_joined((c.start_alias for c in chains), shift=starts),
            first_state=per_problem(S[:-1]),
            n_states=per_problem(np.diff(S)),
            first_start=per_problem(starts[:-1]),
            n_start=per_problem(np.diff(starts)),
        ),
        exact=NoTables(per_problem(np.zeros(len(problems)))),
    )


def _joined(
    parts: Iterable[NDArray[Any]], dtype: Any = np.uint32, shift: NDArray[np.intp] | None = None
) -> NDArray[Any]:
    """The parts, concatenated, each with its entry of ``shift`` added."""
    moved = parts if shift is None else (part + k for part, k in zip(parts, shift, strict=False))
    return np.concatenate(list(moved)).astype(dtype, copy=False)


def per_problem(values: ArrayLike) -> Any:
    """A parameter of a part: one whole number for each problem."""
    return np.array(values, dtype=np.int64)


def offsets(counts: ArrayLike) -> NDArray[np.intp]:
    """Where each of the parts begins, and the end."""
    return np.concatenate([[0], np.cumsum(counts, dtype=np.intp)])
