"""A problem as the compiled functions read it: one row for every transition that can happen."""

from __future__ import annotations

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gqlab.checks import FloatArray
from gqlab.engine.random import alias_table, draw, word
from gqlab.operators import FixedPolicy
from gqlab.problem import Problem
from gqlab.rules import Samples, rule


class Chain(NamedTuple):
    """The behaviour policies' trajectories: alias tables over the transitions of each state, and over first states.

    Several problems can share the tables: their states follow one another.
    """

    first: Any  # (S + 1,)  unsigned: state s owns the transitions first[s] … first[s+1] − 1
    threshold: Any  # (n,)
    alias: Any  # (n,)
    terminal: Any  # (S,)
    start: Any  # (n_start,)  unsigned: the states that a trajectory may begin in
    start_threshold: Any  # (n_start,)
    start_alias: Any  # (n_start,)
    first_state: Any  # (n_problems + 1,)  problem p owns the states first_state[p] … first_state[p+1] − 1
    first_start: Any  # (n_problems + 1,)  unsigned: and these entries of ``start``
    operator: Any  # (n_problems,)
    parameter: Any  # (n_problems,)


@rule
def start_state(chain, problem, key, t):
    """The state in which a trajectory begins, or begins anew, at time t."""
    first = chain.first_start[problem]
    n = chain.first_start[problem + 1] - first
    return chain.start[draw(chain.start_threshold, chain.start_alias, first, n, word(key, t))]


@rule
def next_sample(samples, chain, problem, s, t, trajectory_key, restart_key):
    """Sample t of the trajectory, drawn in state s, and the state of sample t + 1."""
    first = chain.first[s]
    x = draw(chain.threshold, chain.alias, first, chain.first[s + 1] - first, word(trajectory_key, t))
    s = samples.s_next[x]
    if chain.terminal[s]:
        s = start_state(chain, problem, restart_key, t + 1)
    return x, s


@rule
def of_problem(samples, chain, problem):
    """``samples`` as one problem sees them."""
    return Samples(
        samples.phi, samples.pair, samples.s_next, samples.reward, samples.gamma,
        chain.operator[problem], chain.parameter[problem], samples.target, chain.first_state[problem],
    )  # fmt: skip


def sample_table(problem: Problem, s: NDArray[Any], a: NDArray[Any], s_next: NDArray[Any]) -> Samples:
    """The rows of given samples (s, a, s')."""
    A = problem.mdp.n_actions
    target = problem.target.table if isinstance(problem.target, FixedPolicy) else np.zeros((1, 1))
    return Samples(
        phi=problem.features.flatten(),
        pair=(s * A + a).astype(np.uint32),
        s_next=s_next.astype(np.uint32),
        reward=problem.mdp.reward[s, a, s_next],
        gamma=problem.mdp.discount[s, a, s_next],
        operator=problem.target.code,
        parameter=problem.target.parameter,
        target=target.flatten(),
        first_state=0,
    )


def alias_rows(weights: FloatArray, first: NDArray[np.intp]) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    """One alias table for each row: the weights first[k] … first[k+1] − 1."""
    threshold, alias = np.empty(len(weights), dtype=np.uint64), np.empty(len(weights), dtype=np.uint32)
    for k in range(len(first) - 1):
        mine = slice(first[k], first[k + 1])
        threshold[mine], alias[mine] = alias_table(weights[mine])
        alias[mine] += np.uint32(first[k])
    return threshold, alias


_known: WeakKeyDictionary[Problem, tuple[Samples, Chain, NDArray[np.intp]]] = WeakKeyDictionary()


def problem_tables(problem: Problem) -> tuple[Samples, Chain, NDArray[np.intp]]:
    """:func:`make_tables`, once for each problem."""
    if problem not in _known:
        _known[problem] = make_tables(problem)
    return _known[problem]


