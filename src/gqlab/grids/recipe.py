"""A sweep as data: problems × algorithms × seeds in a TOML file. Mistakes are reported by key.

A list in place of one value means all its values, in every combination with the other lists.
"""

from __future__ import annotations

import inspect
import itertools
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gqlab.algorithms.base import ALGORITHMS, Algorithm, is_kind
from gqlab.algorithms.schedules import Decay
from gqlab.grids.grid import vary
from gqlab.mdp.finite import FiniteMDP
from gqlab.measure.watch import Watch
from gqlab.operators import EpsilonGreedy, Greedy, Mellowmax, Softmax
from gqlab.problems import features
from gqlab.problems.baird import baird
from gqlab.problems.garnet import garnet
from gqlab.problems.problem import Problem
from gqlab.support import checks
from gqlab.support.files import one_line, open_regular
from gqlab.support.own_files import OwnCode

Values = dict[str, Any]

#: No file of the user's own.
NO_CODE = OwnCode()

#: The MDPs, features and targets by name; their keys are the parameters of these functions.
MDPS: dict[str, Callable[..., FiniteMDP]] = {"garnet": garnet, "gymnasium": FiniteMDP.from_gymnasium}
FEATURES: dict[str, Callable[..., Any]] = {
    "random": features.random_features,
    "tabular": features.tabular_features,
    "aggregation": features.aggregated_features,
}
TARGETS: dict[str, Callable[..., Any]] = {
    "softmax": Softmax,
    "mellowmax": Mellowmax,
    "greedy": Greedy,
    "epsilon_greedy": EpsilonGreedy,
}

#: What a file may contain besides problems and algorithms: arguments of :func:`gqlab.grid`, and of an engine.
GRID = ("n_samples", "n_runs", "seeds", "theta0", "omega0", "record_every", "device", "dtype", "watch")
ENGINE = ("engine", "workers", "address")

#: Keys whose value is one list, not several values.
LISTS = ("groups", "behavior")

#: Tables whose lists are values themselves: they are passed to the environment as they are.
TABLES = ("options",)


@dataclass(frozen=True, eq=False)
class Recipe:
    """What a file asks for."""

    problems: list[Problem]
    names: list[str]  # of the problems, for tables
    algorithms: list[Algorithm]
    arguments: Values  # of gqlab.grid
    engine: Values


