"""The benchmark of agents, as data: environments, features, algorithms, step sizes, seeds and what is to be reached.

It was written before the seeds that it reports were run; presets were chosen on others (1000 and up). ‖φ‖ = 1, γ = .99,
ε falls from .1 to 0 along a line over all steps, θ₀ = 0. What is measured is the greedy policy at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gqlab.algorithms import QRC, Algorithm, GreedyGQ, QLearning, Sarsa, VRGreedyGQ
from gqlab.learn.agent.presets import PRESETS

DISCOUNT = 0.99
EPSILON = 0.1

#: Over a factor of 16.
STEP_SIZES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)


@dataclass(frozen=True)
class Environment:
    """An environment: how long agents learn in it, and the mean return from which on it counts as solved."""

    steps: int
    solved: float
    features: str
    encoder: Any
    dqn: str  # what rl-zoo3 publishes of Stable-Baselines3's DQN: one run


ENVIRONMENTS: Mapping[str, Environment] = {
    "MountainCar-v0": Environment(
        100_000, -110.0, "16 tilings of 8 × 8", PRESETS["MountainCar-v0"].encoder, "−100.8 (120k steps)"
    ),
    "CartPole-v1": Environment(
        50_000, 475.0, "8 tilings of 8 × 8 for each pair", PRESETS["CartPole-v1"].encoder, "500 (50k steps)"
    ),
    "Acrobot-v1": Environment(
        100_000,
        -100.0,
        "8 tilings of 10⁴ for both angles, and for each with both speeds",
        PRESETS["Acrobot-v1"].encoder,
        "−76.6 (100k steps)",
    ),
    "LunarLander-v3": Environment(
        300_000,
        100.0,
        "4 tilings of 6³ for each of nine triples",
        PRESETS["LunarLander-v3"].encoder,
        "154.4 (v2, 100k steps)",
    ),
}

#: Each from η_θ. QRC has β = 1; a batch of VR-Greedy-GQ is 500 steps.
ALGORITHMS: Mapping[str, Callable[[float], Algorithm]] = {
    "Q-learning": lambda eta: QLearning(eta),
    "QRC": lambda eta: QRC(eta, eta),
    "QRC(.5)": lambda eta: QRC(eta, eta, trace=0.5),
    "QRC(.9)": lambda eta: QRC(eta, eta, trace=0.9),
    "Sarsa(.9)": lambda eta: Sarsa(eta, trace=0.9),
    "Greedy-GQ, η_ω = .01 η_θ": lambda eta: GreedyGQ(eta, 0.01 * eta),
    "Greedy-GQ, η_ω = .1 η_θ": lambda eta: GreedyGQ(eta, 0.1 * eta),
    "Greedy-GQ, η_ω = η_θ": lambda eta: GreedyGQ(eta, eta),
    "VR-Greedy-GQ, η_ω = .1 η_θ": lambda eta: VRGreedyGQ(eta, 0.1 * eta, batch_size=500),
}

#: The row of the agents that ``gq.Agent.preset`` makes: one step size, chosen before.
PRESET = "preset"


@dataclass(frozen=True)
class Programme:
    """How much is run."""

    environments: tuple[str, ...]
    step_sizes: tuple[float, ...]
    n_seeds: int
    n_episodes: int
    share: float  # of the environments' steps
    first_seed: int = 0
    rows: tuple[str, ...] = tuple(ALGORITHMS)

    @property
    def seeds(self) -> range:
        """Of the agents."""
        return range(self.first_seed, self.first_seed + self.n_seeds)


FULL = Programme(("MountainCar-v0", "CartPole-v1", "Acrobot-v1"), STEP_SIZES, n_seeds=10, n_episodes=50, share=1.0)
QUICK = Programme(("MountainCar-v0", "CartPole-v1"), (1 / 4,), n_seeds=2, n_episodes=10, share=0.2)

#: LunarLander takes three times as many steps, and slower ones: fewer rows and step sizes.
LANDER = Programme(
    ("LunarLander-v3",),
    (1 / 4, 1 / 2),
    n_seeds=10,
    n_episodes=50,
    share=1.0,
    rows=("Q-learning", "QRC(.5)", "QRC(.9)", "Sarsa(.9)", "Greedy-GQ, η_ω = .1 η_θ", "VR-Greedy-GQ, η_ω = .1 η_θ"),
)
LANDER_QUICK = Programme(
    ("LunarLander-v3",), (1 / 4,), n_seeds=2, n_episodes=10, share=0.2, rows=("QRC(.5)", "Greedy-GQ, η_ω = .1 η_θ")
)

#: What the command measures ↦ in full, quick.
PROGRAMMES = {"agents": (FULL, QUICK), "lander": (LANDER, LANDER_QUICK)}


@dataclass(frozen=True)
class Goal:
    """What the benchmark must show: a median return, or a number of step sizes that solve."""

    text: str
    environment: str
    rows: tuple[str, ...]  # one of them is enough
    least: float
    counts_step_sizes: bool = False


GOALS = (
    Goal("CartPole-v1 ≥ 475 within 50k steps, the preset", "CartPole-v1", (PRESET,), 475.0),
    Goal("MountainCar-v0 ≥ −110 within 100k steps, the preset", "MountainCar-v0", (PRESET,), -110.0),
    Goal("MountainCar-v0 ≥ −110, QRC(.5) or Sarsa(.9)", "MountainCar-v0", ("QRC(.5)", "Sarsa(.9)"), -110.0),
    Goal("MountainCar-v0 solved by Sarsa(.9) at 4 of 5 step sizes", "MountainCar-v0", ("Sarsa(.9)",), 4, True),
    Goal("Acrobot-v1 ≥ −100 within 100k steps, the preset", "Acrobot-v1", (PRESET,), -100.0),
    Goal("stretch: Acrobot-v1 ≥ −80 within 100k steps, the preset", "Acrobot-v1", (PRESET,), -80.0),
    Goal("stretch: LunarLander-v3 ≥ 100 within 300k steps, the preset", "LunarLander-v3", (PRESET,), 100.0),
)
