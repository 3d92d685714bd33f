"""A fit whose rows are shared among workers: the passes over all rows are maps over parts of the files, and sums.

Sums are made in the order of the parts, which follow from the files alone: what is learned does not depend on how many
workers there are, or on which of them is quick.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.linalg

from gqlab.data import parts as files_in_parts
from gqlab.estimators.needs import Need
from gqlab.learn.fit import part_tasks
from gqlab.learn.fit.empirical import LinearSums, roots, solve_blocks
from gqlab.learn.fit.fitting import MOST_MEASURED, Fitting
from gqlab.learn.fit.log_table import Encoded, joined, samples_of
from gqlab.learn.fit.passes import Passes
from gqlab.support.checks import FloatArray
from gqlab.tasks.base import BACKLOG, Engine, Task, run_tasks

#: Rows that are taken of a piece for inner steps: as many as spread them over all pieces, between these.
LEAST_DRAWN, MOST_DRAWN = 2**12, 2**17

#: Parts whose results wait for an earlier one, at most, besides those that are being made.
WAITING = 4


class InOrder(Iterator[Task]):
    """Tasks, and their results in the same order; none is begun that is too far ahead of the first unfinished one."""

    def __init__(self, engine: Engine, tasks: Iterator[Task]) -> None:
        self.engine, self.tasks = engine, tasks
        self.begun = self.handed = 0
        self.number: dict[Task, int] = {}

    def __next__(self) -> Task:
        """The next task, where it may begin; asked again later, there may be one."""
        if self.begun >= self.handed + BACKLOG * self.engine.workers + WAITING:
            raise StopIteration
        task = next(self.tasks)
        self.number[task] = self.begun
        self.begun += 1
        return task

    def results(self) -> Iterator[Any]:
        """What the tasks return, in their order; the first error ends it."""
        waiting: dict[int, Any] = {}
        for task, outcome in run_tasks(self.engine, self):
            if outcome.error:
                raise ValueError(outcome.error.removeprefix("ValueError: "))
            waiting[self.number.pop(task)] = outcome.value
            while self.handed in waiting:
                self.handed += 1
                yield waiting.pop(self.handed - 1)


class SharedFit(Fitting):
    """One call of :func:`gqlab.fit` with an engine, or with means over all rows."""

    def open(self, engine: Engine, files: Any, advance_bar: Callable[[], None]) -> None:
        """Cut the data into parts, and start the workers of the engine."""
        self.engine, self.advance_bar = engine, advance_bar
        self.order = "shared"
        self.parts = files_in_parts.parts_of(files)
        about = {"encoder": self.encoder, "target": self.target, "n_actions": self.A, "discount": self.discount}
        engine.prepare({"files": files, "piece_rows": files_in_parts.PIECE_ROWS, **about})

    def look_through(self) -> None:
        """Read the files once: the transitions of each piece, the largest reward, and rows to measure iterates by."""
        counts, picked, whole = [], [], hashlib.sha256()
        for found in self.each(part_tasks.look, -(-self.data.n_rows // MOST_MEASURED)):
            counts.append(found.counts)
            self.r_max = max(self.r_max, found.r_max)
            picked += found.rows
            whole.update(found.digest)
        #: The transitions of each piece, and of each part how many pieces are in those before it.
        self.counts = np.array([n for piece_counts in counts for n in piece_counts])
        self.before = np.cumsum([0, *map(len, counts)])
        self.digest = whole.hexdigest()
        self.log = self.encoded(joined(picked), None)
        self.measure_by(self.log)

    def content(self) -> str:
        return self.digest

    # --- Tasks -------------------------------------------------------------------------------------------------------

    def each(self, function: Callable[..., Any], *arguments: Any) -> Iterator[Any]:
        """``function(shared, part, *arguments)`` of every part, in their order."""
        return self.made(Task(function, (part, *arguments)) for part in self.parts)

    def made(self, tasks: Iterator[Task]) -> Iterator[Any]:
        """What tasks return, in their order."""
        for value in InOrder(self.engine, tasks).results():
            self.advance_bar()
            yield value

    # --- Learning ----------------------------------------------------------------------------------------------------

    def learn(self) -> FloatArray:
        """θ."""
        if self.solves:
            self.measured = SharedObjective(self)
            return self.solve(lambda: None)
        return self.take_steps(self.epoch if Need.WHOLE_MEAN in self.way.needs else self.whole_pass)

    def take_steps(self, logs_of: Callable[[int, Passes], Iterator[list[Encoded]]]) -> FloatArray:
        """Update by update, here, along rows that the workers encode and send ahead."""
        passes = self.passes(0)
        for k in range(self.resume(passes), self.n_passes + 1):
            done = passes.updates
            for logs in logs_of(k, passes):
                for log in logs:
                    passes.go_on_with(samples_of(log, self.encoder, self.target, self.A), done)
                    done += len(log.action)
                    passes.advance(done)
            if not self.end_pass(passes, lambda: None):
                break
        return passes.theta.reshape(self.A, -1)

    def whole_pass(self, k: int, passes: Passes) -> Iterator[list[Encoded]]:
        """All rows, in their order."""
        return self.each(part_tasks.encode)

    def epoch(self, k: int, passes: Passes) -> Iterator[list[Encoded]]:
        """G̃, H̃ ← the means over all rows at (θ, ω); then rows for the inner steps."""
        sums = np.zeros((2, self.d))
        for part_sums in self.each(part_tasks.reference, passes.theta, passes.omega):
            sums += part_sums
        passes.estimator.G_tilde[:], passes.estimator.H_tilde[:] = sums / self.counts.sum()
        return self.made(Task(part_tasks.sample, arguments) for arguments in self.drawn(k))

    def drawn(self, k: int) -> Iterator[tuple[Any, ...]]:
        """The pieces of epoch k's inner steps, and how many rows of each: every row is as likely as any other.

        Equally distant places among all rows, from a random one on, in random order: so no piece is left out that has
        its share of the rows.
        """
        M, counts = self.algorithm.epoch_size, self.counts
        size = int(np.clip(-(-M // len(counts)), LEAST_DRAWN, MOST_DRAWN))
        n_draws = -(-M // size)
        random = np.random.default_rng([self.seed, k])
        places = (random.random() + random.permutation(n_draws)) / n_draws * counts.sum()
        for j, piece in enumerate(np.searchsorted(np.cumsum(counts), places, side="right")):
            part = int(np.searchsorted(self.before, piece, side="right")) - 1
            which = self.parts[part], int(piece - self.before[part]), int(counts[piece])
            yield *which, min(size, M - j * size), [self.seed, k, j]


class SharedObjective:
    """J of all rows: one pass over the files for each θ that is asked for."""

    def __init__(self, fit: SharedFit) -> None:
        self.fit, self.A, self.K, self.n = fit, fit.A, fit.encoder.n_features_out_, int(fit.counts.sum())
        grams = np.zeros((self.A, self.K, self.K))
        for part_grams in fit.each(part_tasks.grams):
            grams += part_grams
        self.blocks = grams / self.n
        self.roots = roots(self.blocks)
        self._theta: FloatArray | None = None

    def mspbe(self, theta: FloatArray) -> float:
        """J(θ)."""
        return self._J(self._at(theta).delta_phi)

    def mspbes(self, thetas: list[FloatArray]) -> Iterator[float]:
        """J of several θ: of the first, which is most often enough, with all that is to be known; then of the rest."""
        yield self.mspbe(thetas[0])
        sums = np.zeros((len(thetas) - 1, self.A, self.K))
        for part_sums in self.fit.each(part_tasks.means, thetas[1:]):
            sums += part_sums
        yield from map(self._J, sums / self.n)

    def linearised(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(matrix, b): mean δφ = b − matrix·θ' for θ' near θ."""
        found = self._at(theta)
        return scipy.linalg.block_diag(*self.blocks) - found.after, found.offset

    def objective(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """J(θ) and ∇J(θ)."""
        means, after, _ = self._at(theta)
        omega = solve_blocks(self.roots, means)
        correction = (after.T @ omega.reshape(-1)).reshape(means.shape)  # mean γ φ̂ φᵀω*
        return self._J(means), correction - means

    def largest_q(self, theta: FloatArray) -> float:
        """max |Q| over all observations and actions."""
        self._at(theta)
        return self._largest_q

    def _J(self, delta_phi: FloatArray) -> float:
        return 0.5 * float((delta_phi * solve_blocks(self.roots, delta_phi)).sum())

    def _at(self, theta: FloatArray) -> LinearSums:
        """The means at θ, by one pass, or from the last one."""
        if self._theta is None or not np.array_equal(theta, self._theta):
            d, largest_q = self.A * self.K, 0.0
            sums = LinearSums(np.zeros((self.A, self.K)), np.zeros((d, d)), np.zeros(d))
            for part in self.fit.each(part_tasks.measure, theta):
                for total, new in zip(sums, part.sums, strict=True):
                    total += new
                largest_q = max(largest_q, part.largest_q)
            self._means = LinearSums(*(total / self.n for total in sums))
            self._theta, self._largest_q = theta.copy(), largest_q
        return self._means