def read_recipe(path: Path, code: OwnCode = NO_CODE) -> Recipe:
    """The sweep in a file; ``ValueError`` in one line that names the file and the key.

    ``code`` has the files of the user's own that it may name, as FILE.py:NAME: in ``mdp``, a ``kind`` of target, the
    ``name`` of an algorithm.
    """
    try:
        with open_regular(path) as file:
            values = tomllib.load(file)
        return _recipe(values, code)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path} is not TOML: {one_line(error)}") from None
    except RecursionError:
        raise ValueError(f"{path} is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"{path}: {one_line(error)}") from None


def _recipe(values: Values, code: OwnCode) -> Recipe:
    _check_keys("", values, (*GRID, *ENGINE, "problems", "algorithms"))
    problems, names = [], []
    for where, table in _tables(values, "problems"):
        for chosen in _combinations(table):
            problems.append(_named(where, lambda: _problem(chosen, code)))  # noqa: B023 - called at once
            names.append(_short(chosen))
    algorithms: list[Algorithm] = []
    for where, table in _tables(values, "algorithms"):
        algorithms += _named(where, lambda: _algorithms(table, code))  # noqa: B023 - called at once
    arguments = {name: values[name] for name in GRID if name in values}
    if "seeds" in arguments:
        arguments["seeds"] = _seeds(arguments["seeds"])
    if "watch" in arguments:
        arguments["watch"] = _watches(arguments["watch"])
    return Recipe(problems, names, algorithms, arguments, {name: values[name] for name in ENGINE if name in values})


def _tables(values: Values, name: str) -> Iterator[tuple[str, Values]]:
    """The tables ``[[name]]`` of a file, with the places for messages."""
    tables = values.get(name)
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        raise ValueError(f"{name} is {checks.shown(tables)}, expected one or more tables [[{name}]]")
    return ((f"{name}[{k}]", table) for k, table in enumerate(tables))


def _named(where: str, make: Callable[[], Any]) -> Any:
    try:
        return make()
    except ValueError as error:
        raise ValueError(f"{where}: {one_line(error)}") from None


def _check_keys(where: str, table: Values, known: tuple[str, ...]) -> None:
    for name in table:
        if name not in known:
            raise ValueError(f"{where}{name} is unknown, expected any of {', '.join(known)}")


def _combinations(table: Values) -> Iterator[Values]:
    """Every combination of the values in lists, including those of inner tables."""

    def each(name: str, value: Any) -> list[Any]:
        if isinstance(value, dict):
            return [value] if name in TABLES else list(_combinations(value))
        if isinstance(value, list) and name not in LISTS:
            if not value:
                raise ValueError(f"{name} is empty")
            return [one for inner in value for one in each(name, inner)]
        return [value]

    axes = [each(name, value) for name, value in table.items()]
    return (dict(zip(table, chosen, strict=True)) for chosen in itertools.product(*axes))


def _short(chosen: Values) -> str:
    """A problem in one line."""
    kind = chosen.get("mdp", "")
    inner = [f"{k}={_short(v) if isinstance(v, dict) else v}" for k, v in chosen.items() if k not in ("mdp", "kind")]
    return f"{kind or chosen.get('kind', '')}({', '.join(inner)})" if inner else str(kind or chosen.get("kind", ""))


def _problem(chosen: Values, code: OwnCode) -> Problem:
    if code.is_named(chosen.get("mdp")):
        return _own_problem(chosen, code)
    kind = checks.one_of("mdp", chosen.get("mdp"), (*MDPS, "baird"))
    if kind == "baird":
        return baird(**_arguments("", {k: v for k, v in chosen.items() if k != "mdp"}, baird))
    parts = {name: chosen.get(name, {}) for name in ("features", "target")}
    for name, table in parts.items():
        checks.instance(
            name, table, dict, f"a table such as {{kind = '{'random' if name == 'features' else 'softmax'}'}}"
        )
    given = {name: value for name, value in chosen.items() if name not in ("mdp", "features", "target", "behavior")}
    options = _options(given.pop("options", {})) if kind == "gymnasium" else {}
    if ":" in str(given.get("env_id", "")):  # Gymnasium would import the module before the colon
        raise ValueError(f"env_id is {checks.shown(given['env_id'])}: a file cannot have a module imported")
    mdp = MDPS[kind](**_arguments("", given, MDPS[kind]), **options)
    behavior = chosen.get("behavior")
    more = {"behavior": behavior} if parts["features"].get("kind") == "tabular" and behavior is not None else {}
    phi = _call("features", parts["features"], FEATURES, "random", mdp, **more)
    return Problem(mdp, phi, behavior, _target(parts["target"], code))


def _target(table: Values, code: OwnCode) -> Any:
    """An operator of gqlab's, or of a file of the user's own."""
    if not code.is_named(table.get("kind")):
        return _call("target", table, TARGETS, "softmax")
    kind = code.find("target.kind", table["kind"])
    return _call("target", {**table, "kind": "own"}, {"own": kind}, "own")


def _own_problem(chosen: Values, code: OwnCode) -> Problem:
    """A Problem of a file of the user's own, or what its function makes of the other values."""
    thing = code.find("mdp", chosen["mdp"])
    given = {name: value for name, value in chosen.items() if name != "mdp"}
    if callable(thing):
        thing = thing(**_arguments("", given, thing))
    elif given:
        raise ValueError(f"{next(iter(given))} is given, but mdp is a Problem already")
    checks.instance("mdp", thing, Problem, "a Problem, or a function that makes one")
    return thing


def _options(options: Any) -> Values:
    """The keywords of ``gymnasium.make``."""
    checks.instance("options", options, dict, "a table such as {is_slippery = true}")
    for name in ("env_id", "discount", "cls"):  # they would be taken for parameters of from_gymnasium
        if name in options:
            raise ValueError(f"options.{name} is {checks.shown(options[name])}: it is not for gymnasium.make")
    return dict(options)


def _call(where: str, table: Values, known: dict[str, Callable[..., Any]], usual: str, *first: Any, **more: Any) -> Any:
    """What a table asks for: its ``kind`` called with its other values."""
    kind = known[checks.one_of(f"{where}.kind", table.get("kind", usual), known)]
    given = {name: value for name, value in table.items() if name != "kind"}
    if "distribution" in given:  # of random features: their own word for it is ``kind``
        given["kind"] = given.pop("distribution")
    return kind(*first, **_arguments(f"{where}.", given, kind, skip=len(first)), **more)


def _arguments(where: str, given: Values, function: Callable[..., Any], skip: int = 0) -> Values:
    """The values, whose names are parameters of the function."""
    known = [p for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_KEYWORD][skip:]
    _check_keys(where, given, tuple(parameter.name for parameter in known))
    for parameter in known:
        if parameter.default is parameter.empty and parameter.name not in given:
            raise ValueError(f"{where}{parameter.name} is missing")
    return given


def _algorithms(table: Values, code: OwnCode) -> list[Algorithm]:
    given = {name: _steps(value) for name, value in table.items() if name != "name"}
    name = table.get("name")
    kind = code.find("name", str(name)) if code.is_named(name) else ALGORITHMS[checks.one_of("name", name, ALGORITHMS)]
    if not is_kind(kind):
        raise ValueError(f"name is {name!r}, which is no class of algorithms")
    return vary(kind, **given)


def _steps(value: Any) -> Any:
    """A value of an algorithm's parameter; a table is a step size that decays."""
    if isinstance(value, list):
        return [_steps(one) for one in value]
    if isinstance(value, dict):
        return Decay(**_arguments("", value, Decay))
    return value


def _seeds(value: Any) -> Any:
    """A list of seeds, or a count and a first seed."""
    if not isinstance(value, dict):
        return value
    _check_keys("seeds.", value, ("count", "first"))
    first = checks.integer("seeds.first", value.get("first", 0), least=0)
    return range(first, first + checks.integer("seeds.count", value.get("count"), least=1, below=2**32))


def _watches(value: Any) -> list[Watch]:
    """Names of quantities, or tables with the parameters of a watch."""
    several = value if isinstance(value, list) else [value]
    return [Watch(**_arguments("watch.", one, Watch)) if isinstance(one, dict) else Watch(one) for one in several]
