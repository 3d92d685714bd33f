"""One fit: its rows, what learns from them, and what is recorded on the way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gqlab.algorithms import (
    QRC,
    Algorithm,
    AveragedGreedyGQ,
    GreedyGQ,
    LeastSquaresGreedyGQ,
    QLearning,
    StreamingGreedyGQ,
    VRGreedyGQ,
)
from gqlab.data.transitions import Transitions
from gqlab.learn.fit.checkpoint import read_checkpoint, write_checkpoint
from gqlab.learn.fit.empirical import Empirical
from gqlab.learn.fit.fitted import LSPI, FittedQ, descend
from gqlab.learn.fit.log_table import Encoded, Target, encode_log, joined, rows_of, samples_of
from gqlab.learn.fit.passes import Passes
from gqlab.learn.linear_q import LinearQ
from gqlab.operators import Greedy, Operator
from gqlab.support.checks import FloatArray
from gqlab.support.files import digest

#: What learns in passes over the rows; the first four take a file of any size, a part of it at a time.
ONE_BY_ONE = (GreedyGQ, QRC, QLearning, AveragedGreedyGQ)
IN_PASSES = (*ONE_BY_ONE, VRGreedyGQ, StreamingGreedyGQ)

#: What solves for θ at once.
SOLVERS = (FittedQ, LSPI, LeastSquaresGreedyGQ)

#: Transitions that are measured after a pass, at most: every so many-th, where there are more.
MOST_MEASURED = 100_000

#: Steps of a search for the least J, at most.
MOST_STEPS = 100

#: Numbers of all the iterates that a history keeps, at most: beyond, none is kept.
MOST_KEPT = 10_000_000


class Fitting:
    """One call of :func:`gqlab.fit`: rows in memory, or in files that are read as they stand."""

    theta0: FloatArray
    n_passes: int
    checkpoint: Path | None = None
    order = "in order"

    def __init__(
        self, data: Transitions, encoder: Any, algorithm: Any, target: Target, discount: float, seed: int
    ) -> None:
        self.data, self.encoder, self.algorithm, self.target = data, encoder, algorithm, target
        self.discount, self.seed, self.A = discount, seed, data.n_actions
        self.d = data.n_actions * encoder.n_features_out_
        self.diverged = False
        self.history: dict[str, list[Any]] = {"updates": [], "mspbe": [], "gradient": [], "max_q": [], "q_bound": []}
        self.iterates: list[FloatArray] = []
        self.r_max = 0.0
        self.measured: Any = None  # where J, ∇J and max |Q| of an iterate come from

    # --- The rows ----------------------------------------------------------------------------------------------------

    def load(self, rows: str) -> None:
        """Encode all rows."""
        chunk = self.data.to_chunk()
        self.order = rows
        # The solvers take all rows at once: their order does not matter.
        shuffled = rows == "shuffled" and not isinstance(self.algorithm, SOLVERS)
        order = np.random.default_rng([self.seed, 0]).permutation(self.data.n_rows) if shuffled else None
        self.log = self.encoded(chunk, order)
        self.r_max = float(np.abs(self.log.reward).max())
        n, names = self.data.n_rows, ("observation", "next_observation", "action", "reward", "discount")
        measured = slice(None, None, 1 if isinstance(self.algorithm, SOLVERS) else -(-n // MOST_MEASURED))
        self.measure_by(self.log._replace(**{name: getattr(self.log, name)[measured] for name in names}))

    def look_through(self) -> None:
        """Read the files once: the largest reward, and every so many-th row, which iterates are measured by."""
        every = -(-self.data.n_rows // MOST_MEASURED)
        parts = []
        for chunk in self.data.chunks():
            self.r_max = max(self.r_max, float(np.abs(chunk.rewards).max(initial=0.0)))
            parts.append(rows_of(chunk, slice(-chunk.first_row % every, None, every)))
        self.log = self.encoded(joined(parts), None)
        self.measure_by(self.log)

    def measure_by(self, log: Encoded) -> None:
        """Iterates are measured by these rows, and step sizes that were not given fit them."""
        self.measured = Empirical(log, self.encoder, self.target, self.A)
        if isinstance(self.algorithm, Algorithm):
            dense = self.encoder.kind == "dense"
            self.algorithm = self.algorithm.for_norm(float((log.features**2).sum(axis=1).max()) if dense else 1.0)

    def encoded(self, chunk: Any, order: Any) -> Encoded:
        """The rows of a chunk, encoded."""
        return encode_log(chunk, self.encoder, self.target, self.A, self.discount, order)

    # --- Learning ----------------------------------------------------------------------------------------------------

    def in_passes(self, advance_bar: Callable[[], None]) -> FloatArray:
        """Take the rows from the first to the last, and again."""
        n, algorithm = self.data.n_rows, self.algorithm
        total = n * self.n_passes
        if isinstance(algorithm, VRGreedyGQ):
            algorithm.n_updates(n)  # a batch must fit
            total = int(algorithm.epoch_ends(total)[-1])  # the epoch that is begun last needs its batch
        samples = samples_of(self.log, self.encoder, self.target, self.A)
        sizes, first, drawn = (self.d, self.A), self.theta0.reshape(-1), self.order == "drawn"
        passes = Passes(samples, len(self.log.features), sizes, algorithm, self.seed, total, first, drawn)
        for k in range(self.resume(passes), self.n_passes + 1):
            passes.advance(k * n)
            if not self.end_pass(passes, advance_bar):
                break
        return passes.theta.reshape(self.A, -1)

    def solve(self, advance_bar: Callable[[], None]) -> FloatArray:
        """Solve for θ."""
        self.record(self.theta0, 0)

        def report(theta: FloatArray) -> bool:
            self.record(theta, len(self.history["updates"]))
            advance_bar()
            return True

        if isinstance(self.algorithm, LeastSquaresGreedyGQ):
            return descend(self.measured, self.theta0, MOST_STEPS, report)
        theta, self.diverged = self.algorithm.fit(self.measured, self.theta0, report)
        return theta

    def in_parts(self, advance_bar: Callable[[], None]) -> FloatArray:
        """Take the rows of files in their order, a part of them in memory at a time."""
        samples = samples_of(self.log, self.encoder, self.target, self.A)
        sizes, first = (self.d, self.A), self.theta0.reshape(-1)
        passes = Passes(samples, len(self.log.features), sizes, self.algorithm, self.seed, 0, first)
        for k in range(self.resume(passes), self.n_passes + 1):
            done = (k - 1) * self.data.n_rows
            for chunk in self.data.chunks():
                log = self.encoded(chunk, None)
                passes.go_on_with(samples_of(log, self.encoder, self.target, self.A), done)
                done += len(log.action)
                passes.advance(done)
            if not self.end_pass(passes, advance_bar):
                break
        return passes.theta.reshape(self.A, -1)

    def resume(self, passes: Passes) -> int:
        """Go to where the checkpoint stands, if there is one; the number of the next pass."""
        found = None
        if self.checkpoint is not None:
            found = read_checkpoint(self.checkpoint, self.settings(), passes)
        if found is None:
            self.record(self.theta0, 0)
            return 1
        self.iterates = list(found.pop("theta"))
        self.history = {name: values.tolist() for name, values in found.items()}
        self.diverged = passes.diverged
        made = len(self.history["updates"]) - 1
        if made > self.n_passes:
            raise ValueError(f"checkpoint: {self.checkpoint} stands after pass {made}, n_passes is {self.n_passes}")
        return self.n_passes + 1 if self.diverged else made + 1

    def end_pass(self, passes: Passes, advance_bar: Callable[[], None]) -> bool:
        """Record what a pass has led to; False where it has diverged."""
        self.diverged = passes.diverged
        self.record(passes.theta.reshape(self.A, -1), passes.updates)
        if self.checkpoint is not None:
            history = {name: np.array(values) for name, values in self.history.items()}
            write_checkpoint(self.checkpoint, self.settings(), passes, {**history, "theta": np.array(self.iterates)})
        advance_bar()
        return not passes.diverged

    def content(self) -> str:
        """A digest of the rows."""
        return self.data.fingerprint

    def settings(self) -> dict[str, Any]:
        """What a checkpoint must agree in."""
        policy = self.log.policy
        return {
            "algorithm": self.algorithm.to_dict(),
            "data": self.content(),
            "discount": self.discount,
            "seed": self.seed,
            "rows": self.order,
            "theta0": digest({"theta0": self.theta0})[:12],
            # Other bounds, or another function, make other features, or other probabilities.
            "encoder": f"{self.encoder!r} {digest({'features': self.log.features[:1000]})[:12]}",
            "target": repr(self.target) if policy is None else f"policy {digest({'policy': policy})[:12]}",
        }

    # --- What is kept ------------------------------------------------------------------------------------------------

    def record(self, theta: FloatArray, updates: int) -> None:
        """Measure an iterate, and keep it."""
        with np.errstate(over="ignore", invalid="ignore"):
            J, gradient = self.measured.objective(theta)
            self.history["mspbe"].append(J)
            self.history["gradient"].append(float((gradient**2).sum()))
            self.history["max_q"].append(self.measured.largest_q(theta))
        self.history["q_bound"].append(self.r_max / (1 - self.discount))
        self.history["updates"].append(updates)
        if (len(self.iterates) + 1) * self.d <= MOST_KEPT:
            self.iterates.append(theta.copy())

    def model(self, theta: FloatArray) -> LinearQ:
        """What was learned."""
        history: dict[str, Any] = {name: np.array(values) for name, values in self.history.items()}
        if len(self.iterates) == len(self.history["updates"]):
            history["theta"] = np.array(self.iterates)
        operator = self.target if isinstance(self.target, Operator) else Greedy()
        about = {
            "algorithm": self.algorithm.to_dict() if isinstance(self.algorithm, Algorithm) else repr(self.algorithm),
            "data": self.data.description,
            "rows": self.data.n_rows,
            "seed": self.seed,
            "diverged": self.diverged,
            "evaluates": "nothing" if isinstance(self.target, Operator) else "a policy",
        }
        return LinearQ(theta, self.encoder, operator, self.discount, history, about)
