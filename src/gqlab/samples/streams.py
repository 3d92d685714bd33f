"""Streams: where the samples of a run come from.

A stream is a part with two methods. ``start`` gives the cursor at the beginning of a run, ``draw`` gives sample
number t and the next cursor. A cursor is one whole number: from it and t a run can be resumed at any time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gqlab.rules.dispatch import by_type, rule
from gqlab.samples.random import RESTART, TRAJECTORY, draw_alias, stream_key, word

#: Samples between two checks of the stop flag, where an estimator draws many at once: a power of 2.
STOP_LOOK = 1024


class RunIdentity(NamedTuple):
    """Which run it is: its random numbers derive from this."""

    seed: Any
    number: Any  # of the run under its seed


class World(NamedTuple):
    """What an estimator can see: the samples, their stream, which run it is, and the flag that asks it to stop."""

    samples: Any
    stream: Any
    run: Any
    stop: Any  # (1,)


@by_type
def start(self, run):
    """Stream: the cursor at the beginning of a run."""


@by_type
def draw(self, run, cursor, t):
    """Stream: sample number t, drawn at ``cursor``, and the next cursor."""


@rule
def key(run, stream):
    """The key of one of the run's streams of random numbers."""
    return stream_key(run.seed, run.number, stream)


class Chain(NamedTuple):
    """The trajectory of a behaviour policy in a finite MDP; the cursor is its state.

    Alias tables over the transitions of each state, and over first states. Several problems can share the tables, with
    their states concatenated; the cursor counts the states of its own problem.
    """

    first: Any  # (S + 1,)  unsigned: state s owns the transitions first[s] … first[s+1] − 1
    threshold: Any  # (n,)
    alias: Any  # (n,)
    next_state: Any  # (n,)  unsigned, within its problem
    terminal: Any  # (S,)
    start_state: Any  # (n_start,)  unsigned, within its problem: where a trajectory may begin
    start_threshold: Any  # (n_start,)
    start_alias: Any  # (n_start,)
    first_state: int  # the problem's first state in these tables,
    n_states: int
    first_start: int  # and its first entry of ``start_state``
    n_start: int

    def start(self, run):
        return begin_anew(self, key(run, RESTART), 0)

    def draw(self, run, cursor, t):
        x = transition(self, cursor, word(key(run, TRAJECTORY), t))
        s_next = self.next_state[x]
        if is_terminal(self, s_next):
            s_next = begin_anew(self, key(run, RESTART), t + 1)
        return x, s_next


@rule
def transition(chain, s, random_word):
    """The sample that is drawn in state s."""
    s = np.uint32(chain.first_state) + s
    first = chain.first[s]
    return draw_alias(chain.threshold, chain.alias, first, chain.first[s + 1] - first, random_word)


@rule
def is_terminal(chain, s):
    return chain.terminal[np.uint32(chain.first_state) + s]


@rule
def begin_anew(chain, start_key, t):
    """The state in which a trajectory starts, or restarts, at time t."""
    first, n = np.uint32(chain.first_start), np.uint32(chain.n_start)
    return chain.start_state[draw_alias(chain.start_threshold, chain.start_alias, first, n, word(start_key, t))]


class RowsInOrder(NamedTuple):
    """The rows of a table in order, over and over: a log. The cursor is not used."""

    n: int

    def start(self, run):
        return np.uint32(0)

    def draw(self, run, cursor, t):
        return np.uint32(t % self.n), cursor
