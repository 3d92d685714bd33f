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

    ridge: float
    n_iterations: int

    @property
    def eta_theta(self) -> StepSize:  # type: ignore[override]
        """Unused: there are no step sizes."""
        return 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "ridge", checks.number("ridge", self.ridge, least=0))
        object.__setattr__(self, "n_iterations", checks.integer("n_iterations", self.n_iterations, least=1))


@dataclass(frozen=True, repr=False)
class FittedQ(Ridge):
    """Fitted Q iteration: θ ← the ridge regression of r + γ V̄_{s'}(θ) on φ(s,a), again and again.

    With a given policy as the target it is fitted Q evaluation. Nothing keeps it from diverging: a ridge helps.

    Parameters
    ----------
    ridge : float
        λ of (C + λI) θ = mean φ (r + γV̄), with C = mean φφᵀ.
    n_iterations : int

    Examples
    --------
    >>> import gqlab as gq
    >>> gq.FittedQ(ridge=1e-3)
    FittedQ(ridge=0.001, n_iterations=200)
    """

    solves: ClassVar[Need | None] = Need.ROWS

    ridge: float = 1e-4
    n_iterations: int = 200


@dataclass(frozen=True, repr=False)
class LSPI(Ridge):
    """Least-squares policy iteration: θ ← the solution of mean δφ = 0 with the weights w of the last θ.

    Parameters
    ----------
    ridge : float
        λ of (mean φ(φ − γφ̂)ᵀ + λI) θ = mean rφ.
    n_iterations : int
        At most; it ends where θ no longer changes.

    Examples
    --------
    >>> import gqlab as gq
    >>> gq.LSPI(ridge=1e-3)
    LSPI(ridge=0.001, n_iterations=30)
    """

    solves: ClassVar[Need | None] = Need.ROWS

    ridge: float = 1e-4
    n_iterations: int = 30
