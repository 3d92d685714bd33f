"""The algorithms: a rule, an estimator and step sizes, as plain data."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gqlab import checks

Counts = NDArray[np.int64]


class Algorithm(ABC):
    """What :func:`gqlab.run` runs. Counts are per run, from its beginning."""

    eta_theta: float
    eta_omega: float
    radius: float

    def _check(self) -> None:
        for name, infinite in (("eta_theta", False), ("eta_omega", False), ("radius", True)):
            number = checks.number(name, getattr(self, name), above=0, infinite=infinite)
            object.__setattr__(self, name, number)

    @property
    @abstractmethod
    def epoch(self) -> int:
        """M, the samples of a batch; 0 where there are no batches."""

    @abstractmethod
    def n_updates(self, n_samples: int) -> int:
        """The updates that a budget of samples allows."""

    @abstractmethod
    def samples(self, updates: Counts) -> Counts:
        """The samples that have been drawn when so many updates are done."""

    @abstractmethod
    def gradient_evaluations(self, updates: Counts) -> Counts:
        """The evaluations of (G_x, H_x) by then, as the algorithm is written in the paper."""

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

    def __post_init__(self) -> None:
        self._check()

    @property
    def epoch(self) -> int:
        return 0

    def n_updates(self, n_samples: int) -> int:
        return n_samples

    def samples(self, updates: Counts) -> Counts:
        return updates

    def gradient_evaluations(self, updates: Counts) -> Counts:
        return updates


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


ALGORITHMS: dict[str, type[Algorithm]] = {kind.__name__: kind for kind in (GreedyGQ, VRGreedyGQ)}


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
