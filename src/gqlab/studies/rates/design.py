"""The design of ``gqlab rates``, as data, fixed before the run: problems, seeds, grids, schedules, sizes.

Seeds. ``seed`` s has the Garnets 7000 + 1000s, …, tuning runs under seed 70 + 10s, test runs under 71 + 10s and the
runs for the error that remains under 72 + 10s. The published figures are those of s = 3, run once, and those of the
reproduction's claims T1 and T2 are of s = 2026. s = 1 served to choose the grids and the sizes; s = 0 was published
with narrower grids, s = 2 run once with long runs watched more often, which took too long.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from gqlab.algorithms import (
    Algorithm,
    AveragedGreedyGQ,
    GreedyGQ,
    LeastSquaresGreedyGQ,
    SAGAGreedyGQ,
    STORMGreedyGQ,
    StreamingGreedyGQ,
    VRGreedyGQ,
)
from gqlab.mdp.finite import FiniteMDP
from gqlab.problems.features import random_features
from gqlab.problems.garnet import garnet
from gqlab.problems.problem import Problem
from gqlab.support.checks import FloatArray
from gqlab.theory.choose import constant_steps

RADIUS = 100.0

#: The paper's η_θ and the range of M of the claim that the error falls like 1/M (docs/reproduction_register.md, T2).
CLAIMED_ETA, CLAIMED_SIZES = 0.02, (300, 10_000)


def powers(first: float, last: float, per_decade: float) -> tuple[float, ...]:
    """10^first, …, 10^last, with ``per_decade`` points in each decade."""
    return tuple(float(x) for x in 10 ** np.linspace(first, last, round((last - first) * per_decade) + 1))


@dataclass(frozen=True)
class TuningGrid:
    """The settings that are tried: as many for one algorithm as for the other."""

    greedy_eta_theta: tuple[float, ...] = powers(-3.8, 1.4, 2.5)
    greedy_ratio: tuple[float, ...] = powers(-3.4, 2.2, 2.5)  # η_ω/η_θ
    vr_eta_theta: tuple[float, ...] = (0.0016, 0.008, 0.04, 0.2, 1.0, 5.0)
    vr_ratio: tuple[float, ...] = (0.0002, 0.004, 0.08, 1.6, 32.0)
    vr_batch_size: tuple[int, ...] = (1, 9, 80, 720, 6400, 57_600, 518_400)

    def candidates(self) -> dict[str, list[Algorithm]]:
        """All combinations, by algorithm."""
        return {
            "GreedyGQ": [
                GreedyGQ(eta, eta * ratio, RADIUS) for eta in self.greedy_eta_theta for ratio in self.greedy_ratio
            ],
            "VRGreedyGQ": [
                VRGreedyGQ(eta, eta * ratio, M, RADIUS)
                for eta in self.vr_eta_theta for ratio in self.vr_ratio for M in self.vr_batch_size
            ],
        }  # fmt: skip


#: Correlated samples need larger batches.
STICKY_GRID = TuningGrid(
    greedy_eta_theta=powers(-3.8, 1.4, 2.5), greedy_ratio=powers(-3.4, 2.2, 2.5),
    vr_eta_theta=(0.0006, 0.003, 0.015, 0.08, 0.4, 2.0, 10.0), vr_ratio=(0.002, 0.02, 0.2, 2.0, 20.0),
    vr_batch_size=(1, 16, 256, 4096, 65_536, 1_000_000),
)  # fmt: skip

#: Where features hardly differ ω* is large, and an ω that hardly moves does best.
FLAT_GRID = TuningGrid(
    greedy_eta_theta=powers(-3.8, 1.4, 2.5), greedy_ratio=powers(-6.0, -0.4, 2.5),
    vr_eta_theta=(0.008, 0.04, 0.2, 1.0, 5.0, 25.0), vr_ratio=(1e-6, 3e-5, 0.001, 0.03, 1.0),
    vr_batch_size=(1, 9, 80, 720, 6400, 57_600, 518_400),
)  # fmt: skip


@dataclass(frozen=True)
class GarnetDraw:
    """One problem, by all that decides it; ``seed`` is that of the study, from which its runs have theirs."""

    number: int
    seed: int
    sticky: float = 0.0
    spread: float = 1.0

    def build(self) -> tuple[Problem, FloatArray]:
        """The problem and its θ_0 ~ N(0, I)."""
        mdp = garnet(seed=self.number)
        if self.sticky:
            stay = np.eye(mdp.n_states)[:, None, :]
            mdp = FiniteMDP((1 - self.sticky) * mdp.transition + self.sticky * stay, mdp.reward, mdp.discount)
        theta0 = np.random.default_rng([self.number, 2]).standard_normal(4)
        features = random_features(mdp, dim=4, seed=self.number)
        if self.spread != 1:
            centre = features.mean(axis=(0, 1))
            features = centre + self.spread * (features - centre)
            features = features / np.linalg.norm(features, axis=-1).max()
        return Problem(mdp, features), theta0


@dataclass(frozen=True)
class GarnetFamily:
    """Random Garnet(5,3,2,4) problems, softmax σ = 1, γ = 0.95; with probability ``sticky`` a state stays as it is.

    That slows the chain down: an eigenvalue μ of its transition matrix becomes (1 − sticky)μ + sticky. With ``spread``
    below 1 features are drawn towards their mean, φ ← φ̄ + spread (φ − φ̄), scaled to max ‖φ‖ = 1: λ_C falls about
    like its square.
    """

    name: str
    n_problems: int
    first_seed: int
    sticky: float = 0.0
    grid: TuningGrid = TuningGrid()
    spread: float = 1.0

    def draw(self, k: int, seed: int) -> GarnetDraw:
        """Problem k."""
        return GarnetDraw(self.first_seed + 1000 * seed + k, seed, self.sticky, self.spread)

    def draws(self, seed: int) -> list[GarnetDraw]:
        """All problems."""
        return [self.draw(k, seed) for k in range(self.n_problems)]


@dataclass(frozen=True)
class PowerLaw:
    """A theorem's schedule: η_θ, η_ω and M as powers of ε."""

    algorithm: str
    eta_theta: float
    eta_omega: float
    batch_size: float
    samples: str  # the power of 1/ε that the theorem gives

    def at(self, first: Algorithm, scale: float) -> Algorithm:
        """The setting for ε = scale · ε_1, from that for the largest, ε_1."""
        eta_theta, eta_omega = constant_steps(first)
        steps = eta_theta * scale**self.eta_theta, eta_omega * scale**self.eta_omega
        if isinstance(first, VRGreedyGQ):
            return VRGreedyGQ(
                *steps, batch_size=max(1, round(first.batch_size * scale**self.batch_size)), radius=RADIUS
            )
        return GreedyGQ(*steps, radius=RADIUS)


