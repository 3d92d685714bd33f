"""The runs of the study: each is one call, that learns, and is checked on the way."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gqlab.algorithms import Algorithm, GreedyGQ, QLearning, SAGAGreedyGQ, SAGAQLearning, Sarsa, VRGreedyGQ
from gqlab.algorithms.schedules import Decay
from gqlab.learn.agent.agent import Agent
from gqlab.learn.agent.presets import Preset, preset_of
from gqlab.learn.agent.thresholds import HELD, steps_to_threshold
from gqlab.learn.environments import limited_env, make_env
from gqlab.learn.playing import evaluate
from gqlab.studies.agents.runs import divergence_is_a_result
from gqlab.studies.replay.design import (
    ENVIRONMENTS,
    EVALUATION,
    FIRST,
    FIXED_ROWS,
    N_EPISODES,
    ONLINE_ETA,
    RATIO,
    ROWS,
    WORST,
    ReplayPart,
)
from gqlab.support.checks import FloatArray

#: The discount of the search for the best policy: with it the shortest way is the best.
BEST_DISCOUNT = 0.99


@dataclass(frozen=True)
class ReplayRun:
    """One agent, in full: rows that come to the same are the same call."""

    environment: str
    kind: str
    reduction: str
    correction: bool
    n_step: int
    updates: float
    discount: float
    optimistic: bool  # begins at the preset's initial value, else at 0
    factor: float
    seed: int
    budget: int  # steps to threshold are at most that
    stops: bool  # when they are decided
    first: bool = True  # the preset is that of FIRST, where there is one

    def arguments(self) -> dict[str, Any]:
        """Of :class:`gqlab.Agent`, but the environment and the seed."""
        if self.kind == "preset":
            return preset_of(self.environment).arguments()
        preset = replaying_preset(self.environment, self.first)
        start = preset.initial_value if self.optimistic else 0.0
        given = preset.arguments() | {"discount": self.discount, "initial_value": start}
        if self.kind == "replay":
            assert preset.replay is not None
            how = replace(preset.replay, n_step=self.n_step, updates=self.updates)
            return given | {"algorithm": self.algorithm(preset.algorithm), "replay": how}
        eta = ONLINE_ETA * self.factor
        algorithm = Sarsa(eta, trace=0.9) if self.kind == "Sarsa" else QLearning(eta)
        return given | {"algorithm": algorithm, "replay": None}

    def algorithm(self, preset: Algorithm) -> Algorithm:
        """That of a run with replay, from the step size of the preset's."""
        eta = _times(self.factor, preset.eta_theta)
        eta_omega = _times(RATIO, eta)
        if self.reduction == "SVRG":
            return VRGreedyGQ(eta, eta_omega, batch_size=500)
        if self.correction:
            return SAGAGreedyGQ(eta, eta_omega) if self.reduction == "SAGA" else GreedyGQ(eta, eta_omega)
        return SAGAQLearning(eta) if self.reduction == "SAGA" else QLearning(eta)


def _times(factor: float, eta: float | Decay | None) -> float | Decay:
    """A step size so many times as large."""
    assert eta is not None
    return replace(eta, eta=factor * eta.eta) if isinstance(eta, Decay) else factor * eta


def learner(
    environment: str, row: str, part: ReplayPart, factor: float, discount: float | None, seed: int
) -> ReplayRun:
    """The agent of a row."""
    one, env, preset = ROWS[row], ENVIRONMENTS[environment], replaying_preset(environment, part.first)
    replays = one.kind == "replay"
    assert preset.replay is not None
    within = env.bound if part.scans else WORST * env.bound
    budget = max(env.once, within) if one.kind in ("preset", "Q-learning") else within
    return ReplayRun(
        environment=environment,
        kind=one.kind,
        reduction=(one.reduction or "SAGA") if replays else "",
        correction=replays and _or(one.correction, isinstance(preset.algorithm, SAGAGreedyGQ)),
        n_step=_or(one.n_step, preset.replay.n_step) if replays else 0,
        updates=_or(one.updates, preset.replay.updates) if replays else 0.0,
        discount=_or(discount, preset.discount),
        optimistic=discount is None,
        factor=factor,
        seed=seed,
        budget=round(part.share * budget),
        stops=part.scans or not replays,
        first=part.first,
    )


