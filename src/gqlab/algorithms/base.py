"""What an algorithm is: an estimator and its parameters, as plain data; and the algorithms by name."""

from __future__ import annotations

import inspect
import math
from dataclasses import asdict, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from gqlab.algorithms import schedules
from gqlab.algorithms.places import Way
from gqlab.algorithms.schedules import Decay, StepSize, scaled, step_size
from gqlab.estimators.base import answer, begin, next_begin, step
from gqlab.estimators.needs import Need, needs_of
from gqlab.problems.problem import Problem
from gqlab.rules.dispatch import require
from gqlab.support import checks

Counts = NDArray[np.int64]

ETAS = ("eta_theta", "eta_omega")


class Algorithm:
    """What :func:`gqlab.run` runs: an estimator, its parameters and step sizes, as a frozen dataclass.

    Counts are per run, from its beginning; by default an update takes one sample. To add an algorithm, see
    docs/extending.md: a dataclass and its estimator in your own file are all that it needs. A field may have any name
    but those of this class, ``eta_theta``, ``eta_omega`` and ``radius`` excepted: what gqlab asks an algorithm for are
    these attributes, and no field means something to it by chance.
    """

    #: The compiled part: see :mod:`gqlab.estimators.base`. Its parameters are fields of the algorithm.
    estimator: ClassVar[type]

    #: Whether the algorithm has a second parameter ω.
    has_omega: ClassVar[bool] = True

    #: Whether the estimator reads the parameters of its operator.
    reads_operator: ClassVar[bool] = False

    #: What it solves for θ from, where it solves at once in place of moving update by update, or besides.
    solves: ClassVar[Need | None] = None

    #: Whether update by update it takes the samples of :func:`gqlab.trajectory` in their order.
    follows_trajectory: ClassVar[bool] = True

    #: Fields that are written into files only where they differ from their default: they came later.
    later: ClassVar[tuple[str, ...]] = ()

    #: η_θ and η_ω where they are not given, for features with max ‖φ‖ = 1.
    default_etas: ClassVar[tuple[StepSize, StepSize]] = (
        Decay(0.32, after=1000, power=0.5),
        Decay(0.16, after=1000, power=0.5),
    )

    eta_theta: StepSize | None
    radius: float = math.inf

    def __repr__(self) -> str:
        if not hasattr(self, "__dataclass_fields__"):
            return object.__repr__(self)
        usual = {field.name: field.default for field in fields(self)}  # type: ignore[arg-type]
        shown = [name for name in usual if name not in self.later or getattr(self, name) != usual[name]]
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        check_fields(cls)
        if hasattr(cls, "estimator"):
            require(cls.estimator, [step], f"algorithm {cls.__name__}", optional=[begin, next_begin, answer])
        if hasattr(cls, "estimator") or cls.solves is not None:
            register(cls)

    @property
    def eta_omega(self) -> StepSize | None:
        """η_ω; 0 where ω stands still at 0."""
        return 0.0

    # --- What places ask for ------------------------------------------------------------------------------------------

    @property
    def ways(self) -> tuple[Way, ...]:
        """The ways of running it, the best first: which estimator, and what it needs of the data."""
        several = {Need.SEVERAL} if self.samples_per_update > 1 else set()
        stepping = [Way(self.estimator, needs_of(self.estimator) | several)] if hasattr(self, "estimator") else []
        solving = [] if self.solves is None else [Way(None, frozenset({self.solves}))]
        return (*solving, *stepping)

    @property
    def samples_per_update(self) -> int:
        """The samples that one update takes."""
        return 1

    @property
    def epoch_size(self) -> int:
        """M, the samples of a batch; 0 where there are no batches."""
        return 0

    @property
    def omega_decay(self) -> float:
        """β, with which every move draws ω towards 0."""
        return 0.0

    @property
    def trace_decay(self) -> float:
        """λ of its traces."""
        return 0.0

    @property
    def own_radius_omega(self) -> float:
        """R_ω, which is R where nothing else is given."""
        return self.radius

    # --- What it is made of -------------------------------------------------------------------------------------------

    def __post_init__(self) -> None:
        names = {field.name for field in fields(self)}  # type: ignore[arg-type]
        for field in fields(self):  # type: ignore[arg-type]
            if field.name in ETAS and not (field.default is None and getattr(self, field.name) is None):
                object.__setattr__(self, field.name, step_size(field.name, getattr(self, field.name)))
        if "radius" in names:
            object.__setattr__(self, "radius", checks.number("radius", self.radius, above=0, infinite=True))

    def check(self, problem: Problem) -> None:
        """Raise ``ValueError`` if the algorithm cannot run on a problem."""

    def for_problem(self, problem: Problem) -> Self:
        """The algorithm with a number for each step size that was not given: its default over max ‖φ‖².

        With features c·φ, θ/c has the values that θ has with φ; a step of η/c² on c·φ is one of η on φ.
        """
        return self.for_norm(problem.largest_norm_squared)

    def for_norm(self, largest: float) -> Self:
        """The same for features with this max ‖φ‖²."""
        defaults = zip(ETAS, self.default_etas, strict=True)
        given = {name: scaled(eta, 1 / largest) for name, eta in defaults if getattr(self, name) is None}
        return replace(self, **given) if given else self  # type: ignore[type-var]

    def n_updates(self, n_samples: int) -> int:
        """The updates that a budget of samples allows."""
        n_samples = checks.integer("n_samples", n_samples, least=0)
        if self.samples_per_update > n_samples:
            raise ValueError(f"an update takes {self.samples_per_update} samples, more than n_samples = {n_samples}")
        return n_samples // self.samples_per_update

    def samples(self, updates: Counts) -> Counts:
        """The samples that have been drawn when so many updates are done."""
        return updates * self.samples_per_update

    def gradient_evaluations(self, updates: Counts) -> Counts:
        """The evaluations of (G_x, H_x) by then, as the algorithm is written in the paper: one for each sample."""
        return self.samples(updates)

    def whole(self, updates: Counts) -> Counts:
        """The first counts of updates, these or later, at which a run can be stopped and resumed."""
        return updates

    def to_dict(self) -> dict[str, Any]:
        """The name and the parameters, ready for JSON."""
        values = asdict(self)  # type: ignore[call-overload]
        usual = {field.name: field.default for field in fields(self)}  # type: ignore[arg-type]
        left_out = [name for name in self.later if name in values and values[name] == usual[name]]
        return {"name": type(self).__name__, **{name: v for name, v in values.items() if name not in left_out}}


