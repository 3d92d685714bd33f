"""One run, from where it stands to its last update: the one loop, for every estimator, operator, stream and device.

Whatever happens between updates at times that all runs share (a record, a new batch, a check of the stop flag) happens
between *segments*. Inside a segment there are only updates, what a watch sees of them, and the draw of the output
iterate: its time differs from run to run, and if runs left a segment at different times they would no longer run in
lockstep on a GPU.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gqlab.algorithms.schedules import rates_at
from gqlab.engine.memory import furnish, length, load, store
from gqlab.engine.records import next_recorded, record_row
from gqlab.estimators.base import NEVER, answer, begin, next_begin, step
from gqlab.measure.watch import look, write_watched
from gqlab.rules.dispatch import at, rule
from gqlab.rules.memory import MOST, Sizes
from gqlab.rules.point import put, take
from gqlab.rules.vectors import entry_of
from gqlab.samples.random import OUTPUT, unit, word
from gqlab.samples.streams import RunIdentity, World, key, start

#: Numbers that pass through the updates between two checks of the stop flag: about a millisecond.
SEGMENT_NUMBERS = 1 << 17


class RunPlan(NamedTuple):
    """What each run is to do."""

    problem: Any  # (n_runs,)  which of the problems in the tables
    seed: Any  # (n_runs,)  unsigned
    number: Any  # (n_runs,)  the number of the run under its seed
    n_updates: Any  # (n_runs,)  where it ends, counted from its beginning
    until: Any  # (n_runs,)  where this call ends: there, or earlier
    first_record: Any  # (n_runs,)  the row of its record of update 0
    cost: Any  # (n_runs,)  the numbers that pass through an update


class Runs(NamedTuple):
    """Where each run stands: all that a later call needs to resume it."""

    theta: Any  # (n_runs, d)
    omega: Any  # (n_runs, d)
    cursor: Any  # (n_runs,)  unsigned: where its stream stands
    updates: Any  # (n_runs,)
    output: Any  # (n_runs, d)  an iterate drawn uniformly from those so far
    output_update: Any  # (n_runs,)  which one
    next_output: Any  # (n_runs,)  the update whose iterate replaces it
    diverged_at: Any  # (n_runs,)  the update that would have overflowed; −1: none
    kept_numbers: Any  # (n_runs, …)  what the estimator and the watch keep
    kept_counts: Any  # (n_runs, …)

    def ranges(self, n: Sizes) -> dict[str, tuple[float, float]]:
        return {
            "cursor": (0, 2**32),
            "updates": (0, NEVER + 1),  # NEVER: it has diverged
            "next_output": (0, 2 * NEVER),
            "output_update": (-1, 2 * NEVER),
            "diverged_at": (-1, MOST),
            "kept_counts": (0, 0),  # those of results are checked by the arrays that they belong to
        }


class Records(NamedTuple):
    """The iterates at the recorded updates, run by run, and what the watch had seen by then."""

    theta: Any  # (total, d)
    omega: Any  # (total, d)
    watched: Any  # (total, 3 · quantities)  lowest, mean, largest of each
    every: Any  # an update is recorded if this divides its number, or if it is the last


class KeptFirst(NamedTuple):
    """The first column of ``runs`` for each array of the estimator and the watch; −1, or an empty tuple: not kept."""

    estimator: Any
    watch: Any


class DeviceTask(NamedTuple):
    """All that a device is given."""

    tables: Any
    schedule: Any
    kept: Any  # where the estimator and the watch keep their arrays in the rows of ``runs``
    plan: Any
    runs: Any
    records: Any


class Parts(NamedTuple):
    """The parts of one thread, with their arrays; or their layouts: see ``engine.memory``."""

    point: Any
    estimator: Any
    watch: Any


@rule
def keep_output(runs, run, parts, output_key, u, d):
    """The output becomes the iterate of update u; returns the update that replaces it.

    The iterate of update t replaces the output with probability 1/(t+1), which leaves every iterate so far equally
    likely. So P(next > t) = (u+1)/(t+1): the next one is ⌊(u+1)/U⌋ for a uniform U.
    """
    answer(parts.estimator, parts.point, parts.point.answer, d)
    for i in range(d):
        runs.output[run, i] = parts.point.answer[i]
    runs.output_update[run] = u
    u_next = (u + 1) / unit(word(output_key, u))
    return int(u_next) if u_next < NEVER else NEVER


@rule
def record(plan, records, run, parts, u, d):
    """Write the iterate of update u, if it is to be recorded."""
    row = record_row(plan.first_record[run], u, records.every, plan.n_updates[run])
    if row >= 0:
        answer(parts.estimator, parts.point, parts.point.answer, d)
        for i in range(d):
            records.theta[row, i] = parts.point.answer[i]
            records.omega[row, i] = entry_of(parts.point.omega, i)
        write_watched(parts.watch, records.watched, row)


@rule
def freeze(plan, runs, records, run, parts, output_key, u, d):
    """The run stays at the iterate of update u, its last finite one, for all the updates that it had left."""
    last = plan.n_updates[run]
    while runs.next_output[run] < last:
        runs.next_output[run] = keep_output(runs, run, parts, output_key, runs.next_output[run], d)
    t = next_recorded(u, records.every, last)
    while t > u:
        record(plan, records, run, parts, t, d)
        u = t
        t = next_recorded(t, records.every, last)


@rule
def enter(runs, kept, run, parts, d):
    """Load the run into its parts: θ, ω and what its parts have kept."""
    put(parts.point, runs, run, d)
    load(parts.estimator, kept.estimator, runs, run)
    load(parts.watch, kept.watch, runs, run)


@rule
def leave(runs, kept, run, parts, cursor, next_output, d):
    """Save where the run stands."""
    take(parts.point, runs, run, d)
    runs.cursor[run] = cursor
    runs.next_output[run] = next_output
    store(parts.estimator, kept.estimator, runs, run)
    store(parts.watch, kept.watch, runs, run)


@rule
def segment_length(cost):
    """How many updates may pass between two checks of the stop flag."""
    return 1 + SEGMENT_NUMBERS // cost


def advance(task, layout, first, last, stop, d_size, A_size):
    """Take the runs ``first`` … ``last − 1`` to ``plan.until``, or until ``stop[0]`` is set, one after another.

    Each device compiles this function directly, without a wrapper that would have to be compiled as well.
    """
    d, A = length(d_size), length(A_size)
    point, estimators, watches = furnish(layout.point), furnish(layout.estimator), furnish(layout.watch)
    plan, runs, records = task.plan, task.runs, task.records
    for run in range(first, last):
        problem = plan.problem[run]
        identity = RunIdentity(plan.seed[run], plan.number[run])
        world = World(at(task.tables.samples, problem), at(task.tables.stream, problem), identity, stop)
        exact = at(task.tables.exact, problem)
        schedule, estimator, watch = at(task.schedule, run), at(estimators, run), at(watches, run)
        parts = Parts(point, estimator, watch)
        enter(runs, task.kept, run, parts, d)
        output_key = key(identity, OUTPUT)
        u = runs.updates[run]
        next_output = runs.next_output[run]
        finite = runs.diverged_at[run] < 0
        cursor = runs.cursor[run]
        if u == 0:
            cursor = start(world.stream, identity)
        segment = segment_length(plan.cost[run])
        while u < plan.until[run] and finite and stop[0] == 0:
            if u == next_begin(estimator, u):
                cursor = begin(estimator, world, point, cursor, u, d, A)
                if stop[0] != 0:
                    break
            if u == 0:
                look(watch, exact, identity, parts, u, d, A)
                record(plan, records, run, parts, u, d)
            end = min(min(plan.until[run], u + segment), next_begin(estimator, u + 1))
            end = min(end, next_recorded(u, records.every, plan.n_updates[run]))
            while u < end and finite:
                if u == next_output:
                    next_output = keep_output(runs, run, parts, output_key, u, d)
                rates = rates_at(schedule, u, point.answer)
                finite, cursor = step(estimator, world, point, cursor, u, rates, d, A)
                u += finite
                if finite:
                    look(watch, exact, identity, parts, u, d, A)
            if finite:
                record(plan, records, run, parts, u, d)
                runs.updates[run] = u
        leave(runs, task.kept, run, parts, cursor, next_output, d)
        if not finite:
            if runs.diverged_at[run] < 0:
                runs.diverged_at[run] = u
            freeze(plan, runs, records, run, parts, output_key, runs.updates[run], d)
            runs.updates[run] = plan.n_updates[run]
