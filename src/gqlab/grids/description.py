"""What a sweep is: problems × algorithms × seeds and their settings, in a form that a store can keep.

Cells are numbered: problem by problem, algorithm by algorithm, seed by seed. The digest of a description covers
everything that determines a result, including the code; so the digest and a cell's number are a key by content.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gqlab import algorithms as known_algorithms
from gqlab.algorithms import Algorithm
from gqlab.engine.cells import Cell, Settings
from gqlab.lab.execute import check_cell
from gqlab.measure.watch import Watch
from gqlab.problems.problem import Problem
from gqlab.support import checks
from gqlab.support.files import one_line
from gqlab.support.sources import code_digest

#: Written into every store.
FORMAT = "gqlab sweep 1"

#: What runs a cell: its imports are all code of gqlab that a result depends on, beside that of its algorithm.
RUNS_CELLS = "gqlab.lab.execute"


@dataclass(frozen=True, eq=False)
class Axes:
    """What is varied: problems, algorithms, seeds."""

    algorithms: list[Algorithm]  # each once
    which: NDArray[np.intp]  # (problems, algorithms of each): indices into ``algorithms``
    seeds: NDArray[np.uint64]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Problems, algorithms of each, seeds."""
        return self.which.shape[0], self.which.shape[1], len(self.seeds)

    def __len__(self) -> int:
        return math.prod(self.shape)

    def at(self, number: int) -> tuple[int, int, int]:
        """The indices of a cell's problem and algorithm, and its seed."""
        p, a, s = (int(k) for k in np.unravel_index(number, self.shape))
        return p, int(self.which[p, a]), int(self.seeds[s])

    def labels(self) -> dict[str, NDArray[Any]]:
        """The columns of :class:`gqlab.GridResult`."""
        n_problems, n_algorithms, n_seeds = self.shape
        of_cell = np.repeat(self.which.reshape(-1), n_seeds)
        parameters = [
            {field.name: getattr(algorithm, field.name) for field in fields(algorithm)}  # type: ignore[arg-type]
            for algorithm in self.algorithms
        ]
        names = dict.fromkeys(name for values in parameters for name in values)
        # None, for a parameter that is not set, would make a column of objects.
        columns = {name: [np.nan if v.get(name) is None else v[name] for v in parameters] for name in names}
        return {
            "problem": np.repeat(np.arange(n_problems), n_algorithms * n_seeds),
            "seed": np.tile(self.seeds, n_problems * n_algorithms),
            "algorithm": np.array([type(algorithm).__name__ for algorithm in self.algorithms])[of_cell],
            **{name: np.array(column)[of_cell] for name, column in columns.items()},
        }