def replaying_preset(environment: str, first: bool) -> Preset:
    """The preset with replay: as it was at first, or as it is."""
    now = preset_of(environment, replay=True)
    return FIRST.get(environment, now) if first else now


def _or(value: Any, other: Any) -> Any:
    return other if value is None else value


#: What a run is of: its part, environment, row, discount, factor and seed.
Place = tuple[str, str, str, float | None, float, int]


def learners_of(design: Mapping[str, ReplayPart]) -> Iterator[tuple[Place, ReplayRun]]:
    """Every run with what it is of."""
    for name, part in design.items():
        for seed in part.seeds:
            for environment in part.environments:
                for row in part.rows:
                    for discount in part.discounts:
                        for factor in (1.0,) if row in FIXED_ROWS else part.factors:
                            one = learner(environment, row, part, factor, discount, seed)
                            yield (name, environment, row, discount, factor, seed), one


def measure(one: ReplayRun) -> dict[str, Any]:
    """Learn, and check on the way."""
    began = time.thread_time()
    env = ENVIRONMENTS[one.environment]
    agent = Agent(one.environment, seed=one.seed, **one.arguments())
    steps: list[int] = []
    excess: list[float] = []  # of the mean return over the threshold
    means: list[float] = []
    largest: list[float] = []
    with divergence_is_a_result(), contextlib.closing(limited_env(one.environment)) as fresh:
        while agent.num_timesteps < one.budget + HELD * env.every and not agent.diverged:
            agent.learn(env.every, progress=False)
            seed = EVALUATION + 1000 * one.seed + len(steps)
            steps.append(agent.num_timesteps)
            means.append(agent.evaluate(fresh, N_EPISODES, seed=seed).mean)
            wanted = best_mean(one.environment, seed) if env.threshold is None else env.threshold
            excess.append(means[-1] - wanted)
            largest.append(agent.max_q if agent.replay is not None else np.nan)
            if one.stops and np.isfinite(steps_to_threshold(steps, excess, 0.0)):
                break
    return {
        "steps": np.array(steps),
        "means": np.array(means),
        "max_q": np.array(largest),
        "to_threshold": steps_to_threshold(steps, excess, 0.0),
        "diverged": bool(agent.diverged),
        "times": {"cpu_seconds": time.thread_time() - began},
    }


def best_mean(environment: str, seed: int) -> float:
    """The mean return of a best policy from the very same starts, where the environment has a table P."""
    return evaluate(best_policy(environment), environment, N_EPISODES, seed=seed).mean


_best: dict[str, FloatArray] = {}


def best_policy(environment: str) -> FloatArray:
    """A best action of every state with probability 1, (S, A), by value iteration."""
    if environment not in _best:
        env: Any = make_env(environment).unwrapped
        table = env.P
        n_states, n_actions = len(table), len(table[0])
        shape = n_states, n_actions
        q = np.zeros(shape)
        for _ in range(1000):
            v = q.max(axis=1)
            q = np.array([[_expected(table[s][a], v) for a in range(n_actions)] for s in range(n_states)])
            if np.abs(q.max(axis=1) - v).max() < 1e-10:
                break
        _best[environment] = np.eye(n_actions)[q.argmax(axis=1)]
    return _best[environment]


def _expected(outcomes: Any, v: FloatArray) -> float:
    """E[r + γ v(s')], with no value behind the end."""
    return float(sum(p * (r + BEST_DISCOUNT * (not over) * v[s]) for p, s, r, over in outcomes))


def label_of(place: Place) -> str:
    """For people."""
    part, environment, row, discount, factor, seed = place
    gamma = "" if discount is None else f", γ = {discount:g}"
    return f"{part}: {environment}, {row}{gamma}, η × {factor:g}, seed {seed}"
