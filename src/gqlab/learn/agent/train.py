"""An agent in a folder: learned, measured and kept on the way, so that the same call goes on after a kill."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gqlab.algorithms import Algorithm
from gqlab.algorithms.schedules import LinearDecay
from gqlab.learn.agent.agent import Agent
from gqlab.learn.agent.callbacks import Callback
from gqlab.learn.agent.replay import Replay
from gqlab.learn.agent.segments import FOLDER
from gqlab.learn.agent.thresholds import steps_to_threshold
from gqlab.learn.environments import limited_env
from gqlab.learn.playing import Evaluation
from gqlab.support import checks
from gqlab.support.files import check_writable, one_line, open_regular, write_whole

#: The evaluations on the way and at the end have seeds of their own.
EVALUATION = 50_000

#: What is kept of an evaluation on the way.
EVALUATED = ("steps", "mean", "least", "largest")


@dataclass(frozen=True)
class Plan:
    """What is learned, and how it is measured."""

    env: str
    encoder: Any
    algorithm: Algorithm
    discount: float
    epsilon: LinearDecay
    seed: int
    steps: int
    every: int  # steps between two checkpoints, each with an evaluation
    n_episodes: int  # of the evaluation at the end; of those on the way a fifth
    replay: Replay | None = None
    initial_value: float = 0.0
    threshold: float | None = None  # the mean return from which on it counts as solved; it decides nothing

    def settings(self) -> dict[str, Any]:
        """What must be the same for a folder's run to be resumed: everything but how far it goes."""
        return {
            "env": self.env,
            "encoder": repr(self.encoder),
            "algorithm": self.algorithm.to_dict(),
            "discount": self.discount,
            "epsilon": self.epsilon.first,
            "seed": self.seed,
            "every": self.every,
            "n_episodes": self.n_episodes,
            "replay": None if self.replay is None else self.replay.to_dict(),
            "initial_value": self.initial_value,
        }


class Checkpoints(Callback):
    """Every so many steps: evaluate, then save the evaluations and the agent."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan, self.folder, self.every = plan, folder, plan.every
        self.history: list[dict[str, float]] = []

    def on_training_start(self, agent: Agent) -> None:
        self.history = [row for row in read_history(self.folder) if row["steps"] <= agent.num_timesteps]

    def on_step(self, agent: Agent) -> None:
        returns = evaluated(agent, self.plan, max(1, self.plan.n_episodes // 5)).returns
        row = {"steps": agent.num_timesteps, "mean": returns.mean(), "least": returns.min(), "largest": returns.max()}
        self.history.append({name: float(value) for name, value in row.items()})
        text = json.dumps(_sealed(self.history), indent=1)
        write_whole(self.folder / "evaluations.json", lambda file: file.write(text.encode()))
        agent.checkpoint(self.folder / "agent.npz")


def read_history(folder: Path) -> list[dict[str, float]]:
    """The evaluations of a folder's run; ``ValueError`` where they are not what was written."""
    path = folder / "evaluations.json"
    if not path.exists():
        return []
    found = _read_json(path, list)
    try:
        rows = [{name: float(row[name]) for name in EVALUATED} for row in found]
    except (KeyError, TypeError, ValueError):
        rows = []
    if _sealed(rows) != found:
        raise ValueError(f"{path} is damaged: its content is not what was written; remove it or take another folder")
    return rows


def _sealed(rows: Sequence[dict[str, float]]) -> list[dict[str, Any]]:
    """Every row with a digest of itself and of all before it."""
    seal, sealed = hashlib.sha256(), []
    for row in rows:
        seal.update(json.dumps(row).encode())
        sealed.append({**row, "digest": seal.hexdigest()})
    return sealed


def _read_json(path: Path, kind: type) -> Any:
    """A file's document, which must be a ``kind``."""
    try:
        with open_regular(path) as file:
            found = json.loads(file.read())
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else one_line(error)
        raise ValueError(f"{path} is damaged: {reason}; take another folder") from None
    if not isinstance(found, kind):
        raise ValueError(f"{path} is damaged: it holds {checks.shown(found)}; take another folder")
    return found


def agent_in(folder: Path, plan: Plan) -> Agent:
    """The agent of a folder where it was left; a new one in an empty folder."""
    path = folder / "settings.json"
    wanted = json.dumps(plan.settings(), indent=1)
    given = json.loads(wanted)
    if not path.exists() and (folder / "agent.npz").exists():
        raise ValueError(f"out: {folder} holds an agent, but its {path.name} is missing: take another folder")
    found = _read_json(path, dict) if path.exists() else given
    for name, value in given.items():
        if found.get(name) != value:
            raise ValueError(
                f"out: {folder} holds a run with {name} {checks.shown(found.get(name))}, not {checks.shown(value)}: "
                "take another folder"
            )
    if (folder / "agent.npz").exists():
        return Agent.load(folder / "agent.npz")
    agent = Agent(
        plan.env,
        plan.encoder,
        plan.algorithm,
        discount=plan.discount,
        epsilon=plan.epsilon,
        seed=plan.seed,
        replay=plan.replay,
        initial_value=plan.initial_value,
    )
    write_whole(path, lambda file: file.write(wanted.encode()))  # what cannot be begun leaves the folder free
    return agent


def train(plan: Plan, folder: Path, progress: bool) -> tuple[Agent, Evaluation]:
    """Learn until ``plan.steps``, from where the folder's run stands; the agent, and its greedy policy measured."""
    check_writable(folder)
    read_history(folder)  # what is damaged is refused before anything is written
    agent = agent_in(folder, plan)
    left = max(0, plan.steps - agent.num_timesteps)
    agent.learn(left, Checkpoints(plan, folder), progress=progress and left > 0, log=folder)
    agent.save(folder / "agent.npz")
    shutil.rmtree(folder / FOLDER, ignore_errors=True)  # what the checkpoints on the way had there is in that file
    agent.model.save(folder / "model.npz")
    return agent, evaluated(agent, plan, plan.n_episodes)


def evaluated(agent: Agent, plan: Plan, n_episodes: int) -> Evaluation:
    """The greedy policy, in an environment whose episodes all end."""
    with contextlib.closing(limited_env(plan.env)) as env:
        return agent.evaluate(env, n_episodes, seed=EVALUATION + plan.seed)


def solved_after(plan: Plan, history: Sequence[dict[str, float]]) -> float:
    """The steps of the first evaluation on the way that reaches the threshold, if the next two do too; else ∞."""
    if plan.threshold is None:
        return math.inf
    steps, means = ([row[name] for row in history] for name in ("steps", "mean"))
    return steps_to_threshold(steps, means, plan.threshold)


def running_mean(values: Any, n: int) -> Any:
    """The mean of the last n values, or of all so far, at every place."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(1, len(sums))
    starts = np.maximum(0, ends - n)
    return (sums[ends] - sums[starts]) / (ends - starts)
