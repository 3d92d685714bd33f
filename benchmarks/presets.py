"""Presets with replay and without, at every budget, on seeds that presets are chosen with: which is the better one?

``gq.Agent.preset(env)`` replays where that is worse at no budget, in the median and in the mean over seeds.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

import numpy as np

import gqlab as gq
from benchmarks.table import Table
from gqlab.learn.environments import limited_env
from gqlab.studies.replay.design import EVALUATION, N_EPISODES
from gqlab.support.checks import FloatArray

SEEDS = range(2080, 2085)

#: Steps after which the policies are compared.
BUDGETS: Mapping[str, tuple[int, ...]] = {
    "CartPole-v1": (500, 1000, 2000, 5000, 10_000, 20_000, 50_000),
    "MountainCar-v0": (1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000),
    "Acrobot-v1": (1000, 2000, 5000, 10_000, 20_000, 50_000),
    "CliffWalking-v1": (250, 500, 1000, 2000, 5000, 10_000),
    "Taxi-v4": (5000, 10_000, 20_000, 50_000, 100_000),
    "FrozenLake8x8-v1": (2000, 5000, 10_000, 20_000, 50_000),
    "LunarLander-v3": (10_000, 20_000, 60_000, 150_000, 300_000),
}


def costs(table: Table) -> None:
    """Every environment; LunarLander needs Box2D."""
    table.section(f"Mean returns of presets, the median over {len(SEEDS)} seeds (and their mean)")
    for name, budgets in BUDGETS.items():
        replayed, once = (returns(name, budgets, replay) for replay in (True, False))
        for k, steps in enumerate(budgets):
            for what, found in (("with replay", replayed[:, k]), ("without", once[:, k])):
                text = f"{name} after {steps:,} steps, {what}"
                table.row(text, float(np.median(found)), "return", f"({found.mean():.4g})")
        better = all((of(replayed, axis=0) >= of(once, axis=0)).all() for of in (np.median, np.mean))
        table.note(f"{'':<6}{name}: replay is {'worse at no' if better else 'not as good at every'} budget")


def returns(name: str, budgets: tuple[int, ...], replay: bool) -> FloatArray:
    """(n_seeds, n_budgets)"""
    out = np.empty((len(SEEDS), len(budgets)))
    for i, seed in enumerate(SEEDS):
        agent = gq.Agent.preset(name, seed, replay=replay)
        with contextlib.closing(limited_env(name)) as fresh:
            for k, steps in enumerate(budgets):
                agent.learn(steps - agent.num_timesteps)
                out[i, k] = agent.evaluate(fresh, N_EPISODES, seed=EVALUATION + 1000 * seed + k).mean
    return out
