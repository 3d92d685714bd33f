"""An agent in a file: everything that it needs to go on bit for bit."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gqlab import algorithms
from gqlab.algorithms.schedules import LinearDecay
from gqlab.engine.ranges import check_range
from gqlab.learn.agent.replay import replay_from_dict
from gqlab.learn.agent.saved_parts import restore_parts, saved_parts
from gqlab.learn.agent.segments import FOLDER
from gqlab.learn.agent.workers import SingleWorker
from gqlab.learn.environments import env_of, recipe_of
from gqlab.learn.linear_q import encoder_to_dict, probes_of, read_saved, saved_encoder
from gqlab.operators import Operator
from gqlab.operators.saved import operator_from_dict, operator_to_dict
from gqlab.support import checks
from gqlab.support.files import reading, write_arrays

if TYPE_CHECKING:
    from gqlab.learn.agent.agent import Agent

FORMAT = "gqlab.Agent 1"

#: What the header of a file must have.
KEYS = (
    "encoder",
    "algorithm",
    "target",
    "discount",
    "epsilon",
    "seed",
    "env",
    "n_envs",
    "steps",
    "begun",
    "total",
    "replay",
    "initial_value",
    "segments",
)


def save_agent(agent: Agent, path: str | os.PathLike[str], in_segments: bool = False) -> None:
    """Write an agent; with ``in_segments`` what will not change any more goes into files beside its own."""
    worker, file = agent._worker, Path(checks.path("path", path))
    own, kept, segments = saved_parts(agent, file.parent / FOLDER if in_segments else None)
    single = worker if isinstance(worker, SingleWorker) else None
    header = {
        "format": FORMAT,
        "encoder": encoder_to_dict(agent.encoder),
        "algorithm": agent.algorithm.to_dict(),
        "target": operator_to_dict(agent.target),
        "discount": agent.discount,
        "epsilon": asdict(agent.epsilon),
        "seed": agent.seed,
        "env": recipe_of(agent.env),
        "n_envs": len(agent._live.status),
        "steps": worker.steps,
        "begun": single is not None and single.begun,
        "total": 0.0 if single is None else single.total,
        "replay": None if agent.replay is None else agent.replay.to_dict(),
        "initial_value": agent.initial_value,
        "segments": segments,
    }
    episodes = agent.episodes
    arrays = {
        "header": np.array(json.dumps(header)),
        "episodes.returns": np.array(episodes.returns, dtype=np.float64),
        "episodes.lengths": np.array(episodes.lengths, dtype=np.int64),
        "episodes.ends": np.array(episodes.ends, dtype=np.int64),
        "actions": np.array([] if single is None else single.actions, dtype=np.int64),
        **{f"live.{name}": array for name, array in own},
        **{f"kept.{name}": array for name, array in kept.items()},
        **probes_of(agent.encoder),
    }
    write_arrays(file, arrays)


def load_agent(
    kind: type[Agent],
    path: str | os.PathLike[str],
    env: Any,
    encoder: Any,
    operators: Sequence[type[Operator]] | None = None,
) -> Agent:
    """Read an agent, and bring its environment to where it was."""
    arrays, header = read_saved(path, FORMAT, KEYS)
    with reading(path):
        n_envs = checks.integer("n_envs", header["n_envs"], least=1)
        steps = checks.integer("steps", header["steps"], least=0, below=2**48)
        total = checks.number("total", header["total"])
        given, further = _arguments(header, arrays, encoder, operators)
    if env is None and n_envs > 1:
        raise ValueError(f"env is missing: the agent had a vector environment of {n_envs}")
    if env is None and header["env"] is None:
        raise ValueError("env is missing: cannot recreate this environment: pass env=")
    with reading(path):
        agent = kind(env_of(header["env"]) if env is None else env, *given, **further)
        restore_parts(agent, arrays, header, Path(path).parent / FOLDER)
        _restore_episodes(agent, arrays)
    agent._worker.steps = steps
    if header["begun"] and isinstance(agent._worker, SingleWorker):
        with reading(path):
            _play_again(agent._worker, arrays["actions"], total)
    return agent


def _restore_episodes(agent: Agent, arrays: Mapping[str, NDArray[Any]]) -> None:
    """The episodes that are over, and the actions of the one that is not."""
    found = {name: arrays[f"episodes.{name}"] for name in ("returns", "lengths", "ends")}
    kinds = [(array.dtype.str[1:], array.shape) for array in (*found.values(), arrays["actions"])]
    n = found["returns"].shape
    if kinds != [("f8", n), ("i8", n), ("i8", n), ("i8", arrays["actions"].shape)] or len(n) != 1:
        raise ValueError(f"the file holds {kinds} as its episodes: it is damaged")
    check_range("actions", arrays["actions"].reshape(-1), (0, agent.n_actions))
    for name, within in (("returns", None), ("lengths", (0, 2**48)), ("ends", (0, 2**48))):
        check_range(f"episodes.{name}", found[name], within)
        getattr(agent.episodes, name).extend(found[name].tolist())


def _arguments(
    header: dict[str, Any], arrays: Mapping[str, NDArray[Any]], encoder: Any, operators: Any
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What the agent was made with."""
    return (saved_encoder(header, arrays, encoder), algorithms.from_dict(header["algorithm"])), {
        "discount": header["discount"],
        "epsilon": LinearDecay(**header["epsilon"]),
        "target": operator_from_dict(header["target"], operators),
        "seed": header["seed"],
        "replay": replay_from_dict(header["replay"]),
        "initial_value": header["initial_value"],
    }


def _play_again(worker: SingleWorker, actions: NDArray[np.int64], total: float) -> None:
    """Bring the environment to where it was: its episode's seed, then the actions that were taken."""
    observation = worker.begin()
    for action in actions.tolist():
        observation, _, terminated, truncated, _ = worker.env.step(action)
        worker.actions.append(action)
        if terminated or truncated:
            raise ValueError("env: played again, the episode ends earlier: this environment does not repeat itself")
    shown = worker.shown.flatten(observation)
    first = len(actions) == 0 and len(worker.episodes) > 0
    wanted = worker.live.first_observation if first else worker.live.observation
    if not np.array_equal(shown, wanted):
        raise ValueError(
            f"env: played again, it shows {shown} where it showed {wanted}: an agent cannot resume in an "
            "environment that does not repeat itself for a seed"
        )
    worker.total, worker.begun = total, True
