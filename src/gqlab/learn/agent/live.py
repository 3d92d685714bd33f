"""One step of an agent beside its environments, compiled: encode, choose, update.

Environment e has two observations in the table, 2e and 2e + 1: where it was and where it is, in turn. Its transition is
sample e of the samples. An estimator that moves along one sample at a time moves at once; one with batches finds
the last M transitions behind these samples, and makes its M updates when M new ones are there (Algorithm 1, with the
policy of each epoch's beginning). A stream that keeps all transitions puts them elsewhere: see ``keeping``.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gqlab.algorithms.schedules import rates_at
from gqlab.encoders.base import encode_row
from gqlab.engine.compiled import entry
from gqlab.estimators.base import begin, next_begin, step
from gqlab.rules.averages import acting
from gqlab.rules.dispatch import at, by_type, parameters, rule
from gqlab.rules.gradient import act, action_values
from gqlab.rules.memory import MOST, Sizes
from gqlab.samples.random import below, stream_key, unit, word
from gqlab.samples.streams import World

#: The stream of random numbers that an agent explores with.
EXPLORE = 32

#: What the next observation of an environment is: the one that a step led to; the same, and the episode is over, with
#: the first of the next one beside it; the same, without that; the first of an episode, and no step.
STEPPED, ENDED, ENDED_ALONE, BEGAN = range(4)

#: The counts of an agent: steps of all environments, choices, updates, transitions since the last batch; the step whose
#: update would have left the finite numbers, or 0; 1 + the environment that showed a number that is not finite, or 0.
STEPS, CHOICES, UPDATES, COLLECTED, DIVERGED, NOT_FINITE = range(6)
N_COUNTS = 6


class CopyRule(NamedTuple):
    """The encoder of features that were made outside: it copies them."""

    n_features: Any  # (1,)

    def encode_row(self, observation, first, index, value, first_out):
        for k in range(self.n_features[0]):
            value[first_out + k] = observation[first + k]


class TakenRule(NamedTuple):
    """The operator of Sarsa: V̄ is the value of the action that was chosen there."""

    action: Any  # (n_observations,)

    def ranges(self, n: Sizes) -> dict[str, tuple[float, float]]:
        return {"action": (0, n.A)}

    def improve(self, row, q, w, A):
        taken = self.action[row // A]
        for a in range(A):
            w[a] = 1.0 if a == taken else 0.0
        return q[taken]


class Exploration(NamedTuple):
    """With probability ε_t any action; else by the operator's own policy, or a best one.

    ε_t goes from ``first`` to ``last`` over so many steps, along a line.
    """

    first: float
    last: float
    over: float
    follows_operator: int
    cuts: int  # 1: a trace ends where the action is not a best one


class Live(NamedTuple):
    """All that an agent's step reads and writes."""

    encoder: Any
    samples: Any
    stream: Any
    estimator: Any
    point: Any
    schedule: Any
    exploration: Any
    identity: Any
    places: Any  # (n_observations · n_active,)  the arrays of the features; (0,) where there is none
    value: Any  # (n_observations · n_active,)
    observation: Any  # (n_envs · size,)  what each environment shows
    first_observation: Any  # (n_envs · size,)  and the first of its next episode, where the last is over
    reward: Any  # (n_envs,)
    terminated: Any  # (n_envs,)
    status: Any  # (n_envs,)
    action: Any  # (n_envs,)  what to do next
    here: Any  # (n_envs,)  which observation of the table it is at
    taken: Any  # (n_observations,)  the action that was chosen at each observation of the table
    counts: Any  # (6,)
    discount: Any  # (1,)
    offset: Any  # (1,)  what is added to all action values
    epsilon: Any  # (1,)  the share of actions that is taken at random now
    q: Any  # (A,)
    p: Any  # (A,)
    stop: Any  # (1,)

    def ranges(self, n: Sizes) -> dict[str, tuple[float, float]]:
        return {
            "places": (0, n.d // n.A),
            "here": (0, n.states),
            "status": (0, BEGAN + 1),
            "counts": (0, MOST),
            **dict.fromkeys(("taken", "action"), (0, n.A)),
            **dict.fromkeys(("terminated", "stop"), (0, 2)),
        }

    def sizes(self, A: int) -> Sizes:
        """The sizes that its arrays have."""
        estimator = self.estimator
        most = {name: getattr(estimator, name)[0] for name in parameters(type(estimator))}
        return Sizes(len(self.point.answer), A, len(self.taken), len(self.samples.row), 0, most, len(self.status))

    def fault(self, n: Sizes) -> str:
        """No more transitions wait than a batch has, and each environment is at one of its own places."""
        if self.counts[NOT_FINITE] > n.trajectories:
            return "counts name an environment that there is not"
        if hasattr(self.stream, "n") and self.counts[COLLECTED] >= self.stream.n[0]:
            return f"{self.counts[COLLECTED]} transitions wait for a batch of {self.stream.n[0]}"
        if not hasattr(self.stream, "marks") and (self.here // 2 != np.arange(len(self.here))).any():
            return f"here is {self.here}: an environment is at the place of another"
        return ""


@by_type
def take_in(self, live, e, d, A):
    """Stream: learn from the transition of environment e."""


@by_type
def place_of_next(self, live, e):
    """Stream: where in the table the next observation of environment e goes,"""
    return 4 * e + 1 - live.here[e]


@by_type
def place_of_first(self, live, e, d, A):
    """Stream: and where the first one of an episode goes."""
    return live.here[e]


@by_type
def note_arrival(self, live, observation, e, k, greedy):
    """Stream: observation k of the table is there, with an action that is a best one or not."""


@by_type
def note_step(self, live, e, old, new, A):
    """Stream: write down the transition of environment e between two observations of the table."""
    samples = live.samples
    gamma = 0.0 if live.terminated[e] else live.discount[0]
    samples.row[e] = np.uint32(old * A + live.taken[old])
    samples.next_row[e] = np.uint32(new * A)
    samples.reward[e] = live.reward[e] + (gamma - 1.0) * live.offset[0]
    samples.discount[e] = gamma


@by_type
def break_trace(self, e):
    """Estimator: the trace of trajectory e restarts with its next sample."""


@entry
def live_step(held, d, A):
    """Take in what all environments have done, and choose what each does next."""
    live = held.part
    for e in range(len(live.status)):
        if live.status[e] == BEGAN:
            begin_episode(live, live.observation, e, d, A)
        else:
            end_step(live, e, d, A)


@rule
def end_step(live, e, d, A):
    """Environment e has made a step: choose at its new observation, then learn from the transition."""
    old, new = live.here[e], place_of_next(live.stream, live, e)
    greedy = arrive(live, live.observation, e, new, d, A)
    live.here[e] = new
    live.counts[STEPS] += 1
    if not abs(live.reward[e]) < math.inf:
        live.counts[NOT_FINITE] = 1 + e
    if live.counts[DIVERGED] == 0 and live.counts[NOT_FINITE] == 0:
        note_step(live.stream, live, e, old, new, A)
        take_in(live.stream, live, e, d, A)
    live.action[e] = live.taken[new]
    if live.exploration.cuts[0] == 1 and not greedy:
        break_trace(live.estimator, e)
    if live.status[e] == ENDED:
        begin_episode(live, live.first_observation, e, d, A)


@rule
def begin_episode(live, observation, e, d, A):
    """An episode of environment e begins."""
    k = place_of_first(live.stream, live, e, d, A)
    arrive(live, observation, e, k, d, A)
    live.here[e] = k
    live.action[e] = live.taken[k]
    break_trace(live.estimator, e)


@rule
def arrive(live, observation, e, k, d, A):
    """Observation k of the table is the one of environment e: encode it and choose an action; is that a best one?"""
    size = len(observation) // len(live.status)
    for i in range(size):
        if not abs(observation[e * size + i]) < math.inf:
            live.counts[NOT_FINITE] = 1 + e
    samples = at(live.samples, 0)
    top = look_at(live, samples, observation, e * size, k, d, A)
    live.taken[k] = choose(live, samples, k, A)
    greedy = live.q[live.taken[k]] == top
    note_arrival(live.stream, live, observation, e, k, greedy)
    return greedy


@rule
def look_at(live, samples, observation, first, k, d, A):
    """Encode the numbers from observation[first] on as observation k of the table; the largest of its action values."""
    encode_row(live.encoder, observation, first, live.places, live.value, k * samples.features.n_active)
    action_values(samples, k * A, acting(live.point.theta), live.q, d, A)
    top = live.q[0]
    for a in range(1, A):
        top = max(top, live.q[a])
    return top


@rule
def choose(live, samples, k, A):
    """An action for the action values in ``live.q``."""
    explorer, t = at(live.exploration, 0), live.counts[CHOICES]
    live.counts[CHOICES] += 1
    key = stream_key(live.identity.seed, live.identity.number, EXPLORE)
    first, second = word(key, 2 * t), word(key, 2 * t + 1)
    epsilon = explorer.last + (explorer.first - explorer.last) * max(0.0, 1.0 - live.counts[STEPS] / explorer.over)
    live.epsilon[0] = epsilon
    if unit(first) <= epsilon:
        return np.int64(below(second, A))
    if explorer.follows_operator == 1:
        act(samples.operator, k * A, live.q, live.p, A)
        return draw_from(live.p, unit(second), A)
    return first_of_best(live.q, second, A)


@rule
def draw_from(p, chance, A):
    """An action from the probabilities p."""
    for a in range(A - 1):
        chance -= p[a]
        if chance <= 0.0:
            return a
    return A - 1


@rule
def first_of_best(q, random_word, A):
    """One of the best actions, each equally likely."""
    top, n = q[0], 1
    for a in range(1, A):
        if q[a] > top:
            top, n = q[a], 1
        elif q[a] == top:
            n += 1
    left = below(random_word, n)
    for a in range(A):
        if q[a] == top:
            if left == 0:
                return a
            left -= 1
    return 0  # q holds a NaN


class AtOnce(NamedTuple):
    """Every transition is learned from when it is there, and once."""

    nothing: Any

    def start(self, run):
        return np.uint32(0)

    def draw(self, run, cursor, t):
        return cursor, cursor  # sample e of environment e, which is the cursor

    def trajectory_of(self, x):
        return np.int64(x)

    def take_in(self, live, e, d, A):
        estimator, samples, schedule = at(live.estimator, 0), at(live.samples, 0), at(live.schedule, 0)
        world = World(samples, live.stream, live.identity, live.stop)
        u, cursor = live.counts[UPDATES], np.uint32(e)
        if u == next_begin(estimator, u):
            cursor = begin(estimator, world, live.point, cursor, u, d, A)
        rates = rates_at(schedule, u, live.point.answer)
        finite, cursor = step(estimator, world, live.point, cursor, u, rates, d, A)
        if finite:
            live.counts[UPDATES] += 1
        else:
            live.counts[DIVERGED] = live.counts[STEPS]


class Recent(NamedTuple):
    """The last n transitions, behind the environments' own: an epoch is made of them when n new ones are there."""

    first: int
    n: int

    def start(self, run):
        return np.uint32(0)

    def draw(self, run, cursor, t):
        return np.uint32(self.first + t % self.n), cursor

    def take_in(self, live, e, d, A):
        stream, samples = at(live.stream, 0), at(live.samples, 0)
        remember(live, samples, e, stream.first + live.counts[COLLECTED], A)
        live.counts[COLLECTED] += 1
        if live.counts[COLLECTED] == stream.n:
            live.counts[COLLECTED] = 0
            make_epoch(live, World(samples, stream, live.identity, live.stop), d, A)


@rule
def make_epoch(live, world, d, A):
    """As many updates as there are transitions in the batch."""
    estimator, schedule = at(live.estimator, 0), at(live.schedule, 0)
    cursor = begin(estimator, world, live.point, np.uint32(0), live.counts[UPDATES], d, A)
    for _ in range(world.stream.n):
        rates = rates_at(schedule, live.counts[UPDATES], live.point.answer)
        finite, cursor = step(estimator, world, live.point, cursor, live.counts[UPDATES], rates, d, A)
        if not finite:
            live.counts[DIVERGED] = live.counts[STEPS]
            break
        live.counts[UPDATES] += 1


@rule
def remember(live, samples, e, x, A):
    """Sample x becomes a copy of that of environment e, with its two observations."""
    n = samples.features.n_active
    rows = np.int64(samples.row[e]), np.int64(samples.next_row[e])
    for k in range(2):
        old, new = rows[k] // A, 2 * x + k
        for j in range(n):
            if len(live.places) > 0:
                live.places[new * n + j] = live.places[old * n + j]
            if len(live.value) > 0:
                live.value[new * n + j] = live.value[old * n + j]
        live.taken[new] = live.taken[old]
    samples.row[x] = np.uint32(2 * x * A + rows[0] % A)
    samples.next_row[x] = np.uint32((2 * x + 1) * A)
    samples.reward[x] = samples.reward[e]
    samples.discount[x] = samples.discount[e]
