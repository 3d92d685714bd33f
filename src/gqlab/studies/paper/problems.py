"""The problems of the experiments, by number: all are draws of the same kind, and none is the one of the paper."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gqlab.mdp.finite import FiniteMDP
from gqlab.operators import FixedPolicy, Softmax
from gqlab.problems.baird import baird
from gqlab.problems.features import random_features
from gqlab.problems.garnet import garnet
from gqlab.problems.problem import Problem
from gqlab.support.checks import FloatArray

GARNET, FROZEN_LAKE, FROZEN_LAKE_EVALUATION, BAIRD = "garnet", "frozen-lake", "frozen-lake-evaluation", "baird"

#: The families, in the order of their draws.
FAMILIES = (GARNET, FROZEN_LAKE, FROZEN_LAKE_EVALUATION, BAIRD)

#: What the problems of a family are, in words.
POPULATION = {
    GARNET: "Garnets, each with features of its own",
    FROZEN_LAKE: "draws of the features",
    FROZEN_LAKE_EVALUATION: "draws of the features and of the target policy",
    BAIRD: "Baird's star",
}

DISCOUNT, SIGMA = 0.95, 1.0


@dataclass(frozen=True)
class ProblemSpec:
    """Problem ``number`` of a ``family``, drawn from ``seed``; plain data, so that it can be part of a key."""

    family: str
    number: int
    seed: int = 0
    slippery: bool = True

    def __post_init__(self) -> None:
        if not self.family.startswith(FROZEN_LAKE):  # elsewhere there is no ice
            object.__setattr__(self, "slippery", True)

    @property
    def draw(self) -> int:
        """The seed of this problem's own draws, and of the trajectories of its runs."""
        return 1000 * self.seed + 100 * FAMILIES.index(self.family) + self.number

    def build(self) -> Problem:
        """The problem itself."""
        if self.family == GARNET:
            mdp = garnet(n_states=5, n_actions=3, branching=2, discount=DISCOUNT, seed=self.draw)
            return Problem(mdp, random_features(mdp, dim=4, kind="uniform", seed=self.draw), target=Softmax(SIGMA))
        if self.family == BAIRD:
            return baird(0.99)
        mdp = FiniteMDP.from_gymnasium(
            "FrozenLake-v1", discount=DISCOUNT, map_name="4x4", is_slippery=self.slippery
        )  # fmt: skip
        features = random_features(mdp, dim=8, kind="gaussian", seed=self.draw)
        if self.family == FROZEN_LAKE:
            return Problem(mdp, features, target=Softmax(SIGMA))
        policy = self._rng("target").random((mdp.n_states, mdp.n_actions))
        return Problem(mdp, features, target=FixedPolicy(policy / policy.sum(axis=-1, keepdims=True)))

    def theta0(self, n_runs: int, dim: int) -> FloatArray:
        """Where the runs begin, (n_runs, dim): N(0, I); on Baird's star all at (1, …, 1, 10).

        Run k begins at the same point whatever ``n_runs`` is.
        """
        if self.family == BAIRD:
            return np.tile(np.append(np.ones(dim - 1), 10.0), (n_runs, 1))
        return self._rng("theta0").standard_normal((n_runs, dim))

    def _rng(self, purpose: str) -> np.random.Generator:
        return np.random.default_rng([self.draw, *purpose.encode()])
