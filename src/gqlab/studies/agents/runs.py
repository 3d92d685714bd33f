"""The agents of the benchmark: each is one call, that learns and is measured."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from gqlab.algorithms.schedules import LinearDecay
from gqlab.learn.agent.agent import Agent
from gqlab.learn.agent.presets import preset_of
from gqlab.studies.agents.design import ALGORITHMS, DISCOUNT, ENVIRONMENTS, EPSILON, PRESET, Programme

#: Added to the seed of an agent: the episodes that measure it are others than those that it learned in.
EVALUATION = 50_000


@dataclass(frozen=True)
class Learner:
    """One agent: where it learns, with what, and for how long."""

    environment: str
    row: str
    step_size: float | None  # None: that of the preset
    seed: int
    steps: int
    n_episodes: int

    def arguments(self) -> dict[str, Any]:
        """Of :class:`gqlab.Agent`."""
        if self.step_size is None:
            return preset_of(self.environment).arguments()
        return {
            "encoder": ENVIRONMENTS[self.environment].encoder,
            "algorithm": ALGORITHMS[self.row](self.step_size),
            "discount": DISCOUNT,
            "epsilon": LinearDecay(EPSILON, 0.0, over=self.steps),
        }


def learners_of(programme: Programme) -> list[Learner]:
    """All agents, those of one seed together, so that a part of the seeds is a whole table."""
    out = []
    n = programme.n_episodes
    for seed in programme.seeds:
        for name in programme.environments:
            steps = round(programme.share * ENVIRONMENTS[name].steps)
            out.append(Learner(name, PRESET, None, seed, steps, n))
            out += [Learner(name, row, eta, seed, steps, n) for row in programme.rows for eta in programme.step_sizes]
    return out


def measure(learner: Learner) -> dict[str, Any]:
    """Learn, and play the greedy policy."""
    began = time.thread_time()
    agent = Agent(learner.environment, seed=learner.seed, **learner.arguments())
    with divergence_is_a_result():
        agent.learn(learner.steps)
    returns = agent.evaluate(n_episodes=learner.n_episodes, seed=EVALUATION + learner.seed).returns
    return {
        "mean": float(returns.mean()),
        "returns": returns,
        "diverged": bool(agent.diverged),
        "times": {"cpu_seconds": time.thread_time() - began},
    }


_lock = threading.Lock()
_quiet: list[Any] = []


@contextmanager
def divergence_is_a_result() -> Iterator[None]:
    """No warning of an agent that diverged, on any thread: filters belong to the process."""
    with _lock:
        if not _quiet:
            context = warnings.catch_warnings()
            context.__enter__()
            warnings.simplefilter("ignore", RuntimeWarning)
        else:
            context = _quiet[0]
        _quiet.append(context)
    try:
        yield
    finally:
        with _lock:
            _quiet.pop()
            if not _quiet:
                context.__exit__(None, None, None)
