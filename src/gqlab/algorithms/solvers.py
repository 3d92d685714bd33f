"""Baselines for logged data that solve for θ at once; :mod:`gqlab.learn.fit.fitted` has their iterations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gqlab.algorithms.base import Algorithm
from gqlab.algorithms.schedules import StepSize
from gqlab.estimators.needs import Need
from gqlab.support import checks


class Ridge(Algorithm):
    """What both share: iterations of ridge regressions, without step sizes, and without a projection."""

    ridge: float | None
    n_iterations: int | None
    pessimism: float

    #: Fields that repeat nothing but a default are not shown.
    later: ClassVar[tuple[str, ...]] = ("ridge", "n_iterations", "pessimism")

    #: What is taken where they are not given.
    usual_ridge: ClassVar[float] = 1e-4
    usual_iterations: ClassVar[int]

    @property
    def eta_theta(self) -> StepSize:  # type: ignore[override]
        """Unused: there are no step sizes."""
        return 1.0

    @property
    def own_ridge(self) -> float:
        """λ, given or not."""
        return self.usual_ridge if self.ridge is None else self.ridge

    @property
    def most_iterations(self) -> int:
        """Iterations, given or not."""
        return self.usual_iterations if self.n_iterations is None else self.n_iterations

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ridge is not None:
            object.__setattr__(self, "ridge", checks.number("ridge", self.ridge, least=0))
        if self.n_iterations is not None:
            object.__setattr__(self, "n_iterations", checks.integer("n_iterations", self.n_iterations, least=1))
        object.__setattr__(self, "pessimism", checks.number("pessimism", self.pessimism, least=0))


@dataclass(frozen=True, repr=False)
class FittedQ(Ridge):
    """Fitted Q iteration: θ ← the ridge regression of r + γ V̄_{s'}(θ) on φ(s,a), again and again.

    Nothing keeps it from diverging: a ridge helps. With a policy as the target it is fitted Q evaluation, and its fixed
    point is solved for at once: θ = (A + λI)⁻¹(b + λ v0 c), shrunk towards the constant v0 that the log itself
    suggests, by a λ that the data choose (:mod:`gqlab.learn.fit.shrunk`). A warning says where the values depend on λ.

    Parameters
    ----------
    ridge : float, optional
        λ of (C + λI) θ = mean φ (r + γV̄), with C = mean φφᵀ: 1e-4 by default. Where a policy is evaluated: λ for each
        row, in place of the one that the data choose.
    n_iterations : int, optional
        200 by default. Refused where a policy is evaluated.
    pessimism : float
        β: values in the bootstrap are lower by β standard deviations, β·sd·√h with the leverage h of (s, a), and those
        of pairs that were never seen are the least that rewards allow (:mod:`gqlab.learn.fit.caution`). The model has
        these lower values. For logs that hardly explore: try 1. Refused where a policy is evaluated.

    Examples
    --------
    >>> import gqlab as gq
    >>> gq.FittedQ(ridge=1e-3), gq.FittedQ(pessimism=1)
    (FittedQ(ridge=0.001), FittedQ(pessimism=1.0))
    """

    solves: ClassVar[Need | None] = Need.ROWS
    usual_iterations: ClassVar[int] = 200

    ridge: float | None = None
    n_iterations: int | None = None
    pessimism: float = 0.0


@dataclass(frozen=True, repr=False)
class LSPI(Ridge):
    """Least-squares policy iteration: θ ← the solution of mean δφ = 0 with the weights w of the last θ.

    With a policy as the target it is LSTD-Q, the fixed point of fitted Q evaluation: see :class:`FittedQ`.

    Parameters
    ----------
    ridge : float, optional
        λ of (mean φ(φ − γφ̂)ᵀ + λI) θ = mean rφ: 1e-4 by default. Where a policy is evaluated as of :class:`FittedQ`.
    n_iterations : int, optional
        At most, 30 by default; it ends where θ no longer changes. Refused where a policy is evaluated.
    pessimism : float
        As of :class:`FittedQ`.

    Examples
    --------
    >>> import gqlab as gq
    >>> gq.LSPI(ridge=1e-3)
    LSPI(ridge=0.001)
    """

    solves: ClassVar[Need | None] = Need.ROWS
    usual_iterations: ClassVar[int] = 30

    ridge: float | None = None
    n_iterations: int | None = None
    pessimism: float = 0.0
