"""Agents beside their environments, and steps on sparse features as d grows.

Times are of the processor, on one core: other programs on the machine do not count.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import gqlab as gq
from benchmarks.table import Table
from gqlab.learn.agent.live import STEPPED, live_step
from gqlab.learn.agent.presets import PRESETS
from gqlab.learn.fit.passes import Passes, values_of
from gqlab.operators.switch import join_operators
from gqlab.rules.blocks import BinaryBlocks, DenseBlocks
from gqlab.rules.gradient import Samples
from gqlab.rules.memory import Sizes
from gqlab.samples.tables import per_problem

#: Features of a state that are not zero, and actions.
N_ACTIVE, A = 17, 3

DQN = """
import sys, time
sys.path.insert(0, sys.argv[1])
import gymnasium
import torch
from stable_baselines3 import DQN
torch.set_num_threads(1)
for name in ("CartPole-v1", "MountainCar-v0", "Acrobot-v1"):
    agent = DQN("MlpPolicy", name, learning_starts=500, seed=0)
    agent.learn(600)
    begin = time.process_time()
    agent.learn(3000, reset_num_timesteps=False)
    print(3000 / (time.process_time() - begin))
"""


def costs(table: Table, scale: float, sb3: Path | None) -> None:
    """All of it."""
    environments(table, scale, sb3)
    sparse(table, scale)


def environments(table: Table, scale: float, sb3: Path | None) -> None:
    """A step of the agent beside one of its environment, and steps a second of both together."""
    table.section("An agent's step beside its environment's (the presets: Sarsa(.9), tile coding)")
    n = int(50_000 * scale)
    for name in ("CartPole-v1", "MountainCar-v0", "Acrobot-v1"):
        agent = gq.Agent(name, PRESETS[name].encoder, PRESETS[name].algorithm)
        agent.learn(1000)
        begin = time.process_time()
        agent.learn(n)
        together = (time.process_time() - begin) / n
        seen = observations(name, 2000)
        table.row(f"{name}: encode, choose, update", agent_step(agent, seen, n) * 1e6, "us")
        table.row(f"{name}: env.step", env_step(name, n) * 1e6, "us")
        table.row(f"{name}: agent and environment", 1 / together, "steps/s")
    if sb3 is None:
        table.note("Stable-Baselines3's DQN: skipped, no --peer sb3=PATH")
        return
    command = [sys.executable, "-W", "ignore", "-c", DQN, str(sb3)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        table.note(f"Stable-Baselines3 does not run here: {done.stderr.strip().splitlines()[-1]}")
    for name, figure in zip(("CartPole-v1", "MountainCar-v0", "Acrobot-v1"), done.stdout.split(), strict=False):
        what = f"{name}: Stable-Baselines3's DQN"
        table.row(what, float(figure), "steps/s")
        table.note(f"{'':<6}ours: {table.ratio(f'{name}: agent and environment', what)}")


def observations(name: str, n: int) -> list[Any]:
    """Observations of one long episode of random actions."""
    env = gymnasium.make(name).unwrapped
    seen = [env.reset(seed=0)[0]]
    env.action_space.seed(0)
    while len(seen) < n:
        observation, _, over, _, _ = env.step(env.action_space.sample())
        seen.append(env.reset()[0] if over else observation)
    return seen


def agent_step(agent: gq.Agent, seen: list[Any], n: int) -> float:
    """Seconds of the agent's own share of a step: it is shown observations that were made before."""
    worker = agent._worker
    live, held, write, d, n_actions = worker.live, worker.held, worker.shown.write, worker.d, worker.A
    live.terminated[0], live.status[0], live.reward[0] = 0, STEPPED, 0.0
    times = []
    for _ in range(max(3, n // len(seen))):
        begin = time.process_time()
        for observation in seen:
            write(observation, live.observation)
            live.reward[0] = -1.0
            live.terminated[0] = False
            live.status[0] = STEPPED
            live_step(held, d, n_actions)
            live.action.item(0)
        times.append((time.process_time() - begin) / len(seen))
    return min(times)


def env_step(name: str, n: int) -> float:
    """Seconds of the environment's step, with the wrappers that ``gymnasium.make`` puts around it."""
    env = gymnasium.make(name)
    env.reset(seed=0)
    times = []
    for _ in range(3):
        spent, begin = 0.0, time.process_time()
        for _ in range(n // 3):
            _, _, terminated, truncated, _ = env.step(0)
            if terminated or truncated:
                paused = time.process_time()
                env.reset()
                spent += time.process_time() - paused
        times.append((time.process_time() - begin - spent) / (n // 3))
    return min(times)


def log(n: int, K: int, dense: bool) -> Samples:
    """n transitions with random features, in the order in which they are read."""
    rng = np.random.default_rng(0)
    n_active = K if dense else N_ACTIVE
    sizes = {"n_active": per_problem([n_active]), "n_features": per_problem([K]), "n_actions": per_problem([A])}
    binary: Any = BinaryBlocks
    many: Any = DenseBlocks
    if dense:
        features = many(rng.normal(size=2 * n * K) / np.sqrt(K), **sizes)
    else:
        places = rng.integers(0, K, 2 * n * N_ACTIVE).astype(np.int32)
        features = binary(places, np.array([1 / np.sqrt(N_ACTIVE)]), **sizes)
    target = gq.Softmax(1.0)
    first = 2 * A * np.arange(n)
    return Samples(
        features=features,
        operator=join_operators([target], [2 * n * A], [target.compiled], float),
        row=(first + rng.integers(0, A, n)).astype(np.uint32),
        next_row=(first + A).astype(np.uint32),
        reward=rng.uniform(-1, 1, n),
        discount=np.where(rng.uniform(size=n) < 0.1, 0.0, 0.95),
        behavior=np.zeros(1),
        first_row=per_problem([0]),
        first_sample=per_problem([0]),
    )


def per_step(samples: Samples, d: int, algorithm: gq.Algorithm, n: int) -> float:
    """Nanoseconds of an update in a pass over the log."""
    times = []
    values = values_of(algorithm, algorithm.estimator)
    passes = Passes(samples, Sizes(d, A, 2 * n, n, 5 * n), algorithm, algorithm.estimator, values)
    for k in range(4):
        begin = time.process_time()
        passes.advance((k + 1) * n)
        times.append((time.process_time() - begin) / n)
    return min(times[1:]) * 1e9


def sparse(table: Table, scale: float) -> None:
    """Steps at d = 10³ … 10⁶ with as many features that are not zero."""
    table.section(f"A step on sparse features, {N_ACTIVE} of a state not zero, {A} actions, rows read in order")
    n = int(200_000 * scale)
    for d in (10**3, 10**4, 10**5, 10**6):
        K = d // A
        samples = log(n, K, dense=False)
        plain, reduced = gq.GreedyGQ(0.1, 0.05, radius=5.0), gq.VRGreedyGQ(0.1, 0.05, batch_size=n, radius=5.0)
        table.row(f"Greedy-GQ, d = {d:,}", per_step(samples, A * K, plain, n), "ns")
        table.row(f"VR-Greedy-GQ, one batch, d = {d:,}", per_step(samples, A * K, reduced, n), "ns")
        if d < 10**6:
            few = 50_000_000 // d // 10
            figure = per_step(log(few, K, dense=True), A * K, plain, few)
            table.row(f"Greedy-GQ, dense, d = {d:,}", figure, "ns")
    for name in ("Greedy-GQ", "VR-Greedy-GQ, one batch"):
        table.note(f"{'':<6}{name}, d = 1,000,000: {table.ratio(f'{name}, d = 1,000,000', f'{name}, d = 1,000')}")
