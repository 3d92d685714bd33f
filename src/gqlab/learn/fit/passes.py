"""One run over a table of samples, in the one loop, that stays in memory and can be taken further."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from gqlab.algorithms import Algorithm
from gqlab.algorithms.schedules import join_schedules
from gqlab.engine.cpu import advance_block, run_apart
from gqlab.engine.loop import DeviceTask, KeptFirst, Parts, Records, RunPlan, Runs
from gqlab.engine.memory import declared, part
from gqlab.estimators.base import NEVER, answer
from gqlab.measure.watch import QUANTITIES, Unwatched
from gqlab.rules.blocks import DenseBlocks
from gqlab.rules.dispatch import at, parameters
from gqlab.rules.gradient import Samples, act, action_values
from gqlab.rules.lagged import LaggedPoint
from gqlab.rules.memory import Sizes
from gqlab.rules.point import DensePoint
from gqlab.rules.vectors import DRIFT_SCALE, N_NUMBERS, SCALE, Lagged, N, Scaled
from gqlab.samples.random import TRAJECTORY, below, word
from gqlab.samples.streams import key
from gqlab.samples.tables import NoTables, Tables, per_problem
from gqlab.support import checks
from gqlab.support.checks import FloatArray

#: A log has no exact quantities.
NO_TABLES: Any = NoTables(per_problem([0]))


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


def form_for(kind: Any, features: Any) -> Any:
    """The estimator itself, or its form for scaled and lagged vectors where features are sparse."""
    return kind.sparse_form() if hasattr(kind, "sparse_form") and not isinstance(features, DenseBlocks) else kind


def point_for(kind: Any, d: int, A: int, theta0: FloatArray | None = None) -> Any:
    """A point at (θ₀, 0), as an estimator moves it: scaled or lagged vectors where it can, else arrays."""
    if hasattr(kind, "drifts"):
        return lagged_point(d, kind.drifts(), theta0)
    point = part(DensePoint, Sizes(d, A))
    point.theta[:] = 0.0 if theta0 is None else theta0
    return point


def live_part(kind: Any, sizes: Sizes, values: dict[str, Any]) -> Any:
    """The part of an estimator with its parameters and its arrays, in double precision."""
    return part(kind, sizes, **{name: np.array([value]) for name, value in values.items()})


def values_of(algorithm: Algorithm, kind: Any) -> dict[str, Any]:
    """The parameters of an estimator: fields of the algorithm, by name."""
    return {name: getattr(algorithm, name) for name in parameters(kind)}


#: Of the value of a binary feature: traces below are dropped, which makes a step cheaper.
LEAST_TRACE = 1e-4

#: Dense features are all traced anyway: only what arithmetic would be slow with is dropped.
LEAST_DENSE_TRACE = 1e-100


def trace_values(encoder: Any, algorithm: Algorithm, discount: float) -> dict[str, Any]:
    """The parameters of :class:`gqlab.estimators.traces.Traces`."""
    least = LEAST_TRACE * encoder.value_ if encoder.kind == "binary" else LEAST_DENSE_TRACE
    return {"trace": algorithm.trace_decay, "gamma": discount, "least": least}


class PassRows(NamedTuple):
    """The rows of a table in their order, from update ``first`` on, and from the first row again."""

    first: int
    n: int

    def start(self, run):
        return np.uint32(0)

    def draw(self, run, cursor, t):
        return np.uint32((t - self.first) % self.n), cursor


class EpisodeRows(NamedTuple):
    """The rows of a table in the order of time, in one pass after another, for traces.

    A trace is carried on by the share π(a|s)/π_b(a|s) (GQ(λ): Maei and Sutton, 2010); where the target is greedy by all
    of it or nothing, as the action was a best one or not (Watkins); and in full where the target is the policy of the
    data.
    """

    first: int
    n: int
    rule: int  # one of IN_FULL, WHERE_BEST, BY_RATIO
    begins: Any  # (n,)  1: the row does not go on from the one before
    probability: Any  # (n,)  π_b(a|s); (1,) where no ratio is needed

    def start(self, run):
        return np.uint32(0)

    def draw(self, run, cursor, t):
        return np.uint32((t - self.first) % self.n), cursor

    def carried(self, samples, x, point, traces, d, A):
        if self.begins[x] == 1:
            return 0.0
        if self.rule == IN_FULL:
            return 1.0
        row = np.int64(samples.row[x])
        a = row % A
        action_values(samples, row - a, point.theta, traces.q, d, A)
        if self.rule == BY_RATIO:
            act(samples.operator, row - a, traces.q, traces.w, A)
            return traces.w[a] / self.probability[x]
        for b in range(A):
            if traces.q[b] > traces.q[a]:
                return 0.0
        return 1.0


#: How a row carries a trace on.
IN_FULL, WHERE_BEST, BY_RATIO = range(3)


class Drawn(NamedTuple):
    """Rows of a table drawn at random, with replacement."""

    n: int

    def start(self, run):
        return np.uint32(0)

    def draw(self, run, cursor, t):
        return np.uint32(below(word(key(run, TRAJECTORY), t), self.n)), cursor


class Passes:
    """One run of an algorithm over a table of samples: its rows from the first to the last, and again.

    Parameters
    ----------
    samples : Samples
        The table, with its features and its operator.
    sizes : Sizes
        d, A, the observations that its rows count (``states``), its rows (``samples``), and as far as it may be taken,
        for batches that grow (``updates``).
    algorithm : Algorithm
    estimator : type
        That it runs with: see :func:`gqlab.algorithms.places.way_in`.
    values : dict
        The parameters of the estimator.
    seed : int
        Of the indices that batches draw.
    theta0 : (d,) array, optional
    stream : part, optional
        Where the next row comes from; default: they come in their order.
    """

    def __init__(
        self,
        samples: Samples,
        sizes: Sizes,
        algorithm: Algorithm,
        estimator: Any,
        values: dict[str, Any],
        seed: int = 0,
        theta0: FloatArray | None = None,
        stream: Any = None,
    ) -> None:
        kind = form_for(estimator, samples.features)
        self.d, self.A = d, A = sizes.d, sizes.A
        self.algorithm, self.n_samples = algorithm, len(samples.row)
        self.sizes = sizes = replace(sizes, most=values)
        checks.memory("algorithm", algorithm, sum(array.size for array in declared(kind, sizes).values()))
        self.point = point_for(kind, d, A, theta0)
        self.estimator = live_part(kind, sizes, values)
        self.task = DeviceTask(
            tables=Tables(samples, self.rows(0, self.n_samples) if stream is None else stream, NO_TABLES),
            schedule=join_schedules([algorithm], [1], np.float64),
            kept=KeptFirst((), ()),
            plan=_plan(seed, int(samples.features.n_active[0]) * A * algorithm.samples_per_update),
            runs=_runs(d, theta0),
            records=Records(np.empty((2, d)), np.empty((2, d)), np.empty((0, 3 * len(QUANTITIES))), NEVER),
        )
        self._layout = Parts(self.point, self.estimator, part(Unwatched, sizes))

    @staticmethod
    def rows(first: int, n: int) -> PassRows:
        """n rows in their order, from update ``first`` on."""
        kind: Any = PassRows
        return kind(per_problem([first]), per_problem([n]))

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

    def go_on_with(self, samples: Samples, first: int, stream: Any = None) -> None:
        """From update number ``first`` on the rows are these: the next part of a file."""
        stream = self.rows(first, len(samples.row)) if stream is None else stream
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


def _runs(d: int, theta0: FloatArray | None) -> Runs:
    return Runs(
        theta=np.zeros((1, d)) if theta0 is None else np.array(theta0, dtype=np.float64).reshape(1, d),
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
