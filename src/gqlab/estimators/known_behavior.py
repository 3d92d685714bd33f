"""Least squares that know the behaviour policy: only the transitions of the states are estimated.

The counts of (s, a, s') give P̂(s'|s,a). With the exact π_b, the stationary distribution μ̂ of the chain π_b P̂ and the
weights μ̂(s) π_b(a|s) P̂(s'|s,a) in place of the counts, the objective has none of the noise of the actions and of how
often each state was met. The rest is as in :mod:`gqlab.estimators.least_squares`, and so are its counts until every
action of every state that was met has been tried: before that π_b P̂ is not known.

μ̂ comes from power iterations μ ← ½(μ + μ π_b P̂) that begin at the last μ̂, and at first at the frequencies of the
states. Any number of them gives an answer that is right in the limit: a chain that mixes slowly only gains less.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gqlab.estimators.epochs import moment_from
from gqlab.estimators.least_squares import LeastSquares, solve
from gqlab.estimators.needs import Need, Needs
from gqlab.rules.dispatch import routine, rule
from gqlab.rules.gradient import add
from gqlab.rules.memory import COUNT, DOUBLE, MOST, Array, Sizes, far
from gqlab.rules.point import move_to
from gqlab.samples.streams import draw, is_terminal

#: Power iterations for one solution, at most, and the change of μ̂, over all states, at which they end.
MOST_ROUNDS, SETTLED = 2000, 1e-14


class KnownBehavior(NamedTuple):
    """K counts for K transitions, S numbers and d; the work takes more, as of :class:`LeastSquares`."""

    first: int
    growth_units: int  # growth, in units of 2⁻³²
    count: Any  # (K,)  of each transition
    mu: Any  # (S,)  μ̂; 0 before the first
    theta_start: Any  # (d,)
    next: Any  # (1,)
    next_anew: Any  # (1,)
    weight: Any  # (K,)  first π_b P̂, then the weights, which add up to n
    mu_next: Any  # (S,)
    restart: Any  # (S,)  how often a trajectory began in a state
    n_state: Any  # (S,)
    n_pair: Any  # (S · A,)
    C: Any  # as of LeastSquares from here on
    b: Any
    K: Any
    state: Any
    row_of: Any
    n_met: Any
    C_inverse: Any
    jacobian: Any
    H: Any
    U: Any
    product: Any
    q: Any
    w_above: Any
    w_below: Any
    phi: Any
    phi_hat: Any
    m: Any
    omega: Any
    gradient: Any
    rotated: Any
    theta: Any
    tried: Any
    found: Any

    @staticmethod
    def needs() -> Needs:
        return frozenset({Need.NUMBERED, Need.STATES, Need.BEHAVIOR, Need.CPU})

    @staticmethod
    def memory(n: Sizes) -> dict[str, Array]:
        kept = ("theta_start", "next", "next_anew")
        shared = {name: part._replace(kept=name in kept) for name, part in LeastSquares.memory(n).items()}
        return {
            **shared,
            "count": far(n.samples, COUNT, kept=True, within=(0, MOST)),
            "mu": far(n.states, DOUBLE, kept=True),
            "weight": far(n.samples, DOUBLE),
            "mu_next": far(n.states, DOUBLE),
            "restart": far(n.states, COUNT, within=(0, MOST)),
            "n_state": far(n.states, COUNT, within=(0, MOST)),
            "n_pair": far(n.states * n.A, COUNT, within=(0, MOST)),
        }

    def begin(self, world, point, cursor, u, d, A):
        for i in range(d):
            self.theta_start[i] = point.theta[i]
        self.next[0] = self.first
        return cursor

    def step(self, world, point, cursor, u, rates, d, A):
        x, cursor = draw(world.stream, world.run, cursor, u)
        self.count[np.int64(x) - world.samples.first_sample] += 1
        if u + 1 < self.next[0]:
            return True, cursor
        n = np.float64(u + 1)
        self.next[0] = moment_from(self.first, self.growth_units, u + 2)
        weigh(self, world.samples, world.stream, n, A)
        gather(self, world.samples, world.stream, d, A)
        solve(self, world.samples, point.theta, n, np.float64(rates.radius), d, A)
        return move_to(point, self.theta, self.omega, rates, d), cursor


@rule
def n_transitions(stream):
    """Those of its own problem: sums must not depend on the others that share a call."""
    first = np.int64(stream.first_state)
    return np.int64(stream.first[first + stream.n_states]) - np.int64(stream.first[first])


@routine
def weigh(ls, samples, stream, n, A):
    """The weights of all transitions, which add up to n: their counts as long as π_b P̂ is not known."""
    for k in range(n_transitions(stream)):
        ls.weight[k] = np.float64(ls.count[k])
    tally(ls, samples, stream, A)
    if not is_closed(ls, samples, stream, A):
        return
    n_restarts = 0.0
    for s in range(stream.n_states):
        n_restarts += ls.restart[s]
    for k in range(n_transitions(stream)):
        if ls.count[k] > 0:
            pair = np.int64(samples.row[samples.first_sample + k]) - samples.first_row
            ls.weight[k] *= samples.behavior[samples.first_row + pair] / ls.n_pair[pair]
    settle(ls, samples, stream, n, n_restarts, A)
    for k in range(n_transitions(stream)):
        if ls.count[k] > 0:
            s = (np.int64(samples.row[samples.first_sample + k]) - samples.first_row) // A
            ls.weight[k] *= n * ls.mu[s]


@routine
def tally(ls, samples, stream, A):
    """How often each state, and each of its actions, was met, and how often a trajectory began there."""
    for s in range(stream.n_states):
        ls.n_state[s] = ls.restart[s] = 0
    for pair in range(stream.n_states * A):
        ls.n_pair[pair] = 0
    for k in range(n_transitions(stream)):
        if ls.count[k] > 0:
            x = samples.first_sample + k
            pair = np.int64(samples.row[x]) - samples.first_row
            s_next = (np.int64(samples.next_row[x]) - samples.first_row) // A
            ls.n_pair[pair] += ls.count[k]
            ls.n_state[pair // A] += ls.count[k]
            ls.restart[s_next] -= ls.count[k]  # it was entered so often
    for s in range(stream.n_states):
        ls.restart[s] = max(ls.n_state[s] + ls.restart[s], 0)


@routine
def is_closed(ls, samples, stream, A):
    """Whether every action of every state that was met has been tried, so that π_b P̂ is a chain on these states."""
    for pair in range(stream.n_states * A):
        if ls.n_state[pair // A] > 0 and samples.behavior[samples.first_row + pair] > 0.0 and ls.n_pair[pair] == 0:
            return False
    begun, ended = False, False
    for s in range(stream.n_states):
        begun = begun or ls.restart[s] > 0
    for k in range(n_transitions(stream)):
        if ls.count[k] > 0:
            s_next = (np.int64(samples.next_row[samples.first_sample + k]) - samples.first_row) // A
            if is_terminal(stream, s_next):
                ended = True
            elif ls.n_state[s_next] == 0:
                return False
    return begun or not ended


@routine
def settle(ls, samples, stream, n, n_restarts, A):
    """Power iterations for μ̂, with π_b P̂ in ``weight``."""
    total = 0.0
    for s in range(stream.n_states):
        total += ls.mu[s]
    if total == 0.0:
        for s in range(stream.n_states):
            ls.mu[s] = ls.n_state[s] / n
    for _ in range(MOST_ROUNDS):
        ended = 0.0
        for s in range(stream.n_states):
            ls.mu_next[s] = 0.0
        for k in range(n_transitions(stream)):
            if ls.count[k] > 0:
                x = samples.first_sample + k
                s = (np.int64(samples.row[x]) - samples.first_row) // A
                s_next = (np.int64(samples.next_row[x]) - samples.first_row) // A
                if is_terminal(stream, s_next):
                    ended += ls.mu[s] * ls.weight[k]
                else:
                    ls.mu_next[s_next] += ls.mu[s] * ls.weight[k]
        change, total = 0.0, 0.0
        for s in range(stream.n_states):
            if ended > 0.0:
                ls.mu_next[s] += ended * ls.restart[s] / n_restarts
            change += abs(ls.mu_next[s] - ls.mu[s])
            ls.mu[s] = 0.5 * (ls.mu[s] + ls.mu_next[s])
            total += ls.mu[s]
        for s in range(stream.n_states):
            ls.mu[s] /= total
        if change <= SETTLED:
            break


@routine
def gather(ls, samples, stream, d, A):
    """C, b and K from the weights."""
    for i in range(d):
        ls.b[i] = 0.0
        for j in range(d):
            ls.C[i * d + j] = 0.0
    ls.n_met[0] = 0
    for s in range(stream.n_states):
        ls.row_of[s] = -1
    for k in range(n_transitions(stream)):
        if ls.count[k] == 0:
            continue
        x, weight = samples.first_sample + k, ls.weight[k]
        s = (np.int64(samples.next_row[x]) - samples.first_row) // A
        row = ls.row_of[s]
        if row < 0:
            row = ls.n_met[0]
            ls.row_of[s], ls.state[row] = row, s
            ls.n_met[0] = row + 1
            for i in range(d):
                ls.K[row * d + i] = 0.0
        for i in range(d):
            ls.phi[i] = 0.0
        add(samples.features, samples.row[x], 1.0, ls.phi, d)
        for i in range(d):
            ls.b[i] += weight * samples.reward[x] * ls.phi[i]
            ls.K[row * d + i] += weight * samples.discount[x] * ls.phi[i]
            for j in range(d):
                ls.C[i * d + j] += weight * ls.phi[i] * ls.phi[j]
