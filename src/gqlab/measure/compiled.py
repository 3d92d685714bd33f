"""J, ‖∇J‖² and walks, compiled, for one θ at a time: what a watch sees.

The formulas are those of :mod:`gqlab.exact`, on its matrices C, b = E[rφ] and K = E[γ φ 1{s'}ᵀ], all in double
precision whatever the run's; V̄, w and the policy come from the operator's compiled part.

    m = E[δφ] = b + K V̄(θ) − Cθ     ω* = C⁻¹m     J = ½ mᵀω*     ∇J = −m + Σ_{s'} (Kᵀω*)_{s'} φ̂_{s'}(θ)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gqlab.mdp.arcs import rows_by_length
from gqlab.operators.switch import join_operators
from gqlab.problems.problem import Problem
from gqlab.rules.dispatch import rule
from gqlab.rules.gradient import act, add, dot, improve
from gqlab.samples.random import unit, word
from gqlab.samples.tables import join_features, offsets, per_problem
from gqlab.support.checks import FloatArray


class Walks(NamedTuple):
    """What a walk reads. Row s·A + a owns the successors first[row] … first[row + 1] − 1; so do first states."""

    first: Any  # (n_rows + 1,)
    next_state: Any  # (n,)  within its problem
    cumulative: Any  # (n,)  cumulative probabilities within each row
    reward: Any  # (n,)
    terminal: Any  # (S,)
    start_state: Any  # (n_start,)
    start_cumulative: Any  # (n_start,)
    first_state: int
    first_start: int
    n_start: int


class ExactTables(NamedTuple):
    """The matrices of the exact quantities of one or more problems."""

    features: Any
    operator: Any
    walks: Any
    C: Any  # (n_problems · d²,)
    C_inverse: Any  # (n_problems · d²,)
    b: Any  # (n_problems · d,)
    K: Any  # (S · d,)  the column of each next state
    leads_on: Any  # (S,)  whether it is nonzero: nothing is bootstrapped from a terminal state
    problem: int
    first_state: int
    n_states: int


@rule
def exact_terms(exact, work, with_gradient, d, A):
    """J(θ), and ‖∇J(θ)‖² (0 if not asked for), at ``work.theta``."""
    m, omega, slope = work.mean_delta_phi, work.omega, work.slope
    first_row = exact.first_state * A
    matrix = exact.problem * d * d
    for i in range(d):
        m[i] = exact.b[exact.problem * d + i]
        for j in range(d):
            m[i] -= exact.C[matrix + i * d + j] * work.theta[j]
    for s in range(exact.n_states):
        if not exact.leads_on[exact.first_state + s]:
            continue
        row = first_row + s * A
        for a in range(A):
            work.q[a] = dot(exact.features, row + a, work.theta, d)
        V = improve(exact.operator, row, work.q, work.w, A)
        for a in range(A):
            work.weights[s * A + a] = work.w[a]
        for i in range(d):
            m[i] += exact.K[(exact.first_state + s) * d + i] * V
    J = 0.0
    for i in range(d):
        omega[i] = 0.0
        for j in range(d):
            omega[i] += exact.C_inverse[matrix + i * d + j] * m[j]
        J += 0.5 * m[i] * omega[i]
        slope[i] = -m[i]
    norm_squared = 0.0
    if with_gradient:
        for s in range(exact.n_states):
            if not exact.leads_on[exact.first_state + s]:
                continue
            K_omega = 0.0
            for i in range(d):
                K_omega += exact.K[(exact.first_state + s) * d + i] * omega[i]
            for a in range(A):
                row = first_row + s * A + a
                add(exact.features, row, K_omega * work.weights[s * A + a], slope, d)
        for i in range(d):
            norm_squared += slope[i] * slope[i]
    return J, norm_squared


@rule
def cumulate_policy(exact, work, d, A):
    """The cumulative sums of π_θ(a|s) over a, at ``work.theta``, into ``work.policy``."""
    for s in range(exact.n_states):
        row = (exact.first_state + s) * A
        for a in range(A):
            work.q[a] = dot(exact.features, row + a, work.theta, d)
        act(exact.operator, row, work.q, work.w, A)
        total = 0.0
        for a in range(A):
            total += work.w[a]
            work.policy[s * A + a] = total
        for a in range(A):
            work.policy[s * A + a] /= total


@rule
def pick(cumulative, first, last, u):
    """The first entry from ``first`` to ``last − 1`` whose cumulative probability exceeds u."""
    k = first
    while k < last - 1 and cumulative[k] <= u:
        k += 1
    return k


@rule
def first_of_walk(walks, random_word):
    """A first state."""
    first = walks.first_start
    return walks.start_state[pick(walks.start_cumulative, first, first + walks.n_start, unit(random_word))]


@rule
def walk(walks, policy, walk_key, n_steps, A):
    """The mean reward of ``n_steps`` steps under a policy, given as cumulative sums over the actions, (S · A,).

    Step t takes words 3t + 1 (the action), 3t + 2 (the next state) and 3t + 3 (a restart) of the key; word 0 is the
    first state.
    """
    total, _ = stretch(walks, policy, walk_key, first_of_walk(walks, word(walk_key, 0)), 0, n_steps, A)
    return total / n_steps


@rule
def stretch(walks, policy, walk_key, s, first, last, A):
    """The rewards of the steps ``first`` … ``last − 1`` of a walk that stands in s, and where it stands then."""
    total = 0.0
    for t in range(first, last):
        a = pick(policy, s * A, s * A + A, unit(word(walk_key, 3 * t + 1))) - s * A
        row = (walks.first_state + s) * A + a
        k = pick(walks.cumulative, walks.first[row], walks.first[row + 1], unit(word(walk_key, 3 * t + 2)))
        total += walks.reward[k]
        s = walks.next_state[k]
        if walks.terminal[walks.first_state + s]:
            s = first_of_walk(walks, word(walk_key, 3 * t + 3))
    return total, s


# --- The tables -----------------------------------------------------------------------------------------------------


def exact_tables(problems: Sequence[Problem], kinds: Sequence[type]) -> ExactTables:
    """The tables of several problems, concatenated; ``kinds`` as in :func:`gqlab.samples.tables.join_tables`."""
    A = problems[0].mdp.n_actions
    n_states = np.array([problem.mdp.n_states for problem in problems])
    moments = [problem.exact.moments for problem in problems]
    first_state = offsets(n_states)[:-1]
    return ExactTables(
        features=join_features(problems, np.float64),
        operator=join_operators([problem.target for problem in problems], list(n_states * A), kinds, np.float64),
        walks=walk_tables(problems),
        C=np.concatenate([C.ravel() for C, _, _ in moments]),
        C_inverse=np.concatenate([np.linalg.inv(C).ravel() for C, _, _ in moments]),
        b=np.concatenate([b for _, b, _ in moments]),
        K=np.concatenate([K.T.ravel() for _, _, K in moments]),
        leads_on=np.concatenate([(K != 0).any(axis=0) for _, _, K in moments]),
        problem=per_problem(np.arange(len(problems))),
        first_state=per_problem(first_state),
        n_states=per_problem(n_states),
    )


def walk_tables(problems: Sequence[Problem]) -> Walks:
    """What walks in several problems read."""
    mdps = [problem.mdp for problem in problems]
    arcs = [mdp.arcs for mdp in mdps]
    starts = [np.flatnonzero(mdp.start) for mdp in mdps]
    first_start = offsets([len(start) for start in starts])
    return Walks(
        first=offsets(np.concatenate([np.diff(x.first) for x in arcs])),
        next_state=np.concatenate([x.s_next for x in arcs]),
        cumulative=np.concatenate([cumulated_rows(x.probability, x.first) for x in arcs]),
        reward=np.concatenate([x.reward for x in arcs]),
        terminal=np.concatenate([mdp.terminal for mdp in mdps]),
        start_state=np.concatenate(starts),
        start_cumulative=np.concatenate([cumulated(mdp.start)[k] for mdp, k in zip(mdps, starts, strict=True)]),
        first_state=per_problem(offsets([mdp.n_states for mdp in mdps])[:-1]),
        first_start=per_problem(first_start[:-1]),
        n_start=per_problem(np.diff(first_start)),
    )


def cumulated(p: FloatArray) -> FloatArray:
    """Cumulative sums of distributions along their last axis, exactly 1 at its end."""
    total = np.cumsum(p, axis=-1)
    return np.ascontiguousarray(total / np.where(total[..., -1:] > 0, total[..., -1:], 1.0))


def cumulated_rows(p: FloatArray, first: NDArray[np.intp]) -> FloatArray:
    """The same for concatenated distributions: row k is first[k] … first[k + 1] − 1."""
    out = np.empty(len(p))
    for _, rows in rows_by_length(first):
        out[rows] = cumulated(p[rows])
    return out
