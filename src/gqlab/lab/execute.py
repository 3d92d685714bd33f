"""From cells to results: group the cells by the kinds of their parts, run each group on a device, split the records."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numba
import numpy as np

from gqlab.algorithms import Algorithm
from gqlab.algorithms.places import RunPlace, way_in
from gqlab.algorithms.schedules import schedule_kind
from gqlab.engine import cpu
from gqlab.engine.cells import Cell, Settings
from gqlab.engine.interrupts import stop_flag
from gqlab.engine.layout import Group, operator_kinds
from gqlab.engine.loop import Runs
from gqlab.engine.ranges import SIZES
from gqlab.estimators.needs import Need
from gqlab.lab.results import RunResult
from gqlab.measure.watch import QUANTITIES, Watched, check_watches
from gqlab.problems.problem import Problem
from gqlab.samples.tables import offsets
from gqlab.support import checks
from gqlab.support.compile_errors import cause_first
from gqlab.support.progress import progress_bar
from gqlab.version import __version__

#: What a finite MDP can be asked for: its trajectory, at any time and as often as wanted, and what drew it.
SIMULATED = frozenset(
    {
        Need.SEVERAL,
        Need.BATCH,
        Need.REPLAY,
        Need.GROWING,
        Need.NUMBERED,
        Need.STATES,
        Need.BEHAVIOR,
        Need.SIMULATION,
    }
)

#: Where :func:`execute` runs cells, by the device.
PLACES = {
    "cpu": RunPlace("gqlab.run", SIMULATED | {Need.CPU}),
    "cuda": RunPlace("gqlab.run on device 'cuda'", SIMULATED),
}


def execute(problems: Sequence[Problem], cells: Sequence[Cell], settings: Settings) -> list[RunResult]:
    """The results of all cells; those whose parts are of the same kinds go to the device together."""
    for cell in cells:
        check_cell(problems[cell.problem], cell, settings)
    _check_records(problems, cells, settings)
    device = load_cuda() if settings.device == "cuda" else None
    stop = stop_flag() if settings.stop is None else settings.stop
    by_kinds: dict[Any, list[int]] = {}
    for k, cell in enumerate(cells):
        by_kinds.setdefault(kinds_of(problems[cell.problem], cell.algorithm, settings.device), []).append(k)
    groups = [Group(problems, [cells[k] for k in members], settings) for members in by_kinds.values()]
    results: dict[int, RunResult] = {}
    own = [kind for c in cells for kind in (c.algorithm.estimator, problems[c.problem].target.compiled)]
    with cause_first(own), Progress(groups, settings.progress) as advance_bar:
        for group, members in zip(groups, by_kinds.values(), strict=True):
            if device is not None:
                device.advance_all(group, advance_bar)
            else:
                cpu.advance_all(
                    group.task, group.layout, group.d, group.A, settings.threads or 1, advance_bar, stop,
                    settings.spent,
                )  # fmt: skip
            results.update(zip(members, _results(group), strict=True))
    return [results[k] for k in range(len(cells))]


def check_cell(problem: Problem, cell: Cell, settings: Settings) -> None:
    """``ValueError`` where a cell cannot be run on its problem and device."""
    way_in(PLACES[settings.device], cell.algorithm)
    cell.algorithm.check(problem)
    if settings.device != "cpu" and problem.has_sparse_features:
        raise ValueError(f"device is {settings.device!r}, but problems with sparse features run only on 'cpu'")
    check_watches(settings.watch, problem)


def kinds_of(problem: Problem, algorithm: Algorithm, device: str) -> tuple[Any, ...]:
    """What two cells must share to run in one compiled call: the sizes of the problem and the kinds of the parts."""
    kinds = operator_kinds(problem, algorithm, device)
    sizes = problem.mdp.n_actions, problem.dim, problem.has_sparse_features
    return *sizes, algorithm.estimator, schedule_kind(algorithm), kinds


def _check_records(problems: Sequence[Problem], cells: Sequence[Cell], settings: Settings) -> None:
    n_runs, d = sum(cell.n_runs for cell in cells), max(problems[cell.problem].dim for cell in cells)
    records = settings.n_samples // settings.record_every + 2
    if 16 * records * sum(cell.n_runs * problems[cell.problem].dim for cell in cells) > checks.MEMORY:
        raise ValueError(
            f"record_every is {settings.record_every}: that makes up to {n_runs * records:,} records of {d} numbers "
            f"for n_runs = {n_runs}, more than this machine's memory holds"
        )


def _results(group: Group) -> list[RunResult]:
    """The results of a group's cells."""
    views = group.views(group.task.records)
    rows = offsets(group.counts)
    alone = len(group.cells) == 1
    out = []
    for k, cell in enumerate(group.cells):
        runs = Runs(*(column[rows[k] : rows[k + 1]] for column in group.task.runs))
        # A view would keep the records of all cells alive.
        view = views[k] if alone else {name: column.copy() for name, column in views[k].items()}
        out.append(_result(group, cell, group.updates[k], view, runs))
    return out


