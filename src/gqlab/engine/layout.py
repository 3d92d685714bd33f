"""From cells to a task: what every run has to do and where it stands, as arrays for a device."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gqlab.algorithms import Algorithm
from gqlab.algorithms.schedules import Decay, join_schedules
from gqlab.engine.cells import Cell, Resumable, Settings
from gqlab.engine.loop import DeviceTask, KeptFirst, Parts, Records, RunPlan, Runs
from gqlab.engine.memory import Room, compiled_size, declared, dtype_of, is_unrolled
from gqlab.engine.ranges import check_kept, kept_arrays
from gqlab.measure.compiled import exact_tables
from gqlab.measure.watch import QUANTITIES, Unwatched, Watching, watch_parameters
from gqlab.operators import OPERATORS
from gqlab.problems.problem import Problem
from gqlab.rules.dispatch import annotated, is_parameter, parameters
from gqlab.rules.memory import Array, Sizes
from gqlab.rules.point import DensePoint
from gqlab.samples.ahead import fetched_early
from gqlab.samples.tables import join_tables, offsets, problem_tables
from gqlab.support import checks

#: The compiled parts of gqlab's own operators: code for the CPU handles them all.
OWN_OPERATORS: tuple[type, ...] = tuple(dict.fromkeys(operator.compiled for operator in OPERATORS))


@dataclass(frozen=True)
class Kept:
    """Where an array of a part is kept in the rows of ``Runs``."""

    array: Array
    first: int

    @property
    def is_number(self) -> bool:
        return self.array.kind in ("number", "double")


def operator_kinds(problem: Problem, algorithm: Algorithm, device: str) -> tuple[type, ...]:
    """The operators that the compiled code for a problem handles.

    On the CPU one compilation serves all of gqlab's own; a user's operator is compiled separately. So is every
    operator whose parameters the algorithm reads, and every operator on a GPU, where each branch costs registers.
    """
    alone = (problem.target.compiled,)
    return known_operators(problem) if device == "cpu" and not algorithm.reads_operator else alone


def known_operators(problem: Problem) -> tuple[type, ...]:
    """All of gqlab's own where the problem's is one of them; else that one."""
    kind = problem.target.compiled
    return OWN_OPERATORS if kind in OWN_OPERATORS else (kind,)


class Group:
    """Cells whose parts are of the same kinds, laid out for one device."""

    def __init__(self, problems: Sequence[Problem], cells: Sequence[Cell], settings: Settings) -> None:
        self.settings, self.cells = settings, list(cells)
        used = sorted({cell.problem for cell in cells})
        self.problems = [problems[k] for k in used]
        self.place = {k: place for place, k in enumerate(used)}
        self.d, self.A = self.problems[0].dim, self.problems[0].mdp.n_actions
        self.updates = [cell.updates(settings) for cell in cells]
        self.counts = [cell.n_runs for cell in cells]
        self.estimator = cells[0].algorithm.estimator
        self.watch = Watching if settings.watch else Unwatched
        self._check_parameters()
        kinds = operator_kinds(self.problems[0], cells[0].algorithm, settings.device)
        tables = join_tables(self.problems, kinds, settings.dtype)
        if settings.device == "cpu" and cells[0].algorithm.follows_trajectory:
            tables = fetched_early(tables, self.d * self.A)
        self.sizes = self._sizes(self.cells, self.problems)
        threads = (settings.threads or 1) if settings.device == "cpu" else 1
        arrays = sum(array.size for kind in self.kinds for array in declared(kind, self.sizes).values())
        checks.memory("algorithm", cells[0].algorithm, threads * arrays)
        self.kept: dict[str, Kept] = {}
        self._lay_out_kept()
        n_records = np.repeat([len(u) for u in self.updates], self.counts)
        first_record = offsets(n_records)
        if settings.watch:
            tables = tables._replace(exact=exact_tables(self.problems, kinds))
        with np.errstate(over="ignore"):  # from a cast to single precision: reported below
            self.task = DeviceTask(
                tables=tables,
                schedule=join_schedules([cell.algorithm for cell in cells], self.counts, settings.dtype),
                kept=KeptFirst(self._kept_first("", self.estimator), self._kept_first("watch.", self.watch)),
                plan=self._plan(first_record),
                runs=self._runs(),
                records=self._records(int(first_record[-1])),
            )
        #: The parts with a placeholder for each array, which the CPU fills in.
        self.layout = Parts(*(self._layout(kind) for kind in self.kinds))
        self._check_precision()

    @property
    def kinds(self) -> tuple[type, type, type]:
        """Of the point, the estimator and the watch."""
        return DensePoint, self.estimator, self.watch

    def arrays(self) -> Iterator[tuple[str, str, Array, np.dtype[Any]]]:
        """Every array of the parts: the part, its field, the declaration and the dtype."""
        for part, kind in zip(Parts._fields, self.kinds, strict=True):
            for name, array in declared(kind, self.sizes).items():
                yield part, name, array, dtype_of(array, self.settings.dtype)

    def _sizes(self, cells: Sequence[Cell], problems: Sequence[Problem]) -> Sizes:
        return Sizes(
            d=self.d,
            A=self.A,
            states=max(problem.mdp.n_states for problem in problems),
            samples=max(len(problem_tables(problem).samples.row) for problem in problems),
            updates=max(cell.algorithm.n_updates(self.settings.n_samples) for cell in cells),
            most={name: max(getattr(cell.algorithm, name) for cell in cells) for name in parameters(self.estimator)},
        )

    def sizes_of(self, cell: Cell) -> Sizes:
        """The sizes that a cell needs by itself."""
        return self._sizes([cell], [self.problems[self.place[cell.problem]]])

    def kept_columns(self, cell: Cell) -> dict[str, tuple[bool, slice]]:
        """Where a cell's kept arrays are, and whether among the numbers.

        Arrays have the size that the largest cell needs; each cell keeps only what it needs itself.
        """
        own = kept_arrays(self.estimator, self.sizes_of(cell), self.watch) if self.kept else {}
        return {name: (k.is_number, slice(k.first, k.first + own[name].size)) for name, k in self.kept.items()}

    def per_run(self, values: Sequence[Any], dtype: Any = np.int64) -> NDArray[Any]:
        """One value for each cell, as one for each run."""
        return np.repeat(np.array(values, dtype=dtype), self.counts)

    def _parameter(self, kind: type, name: str) -> NDArray[Any]:
        if kind is Watching:
            values = [watch_parameters(self.settings.watch)[name]] * len(self.cells)
        else:
            values = [getattr(cell.algorithm, name) for cell in self.cells]
        return self.per_run(values, np.int64 if annotated(kind, name) == "int" else self.settings.dtype)

    def _lay_out_kept(self) -> None:
        ends = {True: 0, False: 0}
        for prefix, kind in (("", self.estimator), ("watch.", self.watch)):
            for name, array in declared(kind, self.sizes).items():
                if array.kept:
                    kept = Kept(array, 0)
                    self.kept[prefix + name] = Kept(array, ends[kept.is_number])
                    ends[kept.is_number] += array.size
        self.kept_sizes = ends

    def _kept_first(self, prefix: str, kind: Any) -> tuple[int, ...]:
        """Where each array of a part is kept; an empty tuple if none is."""
        names = [prefix + name for name in kind._fields if not is_parameter(kind, name)]
        first = tuple(self.kept[name].first if name in self.kept else -1 for name in names)
        return first if max(first, default=-1) >= 0 else ()

    def _layout(self, kind: Any) -> Any:
        """A part with a placeholder for each of its arrays."""
        unrolled = is_unrolled(self.d, self.A)
        rooms = {
            name: Room(
                size=compiled_size(array.size, unrolled and array.near),
                zero=dtype_of(array, self.settings.dtype).type(0),
                fill=array.fill,
            )
            for name, array in declared(kind, self.sizes).items()
        }
        return kind(*(self._parameter(kind, f) if is_parameter(kind, f) else rooms[f] for f in kind._fields))

    def _plan(self, first_record: NDArray[Any]) -> RunPlan:
        n_updates = self.per_run([u[-1] for u in self.updates])
        watching = sum(watch.cost(self.sizes.states) for watch in self.settings.watch)
        return RunPlan(
            problem=self.per_run([self.place[cell.problem] for cell in self.cells]),
            seed=self.per_run([cell.seed for cell in self.cells], np.uint64),
            number=np.concatenate([np.arange(n) for n in self.counts]),
            n_updates=n_updates,
            until=n_updates.copy(),
            first_record=first_record[:-1],
            cost=self.per_run([cell.algorithm.samples_per_update + watching for cell in self.cells]) * self.d * self.A,
        )

    def _runs(self) -> Runs:
        """Where the runs stand at the beginning of the call."""
        parts = [self._cell_runs(cell) for cell in self.cells]
        return Runs(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def _cell_runs(self, cell: Cell) -> Runs:
        n, d, dtype = cell.n_runs, self.d, self.settings.dtype
        numbers = np.empty((n, self.kept_sizes[True]))
        counts = np.empty((n, self.kept_sizes[False]), dtype=np.int64)
        for kept in self.kept.values():
            (numbers if kept.is_number else counts)[:, kept.first : kept.first + kept.array.size] = kept.array.fill
        if cell.resume is not None:
            check_kept(cell.resume, self.estimator, self.sizes_of(cell), self.watch)
            for name, (is_number, where) in self.kept_columns(cell).items():
                columns = (numbers if is_number else counts)[:, where]
                columns[...] = cell.resume.memory[name]
        if cell.resume is not None:
            before = cell.resume
            return Runs(
                theta=before.memory["theta"],
                omega=before.omega[:, -1],
                cursor=before.state,
                updates=np.full(n, before.updates[-1]),
                output=before.output,
                output_update=before.output_update,
                next_output=before.next_output,
                diverged_at=before.diverged_at,
                kept_numbers=numbers,
                kept_counts=counts,
            )
        return Runs(
            theta=cell.first_point("theta0", d).astype(dtype, order="C"),
            omega=cell.first_point("omega0", d).astype(dtype, order="C"),
            cursor=np.zeros(n, dtype=np.uint32),
            updates=np.zeros(n, dtype=np.int64),
            output=np.zeros((n, d), dtype=dtype),
            output_update=np.full(n, -1),
            next_output=np.zeros(n, dtype=np.int64),
            diverged_at=np.full(n, -1),
            kept_numbers=numbers,
            kept_counts=counts,
        )

    def _records(self, total: int) -> Records:
        theta, omega = np.empty((2, total, self.d), dtype=self.settings.dtype)
        watched = np.empty((total if self.settings.watch else 0, 3 * len(QUANTITIES)))
        records = Records(theta=theta, omega=omega, watched=watched, every=self.settings.record_every)
        for cell, updates, view in zip(self.cells, self.updates, self.views(records), strict=True):
            if cell.resume is not None:
                _old_records(cell.resume, updates, self.settings.record_every, view)
        return records

    def views(self, records: Records) -> list[dict[str, NDArray[Any]]]:
        """The records of each cell, (n_runs, n_records, …)."""
        rows = offsets([n * len(u) for n, u in zip(self.counts, self.updates, strict=True)])
        names = ("theta", "omega", "watched") if self.settings.watch else ("theta", "omega")
        columns = {name: getattr(records, name) for name in names}
        return [
            {name: column[a:b].reshape(n, -1, column.shape[1]) for name, column in columns.items()}
            for n, a, b in zip(self.counts, rows[:-1], rows[1:], strict=True)
        ]

    def _check_precision(self) -> None:
        """Refuse numbers that the dtype cannot hold, instead of turning them into infinities and zeros."""
        task, dtype = self.task, self.settings.dtype
        finite = {
            "theta0": task.runs.theta,
            "omega0": task.runs.omega,
            "reward": task.tables.samples.reward,
            "features": task.tables.samples.features.phi,
        }
        for name, values in finite.items():
            if not np.isfinite(values).all():
                raise ValueError(f"{name} holds a number too large for {dtype}")

    def _check_parameters(self) -> None:
        """Refuse parameters that the dtype cannot hold."""
        dtype = self.settings.dtype
        for cell in self.cells:
            algorithm = cell.algorithm
            values: dict[str, Any] = {name: getattr(algorithm, name) for name in ("eta_theta", "eta_omega", "radius")}
            values |= {"beta": algorithm.omega_decay, "radius_omega": algorithm.own_radius_omega}
            for name, value in values.items():
                for number in (value.eta, value.power, 1 / value.after) if isinstance(value, Decay) else (value,):
                    _check_parameter(name, number, dtype)
        for problem in self.problems:
            for name in parameters(problem.target.compiled):
                _check_parameter(name, getattr(problem.target, name), dtype)


def _check_parameter(name: str, value: float, dtype: str) -> None:
    """A nonzero parameter must not become 0, nor a finite one infinite; except a radius, which then never acts."""
    with np.errstate(over="ignore", under="ignore"):
        held = float(np.dtype(dtype).type(value))
    if held == 0 and value != 0:
        raise ValueError(f"{name} is too small for {dtype}")
    if math.isinf(held) and math.isfinite(value) and not name.startswith("radius"):
        raise ValueError(f"{name} is too large for {dtype}")


def _old_records(before: Resumable, updates: NDArray[np.int64], every: int, view: dict[str, NDArray[Any]]) -> None:
    """Write the records that exist already: those of the result that is resumed."""
    # Its last point may lie between two records of the longer run: then it is not one of them.
    kept = before.updates % every == 0
    for name, new in view.items():
        old = before.watched_columns() if name == "watched" else getattr(before, name)
        new[:, : kept.sum()] = old[:, kept]
        if updates[-1] == before.updates[-1]:
            new[:, -1] = old[:, -1]