@dataclass(frozen=True, eq=False)
class Description:
    """A sweep without the arrays of its problems: what a store knows about it."""

    code: str
    settings: dict[str, Any]  # n_samples, n_runs, record_every, device, dtype, watch, theta0, omega0
    problems: list[str]  # fingerprints
    axes: Axes

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "format": FORMAT,
            "code": self.code,
            "settings": self.settings,
            "problems": self.problems,
            "algorithms": self._algorithm_dicts,
            "which": self.axes.which.tolist(),
            "seeds": self.axes.seeds.tolist(),
        }

    @cached_property
    def _algorithm_dicts(self) -> list[dict[str, Any]]:
        # As they will be read back: JSON has no tuples.
        return [json.loads(json.dumps(algorithm.to_dict())) for algorithm in self.axes.algorithms]

    @cached_property
    def digest(self) -> str:
        """Equal for equal sweeps with equal code."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()

    def metadata(self, number: int) -> dict[str, Any]:
        """What distinguishes the result of this cell from all others."""
        p, a, seed = self.axes.at(number)
        named = ("n_samples", "record_every", "dtype", "device", "watch")
        values = {name: self.settings[name] for name in named}
        return {"algorithm": self._algorithm_dicts[a], "problem": self.problems[p], "seed": seed, **values}


def read_description(values: Any) -> Description:
    """What :meth:`Description.to_dict` wrote; ``ValueError`` for everything else."""
    try:
        if values["format"] != FORMAT:
            raise ValueError(f"its format is {checks.shown(values['format'])}, expected {FORMAT!r}")
        algorithms = [known_algorithms.from_dict(dict(algorithm)) for algorithm in values["algorithms"]]
        which = np.array(values["which"], dtype=np.intp)
        seeds = [checks.integer("seeds", seed, least=0, below=2**64) for seed in values["seeds"]]
        for name, kind in {"code": str, "settings": dict, "problems": list}.items():
            checks.instance(name, values[name], kind, f"a {kind.__name__}")
        if which.ndim != 2 or len(which) != len(values["problems"]) or 0 in which.shape or not seeds:
            raise ValueError(f"which has shape {which.shape} for {len(values['problems'])} problems")
        if which.min() < 0 or which.max() >= len(algorithms):
            raise ValueError(f"which names algorithm {which.max()} of {len(algorithms)}")
        checks.memory("the number of cells", which.size * len(seeds), 10 * which.size * len(seeds))
        settings = values["settings"]
        settings["watch"] = [asdict(Watch(**watch)) for watch in settings["watch"]]
        for name in ("n_samples", "n_runs", "record_every"):
            checks.integer(name, settings[name], least=1)
        problems = [str(problem) for problem in values["problems"]]
        axes = Axes(algorithms, which, np.array(seeds, dtype=np.uint64))
        return Description(values["code"], settings, problems, axes)
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"{type(error).__name__}: {one_line(error)}") from None


@dataclass(frozen=True, eq=False)
class Sweep:
    """A sweep that can be run: problems, what is varied, and what all cells share."""

    problems: list[Problem]
    axes: Axes
    n_runs: int
    settings: Settings
    theta0: ArrayLike | None = None
    omega0: ArrayLike | None = None

    def __len__(self) -> int:
        return len(self.axes)

    @cached_property
    def description(self) -> Description:
        """Everything that determines the results."""
        algorithms, problems, settings = self.axes.algorithms, self.problems, self.settings
        kinds: set[type] = {kind for a in algorithms for kind in (type(a), a.estimator)}
        kinds |= {kind for p in problems for kind in (type(p.target), p.target.compiled)}
        values: dict[str, Any] = {
            **{name: getattr(settings, name) for name in ("n_samples", "record_every", "device", "dtype")},
            "n_runs": self.n_runs,
            "watch": [asdict(watch) for watch in settings.watch],
            "theta0": _array_digest("theta0", self.theta0),
            "omega0": _array_digest("omega0", self.omega0),
        }
        return Description(
            code_digest(RUNS_CELLS, *kinds), values, [problem.fingerprint for problem in problems], self.axes
        )

    def cell(self, number: int) -> Cell:
        """The cell with this number."""
        p, a, seed = self.axes.at(number)
        return Cell(p, self.axes.algorithms[a], seed, self.n_runs, self.theta0, self.omega0)

    def check(self) -> None:
        """``ValueError`` where an algorithm cannot run on a problem, before anything is run."""
        for number in range(0, len(self), self.axes.shape[2]):
            cell = self.cell(number)
            problem = self.problems[cell.problem]
            check_cell(problem, cell, self.settings)
            cell.algorithm.n_updates(self.settings.n_samples)
            for name in ("theta0", "omega0"):
                cell.first_point(name, problem.dim)


def axes_of(problems: Sequence[Problem], algorithms: Sequence[Algorithm], seeds: Sequence[int]) -> Axes:
    """Every algorithm, with its step sizes for the problem, on every problem under every seed."""
    places: dict[str, int] = {}
    each: list[Algorithm] = []
    which = np.empty((len(problems), len(algorithms)), dtype=np.intp)
    for p, problem in enumerate(problems):
        for a, algorithm in enumerate(algorithms):
            chosen = algorithm.for_problem(problem)
            which[p, a] = places.setdefault(json.dumps(chosen.to_dict(), default=repr), len(places))
            if len(places) > len(each):
                each.append(chosen)
    return Axes(each, which, np.array(seeds, dtype=np.uint64))


def _array_digest(name: str, value: ArrayLike | None) -> str | None:
    if value is None:
        return None
    array = checks.numbers(name, value)
    return hashlib.sha256(f"{array.shape}".encode() + array.tobytes()).hexdigest()
