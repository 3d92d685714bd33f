"""The algorithms: a rule, an estimator and step sizes, as plain data."""

from __future__ import annotations

import math
import warnings
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gqlab import checks, schedules
from gqlab.estimators.base import answer, begin, next_begin, step
from gqlab.estimators.plain import Plain
from gqlab.estimators.policy_search import ActorCriticStep, PolicyGradientStep
from gqlab.estimators.svrg import SVRG
from gqlab.operators import Softmax
from gqlab.problem import Problem
from gqlab.rules.dispatch import require
from gqlab.schedules import StepSize, step_size

Counts = NDArray[np.int64]


class Algorithm:
    """What :func:`gqlab.run` runs: an estimator, its parameters and step sizes, as a frozen dataclass.

    Counts are per run, from its beginning; by default an update takes one sample. To add an algorithm, see
    docs/extending.md: a dataclass and its estimator in your own file are all that it needs.
    """

    #: The compiled part: see :mod:`gqlab.estimators.base`. Its parameters are fields of the algorithm.
    estimator: ClassVar[type]

    #: Whether the algorithm has a second parameter ω.
    has_omega: ClassVar[bool] = True

    #: Whether the estimator reads the parameters of its operator.
    reads_operator: ClassVar[bool] = False

    #: The samples that one update takes.
    samples_per_update: int = 1

    #: M, the samples of a batch; 0 where there are no batches.
    batch_size: int = 0

    #: QRC's β, which draws ω towards 0.
    beta: float = 0.0

    eta_theta: StepSize
    radius: float = math.inf

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if hasattr(cls, "estimator"):
            require(cls.estimator, [step], f"algorithm {cls.__name__}", optional=[begin, next_begin, answer])
            register(cls)

    @property
    def eta_omega(self) -> StepSize:
        """η_ω; 0 where ω stands still at 0."""
        return 0.0

    @property
    def epoch(self) -> int:
        """The old name of ``batch_size``."""
        warnings.warn("Algorithm.epoch goes away: use batch_size", DeprecationWarning, stacklevel=2)
        return self.batch_size

    def __post_init__(self) -> None:
        names = {field.name for field in fields(self)}  # type: ignore[arg-type]
        for name in {"eta_theta", "eta_omega"} & names:
            object.__setattr__(self, name, step_size(name, getattr(self, name)))
        if "radius" in names:
            object.__setattr__(self, "radius", checks.number("radius", self.radius, above=0, infinite=True))

    def check(self, problem: Problem) -> None:
        """Raise ``ValueError`` if the algorithm cannot run on a problem."""

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


#: The algorithms by name, a user's own included.
ALGORITHMS: dict[str, type[Algorithm]] = {}


def register(kind: type[Algorithm]) -> None:
    """Make an algorithm known by its name, so that saved results of it can be loaded."""
    known = ALGORITHMS.get(kind.__name__)
    if known is not None and known.__module__ == __name__:
        raise ValueError(f"{kind.__name__} is the name of an algorithm of gqlab: choose another")
    ALGORITHMS[kind.__name__] = kind


def check_algorithm(name: str, value: object) -> None:
    """``value`` is an algorithm with a compiled estimator."""
    if not isinstance(value, Algorithm) or not hasattr(value, "estimator"):
        raise ValueError(f"{name} is {checks.shown(value)}, expected one such as gqlab.VRGreedyGQ()")


def from_dict(values: dict[str, Any]) -> Algorithm:
    """The algorithm that :meth:`Algorithm.to_dict` wrote."""
    parameters = {name: schedules.from_dict(value) for name, value in values.items()}
    kind = ALGORITHMS.get(parameters.pop("name", ""))
    if kind is None:
        raise ValueError(
            f"unknown algorithm {values.get('name')!r}, expected one of {', '.join(ALGORITHMS)}; "
            "one of your own is known when the file that defines it has been imported"
        )
    return kind(**parameters)


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

    estimator: ClassVar[type] = Plain

    eta_theta: StepSize = 0.02
    eta_omega: StepSize = 0.01
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

    estimator: ClassVar[type] = SVRG

    eta_theta: StepSize = 0.02
    eta_omega: StepSize = 0.01
    batch_size: int = 3000
    radius: float = math.inf

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "batch_size", checks.integer("batch_size", self.batch_size, least=1, below=2**32))

    def n_updates(self, n_samples: int) -> int:
        if self.batch_size > n_samples:
            raise ValueError(f"batch_size is {self.batch_size}, more than n_samples = {n_samples}: not one epoch fits")
        return n_samples // self.batch_size * self.batch_size

    def samples(self, updates: Counts) -> Counts:
        return -(-updates // self.batch_size) * self.batch_size

    def gradient_evaluations(self, updates: Counts) -> Counts:
        return self.samples(updates) + 2 * updates  # M for the batch means, 2 for every update


@dataclass(frozen=True)
class QRC(Algorithm):
    """Greedy-GQ whose ω is drawn towards 0 (QRC: Ghiassian et al., 2020; β = 0 is Greedy-GQ).

        θ ← Π_R[θ − η_θ G_x(θ, ω)]        ω ← Π_R[ω − η_ω (H_x(θ, ω) + βω)]

    ω then follows ω_β(θ) = (C + βI)⁻¹ E[δφ] in place of ω*. The mean update of θ is no longer a gradient, of J or of
    anything else; its fixed points are those of E[δφ] = E[γ φ̂ φᵀ] ω_β. Where E[δφ] = 0 can be solved its solution is
    one of them, whatever β is; with β → ∞ the updates become those of Q-learning.

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

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "beta", checks.number("beta", self.beta, least=0))


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

    estimator: ClassVar[type] = Plain
    has_omega: ClassVar[bool] = False

    eta_theta: StepSize = 0.02
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

    estimator: ClassVar[type] = ActorCriticStep
    reads_operator: ClassVar[bool] = True

    eta_theta: StepSize = 0.02
    eta_omega: StepSize = 0.01
    radius: float = math.inf

    def check(self, problem: Problem) -> None:
        _check_softmax(self, problem)


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

    estimator: ClassVar[type] = PolicyGradientStep
    reads_operator: ClassVar[bool] = True
    has_omega: ClassVar[bool] = False

    eta_theta: StepSize = 0.02
    n_trajectories: int = 30
    horizon: int = 60
    radius: float = math.inf

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("n_trajectories", "horizon"):
            object.__setattr__(self, name, checks.integer(name, getattr(self, name), least=1, below=2**24))

    def check(self, problem: Problem) -> None:
        _check_softmax(self, problem)

    @property
    def samples_per_update(self) -> int:  # type: ignore[override]
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


def _check_softmax(algorithm: Algorithm, problem: Problem) -> None:
    if type(problem.target) is not Softmax:
        raise ValueError(
            f"target is {problem.target!r}, but {type(algorithm).__name__} needs a softmax policy, gqlab.Softmax(sigma)"
        )
