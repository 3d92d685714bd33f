"""An agent in a folder: learned, measured and kept on the way, so that the same call goes on after a kill."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
from gqlab.learn.environments import EnvPlan, Wrapper
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
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)
    wrappers: tuple[Wrapper, ...] = ()

    @property
    def world(self) -> EnvPlan:
        """How the environment is made."""
        return EnvPlan(self.env, self.env_kwargs, self.wrappers)

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
            **self.world.to_dict(),
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


#: What a folder of an earlier release does not say: there was nothing else.
UNSAID: Mapping[str, Any] = {"kwargs": {}, "wrappers": []}


def usual_exploration(steps: int, epsilon: float = 0.1) -> LinearDecay:
    """A share of actions at random that falls to 0 over all steps."""
    return LinearDecay(checks.number("epsilon", epsilon, least=0, most=1), 0.0, over=steps)


def agent_in(folder: Path, plan: Plan, force: bool = False) -> Agent:
    """The agent of a folder where it was left; a new one in an empty folder, or where it is to start over."""
    path = folder / "settings.json"
    wanted = json.dumps(plan.settings(), indent=1)
    given = json.loads(wanted)
    if force:
        return _begun(folder, plan, wanted)
    if not path.exists() and (folder / "agent.npz").exists():
        raise ValueError(f"out: {folder} holds an agent, but its {path.name} is missing: take another folder")
    found = _read_json(path, dict) if path.exists() else given
    for name, value in given.items():
        if found.get(name, UNSAID.get(name)) != value:
            raise ValueError(
                f"out: {folder} holds a run with {name} {checks.shown(found.get(name))}, not {checks.shown(value)}: "
                "start over with --force, or take another folder with --out"
            )
    if (folder / "agent.npz").exists():
        return Agent.load(folder / "agent.npz", env=plan.world.make())
    return _begun(folder, plan, wanted)


def _begun(folder: Path, plan: Plan, settings: str) -> Agent:
    """A new agent, in a folder that holds nothing of an earlier one."""
    agent = Agent(
        plan.world.make(),
        plan.encoder,
        plan.algorithm,
        discount=plan.discount,
        epsilon=plan.epsilon,
        seed=plan.seed,
        replay=plan.replay,
        initial_value=plan.initial_value,
    )
    for name in ("agent.npz", "evaluations.json", "progress.csv"):
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder / FOLDER, ignore_errors=True)
    # What cannot be begun leaves the folder as it was.
    write_whole(folder / "settings.json", lambda file: file.write(settings.encode()))
    return agent


def train(plan: Plan, folder: Path, progress: bool, force: bool = False) -> tuple[Agent, Evaluation]:
    """Learn until ``plan.steps``, from where the folder's run stands; the agent, and its greedy policy measured.

    With ``force`` it starts over, whatever the folder holds of an earlier run.
    """
    check_writable(folder)
    if not force:
        read_history(folder)  # what is damaged is refused before anything is written
    agent = agent_in(folder, plan, force)
    left = max(0, plan.steps - agent.num_timesteps)
    agent.learn(left, Checkpoints(plan, folder), progress=progress and left > 0, log=folder)
    agent.save(folder / "agent.npz")
    shutil.rmtree(folder / FOLDER, ignore_errors=True)  # what the checkpoints on the way had there is in that file
    agent.model.save(folder / "model.npz")
    return agent, evaluated(agent, plan, plan.n_episodes)


def evaluated(agent: Agent, plan: Plan, n_episodes: int) -> Evaluation:
    """The greedy policy, in an environment whose episodes all end."""
    with contextlib.closing(plan.world.make(limited=True)) as env:
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
