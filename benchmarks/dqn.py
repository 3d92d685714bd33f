"""Stable-Baselines3's DQN, with the settings of RL Baselines3 Zoo, for all its steps: its curves, as a file.

``gqlab benchmark replay --beside FILE`` shows them beside its own: the checks are the same, the policy without
exploration over 20 episodes every 500 steps, from the same starts. Nothing of that library is here.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.table import Table
from gqlab.learn.agent.thresholds import steps_to_threshold
from gqlab.studies.replay.design import ENVIRONMENTS, EVALUATION, N_EPISODES
from gqlab.support.files import write_whole

SEEDS = (200, 201, 202)

#: Steps, and the arguments of DQN, of which those that are the same stand below.
SETTINGS: dict[str, tuple[int, dict[str, Any]]] = {
    "CartPole-v1": (
        50_000,
        {
            "learning_rate": 2.3e-3, "batch_size": 64, "buffer_size": 100_000, "learning_starts": 1000, "gamma": 0.99,
            "target_update_interval": 10, "train_freq": 256, "gradient_steps": 128, "exploration_fraction": 0.16,
            "exploration_final_eps": 0.04,
        },
    ),
    "MountainCar-v0": (
        120_000,
        {
            "learning_rate": 4e-3, "batch_size": 128, "buffer_size": 10_000, "learning_starts": 1000, "gamma": 0.98,
            "target_update_interval": 600, "train_freq": 16, "gradient_steps": 8, "exploration_fraction": 0.2,
            "exploration_final_eps": 0.07,
        },
    ),
    "Acrobot-v1": (
        100_000,
        {
            "learning_rate": 6.3e-4, "batch_size": 128, "buffer_size": 50_000, "learning_starts": 0, "gamma": 0.99,
            "target_update_interval": 250, "train_freq": 4, "gradient_steps": -1, "exploration_fraction": 0.12,
            "exploration_final_eps": 0.1,
        },
    ),
}  # fmt: skip

RUN = """
import json, sys, time
path, name, seed, steps, every, n, evaluation, settings = sys.argv[1:]
sys.path.insert(0, path)
import gymnasium, numpy as np, torch
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback
torch.set_num_threads(1)
seed, n, checked, envs = int(seed), int(n), {"steps": [], "means": [], "seconds": 0.0}, []

class Check(BaseCallback):
    def _on_step(self):
        if self.num_timesteps % int(every) == 0:
            begin = time.process_time()
            check(self.model, self.num_timesteps)
            checked["seconds"] += time.process_time() - begin
        return True

def check(model, steps):
    first = int(evaluation) + 1000 * seed + len(checked["steps"])
    starts = [int(np.random.SeedSequence([first, k]).generate_state(1)[0]) for k in range(n)]
    shown = np.array([env.reset(seed=start)[0] for env, start in zip(envs, starts)])
    returns, going = np.zeros(n), list(range(n))
    while going:
        actions, _ = model.predict(shown[going], deterministic=True)
        for e, action in zip(list(going), actions):
            shown[e], reward, terminated, truncated, _ = envs[e].step(int(action))
            returns[e] += reward
            if terminated or truncated:
                going.remove(e)
    checked["steps"].append(steps)
    checked["means"].append(float(returns.mean()))

envs = [gymnasium.make(name) for _ in range(n)]
agent = DQN("MlpPolicy", name, seed=seed, device="cpu", policy_kwargs={"net_arch": [256, 256]}, **json.loads(settings))
begin = time.process_time()
agent.learn(int(steps), callback=Check())
checked["seconds"] = time.process_time() - begin - checked["seconds"]
print(json.dumps(checked))
"""


def curves(table: Table, path: Path, out: Path, scale: float = 1.0) -> None:
    """Learn with every seed, and write what the checks found, after every agent."""
    table.section("Stable-Baselines3's DQN, settings of RL Baselines3 Zoo")
    found: dict[str, dict[str, Any]] = {name: {} for name in SETTINGS}
    for seed in SEEDS:
        for name, (steps, settings) in SETTINGS.items():
            about = ENVIRONMENTS[name]
            numbers = (seed, int(scale * steps), about.every, N_EPISODES, EVALUATION)
            words = [str(path), name, *map(str, numbers), json.dumps(settings)]
            done = subprocess.run(
                [sys.executable, "-W", "ignore", "-c", RUN, *words], capture_output=True, text=True, check=False
            )
            if done.returncode:
                table.note(f"Stable-Baselines3 does not run here: {done.stderr.strip().splitlines()[-1]}")
                return
            one = found[name][str(seed)] = json.loads(done.stdout.splitlines()[-1])
            assert about.threshold is not None
            solved = steps_to_threshold(one["steps"], one["means"], about.threshold)
            table.row(f"{name}, seed {seed}: steps to {about.threshold:g}", solved, "steps")
            table.row(f"{name}, seed {seed}: a step, checks aside", 1e6 * one["seconds"] / steps, "µs")
            _write(found, out)


def _write(found: dict[str, dict[str, Any]], out: Path) -> None:
    text = json.dumps({"name": "DQN (Stable-Baselines3)", "curves": found}, indent=1)
    write_whole(out, lambda file: file.write(text.encode()))
