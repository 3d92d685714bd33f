"""Greedy-GQ, VR-Greedy-GQ, and the relatives that use the same estimators."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gqlab.algorithms.base import Algorithm, Counts, OwnRadius
from gqlab.algorithms.places import Way
from gqlab.algorithms.schedules import StepSize
from gqlab.estimators.epochs import GROWTH_UNIT
from gqlab.estimators.needs import Need, needs_of
from gqlab.estimators.plain import Plain
from gqlab.estimators.svrg import SVRG, GivenMeans
from gqlab.estimators.traces import Traces
from gqlab.support import checks

#: What a batch may hold: the new samples, or all so far.
KEEP = ("new", "all")


class Traced(Algorithm):
    """What algorithms share that run with traces where episodes are known: ``trace`` is λ."""

    later: ClassVar[tuple[str, ...]] = ("trace", "radius_omega")

    trace: float

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "trace", checks.number("trace", self.trace, least=0, most=1))
        if self.trace > 0 and self.estimator is not Plain:
            raise ValueError(f"trace is {self.trace:g}, but {self.estimator.__name__}, its estimator, has no traces")

    @property
    def trace_decay(self) -> float:
        return self.trace

    @property
    def ways(self) -> tuple[Way, ...]:
        return (Way(Traces, needs_of(Traces)),) if self.trace > 0 else super().ways


@dataclass(frozen=True, repr=False)
class GreedyGQ(Traced, OwnRadius):
    """Greedy-GQ: one update for each sample of one trajectory, both at the old (θ, ω).

        θ ← Π_R[θ − η_θ G_x(θ, ω)]        ω ← Π_R[ω − η_ω H_x(θ, ω)]

    A step size is a number or a :class:`gqlab.Decay`. ``radius`` is R, ``radius_omega`` ω's own; None: R, as in the
    paper. ``trace`` is λ, where episodes are known: :class:`gqlab.Agent` and :func:`gqlab.fit`.

    Examples
    --------
    >>> import gqlab as gq
    >>> gq.GreedyGQ(eta_theta=0.02, eta_omega=0.01)
    GreedyGQ(eta_theta=0.02, eta_omega=0.01, radius=inf)
    """

    estimator: ClassVar[type] = Plain

    eta_theta: StepSize = 0.02
    eta_omega: StepSize = 0.01
    radius: float = math.inf
    trace: float = 0.0
    radius_omega: float | None = None


class Epochs(OwnRadius):
    """What algorithms with batches share: epoch k takes M·growth^k new samples, rounded, and makes as many updates.

    ``keep="new"``: these samples are the batch; ``keep="all"``: all samples so far are.
    """

    later: ClassVar[tuple[str, ...]] = ("growth", "keep", "radius_omega")

    batch_size: int
    growth: float
    keep: str

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "batch_size", checks.integer("batch_size", self.batch_size, least=1, below=2**32))
        object.__setattr__(self, "growth", checks.number("growth", self.growth, least=1, below=2**10))
        checks.one_of("keep", self.keep, KEEP)

    @property
    def ways(self) -> tuple[Way, ...]:
        [way] = super().ways
        grows = set() if self.as_in_the_paper else {Need.GROWING}
        again = {Need.REPLAY} if self.keeps_all else set()
        return (Way(way.estimator, way.needs | grows | again),)

    @property
    def epoch_size(self) -> int:
        return self.batch_size

    @property
    def growth_units(self) -> int:
        """``growth`` as compiled code reads it."""
        return round(self.growth * GROWTH_UNIT)

    @property
    def keeps_all(self) -> int:
        """``keep`` as compiled code reads it."""
        return int(self.keep == "all")

    @property
    def as_in_the_paper(self) -> bool:
        """Whether every batch is M new samples."""
        return self.growth_units == GROWTH_UNIT and not self.keeps_all

    def epoch_ends(self, updates: int) -> Counts:
        """The updates with which epochs end, from 0 to the first that is not below ``updates``."""
        if self.growth_units == GROWTH_UNIT:
            checks.memory("n_samples", updates, updates // self.batch_size)
            return np.arange(-(-updates // self.batch_size) + 1) * self.batch_size
        ends, size = [0], float(self.batch_size)
        while ends[-1] < updates:
            ends.append(ends[-1] + int(size + 0.5))
            size *= self.growth_units / GROWTH_UNIT
        return np.array(ends)

    def n_updates(self, n_samples: int) -> int:
        n_samples = checks.integer("n_samples", n_samples, least=0)
        if self.batch_size > n_samples:
            raise ValueError(f"batch_size is {self.batch_size}, more than n_samples = {n_samples}: not one epoch fits")
        if self.growth_units == GROWTH_UNIT:
            return n_samples // self.batch_size * self.batch_size
        ends = self.epoch_ends(n_samples)
        return int(ends[ends <= n_samples][-1])

    def whole(self, updates: Counts) -> Counts:
        if self.growth_units == GROWTH_UNIT:
            return -(-updates // self.batch_size) * self.batch_size
        ends = self.epoch_ends(int(np.max(updates, initial=0)))
        return ends[np.searchsorted(ends, updates)]

    def samples(self, updates: Counts) -> Counts:
        return self.whole(updates)

    def gradient_evaluations(self, updates: Counts) -> Counts:
        if self.as_in_the_paper:
            return self.whole(updates) + 2 * updates  # M for the batch means, 2 for every update
        ends = self.epoch_ends(int(np.max(updates, initial=0)))
        batches = np.cumsum(ends) if self.keeps_all else ends  # all that the batch means have cost by then
        return batches[np.searchsorted(ends, updates)] + 2 * updates  # 2 for every update


@dataclass(frozen=True, repr=False)
class VRGreedyGQ(Epochs):
    """VR-Greedy-GQ (Algorithm 1): SVRG on both time scales, one batch of M samples for each epoch of M updates.

        θ ← Π_R[θ − η_θ (G_x(θ, ω) − G_x(θ̃, ω̃) + G̃)]
        ω ← Π_R[ω − η_ω (H_x(θ, ω) − H_x(θ̃, ω̃) + H̃)]

    (θ̃, ω̃) is the last iterate of the epoch before, G̃ and H̃ are the batch means there, and x is drawn from the batch
    with replacement. With ``growth`` > 1 epoch k has M·growth^k updates and as many new samples; with ``keep="all"``
    the batch is all samples so far. ``radius_omega`` gives ω's projection a radius of its own. ``growth=1, keep="new"``
    and one radius for both are the paper's.

    Examples
    --------
    >>> import gqlab as gq
    >>> gq.VRGreedyGQ(batch_size=3000).n_updates(100_000)  # whole batches
    99000
    >>> gq.VRGreedyGQ(batch_size=100, growth=2.0, keep="all").n_updates(100_000)
    51100
    """

    estimator: ClassVar[type] = SVRG

    eta_theta: StepSize = 0.02
    eta_omega: StepSize = 0.01
    batch_size: int = 3000
    radius: float = math.inf
    growth: float = 1.0
    keep: str = "new"
    radius_omega: float | None = None


@dataclass(frozen=True, repr=False)
class WholeDataVRGreedyGQ(OwnRadius):
    """VR-Greedy-GQ on a log whose every batch is all the data: the means G̃, H̃ are over all rows.

        θ ← Π_R[θ − η_θ (G_x(θ, ω) − G_x(θ̃, ω̃) + G̃)]
        ω ← Π_R[ω − η_ω (H_x(θ, ω) − H_x(θ̃, ω̃) + H̃)]

    An epoch is a pass over the data for the means, and then ``epoch_updates`` updates along rows that are drawn from
    all of them. It runs in :func:`gqlab.fit`: in memory, over files, and on engines, where the means are sums over the
    workers. :class:`VRGreedyGQ` has batches of the next rows.

    Examples
    --------
    >>> import gqlab as gq
    >>> gq.WholeDataVRGreedyGQ(0.1, 0.1, epoch_updates=1000)
    WholeDataVRGreedyGQ(eta_theta=0.1, eta_omega=0.1, epoch_updates=1000, radius=inf)
    """

    estimator: ClassVar[type] = GivenMeans
    later: ClassVar[tuple[str, ...]] = ("radius_omega",)

    eta_theta: StepSize = 0.02
    eta_omega: StepSize = 0.01
    epoch_updates: int = 3000
    radius: float = math.inf
    radius_omega: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        updates = checks.integer("epoch_updates", self.epoch_updates, least=1, below=2**32)
        object.__setattr__(self, "epoch_updates", updates)

    @property
    def epoch_size(self) -> int:
        return self.epoch_updates


@dataclass(frozen=True, repr=False)
class QRC(Traced, OwnRadius):
    """Greedy-GQ whose ω is drawn towards 0 (QRC: Ghiassian et al., 2020; β = 0 is Greedy-GQ).

        θ ← Π_R[θ − η_θ G_x(θ, ω)]        ω ← Π_R[ω − η_ω (H_x(θ, ω) + βω)]

    ω then follows ω_β(θ) = (C + βI)⁻¹ E[δφ] in place of ω*. The mean update of θ is no longer a gradient, of J or of
    anything else; its fixed points are those of E[δφ] = E[γ φ̂ φᵀ] ω_β. Where E[δφ] = 0 can be solved its solution is
    one of them, whatever β is; with β → ∞ the updates become those of Q-learning. All else is as in :class:`GreedyGQ`.

    Examples
    --------
    >>> import gqlab as gq
    >>> gq.QRC(eta_theta=0.1, eta_omega=0.1, beta=1.0)
    QRC(eta_theta=0.1, eta_omega=0.1, beta=1.0, radius=inf)
    """

    estimator: ClassVar[type] = Plain

    eta_theta: StepSize = 0.02
    eta_omega: StepSize = 0.01
    beta: float = 1.0
    radius: float = math.inf
    trace: float = 0.0
    radius_omega: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "beta", checks.number("beta", self.beta, least=0))

    @property
    def omega_decay(self) -> float:
        return self.beta


@dataclass(frozen=True, repr=False)
class QLearning(Traced):
    """Semi-gradient Q-learning, the classic that may diverge off-policy; the problem's operator makes V̄.

        θ ← Π_R[θ + η_θ δ_x(θ) φ(s,a)]

    It is Greedy-GQ without the correction, since G_x(θ, 0) = −δ_x(θ) φ(s,a): ω stays at 0. With the operator
    ``Greedy()`` it is Watkins' Q-learning. ``trace`` is λ, where episodes are known.

    Examples
    --------
    >>> import gqlab as gq
    >>> theta0 = [1, 1, 1, 1, 1, 1, 10]
    >>> result = gq.run(gq.baird(), gq.QLearning(eta_theta=0.1), n_samples=200_000, n_runs=2, theta0=theta0)
    >>> result.diverged.tolist()
    [True, True]
    """

    estimator: ClassVar[type] = Plain
    has_omega: ClassVar[bool] = False

    eta_theta: StepSize = 0.02
    radius: float = math.inf
    trace: float = 0.0


@dataclass(frozen=True, repr=False)
class Sarsa(Traced):
    """Semi-gradient Sarsa: Q-learning whose V̄ is the value of the action that is taken next, on its own policy's data.

        θ ← Π_R[θ + η_θ (r + γ φ(s',a')ᵀθ − φ(s,a)ᵀθ) φ(s,a)]

    It needs the next action: it runs in :class:`gqlab.Agent`, and in :func:`gqlab.fit` on the rows that know theirs,
    where it evaluates the policy of the data. ``trace`` is λ.

    Examples
    --------
    >>> import gqlab as gq
    >>> gq.Sarsa(eta_theta=0.5, trace=0.9)
    Sarsa(eta_theta=0.5, radius=inf, trace=0.9)
    """

    estimator: ClassVar[type] = Plain
    has_omega: ClassVar[bool] = False

    eta_theta: StepSize = 0.02
    radius: float = math.inf
    trace: float = 0.0

    @property
    def ways(self) -> tuple[Way, ...]:
        [way] = super().ways
        return (Way(way.estimator, way.needs | {Need.NEXT_ACTION}),)
