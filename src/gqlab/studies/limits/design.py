"""What ``gqlab limits`` measures, as data: problems, seeds, runs, and the rule for degenerate minima.

All of it was fixed before the first run on these seeds; what it is made of was tried on the Garnets 1000 to 1011, and
on 47000 to 47401.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from gqlab.mdp.finite import FiniteMDP
from gqlab.operators import Mellowmax, Operator, Softmax
from gqlab.problems.features import random_features
from gqlab.problems.garnet import garnet
from gqlab.problems.problem import Problem
from gqlab.support.checks import FloatArray

#: Where ‖∇J‖² is looked at.
MOMENTS = (3_000, 10_000, 30_000, 100_000, 300_000)

#: Steps of the chain that are drawn at once where only counts are needed; every moment is a multiple.
PATH = 4

#: A minimum counts as degenerate at n samples where the Hessian of the samples' own objective deviates by more than
#: this part of ∇²J, in the root mean square of independent samples: there 1/n is not yet the law. See ``spread``.
DEGENERATE = 0.25

#: θ* is the stationary point with the least J of those that Newton's method reaches from θ = 1 and from so many points
#: drawn from N(0, 9I).
STARTS = 8

#: R, and the step of 𝒢: ‖𝒢‖ falls as the step grows, so that a small one is the strict choice.
RADII = (1.0, 10.0, 100.0)
MAPPING_STEP = 1e-3

#: The numbers of samples at which Theorem 5 is compared.
BATCHES = (30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000)


@dataclass(frozen=True)
class GarnetKind:
    """Garnets(5,3,2,4) of one kind."""

    title: str
    discount: float
    target: Operator
    place: int  # no two cells share a seed

    def build(self, seed: int) -> Problem:
        """The Garnet of a seed."""
        mdp = garnet(5, 3, 2, self.discount, seed=seed)
        return Problem(mdp, random_features(mdp, dim=4, seed=seed), target=self.target)


CELLS = (
    GarnetKind("γ = 0.9, softmax", 0.9, Softmax(1.0), 0),
    GarnetKind("γ = 0.9, mellowmax", 0.9, Mellowmax(1.0), 1),
    GarnetKind("γ = 0.99, softmax", 0.99, Softmax(1.0), 2),
    GarnetKind("γ = 0.99, mellowmax", 0.99, Mellowmax(1.0), 3),
)


def certificate(seed: int) -> Problem:
    """The problem of the certificate in docs/theory.md: action a leads to state a, action 0 pays 0.2."""
    P = np.zeros((2, 2, 2))
    P[:, 0, 0] = P[:, 1, 1] = 1.0
    mdp = FiniteMDP(P, [[0.2, 0.0], [0.2, 0.0]], discount=0.2)
    return Problem(mdp, [np.eye(2), np.eye(2)], target=Softmax(1.0))


def usual_garnet(seed: int) -> Problem:
    """Garnet(5,3,2,4), γ = 0.95, softmax: the paper's."""
    mdp = garnet(5, 3, 2, 0.95, seed=seed)
    return Problem(mdp, random_features(mdp, dim=4, seed=seed), target=Softmax(1.0))


#: The problems of Theorem 5, by name.
PLUG_IN_PROBLEMS: Mapping[str, Callable[[int], Problem]] = {"garnet": usual_garnet, "certificate": certificate}


@dataclass(frozen=True)
class LimitsBudget:
    """How much is run."""

    n_problems: int = 12  # for each cell, and for Theorem 5
    n_floors: int = 150  # runs of a problem whose counts are plugged in at the last moment: 1,800 a cell,
    n_early: int = 30  # and at the others
    n_runs: int = 20  # of least squares: 240 a cell
    n_batches: int = 20  # of each size for Theorem 5
    moments: tuple[int, ...] = MOMENTS
    batches: tuple[int, ...] = BATCHES
    first_seed: int = 48_000

    def seeds(self, cell: GarnetKind) -> tuple[int, ...]:
        """Of the Garnets of a cell, and of their trajectories."""
        return tuple(self.first_seed + 100 * cell.place + k for k in range(self.n_problems))

    @property
    def plug_in_problems(self) -> tuple[tuple[str, int], ...]:
        """Name and seed."""
        first = self.first_seed + 100 * len(CELLS)
        garnets = tuple(("garnet", first + k) for k in range(self.n_problems))
        return (*garnets, ("certificate", first))


FULL = LimitsBudget()
QUICK = replace(
    FULL, n_problems=2, n_floors=50, n_early=20, n_runs=10, n_batches=10, moments=(3_000, 10_000),
    batches=(30, 300, 3000), first_seed=1_000,
)  # fmt: skip


def first_point(dim: int) -> FloatArray:
    """θ₀."""
    return np.ones(dim)
