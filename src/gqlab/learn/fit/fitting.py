"""One fit: its rows, what learns from them, and what is recorded on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gqlab.algorithms import Algorithm
from gqlab.algorithms.places import Way
from gqlab.data.encoding import typical_observation
from gqlab.data.transitions import Transitions
from gqlab.estimators.needs import Need
from gqlab.estimators.traces import Traces
from gqlab.learn.fit.checkpoint import read_checkpoint, write_checkpoint
from gqlab.learn.fit.empirical import Empirical
from gqlab.learn.fit.fitted import solve
from gqlab.learn.fit.log_table import Encoded, Target, encode_log, joined, rows_of, samples_of
from gqlab.learn.fit.passes import BY_RATIO, IN_FULL, WHERE_BEST, Drawn, EpisodeRows, Passes, trace_values, values_of
from gqlab.learn.fit.succession import UNKNOWN, LoggedBlock, blocks_of, together, with_next_actions
from gqlab.learn.linear_q import LinearQ
from gqlab.operators import Greedy, Operator
from gqlab.rules.memory import Sizes
from gqlab.samples.tables import per_problem
from gqlab.support.checks import FloatArray
from gqlab.support.files import digest

#: Transitions that are measured after a pass, at most: every so many-th, where there are more.
MOST_MEASURED = 100_000

#: The iterations of a solver that are measured, besides the last: these first ones, and of the others every so many-th.
FIRST_MEASURED, MEASURED_EVERY = 20, 10

#: Numbers of all the iterates that a history keeps, at most: beyond, none is kept.
MOST_KEPT = 10_000_000


class Fitting:
    """One call of :func:`gqlab.fit`: rows in memory, or in files that are read as they stand."""

    theta0: FloatArray
    n_passes: int
    checkpoint: Path | None = None
    order = "in order"

    def __init__(
        self,
        data: Transitions,
        encoder: Any,
        algorithm: Algorithm,
        way: Way,
        target: Target,
        discount: float,
        seed: int,
    ) -> None:
        self.data, self.encoder, self.algorithm, self.way, self.target = data, encoder, algorithm, way, target
        self.discount, self.seed, self.A = discount, seed, data.n_actions
        self.d = data.n_actions * encoder.n_features_out_
        self.diverged = False
        self.history: dict[str, list[Any]] = {"updates": [], "mspbe": [], "gradient": [], "max_q": [], "q_bound": []}
        self.iterates: list[FloatArray] = []
        self.r_max = 0.0
        self.measured: Any = None  # where J, ∇J and max |Q| of an iterate come from

    @property
    def solves(self) -> bool:
        """Whether it solves for θ at once."""
        return self.way.estimator is None

    @property
    def traces(self) -> bool:
        """Whether it learns with traces."""
        return Need.EPISODES in self.way.needs

    @property
    def follows_data(self) -> bool:
        """Whether it evaluates the policy of the data, by the action that is taken next."""
        return Need.NEXT_ACTION in self.way.needs

    # --- The rows ----------------------------------------------------------------------------------------------------

    def chunks(self) -> Iterator[Any]:
        """The rows, a part of them in memory at a time; with how they follow each other where that is needed."""
        if not (self.traces or self.follows_data):
            return self.data.chunks()
        return (self.known(block) for block in blocks_of(self.data.chunks()))

    def known(self, block: LoggedBlock) -> LoggedBlock:
        """The rows of a block that know their next action, where it is needed."""
        return block.pick(block.next_action != UNKNOWN) if self.follows_data else block

    def load(self, rows: str) -> None:
        """Encode all rows."""
        self.order = rows
        chunk: Any = self.data.to_chunk()
        if self.traces or self.follows_data:
            chunk = self.known(together(list(blocks_of([chunk]))))
        n = len(chunk.actions)
        if n == 0:
            raise ValueError("data: no row knows its next action: its episodes are of one row each")
        # The solvers take all rows at once: their order does not matter.
        shuffled = rows == "shuffled" and not self.solves
        order = np.random.default_rng([self.seed, 0]).permutation(n) if shuffled else None
        self.log = self.encoded(chunk, order)
        self.stream = self.stream_of(chunk, 0)
        self.r_max = float(np.abs(self.log.reward).max())
        names = ("observation", "next_observation", "action", "reward", "discount")
        measured = slice(None, None, 1 if self.solves else -(-n // MOST_MEASURED))
        self.measure_by(self.log._replace(**{name: getattr(self.log, name)[measured] for name in names}))

    def look_through(self) -> None:
        """Read the files once: the largest reward, and every so many-th row, which iterates are measured by."""
        every = -(-self.data.n_rows // MOST_MEASURED)
        parts: list[Any] = []
        row = 0
        for chunk in self.chunks():
            self.r_max = max(self.r_max, float(np.abs(chunk.rewards).max(initial=0.0)))
            which = slice(-row % every, None, every)
            parts.append(chunk.pick(which) if isinstance(chunk, LoggedBlock) else rows_of(chunk, which))
            row += len(chunk)
        self.log = self.encoded(together(parts) if isinstance(parts[0], LoggedBlock) else joined(parts), None)
        self.measure_by(self.log)

    def measure_by(self, log: Encoded) -> None:
        """Iterates are measured by these rows, and step sizes that were not given fit them."""
        self.measured = Empirical(log, self.encoder, self.target, self.A)
        dense = self.encoder.kind == "dense"
        self.algorithm = self.algorithm.for_norm(float((log.features**2).sum(axis=1).max()) if dense else 1.0)

    def encoded(self, chunk: Any, order: Any) -> Encoded:
        """The rows of a chunk, encoded."""
        log = encode_log(chunk, self.encoder, self.target, self.A, self.discount, order)
        if self.follows_data:
            return with_next_actions(log, chunk.next_action if order is None else chunk.next_action[order], self.A)
        return log

    def stream_of(self, chunk: Any, first: int) -> Any:
        """Where the next row comes from, of a chunk whose rows begin with update ``first``; None: in their order."""
        if self.order == "drawn":
            drawn: Any = Drawn
            return drawn(per_problem([len(chunk.actions)]))
        if not self.traces:
            return None
        rule = IN_FULL if self.follows_data else WHERE_BEST if type(self.target) is Greedy else BY_RATIO
        if rule == BY_RATIO and chunk.probability is None:
            raise ValueError(
                "target: with traces a policy that is not greedy needs the probability of every action that was taken, "
                "and the data have none"
            )
        probability = np.asarray(chunk.probability, dtype=np.float64) if rule == BY_RATIO else np.ones(1)
        numbers = [per_problem([number]) for number in (first, len(chunk.actions), rule)]
        kind: Any = EpisodeRows
        return kind(*numbers, np.ascontiguousarray(chunk.begins), np.ascontiguousarray(probability))

    # --- Learning ----------------------------------------------------------------------------------------------------

    def passes(self, n_updates: int, stream: Any = None) -> Passes:
        """The run over the rows, at its beginning."""
        samples = samples_of(self.log, self.encoder, self.target, self.A)
        sizes = Sizes(self.d, self.A, len(self.log.features), len(samples.row), n_updates)
        kind, algorithm = self.way.estimator, self.algorithm
        traced = kind is Traces
        values = trace_values(self.encoder, algorithm, self.discount) if traced else values_of(algorithm, kind)
        return Passes(samples, sizes, algorithm, kind, values, self.seed, self.theta0.reshape(-1), stream)

    def in_passes(self, advance_bar: Callable[[], None]) -> FloatArray:
        """Take the rows from the first to the last, and again."""
        n, each = len(self.log.action), self.algorithm.samples_per_update
        self.algorithm.n_updates(n)  # a batch must fit
        passes = self.passes(room_for(self.algorithm, n * self.n_passes // each), self.stream)
        for k in range(self.resume(passes), self.n_passes + 1):
            passes.advance(k * n // each)
            if not self.end_pass(passes, advance_bar):
                break
        return passes.theta.reshape(self.A, -1)

    def solve(self, advance_bar: Callable[[], None]) -> FloatArray:
        """Solve for θ."""
        self.record(self.theta0, 0)
        made, last, measured = 0, self.theta0, True

        def report(theta: FloatArray) -> bool:
            nonlocal made, last, measured
            made, last = made + 1, theta
            measured = made <= FIRST_MEASURED or made % MEASURED_EVERY == 0
            if measured:
                self.record(theta, made)
            advance_bar()
            return True

        theta, self.diverged = solve(self.algorithm, self.measured, self.theta0, report)
        if theta is not last:  # one that lower values were made of
            self.record(theta, made + 1)
        elif not measured:
            self.record(theta, made)
        return theta

    def in_parts(self, advance_bar: Callable[[], None]) -> FloatArray:
        """Take the rows of files in their order, a part of them in memory at a time."""
        passes = self.passes(0)
        for _ in range(self.resume(passes), self.n_passes + 1):
            done = passes.updates
            for chunk in self.chunks():
                if len(chunk):
                    samples = samples_of(self.encoded(chunk, None), self.encoder, self.target, self.A)
                    passes.go_on_with(samples, done, self.stream_of(chunk, done))
                    done += len(chunk)
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
        if not self.diverged and passes.updates > (passes.sizes.updates or 2**48):
            raise ValueError(f"checkpoint: {self.checkpoint} is damaged: it stands after {passes.updates} updates")
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

    @property
    def evaluates(self) -> str:
        """The policy that is evaluated, where one is, in words."""
        if self.follows_data:
            return "the policy of the data"
        return "nothing" if isinstance(self.target, Operator) else "a policy"

    def model(self, theta: FloatArray) -> LinearQ:
        """What was learned."""
        history: dict[str, Any] = {name: np.array(values) for name, values in self.history.items()}
        if len(self.iterates) == len(self.history["updates"]):
            history["theta"] = np.array(self.iterates)
        operator = self.target if isinstance(self.target, Operator) else Greedy()
        about = {
            "algorithm": self.algorithm.to_dict(),
            "data": self.data.description,
            "rows": self.data.n_rows,
            "seed": self.seed,
            "diverged": self.diverged,
            "evaluates": self.evaluates,
            **self.data.schema.to_dict(),
            "typical": typical_observation(self.data),
            **({} if self.data.actions is None else {"actions": self.data.actions.to_dict()}),
        }
        return LinearQ(theta, self.encoder, operator, self.discount, history, about, self.data.layout)


def room_for(algorithm: Algorithm, n_updates: int) -> int:
    """The updates that memory is made for where so many are asked for: the epoch that is begun last needs its batch."""
    least = most = max(1, n_updates)
    while algorithm.n_updates(most * algorithm.samples_per_update) < n_updates and most < 2**48:
        least, most = most, 2 * most
    while least < most:  # the first budget that is enough
        middle = (least + most) // 2
        if algorithm.n_updates(middle * algorithm.samples_per_update) < n_updates:
            least = middle + 1
        else:
            most = middle
    return algorithm.n_updates(most * algorithm.samples_per_update)
