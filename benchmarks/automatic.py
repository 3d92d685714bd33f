"""Agents that nobody has chosen anything for: python -m benchmarks.automatic [FOLDER]

Written down before the run. Six environments of Gymnasium for which gqlab has no preset; those with continuous actions
have them cut into a few by Gymnasium's own wrapper. In each, ``gq.Agent(env)`` as it stands learns for 100,000 steps,
with the seeds 0 to 9, and its greedy policy is then played for 100 episodes, which end after 1,000 steps where the
environment sets no limit. The claim: in at least five of the six the lower end of the 95 % interval (Student's, over the
ten seeds' means) lies above the mean return of actions at random, over 1,000 episodes in the same environment. Nothing
was tuned on these environments. It is run once.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from pathlib import Path
from typing import Any

import numpy as np

import gqlab as gq
from gqlab.learn.environments import EnvPlan
from gqlab.studies.intervals import student

#: An id, and the bins of its actions where these are continuous.
ENVIRONMENTS: dict[str, int | None] = {
    "FrozenLake-v1": None,
    "Blackjack-v1": None,
    "CliffWalkingSlippery-v1": None,
    "Pendulum-v1": 5,
    "MountainCarContinuous-v0": 5,
    "LunarLanderContinuous-v3": 3,
}

STEPS, SEEDS, EPISODES, RANDOM_EPISODES = 100_000, range(10), 100, 1_000

#: Of six environments, those that must be better than chance.
WANTED = 5


def wrappers_of(bins: int | None) -> tuple[tuple[str, dict[str, Any]], ...]:
    """What stands around an environment."""
    return () if bins is None else (("DiscretizeAction", {"bins": bins}),)


def random_mean(env: str, bins: int | None) -> float:
    """The mean return of actions at random."""
    with contextlib.closing(EnvPlan(env, wrappers=wrappers_of(bins)).make(limited=True)) as made:
        n = made.action_space.n
        return gq.evaluate(lambda rows: np.full((len(rows), n), 1 / n), made, RANDOM_EPISODES, seed=77).mean


def measure(env: str, bins: int | None, folder: Path) -> tuple[float, Any, gq.Seeds]:
    """The mean of random actions, the interval of what was learned, and all of that."""
    found = gq.learn_many(
        env, seeds=SEEDS, total_timesteps=STEPS, every=STEPS // 5, n_episodes=EPISODES, epsilon=0.1,
        folder=folder / env, wrappers=wrappers_of(bins),
    )  # fmt: skip
    return random_mean(env, bins), student(found.means), found


def main(folder: Path) -> None:
    """Measure all, and say whether the claim holds."""
    logging.getLogger("gqlab").setLevel(logging.ERROR)
    header = ("environment", "random actions", "learned: mean", "95 %, low", "high", "IQM", "better")
    rows, better = [], 0
    for env, bins in ENVIRONMENTS.items():
        chance, interval, found = measure(env, bins, folder)
        better += interval.low > chance
        numbers = (chance, interval.mean, interval.low, interval.high, found.iqm)
        rows.append([env, *(f"{number:.2f}" for number in numbers), "yes" if interval.low > chance else "no"])
        print(rows[-1], flush=True)
    print(f"\n{'  '.join(header)}")
    for row in rows:
        print("  ".join(row))
    print(f"\nbetter than chance in {better} of {len(rows)}: the claim {'holds' if better >= WANTED else 'fails'}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("results/automatic"))
