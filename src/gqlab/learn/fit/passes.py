"""One run over a table of samples, in the one loop, that stays in memory and can be taken further."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gqlab.algorithms import Algorithm
from gqlab.algorithms.schedules import join_schedules
from gqlab.engine.cpu import advance_block, run_apart
from gqlab.engine.loop import DeviceTask, KeptFirst, Parts, Records, RunPlan, Runs
from gqlab.engine.memory import part
from gqlab.estimators.averaged import Averaged
from gqlab.estimators.base import NEVER, answer
from gqlab.estimators.plain import Plain
from gqlab.estimators.streaming import Streaming
from gqlab.estimators.svrg import SVRG, GivenMeans
from gqlab.measure.watch import QUANTITIES, Unwatched
from gqlab.rules.dispatch import at, parameters
from gqlab.rules.gradient import Samples
from gqlab.rules.lagged import LaggedPoint
from gqlab.rules.memory import Sizes
from gqlab.rules.vectors import DRIFT_SCALE, N_NUMBERS, SCALE, Lagged, N, Scaled
from gqlab.samples.random import TRAJECTORY, below, word
from gqlab.samples.streams import key
from gqlab.samples.tables import NoTables, Tables, per_problem
from gqlab.support.checks import FloatArray

#: The estimators whose steps on sparse features cost as much as these have entries, and whether they have a drift.
SPARSE_ESTIMATORS = {Plain: False, Averaged: False, SVRG: True, GivenMeans: True, Streaming: True}


def lagged_vector(first: FloatArray, drifts: bool) -> Any:
    """A vector of its own, at a given place."""
    numbers = np.zeros(N_NUMBERS)
    numbers[SCALE] = numbers[DRIFT_SCALE] = 1.0
    numbers[N] = first @ first
    u = np.array(first, dtype=np.float64)
    return Lagged(u, np.zeros_like(u), numbers) if drifts else Scaled(u, numbers)


def lagged_point(d: int, drifts: bool, theta0: FloatArray | None = None) -> LaggedPoint:
    """A point at (θ₀, 0)."""
    zero = np.zeros(d)
    theta = lagged_vector(zero if theta0 is None else theta0, drifts)
    return LaggedPoint(theta, lagged_vector(zero, drifts), np.zeros(d))


def live_part(algorithm: Algorithm, kind: Any, sizes: Sizes) -> Any:
    """The part of an estimator with its parameters and its arrays, in double precision."""
    values = {name: np.array([getattr(algorithm, name)]) for name in parameters(kind)}
    return part(kind, sizes, **values)


class Rows(NamedTuple):
    """The rows of a table in their order, from update ``first`` on, and from the first row again."""

    first: int
    n: int

    def start(self, run):
        return np.uint32(0)

    def draw(self, run, cursor, t):
        return np.uint32((t - self.first) % self.n), cursor


class Drawn(NamedTuple):
    """Rows of a table drawn at random, with replacement."""

    n: int

    def start(self, run):
        return np.uint32(0)

    def draw(self, run, cursor, t):
        return np.uint32(below(word(key(run, TRAJECTORY), t), self.n)), cursor


class Passes:
    """One run of an algorithm over a table of samples: its rows from the first to the last, and again, or ``drawn``.

    Parameters
    ----------
    samples : Samples
        The table, with its features and its operator.
    n_observations : int
        The observations that its rows count.
    d, A : int
        Features and actions.
    algorithm : Algorithm
    seed : int
        Of the indices that batches draw.
    n_updates : int
        As far as it may be taken, for batches that grow.
    theta0 : (d,) array, optional
    estimator : type, optional
        Another than the algorithm's own.
    """

    def __init__(
        self,
        samples: Samples,
        n_observations: int,
        sizes: tuple[int, int],
        algorithm: Algorithm,
        seed: int = 0,
        n_updates: int = 0,
        theta0: FloatArray | None = None,
        drawn: bool = False,
        *,
        estimator: Any = None,
    ) -> None:
        kind: Any = estimator or algorithm.estimator
        self.d, self.A = d, A = sizes
        self.algorithm, self.n_samples = algorithm, len(samples.row)
        most = {name: getattr(algorithm, name) for name in parameters(kind)}
        n = Sizes(d, A, n_observations, self.n_samples, n_updates, most)
        self.point = lagged_point(d, SPARSE_ESTIMATORS[kind], theta0)
        self.estimator = live_part(algorithm, kind, n)
        n_rows = per_problem([self.n_samples])
        stream = Drawn(n_rows) if drawn else Rows(per_problem([0]), n_rows)
        self.task = DeviceTask(
            tables=Tables(samples, stream, NoTables(per_problem([0]))),
            schedule=join_schedules([algorithm], [1], np.float64),
            kept=KeptFirst((), ()),
            plan=_plan(seed, int(samples.features.n_active[0]) * A),
            runs=_runs(d),
            records=Records(np.empty((2, d)), np.empty((2, d)), np.empty((0, 3 * len(QUANTITIES))), NEVER),
        )
        self._layout = Parts(self.point, self.estimator, part(Unwatched, n))

    @property
    def updates(self) -> int:
        """The updates made so far."""
        diverged = int(self.task.runs.diverged_at[0])
        return diverged if diverged >= 0 else int(self.task.runs.updates[0])

    @property
    def diverged(self) -> bool:
        """Whether an update would have left the finite numbers: the run stays where it was."""
        return bool(self.task.runs.diverged_at[0] >= 0)

    @property
    def theta(self) -> FloatArray:
        """What the estimator offers as θ, (d,)."""
        out = np.empty(self.d)
        answer(at(self.estimator, 0), self.point, out, self.d)
        return out

    @property
    def omega(self) -> FloatArray:
        """ω, (d,)."""
        return self.task.runs.omega[0].copy()

    def go_on_with(self, samples: Samples, first: int) -> None:
        """From update number ``first`` on the rows are these: the next part of a file."""
        stream = Rows(per_problem([first]), per_problem([len(samples.row)]))
        self.task = self.task._replace(tables=Tables(samples, stream, self.task.tables.exact))

    def advance(self, until: int) -> None:
        """Go on to update number ``until``. Ctrl-C stops it within milliseconds."""
        self.task.plan.until[0] = until
        stop = np.zeros(1, dtype=np.int64)
        run_apart(advance_block, stop, self.task, self._layout, 0, 1, stop, self.d, self.A)


def _plan(seed: int, cost: int) -> RunPlan:
    one = np.zeros(1, dtype=np.int64)
    return RunPlan(
        problem=one,
        seed=np.array([seed], dtype=np.uint64),
        number=one.copy(),
        n_updates=np.array([NEVER]),
        until=one.copy(),
        first_record=one.copy(),
        cost=np.array([cost]),
    )


def _runs(d: int) -> Runs:
    return Runs(
        theta=np.zeros((1, d)),
        omega=np.zeros((1, d)),
        cursor=np.zeros(1, dtype=np.uint32),
        updates=np.zeros(1, dtype=np.int64),
        output=np.zeros((1, d)),
        output_update=np.full(1, -1),
        next_output=np.zeros(1, dtype=np.int64),
        diverged_at=np.full(1, -1),
        kept_numbers=np.empty((1, 0)),
        kept_counts=np.empty((1, 0), dtype=np.int64),
    )
