"""What the functions of the theory accept: their arguments are checked by name, once, before anything is computed.

The constants are products of high powers of radii and step sizes. Beyond the ranges given
here they overflow: such values are refused in one line, where a formula would give NaN or an OverflowError.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

import numpy as np

from gqlab.algorithms import Algorithm
from gqlab.lab.results import check_result
from gqlab.problems.problem import Problem
from gqlab.support import checks

P = ParamSpec("P")
R = TypeVar("R")

#: The smallest and the largest number that is accepted, by the name of the argument.
RANGES = {
    "radius": (1e-20, 1e20),
    "radius_omega": (1e-20, 1e20),
    "eta_theta": (1e-40, 1e40),
    "eta_omega": (1e-40, 1e40),
    "epsilon": (1e-20, 1e20),
    "start": (0.0, 1e100),
    "theta0_norm": (0.0, 1e20),
}

#: The smallest admissible whole numbers.
COUNTS = {"batch_size": 1, "n_epochs": 1, "n_runs": 1, "seed": 0}

WORDS = {
    "version": ("corrected", "printed"),
    "sampling": ("markov", "iid"),
    "theorem": ("interior", "projected", "plug-in"),
}


def in_range(name: str, value: Any, infinite: bool = False) -> float:
    """A number for which the formulas can be evaluated; with ``infinite`` also infinity, which they handle."""
    low, high = RANGES[name]
    out = checks.number(name, value, infinite=True)
    if infinite and out == math.inf:
        return out
    return checks.number(name, value, least=low, most=high)


def _algorithm(name: str, value: Any, others: Mapping[str, Any]) -> Algorithm:
    checks.instance(name, value, Algorithm, "one such as gqlab.VRGreedyGQ()")
    in_range("radius", value.radius, infinite=True)
    in_range("radius_omega", value.own_radius_omega, infinite=True)
    for eta in ("eta_theta", "eta_omega"):
        if isinstance(getattr(value, eta), float) and getattr(value, eta) > 0:
            in_range(eta, getattr(value, eta))
    return value


def _sharp(name: str, value: Any, others: Mapping[str, Any]) -> Any:
    from gqlab.theory.sharp import Sharp

    checks.instance(name, value, Sharp, "what gqlab.theory.sharp_constants gives")
    return value


def _problem(name: str, value: Any, others: Mapping[str, Any]) -> Problem:
    checks.instance(name, value, Problem, "a Problem")
    return value


def _point(name: str, value: Any, others: Mapping[str, Any]) -> Any:
    return checks.array(name, value, (others["problem"].dim,))


def _start(name: str, value: Any, others: Mapping[str, Any]) -> tuple[float, float]:
    J0, tracking0 = checks.array(name, value, (2,))
    return in_range(name, J0), in_range(name, tracking0)


def _samples(name: str, value: Any, others: Mapping[str, Any]) -> Any:
    checks.number(name, value, least=1, most=1e200)
    return value  # a function that runs them checks for a whole number; a bound does not need one


def _result(name: str, value: Any, others: Mapping[str, Any]) -> Any:
    check_result(name, value)
    return value


#: The checks by argument; ``problem`` comes before those that need it.
CHECKS: dict[str, Callable[[str, Any, Mapping[str, Any]], Any]] = {
    "problem": _problem,
    "algorithm": _algorithm,
    "c": _sharp,
    "theta": lambda name, value, others: checks.vectors(name, value, others["problem"].dim),
    "theta0": _point,
    "omega0": _point,
    "start": _start,
    "result": _result,
    "order": lambda name, value, others: checks.integer(name, value, least=1, below=3),
    "n_samples": _samples,
    **{name: lambda name, value, others: in_range(name, value, "radius" in name) for name in RANGES if name != "start"},
    **{name: lambda name, value, others: checks.integer(name, value, least=COUNTS[name]) for name in COUNTS},
    **{name: lambda name, value, others: checks.one_of(name, value, WORDS[name]) for name in WORDS},
}


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Check the arguments of ``function`` by their names; an overflow inside it is reported in one line as well."""
    signature = inspect.signature(function)
    optional = {name for name, parameter in signature.parameters.items() if parameter.default is None}

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{function.__name__}(): {error}") from None
        given = bound.arguments
        for name, check in CHECKS.items():
            if name in given and not (given[name] is None and (name in optional or name == "batch_size")):
                given[name] = check(name, given[name], given)
        try:
            with np.errstate(all="ignore"):  # what cannot be computed is infinite or NaN in the report
                return function(*bound.args, **bound.kwargs)
        except (ArithmeticError, np.linalg.LinAlgError) as error:
            names = ", ".join(name for name in given if name in RANGES or name in COUNTS or name == "algorithm")
            raise ValueError(f"{names or 'problem'}: some number is out of range ({error})") from None

    return call