#: The theorems' own schedules; the constants are fitted once, at the largest ε.
SCHEDULES = {
    "Greedy-GQ, Theorem 4": PowerLaw("GreedyGQ", 1.0, 1.0, 0.0, "2"),
    "VR-Greedy-GQ, the paper": PowerLaw("VRGreedyGQ", 1.0, 2 / 3, -1.0, "2"),
    "VR-Greedy-GQ, Corollary 2": PowerLaw("VRGreedyGQ", 2 / 3, 2 / 3, -1.0, "5/3"),
}


#: The family of estimators (docs/estimators.md), with its defaults: nothing of it is tuned, for any ε.
MEMBERS: dict[str, Algorithm] = {
    "averaged Greedy-GQ": AveragedGreedyGQ(radius=RADIUS),
    "SAGA": SAGAGreedyGQ(radius=RADIUS),
    "streaming SVRG": StreamingGreedyGQ(radius=RADIUS),
    "ROOT": STORMGreedyGQ(radius=RADIUS),
    "least squares": LeastSquaresGreedyGQ(radius=RADIUS),
}


@dataclass(frozen=True)
class Search:
    """How the samples that a setting needs are found: ``RateSettings`` says what the numbers mean."""

    fractions: tuple[float, ...]
    budget: int
    tuning_runs: int
    test_runs: int
    tuning_margin: float
    schedule_margin: int
    watch_every: int


@dataclass(frozen=True)
class RateSettings:
    """Everything that is chosen.

    A setting is tuned for ``tuning_margin`` times ε: one that only just reaches ε in the tuning runs need not do so in
    others. For the same reason a schedule starts, at the largest ε, with the setting that is tuned for the ε that lies
    ``schedule_margin`` places below it.
    """

    families: tuple[GarnetFamily, ...] = (
        GarnetFamily("Garnet", 10, 7000),
        GarnetFamily("sticky Garnet", 3, 7500, 0.9, STICKY_GRID),
        GarnetFamily("flat Garnet", 3, 7700, 0.0, FLAT_GRID, spread=0.3),
    )
    fractions: tuple[float, ...] = powers(-2.5, -0.25, 4)[::-1]
    exact_fractions: tuple[float, ...] = powers(-3.5, -0.25, 4)[::-1]
    exact_etas: tuple[float, ...] = powers(-1.0, 2.0, 4)
    exact_steps: int = 6000
    budget: int = 2_000_000
    tuning_runs: int = 2
    test_runs: int = 4
    tuning_margin: float = 0.8
    schedule_margin: int = 3
    watch_every: int = 10
    members: tuple[str, ...] = tuple(MEMBERS)
    floor_samples: int = 400_000
    floor_runs: int = 4
    floor_etas: tuple[float, ...] = (0.001, 0.01, CLAIMED_ETA, 0.1)
    floor_batch_sizes: tuple[int, ...] = (10, 30, 100, 300, 1000, 3000, 10_000)

    @property
    def search(self) -> Search:
        """What decides the numbers of samples."""
        return Search(**{field.name: getattr(self, field.name) for field in fields(Search)})

    def floor_algorithms(self) -> list[Algorithm]:
        """For each η_θ = 2η_ω: Greedy-GQ, then VR-Greedy-GQ with every M."""
        return [
            algorithm
            for eta in self.floor_etas
            for algorithm in (
                GreedyGQ(eta, eta / 2, RADIUS),
                *(VRGreedyGQ(eta, eta / 2, M, RADIUS) for M in self.floor_batch_sizes),
            )
        ]


QUICK_GRID = TuningGrid((0.1, 0.3, 1.0), (0.1, 0.3, 1.0, 3.0), (0.3, 1.0), (0.1, 1.0), (10, 30, 100))
QUICK = RateSettings(
    families=(
        GarnetFamily("Garnet", 2, 7900, 0.0, QUICK_GRID), GarnetFamily("sticky Garnet", 2, 7950, 0.9, QUICK_GRID),
    ),
    fractions=(0.3, 0.2, 0.1), exact_fractions=(0.3, 0.1, 0.03), exact_etas=(1.0, 10.0), exact_steps=200, budget=5000,
    members=("SAGA",), tuning_runs=1, test_runs=1, schedule_margin=1, floor_samples=8000, floor_runs=2,
    floor_etas=(0.01, 0.1), floor_batch_sizes=(30, 300, 1000, 3000),
)  # fmt: skip