def _result(group: Group, cell: Cell, updates: Any, view: dict[str, Any], runs: Runs) -> RunResult:
    settings, problem = group.settings, group.problems[group.place[cell.problem]]
    memory, sizes = {"theta": runs.theta.copy()}, group.sizes_of(cell)
    for name, (is_number, where) in group.kept_columns(cell).items():
        memory[name] = (runs.kept_numbers if is_number else runs.kept_counts)[:, where].copy()
    watched = {
        watch.quantity: Watched(*np.moveaxis(view["watched"][..., 3 * column : 3 * column + 3], -1, 0).copy())
        for watch in settings.watch
        for column in [QUANTITIES.index(watch.quantity)]
    }
    return RunResult(
        theta=view["theta"],
        omega=view["omega"],
        samples=cell.algorithm.samples(updates),
        updates=updates,
        gradient_evaluations=cell.algorithm.gradient_evaluations(updates),
        output=runs.output.copy(),
        output_update=runs.output_update.copy(),
        diverged_at=runs.diverged_at.copy(),
        state=runs.cursor.copy(),
        next_output=runs.next_output.copy(),
        memory=memory,
        watched=watched,
        metadata={
            "algorithm": cell.algorithm.to_dict(),
            "problem": problem.fingerprint,
            "seed": cell.seed,
            "n_samples": settings.n_samples,
            "record_every": settings.record_every,
            "dtype": settings.dtype,
            "device": settings.device,
            "sizes": {name: getattr(sizes, name) for name in SIZES},
            "watch": [asdict(watch) for watch in settings.watch],
            "versions": {
                "gqlab": __version__,
                "numpy": np.__version__,
                "numba": numba.__version__,
                "python": platform.python_version(),
            },
        },
        problem=problem,
    )


def load_cuda() -> Any:
    """The GPU's side of the engine, or a ``ValueError`` in one line that says what is missing."""
    try:
        from numba import cuda as numba_cuda

        from gqlab.engine import cuda

        available = numba_cuda.is_available()
    except ImportError as error:
        raise ValueError(f"device 'cuda': numba-cuda is missing ({error}); pip install 'gqlab[cuda]'") from None
    if not available:
        raise ValueError("device 'cuda': no CUDA GPU, or no driver for it, was found")
    if not hasattr(np, "row_stack"):
        raise ValueError(
            f"device 'cuda': numba-cuda does not work with NumPy {np.__version__}, which has no row_stack; "
            "pip install 'gqlab[cuda]' installs one that it works with"
        )
    return cuda


class Progress:
    """A progress bar in updates: ``with Progress(groups, wanted) as advance_bar``, and ``advance_bar()`` moves it."""

    def __init__(self, groups: Sequence[Group], wanted: bool | None) -> None:
        self._runs = [group.task.runs for group in groups]
        total = sum(int(group.task.plan.n_updates.sum()) for group in groups)
        settings = {"unit": " updates", "unit_scale": True, "delay": 1.0}
        self._bar = progress_bar(wanted, total=total, initial=self._done(), **settings)

    def _done(self) -> int:
        return sum(int(runs.updates.sum()) for runs in self._runs)

    def __enter__(self) -> Callable[[], None]:
        return self._advance

    def _advance(self) -> None:
        self._bar.update(self._done() - self._bar.n)

    def __exit__(self, *error: object) -> None:
        self._bar.close()
