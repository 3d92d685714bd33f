"""Step sizes that change: η_t = η (1 + t/after)^−power."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gqlab.rules.dispatch import by_type, rule
from gqlab.rules.point import Rates
from gqlab.support import checks


@dataclass(frozen=True)
class Decay:
    """A step size that falls: η_t = η (1 + t/after)^−power, t the updates made before this one.

    Every ``eta`` of an algorithm accepts a number or one of these. The result of n updates does not depend on how many
    more are to come.

    Examples
    --------
    >>> import gqlab as gq
    >>> decay = gq.Decay(0.32, after=1000, power=0.5)
    >>> decay(0), decay(3000)
    (0.32, 0.16)
    >>> gq.GreedyGQ(eta_theta=decay).eta_theta
    Decay(eta=0.32, after=1000.0, power=0.5)
    """

    eta: float
    after: float = 1000.0
    power: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "eta", checks.number("eta", self.eta, above=0))
        object.__setattr__(self, "after", checks.number("after", self.after, above=0))
        object.__setattr__(self, "power", checks.number("power", self.power, least=0))

    def __call__(self, t: float) -> float:
        """η_t."""
        return float(self.eta * (1 + t / self.after) ** -self.power)


@dataclass(frozen=True)
class LinearDecay:
    """A share that goes from ``first`` to ``last`` along a line, over so many steps, and stays there: ``epsilon``.

    Examples
    --------
    >>> import gqlab as gq
    >>> epsilon = gq.LinearDecay(0.1, 0.0, over=1000)
    >>> epsilon(0), epsilon(500), epsilon(2000)
    (0.1, 0.05, 0.0)
    """

    first: float
    last: float
    over: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "first", checks.number("first", self.first, least=0, most=1))
        object.__setattr__(self, "last", checks.number("last", self.last, least=0, most=1))
        object.__setattr__(self, "over", checks.number("over", self.over, above=0))

    def __call__(self, t: float) -> float:
        """Its value after t steps."""
        return float(self.last + (self.first - self.last) * max(0.0, 1 - t / self.over))


def share(name: str, value: Any) -> LinearDecay:
    """``value`` as a share that may change: a number from 0 to 1 or a :class:`LinearDecay`."""
    if isinstance(value, LinearDecay):
        return value
    number = checks.number(name, value, least=0, most=1)
    return LinearDecay(number, number)


#: What an ``eta`` may be.
StepSize = float | Decay


def step_size(name: str, value: Any) -> StepSize:
    """``value`` as a step size: a positive number or a :class:`Decay`."""
    return value if isinstance(value, Decay) else checks.number(name, value, above=0)


def scaled(eta: StepSize, factor: float) -> StepSize:
    """A step size times a factor."""
    return replace(eta, eta=eta.eta * factor) if isinstance(eta, Decay) else eta * factor


def from_dict(value: Any) -> Any:
    """A step size as ``dataclasses.asdict`` wrote it."""
    return Decay(**value) if isinstance(value, dict) else value


def schedule_kind(algorithm: Any) -> type:
    """The compiled part that an algorithm's step sizes need."""
    return Decaying if any(isinstance(eta, Decay) for eta in (algorithm.eta_theta, algorithm.eta_omega)) else Constant


def join_schedules(algorithms: Sequence[Any], counts: Sequence[int], dtype: Any) -> Any:
    """The step sizes, radii and β of several algorithms of one kind of schedule, each for so many runs."""
    kind: Any = schedule_kind(algorithms[0])

    def per_run(values: Iterable[float]) -> NDArray[Any]:
        return np.repeat(np.array(list(values), dtype=dtype), counts)

    columns = {
        "radius": per_run(a.radius for a in algorithms),
        "radius_omega": per_run(a.own_radius_omega for a in algorithms),
        "beta": per_run(a.omega_decay for a in algorithms),
    }
    for name in ("theta", "omega"):
        etas = [getattr(a, f"eta_{name}") for a in algorithms]
        columns[f"eta_{name}"] = per_run(eta.eta if isinstance(eta, Decay) else eta for eta in etas)
        if kind is Decaying:
            decays = [eta if isinstance(eta, Decay) else Decay(1.0, power=0.0) for eta in etas]
            columns[f"{name}_speed"] = per_run(1 / decay.after for decay in decays)
            columns[f"{name}_power"] = per_run(decay.power for decay in decays)
    return kind(**columns)


@by_type
def rates_at(self, u, like):
    """Schedule: the rates of update u, in the dtype of ``like``."""


class Constant(NamedTuple):
    """Rates that stay."""

    eta_theta: float
    eta_omega: float
    radius: float
    radius_omega: float
    beta: float

    def rates_at(self, u, like):
        return Rates(self.eta_theta, self.eta_omega, self.radius, self.radius_omega, self.beta)


class Decaying(NamedTuple):
    """Rates that fall; a power of 0 is a step size that stays."""

    eta_theta: float
    eta_omega: float
    radius: float
    radius_omega: float
    beta: float
    theta_speed: float  # 1/after
    theta_power: float
    omega_speed: float
    omega_power: float

    def rates_at(self, u, like):
        t = like.dtype.type(u)
        eta_theta = decayed(self.eta_theta, self.theta_speed, self.theta_power, t, like)
        eta_omega = decayed(self.eta_omega, self.omega_speed, self.omega_power, t, like)
        return Rates(eta_theta, eta_omega, self.radius, self.radius_omega, self.beta)


@rule
def decayed(eta, speed, power, t, like):
    """η (1 + speed·t)^−power; the usual powers without a call of ``pow``."""
    base = like.dtype.type(1) + speed * t
    if power == 0.5:
        return eta / math.sqrt(base)
    if power == 1.0:
        return eta / base
    if power == 0.0:
        return eta
    return eta * base ** (-power)
