"""A problem as the compiled functions read it: one row for every transition that can happen."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gqlab.engine.random import alias_table, draw, word
from gqlab.operators import FixedPolicy
from gqlab.problem import Problem
from gqlab.rules import Samples, rule


class Chain(NamedTuple):
    """The behaviour policy's trajectory: alias tables over the transitions of each state, and over first states."""

    first: Any  # (S + 1,)  unsigned: state s owns the transitions first[s] … first[s+1] − 1
    threshold: Any  # (n,)
    alias: Any  # (n,)
    terminal: Any  # (S,)
    start: Any  # (n_start,)  unsigned: the states that a trajectory may begin in
    start_threshold: Any  # (n_start,)
    start_alias: Any  # (n_start,)


@rule
def start_state(chain, key, t):
    """The state in which the trajectory begins, or begins anew, at time t."""
    k = draw(chain.start_threshold, chain.start_alias, np.uint32(0), len(chain.start), word(key, t))
    return chain.start[k]


@rule
def next_sample(samples, chain, s, t, trajectory_key, restart_key):
    """Sample t of the trajectory, drawn in state s, and the state of sample t + 1."""
    first = chain.first[s]
    x = draw(chain.threshold, chain.alias, first, chain.first[s + 1] - first, word(trajectory_key, t))
    s = samples.s_next[x]
    if chain.terminal[s]:
        s = start_state(chain, restart_key, t + 1)
    return x, s


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
    )


def problem_tables(problem: Problem) -> tuple[Samples, Chain, NDArray[np.intp]]:
    """Every transition that the behaviour policy can make, the chain over them, and their (s, a, s') as rows."""
    mdp = problem.mdp
    joint = problem.behavior[:, :, None] * mdp.transition  # P(a, s' | s); terminal states have no row
    s, a, s_next = np.nonzero(joint)
    S = mdp.n_states
    if len(s) >= 2**32 or problem.features.size >= 2**32:
        raise ValueError(f"the problem is too large: {len(s)} transitions, {problem.features.size} feature values")
    first = np.searchsorted(s, np.arange(S + 1))
    threshold, alias = np.empty(len(s), dtype=np.uint64), np.empty(len(s), dtype=np.uint32)
    for k in range(S):
        mine = slice(first[k], first[k + 1])
        threshold[mine], alias[mine] = alias_table(joint[s[mine], a[mine], s_next[mine]])
        alias[mine] += np.uint32(first[k])
    begin = np.flatnonzero(mdp.start)
    start_threshold, start_alias = alias_table(mdp.start[begin])
    chain = Chain(
        first=first.astype(np.uint32), threshold=threshold, alias=alias, terminal=mdp.terminal.copy(),
        start=begin.astype(np.uint32), start_threshold=start_threshold, start_alias=start_alias,
    )  # fmt: skip
    return sample_table(problem, s, a, s_next), chain, np.stack([s, a, s_next], axis=1)
