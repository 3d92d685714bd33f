"""What ``gqlab compare`` compares, as data: problems, algorithms, budgets, statistics.

Everything that decides a figure stands here. The problems' seeds were used for nothing else: step sizes and other
defaults were settled on the Garnets 1000 to 1023.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gqlab.algorithms import (
    Algorithm,
    AveragedGreedyGQ,
    GreedyGQ,
    LeastSquaresGreedyGQ,
    NestedGreedyGQ,
    SAGAGreedyGQ,
    SARAHGreedyGQ,
    STORMGreedyGQ,
    StreamingGreedyGQ,
    VRGreedyGQ,
)
from gqlab.algorithms.schedules import Decay
from gqlab.mdp.finite import FiniteMDP
from gqlab.operators import FixedPolicy, Mellowmax, Operator, Softmax
from gqlab.problems.features import random_features
from gqlab.problems.garnet import garnet
from gqlab.problems.problem import Problem
from gqlab.support.checks import FloatArray

#: R, the radius of the projection.
RADIUS = 100.0
#: Where the table looks.
MOMENTS = (3_000, 10_000, 30_000, 100_000, 300_000)
#: Samples between two records.
RECORD_SAMPLES = 1_000
#: Step sizes are multiplied by these to see how robust an algorithm is: the share of them that ends within
#: ROBUST_WITHIN times the best one, in the median over problems.
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
ROBUST_WITHIN = 4.0
#: A problem counts as near the floor up to this multiple of it.
NEAR = 2.0


@dataclass(frozen=True)
class Budget:
    """How much is run."""

    n_problems: int = 12
    n_runs: int = 10
    robust_runs: int = 3
    n_samples: int = 300_000
    first_seed: int = 31_000  # problem k has seed first_seed + k, for its kernel, its features and its trajectories

    @property
    def seeds(self) -> tuple[int, ...]:
        """Of the problems."""
        return tuple(self.first_seed + k for k in range(self.n_problems))

    @property
    def moments(self) -> tuple[int, ...]:
        """Where the table looks: the usual numbers of samples, as far as the budget goes."""
        return tuple(n for n in MOMENTS if n <= self.n_samples) or (self.n_samples,)


FULL = Budget()
QUICK = Budget(n_problems=4, n_runs=5, robust_runs=2, n_samples=30_000, first_seed=1000)


def garnet_problem(
    n_states: int = 5, n_actions: int = 3, branching: int = 2, dim: int = 4, discount: float = 0.95,
    target: Callable[[np.random.Generator, int, int], Operator] = lambda rng, S, A: Softmax(1.0),
) -> Callable[[int], Problem]:  # fmt: skip
    """Garnets with random features of unit rows, by their seed."""

    def build(seed: int) -> Problem:
        mdp = garnet(n_states, n_actions, branching, discount, seed=seed)
        operator = target(np.random.default_rng([seed, 1]), n_states, n_actions)
        return Problem(mdp, random_features(mdp, dim=dim, seed=seed), target=operator)

    return build


def frozen_lake(seed: int) -> Problem:
    mdp = FiniteMDP.from_gymnasium("FrozenLake-v1", discount=0.95)
    return Problem(mdp, random_features(mdp, dim=8, kind="gaussian", seed=seed), target=Softmax(1.0))


def random_policy(rng: np.random.Generator, S: int, A: int) -> Operator:
    """Rows drawn from a flat Dirichlet distribution."""
    return FixedPolicy(rng.dirichlet(np.ones(A), size=S))


@dataclass(frozen=True)
class Family:
    """A family of problems: what it is in words, and problem by seed."""

    title: str
    build: Callable[[int], Problem]


#: By the name that the command knows. θ₀ = 1 everywhere.
FAMILIES: Mapping[str, Family] = {
    "garnet": Family("Garnet(5,3,2,4), γ = 0.95, softmax σ = 1", garnet_problem()),
    "garnet-gamma-0.9": Family("Garnet(5,3,2,4), γ = 0.9", garnet_problem(discount=0.9)),
    "garnet-gamma-0.99": Family("Garnet(5,3,2,4), γ = 0.99", garnet_problem(discount=0.99)),
    "garnet-sigma-0.1": Family("Garnet(5,3,2,4), softmax σ = 0.1", garnet_problem(target=lambda *_: Softmax(0.1))),
    "garnet-sigma-5": Family("Garnet(5,3,2,4), softmax σ = 5", garnet_problem(target=lambda *_: Softmax(5.0))),
    "garnet-mellowmax": Family("Garnet(5,3,2,4), mellowmax κ = 1", garnet_problem(target=lambda *_: Mellowmax(1.0))),
    "garnet-fixed-policy": Family("Garnet(5,3,2,4), a fixed target policy", garnet_problem(target=random_policy)),
    "frozen-lake": Family("Frozen Lake 4×4, slippery, d = 8", frozen_lake),
    "garnet-50": Family("Garnet(50,5,5), d = 20", garnet_problem(50, 5, 5, 20)),
    "garnet-20000": Family("Garnet(500,4,10), d = 20: 20,000 transitions", garnet_problem(500, 4, 10, 20)),
}


@dataclass(frozen=True)
class Problems:
    """The problems that a call is about: those of a family that the command knows, or of a user's own."""

    family: str
    seeds: tuple[int, ...]
    own: Any = None  # a Problem, or a function from a seed to one
    fingerprints: tuple[str, ...] = ()  # of what such a function made: it may read more than its own code

    def build(self) -> list[Problem]:
        """The problems themselves, one for each seed."""
        if isinstance(self.own, Problem):
            return [self.own for _ in self.seeds]
        return [(FAMILIES[self.family].build if self.own is None else self.own)(seed) for seed in self.seeds]

    def each(self) -> list[Problems]:
        """One by one."""
        prints = self.fingerprints
        return [replace(self, seeds=(seed,), fingerprints=prints[k : k + 1]) for k, seed in enumerate(self.seeds)]


#: Steps as in the family's defaults, for an algorithm that has others of its own.
DECAYS: dict[str, Any] = {"eta_theta": Decay(0.32), "eta_omega": Decay(0.16)}

#: What is compared unless the command says otherwise, by the names of the table.
LINEUP: Mapping[str, Algorithm] = {
    "least squares": LeastSquaresGreedyGQ(radius=RADIUS),
    "least squares, π_b known": LeastSquaresGreedyGQ(radius=RADIUS, behavior="known"),
    "SAGA": SAGAGreedyGQ(radius=RADIUS),
    "streaming SVRG": StreamingGreedyGQ(radius=RADIUS),
    "averaged Greedy-GQ": AveragedGreedyGQ(radius=RADIUS),
    "ROOT (STORM, a = 1/t)": STORMGreedyGQ(radius=RADIUS),
    "SARAH, all data, ×2": SARAHGreedyGQ(radius=RADIUS),
    "SVRG, all data, ×2": VRGreedyGQ(**DECAYS, batch_size=50, growth=2.0, keep="all", radius=RADIUS),
    "SVRG, new data, ×2": VRGreedyGQ(**DECAYS, batch_size=50, growth=2.0, radius=RADIUS),
    "STORM, a = t^−⅔": STORMGreedyGQ(power=2 / 3, radius=RADIUS),
    "VR-Greedy-GQ, M = 3000": VRGreedyGQ(radius=RADIUS),
    "Greedy-GQ": GreedyGQ(radius=RADIUS),
    "nested loops": NestedGreedyGQ(radius=RADIUS),
}


def first_point(dim: int) -> FloatArray:
    """θ₀."""
    return np.ones(dim)
