"""The compiled side of replay: a stream that keeps what it has seen, in windows of n steps, and draws from it.

Observations stand in one table in the order in which they came, encoded and raw, each once: what one step leads to is
where the next begins. ``after[k]`` is the observation that the step at k led to, so that the trajectories of several
environments can stand in one table. A *window* is a sample

    (s_t, a_t, Σ_{j<m} γʲ r_{t+j}, γᵐ, s_{t+m})          m = n, or less

that ends where its episode does: with no value where that terminated (γᵐ is 0 then), and with one where it was cut off.
With ``cuts`` it also ends before an action that was not a best one. It becomes a sample when it is complete, and never
changes after that: samples ``marks[FIRST]`` … ``marks[LAST] − 1`` are the finite sum. Room for all of it is
made by Python before a step, never in it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gqlab.algorithms.schedules import rates_at
from gqlab.engine.compiled import entry
from gqlab.estimators.base import step
from gqlab.estimators.kept import enter, leave
from gqlab.learn.agent.live import DIVERGED, ENDED, ENDED_ALONE, STEPS, UPDATES, look_at
from gqlab.rules.averages import step_average
from gqlab.rules.blocks import place_in_block, value_of
from gqlab.rules.dispatch import at, rule
from gqlab.rules.memory import MOST, Sizes
from gqlab.samples.random import below, unit, word
from gqlab.samples.streams import World, draw, key

#: The stream of random numbers that samples are drawn with.
REPLAY = 33

#: Samples that are looked at together before the updates along them.
AHEAD = 32

#: Numbers of a buffer: the observations in the table; the samples that are kept, the first and the end; and the
#: observations and the samples that stood before these, and have been dropped from the tables.
OBSERVATIONS, FIRST, LAST, DROPPED_OBSERVATIONS, DROPPED_SAMPLES = range(5)
N_MARKS = 5

#: How the step from an observation ended: there is none yet; it led to the next observation, to the end of its
#: episode, or to where the episode was cut off. Besides, as a bit: the action there was not a best one.
OPEN, WENT_ON, TERMINATED, CUT_OFF = range(4)
HOW, EXPLORED = 3, 4


class Keeping(NamedTuple):
    """What was seen, and how often and in what way it is learned from."""

    updates: float  # for each step
    n_step: int
    size: int  # the samples that are kept, at most; 0: all
    recent: int  # 1: the newest are drawn more often
    cuts: int  # 1: a window ends before an action that was not a best one
    raw_size: int  # the numbers of a raw observation, the last of what is shown
    raw: Any  # (n_observations · raw_size,)
    reward: Any  # (n_observations,)  of the step from there
    after: Any  # (n_observations,)  and where it led
    end: Any  # (n_observations,)
    trajectory: Any  # (n_observations,)  whose observation it is: of an environment, or of a log (the last)
    oldest: Any  # (n_envs + 1,)  of each trajectory: the first observation whose window is not complete,
    waiting: Any  # (n_envs + 1,)  and how many such there are
    marks: Any  # (5,)

    def ranges(self, n: Sizes) -> dict[str, tuple[float, float]]:
        return {
            **dict.fromkeys(("after", "oldest"), (0, n.states)),
            "end": (0, 2 * EXPLORED),
            "trajectory": (0, n.trajectories + 1),
            "waiting": (0, int(np.max(self.n_step)) + 1),
            "marks": (0, MOST),
        }

    def fault(self, n: Sizes) -> str:
        """The marks are within the tables, and in their order."""
        marks = self.marks
        if marks[OBSERVATIONS] <= n.states and marks[FIRST] <= marks[LAST] <= n.samples:
            return ""
        return f"marks are {marks.tolist()}, of tables of {n.states} observations and {n.samples} samples"

    def start(self, run):
        return np.uint32(0)

    def draw(self, run, cursor, t):
        """Any sample; or, ``recent``, that of age ⌊N U²⌋: half of the draws come from the newest quarter."""
        w, n = word(key(run, REPLAY), t), self.marks[LAST] - self.marks[FIRST]
        if self.recent:
            u = 1.0 - unit(w)  # in [0, 1)
            return self.marks[LAST] - 1 - min(np.int64(n * (u * u)), n - 1), cursor
        return self.marks[FIRST] + np.int64(below(w, n)), cursor

    def kept(self):
        return self.marks[FIRST], self.marks[LAST]

    def place_of_next(self, live, e):
        return self.marks[OBSERVATIONS]

    def place_of_first(self, live, e, d, A):
        close(live, e, d, A)
        self.marks[OBSERVATIONS] += 1
        return self.marks[OBSERVATIONS] - 1

    def note_arrival(self, live, observation, e, k, greedy):
        size = len(observation) // len(live.status)
        write_down(at(live.stream, 0), observation, e * size, k, e, greedy, size)

    def note_step(self, live, e, old, new, A):
        self.marks[OBSERVATIONS] = new + 1
        over = live.status[e] == ENDED or live.status[e] == ENDED_ALONE
        join(self, old, new, e, live.reward[e], TERMINATED if live.terminated[e] else CUT_OFF if over else WENT_ON)

    def take_in(self, live, e, d, A):
        stream, t = at(live.stream, 0), live.counts[STEPS]
        complete(live, stream, e, live.here[e], d, A)
        make_updates(live, stream, due(stream.updates, t), d, A)


@rule
def write_down(keeping, observation, first, k, e, greedy, size):
    """Observation k of trajectory e, from which no step was made yet: its raw numbers are the last of those shown."""
    n = keeping.raw_size
    for i in range(n):
        keeping.raw[k * n + i] = observation[first + size - n + i]
    keeping.trajectory[k] = e
    keeping.reward[k] = 0.0
    keeping.after[k] = 0
    keeping.end[k] = OPEN if greedy else OPEN + EXPLORED


@rule
def join(keeping, old, new, e, reward, end):
    """A step of trajectory e led from one observation to another."""
    keeping.reward[old] = reward
    keeping.after[old] = new
    keeping.end[old] = (keeping.end[old] & EXPLORED) + end
    if keeping.waiting[e] == 0:
        keeping.oldest[e] = old
    keeping.waiting[e] += 1


@rule
def last_step(keeping, e):
    """The observation that trajectory e made its last step from."""
    k = np.int64(keeping.oldest[e])
    for _ in range(keeping.waiting[e] - 1):
        k = np.int64(keeping.after[k])
    return k


@rule
def complete(live, keeping, e, new, d, A):
    """Make samples of the windows of trajectory e that end at observation ``new``."""
    last = last_step(keeping, e)
    over = keeping.end[last] & HOW != WENT_ON
    cut = keeping.cuts == 1 and keeping.end[new] & EXPLORED != 0
    while keeping.waiting[e] > 0 and (over or cut or keeping.waiting[e] >= keeping.n_step):
        add_window(live, keeping, e, new, d, A)


@rule
def close(live, e, d, A):
    """Trajectory e is left where it stands: its last step is where it was cut off."""
    keeping = at(live.stream, 0)
    if keeping.waiting[e] > 0:
        last = last_step(keeping, e)
        keeping.end[last] = (keeping.end[last] & EXPLORED) + CUT_OFF
        complete(live, keeping, e, np.int64(keeping.after[last]), d, A)


@rule
def add_window(live, keeping, e, new, d, A):
    """The oldest window of trajectory e, to observation ``new``, becomes a sample."""
    k, last = np.int64(keeping.oldest[e]), np.int64(0)
    first, total, gamma = k, 0.0, 1.0
    for _ in range(keeping.waiting[e]):
        total += gamma * keeping.reward[k]
        gamma *= live.discount[0]
        last, k = k, np.int64(keeping.after[k])
    if keeping.end[last] & HOW == TERMINATED:
        gamma = 0.0
    keeping.oldest[e] = keeping.after[first]
    keeping.waiting[e] -= 1
    samples, x = at(live.samples, 0), keeping.marks[LAST]
    samples.row[x] = np.uint32(first * A + live.taken[first])
    samples.next_row[x] = np.uint32(new * A)
    samples.reward[x] = total + (gamma - 1.0) * live.offset[0]
    samples.discount[x] = gamma
    make_way(live, keeping, samples, d, A)
    keeping.marks[LAST] = x + 1
    enter(at(live.estimator, 0), samples, x, x + 1 - keeping.marks[FIRST], live.point, d, A)


@rule
def make_way(live, keeping, samples, d, A):
    """Where as many samples are kept as there may be, the oldest goes."""
    x = keeping.marks[FIRST]
    if keeping.size > 0 and keeping.marks[LAST] - x == keeping.size:
        leave(at(live.estimator, 0), samples, x, keeping.size - 1, live.point, d, A)
        keeping.marks[FIRST] = x + 1


@rule
def due(updates, t):
    """The updates that are due with step number t, from 1."""
    return np.int64(math.floor(t * updates) - math.floor((t - 1) * updates))


@rule
def make_updates(live, keeping, n, d, A):
    """So many updates, along samples that are drawn."""
    estimator, schedule = at(live.estimator, 0), at(live.schedule, 0)
    world = World(at(live.samples, 0), keeping, live.identity, live.stop)
    for k in range(n if keeping.marks[LAST] > keeping.marks[FIRST] else 0):
        if k % AHEAD == 0:
            live.q[0] = look_ahead(world, live.counts[UPDATES], min(AHEAD, n - k), A)
        rates = rates_at(schedule, live.counts[UPDATES], live.point.answer)
        finite, _cursor = step(estimator, world, live.point, np.uint32(0), live.counts[UPDATES], rates, d, A)
        if not finite:
            live.counts[DIVERGED] = max(live.counts[STEPS], 1)
            break
        live.counts[UPDATES] += 1
        step_average(live.point.theta, d)


@rule
def look_ahead(world, u, n, A):
    """Read a little of each sample of the next n updates.

    They lie anywhere in memory, and an update waits for its own alone: here the processor fetches them all at once. The
    sum means nothing; without it the compiler would leave the reading out.
    """
    samples, total = world.samples, 0.0
    features = samples.features
    last = features.n_active - 1
    for k in range(n):
        x, _cursor = draw(world.stream, world.run, np.uint32(0), u + k)
        total += samples.reward[x] + samples.discount[x]
        for row in (samples.row[x], samples.next_row[x]):
            first = np.int64(row) // A * features.n_active
            for j in (0, last):
                total += value_of(features, first, j) + place_in_block(features, first, j)
    return total


@entry
def absorb(held, log, first, end, d, A):
    """Keep rows ``first`` … ``end − 1`` of a log like steps of an environment, and make the updates that are due."""
    live = held.part
    for i in range(first, end):  # a part that were made before this loop Numba would release once too often
        if live.counts[DIVERGED] == 0:
            absorb_row(live, log, i, d, A)


@rule
def absorb_row(live, log, i, d, A):
    """Row i of a log, like a step of an environment of its own."""
    keeping, e = at(live.stream, 0), len(live.status)
    if not log.follows[i]:
        close(live, e, d, A)
        look_up(live, log, log.observation, i, i, d, A)
    old = live.here[e]
    goes_on = i + 1 < len(log.follows) and log.follows[i + 1]
    look_up(live, log, log.next_observation, i, i + 1 if goes_on else -1, d, A)
    join(keeping, old, live.here[e], e, log.reward[i], log.end[i])
    complete(live, keeping, e, live.here[e], d, A)
    make_updates(live, keeping, due(keeping.updates, i + 1), d, A)


class Logged(NamedTuple):
    """Rows of a log: what the compiled step is shown of them."""

    observation: Any  # (n · size,)
    next_observation: Any  # (n · size,)
    action: Any  # (n,)
    reward: Any  # (n,)
    end: Any  # (n,)
    follows: Any  # (n,)  whether it begins where the row before it led


@rule
def look_up(live, log, observation, i, acts, d, A):
    """Put observation i of a log into the table, with the action of row ``acts`` (−1: none is known)."""
    keeping, samples = at(live.stream, 0), at(live.samples, 0)
    e, k = len(live.status), keeping.marks[OBSERVATIONS]
    size = len(observation) // len(log.action)
    keeping.marks[OBSERVATIONS] = k + 1
    live.here[e] = k
    top = look_at(live, samples, observation, i * size, k, d, A)
    live.taken[k] = log.action[acts] if acts >= 0 else 0
    greedy = acts < 0 or live.q[live.taken[k]] == top
    write_down(keeping, observation, i * size, k, e, greedy, size)
