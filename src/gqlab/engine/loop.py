"""One run, from where it stands to its last update: the loop that every device drives.

Everything that happens between updates at a time that all runs share (a record, the end of an epoch, a look at the
stop flag) happens between *segments*. Inside a segment there are only updates, and the draw of the output iterate:
its time differs from run to run, and runs that leave a segment at different times would no longer go in step on a GPU.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gqlab.engine.random import INDEX, OUTPUT, RESTART, TRAJECTORY, below, stream_key, unit, word
from gqlab.engine.tables import next_sample, of_problem, start_state
from gqlab.estimators import (
    Rates,
    plain_step,
    svrg_add,
    svrg_end,
    svrg_mean,
    svrg_start,
    svrg_step,
)
from gqlab.rules import rule

#: Numbers d·A that pass through the most updates between two looks at the stop flag: about a millisecond.
SEGMENT_NUMBERS = 1 << 17

#: No run gets this far.
NEVER = 1 << 62


class Plan(NamedTuple):
    """What each run is to do."""

    problem: Any  # (n_runs,)  which of the problems in the tables
    seed: Any  # (n_runs,)  unsigned
    number: Any  # (n_runs,)  the number of the run under its seed
    eta_theta: Any  # (n_runs,)
    eta_omega: Any  # (n_runs,)
    radius: Any  # (n_runs,)
    batch_size: Any  # (n_runs,)  M; 0: no batches, that is Greedy-GQ
    n_updates: Any  # (n_runs,)  where it ends, counted from its very beginning
    until: Any  # (n_runs,)  where this call ends: there, or at an earlier end of an epoch
    first_record: Any  # (n_runs,)  the row of its record of update 0


class Runs(NamedTuple):
    """Where each run stands: all that a later call needs to go on from there."""

    theta: Any  # (n_runs, d)
    omega: Any  # (n_runs, d)
    s: Any  # (n_runs,)  unsigned: the state in which the next sample is drawn
    updates: Any  # (n_runs,)
    output: Any  # (n_runs, d)  an iterate drawn uniformly from those so far
    output_update: Any  # (n_runs,)  which one
    next_output: Any  # (n_runs,)  the update whose iterate replaces it
    diverged_at: Any  # (n_runs,)  the update that would have left the finite numbers; −1: none


class Records(NamedTuple):
    """The iterates at the recorded updates, run by run."""

    theta: Any  # (total, d)
    omega: Any  # (total, d)
    every: Any  # an update is recorded if this divides its number, or if it is the last


@rule
def keep_output(runs, run, theta, output_key, u, d):
    """The output becomes the iterate of update u; returns the update that replaces it.

    The iterate of update t replaces the output with probability 1/(t+1), which leaves every iterate so far equally
    likely. So P(next > t) = (u+1)/(t+1): the next one is ⌊(u+1)/U⌋ for a uniform U.
    """
    for i in range(d):
        runs.output[run, i] = theta[i]
    runs.output_update[run] = u
    u_next = (u + 1) / unit(word(output_key, u))
    return int(u_next) if u_next < NEVER else NEVER


@rule
def record(plan, records, run, theta, omega, u, d):
    """Write the iterate of update u, if it is to be recorded."""
    if u % records.every == 0 or u == plan.n_updates[run]:
        row = plan.first_record[run] + (u + records.every - 1) // records.every
        for i in range(d):
            records.theta[row, i] = theta[i]
            records.omega[row, i] = omega[i]


@rule
def segment_end(plan, records, run, u, segment):
    """The update at which something other than an update happens next."""
    end = min(plan.until[run], u + segment)
    end = min(end, (u // records.every + 1) * records.every)
    if plan.batch_size[run] > 0:
        end = min(end, (u // plan.batch_size[run] + 1) * plan.batch_size[run])
    return end


@rule
def freeze(plan, runs, records, run, theta, omega, output_key, u, d):
    """The run stays at the iterate of update u, its last finite one, for all the updates that it had left."""
    last = plan.n_updates[run]
    while runs.next_output[run] < last:
        runs.next_output[run] = keep_output(runs, run, theta, output_key, runs.next_output[run], d)
    step = records.every
    for t in range((u // step + 1) * step, last, step):
        record(plan, records, run, theta, omega, t, d)
    record(plan, records, run, theta, omega, last, d)


@rule
def leave(plan, runs, records, run, theta, omega, s, u, finite, next_output, output_key, d):
    """Write down where the run stands; one that would have left the finite numbers at update u stays where it is."""
    runs.next_output[run] = next_output
    if not finite:
        if runs.diverged_at[run] < 0:
            runs.diverged_at[run] = u
        freeze(plan, runs, records, run, theta, omega, output_key, runs.updates[run], d)
        runs.updates[run] = plan.n_updates[run]
    for i in range(d):
        runs.theta[run, i] = theta[i]
        runs.omega[run, i] = omega[i]
    runs.s[run] = s


@rule
def begin_epoch(samples, chain, problem, s, u, M, keys, stop, segment, theta, omega, work, reference, batch, d, A):
    """Algorithm 1: draw the next M samples of the trajectory as the batch, and take the means at the reference point.

    Returns the state of the next sample and how many next states have a slot. If ``stop`` is set on the way the batch
    is not whole, and nothing may be done with it.
    """
    trajectory_key, restart_key = keys
    svrg_start(reference, theta, omega, d)
    n_visited = 0
    for t in range(u, u + M):
        x, s = next_sample(samples, chain, problem, s, t, trajectory_key, restart_key)
        batch[t - u] = x
        n_visited = svrg_add(samples, x, reference, n_visited, work, d, A)
        if t & (segment - 1) == 0 and stop[0] != 0:
            break
    svrg_mean(reference, M, d)
    return s, n_visited


@rule
def advance(tables, chain, plan, runs, records, run, stop, theta, omega, work, reference, batch, d, A):
    """Take run number ``run`` to ``plan.until``, or to where ``stop[0]`` finds it."""
    problem = plan.problem[run]
    samples = of_problem(tables, chain, problem)
    seed, number = plan.seed[run], plan.number[run]
    trajectory_key = stream_key(seed, number, TRAJECTORY)
    restart_key = stream_key(seed, number, RESTART)
    index_key = stream_key(seed, number, INDEX)
    output_key = stream_key(seed, number, OUTPUT)
    rates = Rates(plan.eta_theta[run], plan.eta_omega[run], plan.radius[run])
    M = plan.batch_size[run]
    for i in range(d):
        theta[i] = runs.theta[run, i]
        omega[i] = runs.omega[run, i]
    u = runs.updates[run]
    s = runs.s[run] if u > 0 else start_state(chain, problem, restart_key, 0)
    finite = runs.diverged_at[run] < 0
    if u == 0:
        record(plan, records, run, theta, omega, u, d)
    next_output = runs.next_output[run]
    n_visited = 0
    segment = 1  # a power of 2, so that a remainder is a mask
    while segment * d * A < SEGMENT_NUMBERS:
        segment *= 2
    while u < plan.until[run] and finite and stop[0] == 0:
        end = segment_end(plan, records, run, u, segment)
        if M == 0:
            while u < end and finite:
                if u == next_output:
                    next_output = keep_output(runs, run, theta, output_key, u, d)
                x, s = next_sample(samples, chain, problem, s, u, trajectory_key, restart_key)
                finite = plain_step(samples, x, theta, omega, rates, work, d, A)
                u += finite
        else:
            if u % M == 0:
                svrg_end(reference, n_visited)
                s, n_visited = begin_epoch(
                    samples, chain, problem, s, u, M, (trajectory_key, restart_key), stop, segment,
                    theta, omega, work, reference, batch, d, A,
                )  # fmt: skip
                if stop[0] != 0:
                    break
            x = batch[below(word(index_key, u), M)]
            while u < end and finite:
                if u == next_output:
                    next_output = keep_output(runs, run, theta, output_key, u, d)
                x_next = batch[below(word(index_key, u + 1), M)]  # on its way from memory during this step
                finite = svrg_step(samples, x, theta, omega, reference, rates, work, d, A)
                u += finite
                x = x_next
        if finite:
            record(plan, records, run, theta, omega, u, d)
            runs.updates[run] = u
    svrg_end(reference, n_visited)
    leave(plan, runs, records, run, theta, omega, s, u, finite, next_output, output_key, d)
