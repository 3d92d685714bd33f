"""The algorithms: a rule, an estimator and step sizes, as plain data."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gqlab import checks

Counts = NDArray[np.int64]


class Algorithm:
    """What :func:`gqlab.run` runs. Counts are per run, from its beginning; by default an update takes one sample."""

    eta_theta: float
    radius: float

    #: Whether the algorithm has a second parameter ω.
    has_omega: ClassVar[bool] = True

    @property
    def eta_omega(self) -> float:
        """η_ω; 0 where ω stands still at 0."""
        return 0.0

    def _check(self) -> None:
        names = {field.name for field in fields(self)}  # type: ignore[arg-type]
        for name, infinite in (("eta_theta", False), ("eta_omega", False), ("radius", True)):
            if name in names:
                object.__setattr__(self, name, checks.number(name, getattr(self, name), above=0, infinite=infinite))

    def __post_init__(self) -> None:
        self._check()

    @property
    def epoch(self) -> int:
        """M, the samples of a batch; 0 where there are no batches."""
        return 0

    def n_updates(self, n_samples: int) -> int:
        """The updates that a budget of samples allows."""
        return n_samples

    def samples(self, updates: Counts) -> Counts:
        """The samples that have been drawn when so many updates are done."""
        return updates

    def gradient_evaluations(self, updates: Counts) -> Counts:
        """The evaluations of (G_x, H_x) by then, as the algorithm is written in the paper."""
        return updates

    def to_dict(self) -> dict[str, Any]:
        """The name and the parameters, ready for JSON."""
        return {"name": type(self).__name__, **asdict(self)}  # type: ignore[call-overload]


@dataclass(frozen=True)
class GreedyGQ(Algorithm):
    """Greedy-GQ: one update for each sample of one trajectory, both at the old (θ, ω).

        θ ← Π_R[θ − η_θ G_x(θ, ω)]        ω ← Π_R[ω − η_ω H_x(θ, ω)]

    Examples
    --------
    >>> import gqlab as gq
    >>> gq.GreedyGQ(eta_theta=0.02, eta_omega=0.01)
    GreedyGQ(eta_theta=0.02, eta_omega=0.01, radius=inf)
    """

    eta_theta: float = 0.02
    eta_omega: float = 0.01
    radius: float = math.inf


@dataclass(frozen=True)
class VRGreedyGQ(Algorithm):
    """VR-Greedy-GQ (Algorithm 1): SVRG on both time scales, one batch of M samples for each epoch of M updates.

        θ ← Π_R[θ − η_θ (G_x(θ, ω) − G_x(θ̃, ω̃) + G̃)]
        ω ← Π_R[ω − η_ω (H_x(θ, ω) − H_x(θ̃, ω̃) + H̃)]

    (θ̃, ω̃) is the last iterate of the epoch before, G̃ and H̃ are the batch means there, and x is drawn from the batch
    with replacement.

    Examples
    --------
    >>> import gqlab as gq
    >>> gq.VRGreedyGQ(batch_size=3000).n_updates(100_000)  # whole batches
    99000
    """

    eta_theta: float = 0.02
    eta_omega: float = 0.01
    batch_size: int = 3000
    radius: float = math.inf

    def __post_init__(self) -> None:
        self._check()
        object.__setattr__(self, "batch_size", checks.integer("batch_size", self.batch_size, least=1, below=2**32))

    @property
    def epoch(self) -> int:
        return self.batch_size

    def n_updates(self, n_samples: int) -> int:
        if self.batch_size > n_samples:
            raise ValueError(f"batch_size is {self.batch_size}, more than n_samples = {n_samples}: not one epoch fits")
        return n_samples // self.batch_size * self.batch_size

    def samples(self, updates: Counts) -> Counts:
        return -(-updates // self.batch_size) * self.batch_size

    def gradient_evaluations(self, updates: Counts) -> Counts:
        return self.samples(updates) + 2 * updates  # M for the batch means, 2 for every update


@dataclass(frozen=True)
class QLearning(Algorithm):
    """Semi-gradient Q-learning, the classic that may diverge off-policy; the problem's operator makes V̄.

        θ ← Π_R[θ + η_θ δ_x(θ) φ(s,a)]

    It is Greedy-GQ without the correction, since G_x(θ, 0) = −δ_x(θ) φ(s,a): ω stays at 0. With the operator
    ``Greedy()`` it is Watkins' Q-learning.

    Examples
    --------
    >>> import gqlab as gq
    >>> theta0 = [1, 1, 1, 1, 1, 1, 10]
    >>> result = gq.run(gq.baird(), gq.QLearning(eta_theta=0.1), n_samples=200_000, n_runs=2, theta0=theta0)
    >>> result.diverged.tolist()
    [True, True]
    """

    has_omega: ClassVar[bool] = False

    eta_theta: float = 0.02
    radius: float = math.inf


@dataclass(frozen=True)
class ActorCritic(Algorithm):
    """Off-policy actor-critic with a linear critic in action values (after Degris, White and Sutton, 2012).

    The actor is π_θ(a|s) ∝ exp(σ φ(s,a)ᵀθ), so the problem's target must be ``Softmax``. The critic is
    Q_ω(s,a) = φ(s,a)ᵀω, with V_ω(s) = Σ_b π_θ(b|s) Q_ω(s,b). For a sample x = (s, a, r, s') of the behaviour policy,
    with the importance ratio ρ = π_θ(a|s)/π_b(a|s) and ∇ log π_θ(a|s) = σ (φ(s,a) − Σ_b π_θ(b|s) φ(s,b)),

        θ ← Π_R[θ + η_θ ρ (r + γ V_ω(s') − V_ω(s)) ∇ log π_θ(a|s)]
        ω ← Π_R[ω + η_ω (r + γ V_ω(s') − Q_ω(s,a)) φ(s,a)]

    both at the old (θ, ω). The critic needs no ratio: its error is conditional on (s, a), and V_ω(s') is already the
    expectation under π_θ. In the mean over D and P the actor's step is
    Σ_s μ(s) Σ_a π_θ(a|s) ∇ log π_θ(a|s) (E[r + γ V_ω(s') | s, a] − V_ω(s)). Like every semi-gradient critic this one
    has no guarantee off-policy; ``radius`` bounds it.

    Examples
    --------
    With a feature for every pair it finds the optimum:

    >>> import numpy as np, gqlab as gq
    >>> problem = gq.Problem(gq.garnet(seed=0), np.eye(15).reshape(5, 3, 15))
    >>> result = gq.run(problem, gq.ActorCritic(0.05, 0.05), n_samples=300_000, n_runs=2)
    >>> value = problem.exact.value(result.theta[:, -1]).mean(axis=0)
    >>> bool((value > 0.99 * problem.exact.optimal_value).all())
    True
    """

    eta_theta: float = 0.02
    eta_omega: float = 0.01
    radius: float = math.inf


@dataclass(frozen=True)
class PolicyGradient(Algorithm):
    """Off-policy policy gradient with per-decision importance ratios (Precup, Sutton and Singh, 2000).

    Every update takes ``n_trajectories`` independent trajectories s₀, a₀, r₀, s₁, … of ``horizon`` steps under the
    behaviour policy, each from the distribution of first states, and climbs the discounted return of
    π_θ(a|s) ∝ exp(σ φ(s,a)ᵀθ):

        g = Σ_t (Π_{k<t} γ_k) (Π_{k≤t} π_θ(a_k|s_k)/π_b(a_k|s_k)) r_t Σ_{k≤t} ∇ log π_θ(a_k|s_k)
        θ ← Π_R[θ + η_θ · mean of g over the trajectories]

    g is an unbiased estimate of the gradient of E_π[Σ_{t<horizon} (Π_{k<t} γ_k) r_t]. A trajectory that arrives in a
    terminal state ends there; it counts in full all the same, so an update always counts n_trajectories·horizon
    samples. The problem's target must be ``Softmax``.

    Examples
    --------
    >>> import gqlab as gq
    >>> gq.PolicyGradient().n_updates(18_000)  # 30 · 60 samples each
    10
    """

    has_omega: ClassVar[bool] = False

    eta_theta: float = 0.02
    n_trajectories: int = 30
    horizon: int = 60
    radius: float = math.inf

    def __post_init__(self) -> None:
        self._check()
        for name in ("n_trajectories", "horizon"):
            object.__setattr__(self, name, checks.integer(name, getattr(self, name), least=1, below=2**24))

    @property
    def samples_per_update(self) -> int:
        """n_trajectories · horizon."""
        return self.n_trajectories * self.horizon

    def n_updates(self, n_samples: int) -> int:
        if self.samples_per_update > n_samples:
            raise ValueError(f"an update takes {self.samples_per_update} samples, more than n_samples = {n_samples}")
        return n_samples // self.samples_per_update

    def samples(self, updates: Counts) -> Counts:
        return updates * self.samples_per_update

    def gradient_evaluations(self, updates: Counts) -> Counts:
        return self.samples(updates)


_KINDS = (GreedyGQ, VRGreedyGQ, QLearning, ActorCritic, PolicyGradient)
ALGORITHMS: dict[str, type[Algorithm]] = {kind.__name__: kind for kind in _KINDS}


def check_algorithm(name: str, value: object) -> None:
    """``value`` is one of the algorithms that the engine knows."""
    if type(value) not in ALGORITHMS.values():
        raise ValueError(f"{name} is {value!r}, expected one such as gqlab.VRGreedyGQ()")


def from_dict(values: dict[str, Any]) -> Algorithm:
    """The algorithm that :meth:`Algorithm.to_dict` wrote."""
    fields = dict(values)
    kind = ALGORITHMS.get(fields.pop("name", ""))
    if kind is None:
        raise ValueError(f"unknown algorithm {values.get('name')!r}, expected one of {', '.join(ALGORITHMS)}")
    return kind(**fields)