def make_tables(problem: Problem) -> tuple[Samples, Chain, NDArray[np.intp]]:
    """Every transition that the behaviour policy can make, the chain over them, and their (s, a, s') as rows."""
    mdp = problem.mdp
    joint = problem.behavior[:, :, None] * mdp.transition  # P(a, s' | s); terminal states have no row
    s, a, s_next = np.nonzero(joint)
    first = np.searchsorted(s, np.arange(mdp.n_states + 1))
    threshold, alias = alias_rows(joint[s, a, s_next], first)
    start = np.flatnonzero(mdp.start)
    first_start = np.array([0, len(start)])
    start_threshold, start_alias = alias_rows(mdp.start[start], first_start)
    chain = Chain(
        first=first.astype(np.uint32),
        threshold=threshold,
        alias=alias,
        terminal=mdp.terminal.copy(),
        start=start.astype(np.uint32),
        start_threshold=start_threshold,
        start_alias=start_alias,
        first_state=np.array([0, mdp.n_states]),
        first_start=first_start.astype(np.uint32),
        operator=np.array([problem.target.code]),
        parameter=np.array([problem.target.parameter]),
    )
    return sample_table(problem, s, a, s_next), chain, np.stack([s, a, s_next], axis=1)


def join_tables(problems: list[Problem], dtype: Any = np.float64) -> tuple[Samples, Chain]:
    """The tables of several problems behind one another, with numbers of ``dtype``."""
    samples, chains = zip(*(problem_tables(problem)[:2] for problem in problems), strict=True)
    A = problems[0].mdp.n_actions
    n = offsets([len(x.pair) for x in samples])
    S = offsets([len(c.terminal) for c in chains])
    starts = offsets([len(c.start) for c in chains])
    if max(n[-1], S[-1] * A * problems[0].dim) >= 2**32:
        raise ValueError(f"too large: {n[-1]} transitions and {S[-1] * A * problems[0].dim} feature values in all")
    fixed = any(isinstance(problem.target, FixedPolicy) for problem in problems)

    def target(x: Samples, states: int) -> FloatArray:
        return np.resize(x.target, states * A if fixed else 1)

    def joined(parts: Any, shift: NDArray[np.intp] | None = None, dtype: Any = np.uint32) -> NDArray[Any]:
        moved = parts if shift is None else [part + k for part, k in zip(parts, shift, strict=False)]
        return np.concatenate(list(moved)).astype(dtype)

    return Samples(
        phi=joined((x.phi for x in samples), dtype=dtype),
        pair=joined((x.pair for x in samples), S * A),
        s_next=joined((x.s_next for x in samples), S),
        reward=joined((x.reward for x in samples), dtype=dtype),
        gamma=joined((x.gamma for x in samples), dtype=dtype),
        operator=0,  # this, the parameter and the first state are each problem's own: ``of_problem``
        parameter=dtype(0),
        target=joined((target(x, k) for x, k in zip(samples, np.diff(S), strict=True)), dtype=dtype),
        first_state=0,
    ), Chain(
        first=np.append(joined((c.first[:-1] for c in chains), n), np.uint32(n[-1])),
        threshold=joined((c.threshold for c in chains), dtype=np.uint64),
        alias=joined((c.alias for c in chains), n),
        terminal=joined((c.terminal for c in chains), dtype=bool),
        start=joined((c.start for c in chains), S),
        start_threshold=joined((c.start_threshold for c in chains), dtype=np.uint64),
        start_alias=joined((c.start_alias for c in chains), starts),
        first_state=S,
        first_start=starts.astype(np.uint32),
        operator=joined((c.operator for c in chains), dtype=np.int64),
        parameter=joined((c.parameter for c in chains), dtype=dtype),
    )  # fmt: skip


def offsets(counts: ArrayLike) -> NDArray[np.intp]:
    """Where each of the parts begins, and the end."""
    return np.concatenate([[0], np.cumsum(counts, dtype=np.intp)])
