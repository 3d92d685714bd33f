"""What a step of an agent that replays costs, without its environment's, and what a transition takes in memory.

Times are of the processor, on one core, the shortest of several.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import gqlab as gq
from benchmarks.table import Table
from gqlab.learn.agent.live import STEPPED, live_step
from gqlab.learn.agent.room import BY_OBSERVATION, BY_SAMPLE, part_of

#: 16 tilings of 8 × 8, as MountainCar's preset has them.
ENCODER = gq.TileCoder(n_tilings=16, bins=8)

ALGORITHMS: dict[str, Any] = {
    "Q-learning": gq.QLearning(0.02),
    "SAGA-Q-learning": gq.SAGAQLearning(0.02),
    "SAGA-Greedy-GQ": gq.SAGAGreedyGQ(0.02, 0.002),
}

#: Steps that are timed together.
STEPS = 500


def log_of(n: int) -> gq.Transitions:
    """So many transitions anywhere in MountainCar's space, in episodes of 200."""
    random = np.random.default_rng(0)
    states = random.uniform([-1.2, -0.07], [0.6, 0.07], (n + 1, 2))
    cut = np.arange(n) % 200 == 199
    actions = random.integers(0, 3, n)
    return gq.Transitions.from_arrays(states[:-1], actions, -np.ones(n), states[1:], truncated=cut, n_actions=3)


def filled(algorithm: Any, data: gq.Transitions) -> gq.Agent:
    """An agent that keeps these transitions, and from here on makes 16 updates a step."""
    agent = gq.Agent("MountainCar-v0", ENCODER, algorithm, replay=gq.Replay(updates=1e-9, n_step=2))
    agent.learn(10).learn_from(data)
    agent._live.stream.updates[0] = 16.0
    return agent


def step_time(agent: gq.Agent, repeats: int) -> float:
    """Processor seconds of a step, observations anywhere."""
    states = np.random.default_rng(1).uniform([-1.2, -0.07], [0.6, 0.07], (STEPS, 2))
    times = []
    for _ in range(repeats):
        agent._make_room(STEPS)
        live, held, d = agent._live, agent._worker.held, agent._worker.d
        live.status[0], live.reward[0], live.terminated[0] = STEPPED, -1.0, 0
        begin = time.process_time()
        for k in range(STEPS):
            live.observation[:] = states[k]
            live_step(held, d, 3)
        times.append((time.process_time() - begin) / STEPS)
    return min(times)


def bytes_kept(agent: gq.Agent) -> float:
    """Bytes of the tables for each sample that they hold, room for more included."""
    live = agent._live
    arrays = [part_of(live, path) for path in (*BY_OBSERVATION, *BY_SAMPLE)]
    marks = live.stream.marks
    return float(sum(array.nbytes for array in arrays if array is not None) / (marks[2] - marks[1]))


def costs(table: Table, scale: float) -> None:
    """All of it."""
    table.section(
        "A step of an agent that replays, without its environment's (16 tilings of 8 × 8, 3 actions, 16 updates)"
    )
    sizes = (10_000, 1_000_000)
    logs = {n: log_of(n) for n in sizes}
    for name, algorithm in ALGORITHMS.items():
        for n in sizes:
            agent = filled(algorithm, logs[n])
            what = f"{name}, {n:,} transitions kept"
            table.row(what, 1e6 * step_time(agent, max(3, int(20 * scale))), "µs a step")
            if n == sizes[1]:
                table.note(f"    {table.ratio(what, f'{name}, {sizes[0]:,} transitions kept')}")
                table.row(f"{name}, memory", bytes_kept(agent), "bytes a transition", "its raw observation included")