#: The fields whose names mean something to gqlab, wherever an algorithm has them.
MEANT = (*ETAS, "radius")


def check_fields(kind: type[Algorithm]) -> None:
    """``ValueError`` where a field of an algorithm would stand in the place of what gqlab asks an algorithm for."""
    for name, annotation in inspect.get_annotations(kind).items():
        text = annotation if isinstance(annotation, str) else str(annotation)
        if hasattr(Algorithm, name) and name not in MEANT and "ClassVar" not in text:
            raise ValueError(
                f"algorithm {kind.__name__}: a field cannot be called {name}, which gqlab asks algorithms for itself"
            )


#: The algorithms by name, a user's own included.
ALGORITHMS: dict[str, type[Algorithm]] = {}


def register(kind: type[Algorithm]) -> None:
    """Make an algorithm known by its name, so that saved results of it can be loaded."""
    known = ALGORITHMS.get(kind.__name__)
    if known is not None and known.__module__.startswith("gqlab."):
        raise ValueError(f"{kind.__name__} is the name of an algorithm of gqlab: choose another")
    ALGORITHMS[kind.__name__] = kind


def is_kind(value: object) -> bool:
    """Whether ``value`` is the class of an algorithm that can be run somewhere."""
    return (
        isinstance(value, type) and issubclass(value, Algorithm) and (hasattr(value, "estimator") or bool(value.solves))
    )


def check_algorithm(name: str, value: object) -> None:
    """``value`` is an algorithm that can be run somewhere."""
    if not isinstance(value, Algorithm) or not hasattr(value, "__dataclass_fields__") or not value.ways:
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


class OwnRadius(Algorithm):
    """What algorithms share whose ω has a projection of its own: ``radius_omega`` is R_ω; None: R."""

    radius_omega: float | None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.radius_omega is not None:
            own = checks.number("radius_omega", self.radius_omega, above=0, infinite=True)
            object.__setattr__(self, "radius_omega", own)

    @property
    def own_radius_omega(self) -> float:
        return self.radius if self.radius_omega is None else self.radius_omega
