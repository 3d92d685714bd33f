"""The family of estimators at the statistical floor: what VR-Greedy-GQ is measured against (docs/estimators.md).

All are anytime: the result at n samples does not depend on how many are still to come. A step size that is not given is
η_t = (0.32, 0.16)(1 + t/1000)^−½ over max ‖φ‖², if nothing else is said. ``radius_omega`` gives ω's projection a radius
of its own; None: that of θ's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gqlab.algorithms.base import Algorithm, Counts, OwnRadius
from gqlab.algorithms.greedy_gq import Epochs
from gqlab.algorithms.places import Way
from gqlab.algorithms.schedules import StepSize
from gqlab.estimators.averaged import Averaged
from gqlab.estimators.epochs import GROWTH_UNIT
from gqlab.estimators.known_behavior import KnownBehavior
from gqlab.estimators.least_squares import LeastSquares
from gqlab.estimators.needs import Need
from gqlab.estimators.nested import Nested
from gqlab.estimators.saga import SAGA
from gqlab.estimators.sarah import SARAH
from gqlab.estimators.storm import STORM
from gqlab.estimators.streaming import Streaming
from gqlab.support import checks


@dataclass(frozen=True, repr=False)
class AveragedGreedyGQ(OwnRadius):
    """Greedy-GQ with falling steps, and the mean of its iterates as the answer (Polyak and Ruppert).

        z ← Π_R[z − η_t F_x(z)]          θ̄ ← θ̄ + (θ − θ̄)/(t + 1)

    ``result.theta`` holds θ̄. One evaluation a sample, d more numbers.
    Step sizes that are not given are falling ones (docs/estimators.md); ``radius`` is R, ``radius_omega`` ω's own.

    Examples
    --------
    >>> import gqlab as gq
    >>> mdp = gq.garnet(seed=0)
    >>> problem = gq.Problem(mdp, gq.random_features(mdp, dim=4))
    >>> result = gq.run(problem, gq.AveragedGreedyGQ(), n_samples=100_000, n_runs=10)
    >>> gradient = (problem.exact.gradient(result.theta[:, -1]) ** 2).sum(axis=-1).mean()
    >>> bool(gradient < 1e-4)
    True
    """

    estimator: ClassVar[type] = Averaged
    later: ClassVar[tuple[str, ...]] = ("radius_omega",)

    eta_theta: StepSize | None = None
    eta_omega: StepSize | None = None
    radius: float = math.inf
    radius_omega: float | None = None


@dataclass(frozen=True, repr=False)
class SAGAGreedyGQ(OwnRadius):
    """SAGA by transition: each possible sample x = (s, a, s') remembers its last pseudo-gradient T_x.

        z ← Π_R[z − η_t (F_x(z) − T_x + mean of T over the samples so far)]          T_x ← F_x(z)

    One evaluation a sample. For K different transitions it keeps K(A + 3) numbers: a remembered gradient is its
    A + 2 coefficients and a count. The best where n is at least some 10 K. Step sizes and radii are as in
    :class:`AveragedGreedyGQ`.

    Examples
    --------
    >>> import gqlab as gq
    >>> gq.SAGAGreedyGQ(radius=100.0)
    SAGAGreedyGQ(eta_theta=None, eta_omega=None, radius=100.0)
    """

    estimator: ClassVar[type] = SAGA
    later: ClassVar[tuple[str, ...]] = ("radius_omega",)

    eta_theta: StepSize | None = None
    eta_omega: StepSize | None = None
    radius: float = math.inf
    radius_omega: float | None = None


@dataclass(frozen=True, repr=False)
class SAGAQLearning(Algorithm):
    """Q-learning with SAGA's variance reduction: :class:`SAGAGreedyGQ` without the correction, ω stays at 0.

        θ ← Π_R[θ + η_t (δ_x(θ) φ(s,a) − T_x + mean of T)]          T_x ← δ_x(θ) φ(s,a)

    A remembered gradient is one number. In :class:`gqlab.Agent` with ``replay`` the mean is over all transitions that
    are kept. Like Q-learning it may diverge off-policy.

    Examples
    --------
    >>> import gqlab as gq
    >>> gq.SAGAQLearning(0.1)
    SAGAQLearning(eta_theta=0.1, radius=inf)
    """

    estimator: ClassVar[type] = SAGA
    has_omega: ClassVar[bool] = False

    eta_theta: StepSize | None = None
    radius: float = math.inf


class Moments(Algorithm):
    """What algorithms share that do something when n reaches first·growth^k."""

    first: int
    growth: float

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "first", checks.integer("first", self.first, least=1, below=2**48))
        object.__setattr__(self, "growth", checks.number("growth", self.growth, above=1, below=2**10))

    @property
    def growth_units(self) -> int:
        """``growth`` as compiled code reads it."""
        return round(self.growth * GROWTH_UNIT)

    def moments(self, n: int) -> Counts:
        """first·growth^k, rounded and at least 1 apart, as far as they are below n."""
        out, size = [], float(self.first)
        while int(size + 0.5) < n:
            out.append(int(size + 0.5))
            size = max(size * (self.growth_units / GROWTH_UNIT), size + 1.0)
        return np.array(out, dtype=np.int64)


@dataclass(frozen=True, repr=False)
class StreamingGreedyGQ(Moments, OwnRadius):
    """SVRG over all samples so far, whose reference is renewed as they grow in number (after Frostig et al., 2015).

        F̃ ← F̃ + (F_x(z̃) − F̃)/n          z ← Π_R[z − η_t (F_x(z) − F_x(z̃) + F̃)]  from n = ``first`` on
        at n = first·growth^k:  z̃ ← z,  F̃ ← the mean of F_x(z̃) over all n samples

    Nothing is stored: the trajectory is drawn again from its random numbers. 4d numbers, whatever the number of
    different transitions. Step sizes and radii are as in :class:`AveragedGreedyGQ`.

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> algorithm = gq.StreamingGreedyGQ(first=50, growth=2.0)
    >>> algorithm.gradient_evaluations(np.array([49, 50, 100]))  # 2 for each move, 1 before, 50 for the renewal
    array([ 49,  51, 201])
    """

    estimator: ClassVar[type] = Streaming
    later: ClassVar[tuple[str, ...]] = ("radius_omega",)

    eta_theta: StepSize | None = None
    eta_omega: StepSize | None = None
    first: int = 50
    growth: float = 1.5
    radius: float = math.inf
    radius_omega: float | None = None

    def gradient_evaluations(self, updates: Counts) -> Counts:
        renewed = self.moments(int(np.max(updates, initial=0)))
        again = np.concatenate([[0], np.cumsum(renewed)])
        return updates + (updates - self.first + 1).clip(0) + again[np.searchsorted(renewed, updates)]


@dataclass(frozen=True, repr=False)
class STORMGreedyGQ(OwnRadius):
    """STORM: one running estimate v of the mean of F_x, corrected by each sample at two points.

        v ← F_x(z) + (1 − a_t)(v − F_x(z_before))          z ← Π_R[z − η_t v]          a_t = min(1, a t^−power)

    The default, a_t = 1/t, is ROOT-SGD (Li et al., 2022); ``power=0`` is a constant a. Two evaluations a sample.
    Step sizes and radii are as in :class:`AveragedGreedyGQ`.

    Examples
    --------
    >>> import gqlab as gq
    >>> gq.STORMGreedyGQ(a=1.0, power=2 / 3).power
    0.6666666666666666
    """

    estimator: ClassVar[type] = STORM
    later: ClassVar[tuple[str, ...]] = ("radius_omega",)

    eta_theta: StepSize | None = None
    eta_omega: StepSize | None = None
    a: float = 1.0
    power: float = 1.0
    radius: float = math.inf
    radius_omega: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "a", checks.number("a", self.a, above=0))
        object.__setattr__(self, "power", checks.number("power", self.power, least=0))

    def gradient_evaluations(self, updates: Counts) -> Counts:
        return (2 * updates - 1).clip(0)  # two for each update, one for the first


@dataclass(frozen=True, repr=False)
class SARAHGreedyGQ(Epochs):
    """SARAH in epochs: the mean over the batch when one begins, then a direction that follows the iterates.

        v ← the mean of F_x(z) over the batch;  then  v ← v + F_x(z) − F_x(z_before),  z ← Π_R[z − η_t v]

    Epoch k takes M·growth^k new samples and makes as many updates, x drawn from the batch: all samples so far, or the
    new ones alone (``keep="new"``). About 4 evaluations a sample. Step sizes and radii are as in
    :class:`AveragedGreedyGQ`.

    Examples
    --------
    >>> import gqlab as gq
    >>> gq.SARAHGreedyGQ(batch_size=50).epoch_ends(1000).tolist()
    [0, 50, 150, 350, 750, 1550]
    """

    estimator: ClassVar[type] = SARAH
    later: ClassVar[tuple[str, ...]] = ("radius_omega",)

    eta_theta: StepSize | None = None
    eta_omega: StepSize | None = None
    batch_size: int = 50
    growth: float = 2.0
    keep: str = "all"
    radius: float = math.inf
    radius_omega: float | None = None


@dataclass(frozen=True, repr=False)
class NestedGreedyGQ(OwnRadius):
    """Greedy-GQ in nested loops (Wang, Zhou and Zou, 2024).

        ω ← Π_R[ω − η_ω H_x(θ, ω)]  for each of ``inner_steps`` samples
        θ ← Π_R[θ − η_θ · mean of G_x(θ, ω)]  over the next ``batch_size`` samples

    An update is a step of θ. The step sizes that are not given stay: (0.32, 0.16) over max ‖φ‖². ``radius`` is R,
    ``radius_omega`` ω's own.

    Examples
    --------
    >>> import gqlab as gq
    >>> gq.NestedGreedyGQ(inner_steps=30, batch_size=20).n_updates(1000)
    20
    """

    estimator: ClassVar[type] = Nested
    later: ClassVar[tuple[str, ...]] = ("radius_omega",)
    default_etas: ClassVar[tuple[StepSize, StepSize]] = (0.32, 0.16)

    eta_theta: StepSize | None = None
    eta_omega: StepSize | None = None
    inner_steps: int = 50
    batch_size: int = 50
    radius: float = math.inf
    radius_omega: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("inner_steps", "batch_size"):
            object.__setattr__(self, name, checks.integer(name, getattr(self, name), least=1, below=2**24))

    @property
    def samples_per_update(self) -> int:
        """inner_steps + batch_size."""
        return self.inner_steps + self.batch_size


@dataclass(frozen=True, repr=False)
class LeastSquaresGreedyGQ(Moments):
    """The stationary point of the samples' own J, by Newton's method on sufficient statistics.

    Each sample adds to C, b and K (d² + dS + d numbers); when n reaches first·growth^k, J is descended from the last θ,
    and whenever n has doubled from θ₀ too: the better stationary point is taken. There is no step size to choose. It
    runs on the CPU, and a step of Newton's costs some d³ + S·A·d² operations: a method for d up to some hundred.

    With ``behavior="known"`` it reads the behaviour policy of the problem, and estimates only the transitions of the
    states: from counts of (s, a, s') and the stationary distribution of π_b P̂. It needs every action of every state
    that was met, and is the plain form before. For :func:`gqlab.run` and :func:`gqlab.grid`: a log knows the
    probability of the action that was taken alone. It keeps a count for each transition, and gains what
    :func:`gqlab.efficiency` says.

    Examples
    --------
    >>> import gqlab as gq
    >>> mdp = gq.garnet(seed=0)
    >>> problem = gq.Problem(mdp, gq.random_features(mdp, dim=4))
    >>> result = gq.run(problem, gq.LeastSquaresGreedyGQ(), n_samples=100_000, n_runs=10)
    >>> gradient = (problem.exact.gradient(result.theta[:, -1]) ** 2).sum(axis=-1).mean()
    >>> bool(gradient < 1e-4)
    True
    """

    estimator: ClassVar[type] = LeastSquares
    solves: ClassVar[Need | None] = Need.SUMS
    later: ClassVar[tuple[str, ...]] = ("behavior",)

    first: int = 100
    growth: float = 1.02
    radius: float = math.inf
    behavior: str = "unknown"

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of("behavior", self.behavior, ("unknown", "known"))
        if self.behavior == "known":
            object.__setattr__(self, "estimator", KnownBehavior)

    @property
    def ways(self) -> tuple[Way, ...]:
        """By sums as well, where the behaviour policy is not used."""
        return tuple(way for way in super().ways if self.behavior == "unknown" or way.estimator is not None)

    @property
    def eta_theta(self) -> StepSize:  # type: ignore[override]
        """Unused: there are no step sizes."""
        return 1.0

    def gradient_evaluations(self, updates: Counts) -> Counts:
        """None of single samples."""
        return 0 * updates
