"""What an agent can do with the transitions that it keeps: show them, take in a log, solve for θ anew."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gqlab.data.transitions import Transitions
from gqlab.encoders.foreign import Foreign
from gqlab.engine.held import hold
from gqlab.learn.agent.keeping import (
    CUT_OFF,
    FIRST,
    HOW,
    LAST,
    OBSERVATIONS,
    OPEN,
    TERMINATED,
    WENT_ON,
    Logged,
    absorb,
)
from gqlab.learn.agent.live import DIVERGED, UPDATES, Live
from gqlab.learn.agent.replay import Refit, Replay
from gqlab.learn.agent.room import first_needed, keeps, with_room
from gqlab.learn.agent.segments import Segment
from gqlab.learn.fit.empirical import Empirical
from gqlab.learn.fit.fitted import solve
from gqlab.learn.fit.log_table import Encoded
from gqlab.rules.averages import average_entry
from gqlab.rules.vectors import LAG, SCALE, N
from gqlab.support import checks
from gqlab.support.checks import FloatArray

if TYPE_CHECKING:
    from gqlab.learn.agent.workers import Worker

#: Rows of a log that are taken in at one go: Ctrl-C waits no longer.
CHUNK = 2000

#: Observations whose values are computed at one go.
ROWS_AT_ONCE = 4096


class Replaying:
    """What :class:`gqlab.Agent` can do where it was given ``replay``."""

    encoder: Any
    algorithm: Any
    target: Any
    discount: float
    n_actions: int
    replay: Replay | Refit | None
    _live: Live
    _worker: Worker
    _segments: dict[Path, list[Segment]]  # those that this agent has in folders

    @property
    def buffer(self) -> Transitions:
        """The transitions that are kept, as data of their own: for :func:`gqlab.health`, or a Parquet file.

        Those of a vector environment follow each other environment by environment; a step of an episode that goes on
        is marked as cut off.
        """
        if not keeps(self._live):
            raise ValueError("buffer: this agent keeps no transitions; make it with replay=gqlab.Replay()")
        return transitions_of(self._live, self.n_actions)

    @property
    def max_q(self) -> float:
        """The largest |Q| at the observations that are kept, of what the agent acts by.

        No value beyond r_max/(1 − γ) makes sense: an algorithm that goes there has begun to believe itself.
        """
        if not keeps(self._live):
            raise ValueError("max_q: this agent keeps no transitions; make it with replay=gqlab.Replay()")
        return largest_value(self._live, self.theta_average, self.encoder, self.n_actions)

    @property
    def theta_average(self) -> FloatArray:
        """θ̄, by which the agent acts."""
        raise NotImplementedError

    def learn_from(self, data: Transitions) -> Any:
        """Keep the transitions of a log as if they had been made here, and learn from them: then go on live.

        With :class:`gqlab.Replay` every row brings as many updates as a step does; with :class:`gqlab.Refit` θ is
        solved for once at the end. No step of the environment is made or counted.

        Examples
        --------
        >>> import gqlab as gq
        >>> data = gq.collect("MountainCar-v0", n_steps=300, seed=0)
        >>> encoder = gq.TileCoder(n_tilings=4, bins=4)
        >>> agent = gq.Agent("MountainCar-v0", encoder, gq.QLearning(0.1), replay=gq.Replay(updates=1, n_step=1))
        >>> agent.learn_from(data).learn(200).buffer.n_rows
        500
        """
        checks.instance("data", data, Transitions, "a gqlab.Transitions")
        if not keeps(self._live):
            raise ValueError("data: this agent keeps no transitions; make it with replay=gqlab.Replay()")
        if data.n_actions > self.n_actions or data.observation_size != self.encoder.n_features_in_:
            raise ValueError(
                f"data has {data.n_actions} actions and observations of {data.observation_size} numbers, this agent "
                f"needs {self.n_actions} and {self.encoder.n_features_in_}"
            )
        for chunk in data.chunks():
            log = _logged(chunk, self.encoder)
            for first in range(0, len(chunk), CHUNK):
                end = min(first + CHUNK, len(chunk))
                self._make_room(end - first, in_log=first > 0)
                absorb(self._worker.held, log, first, end, self._worker.d, self.n_actions)
        if isinstance(self.replay, Refit):
            self._refit()
        self._warn()
        return self

    def _warn(self) -> None:
        raise NotImplementedError

    def _make_room(self, n_steps: int, in_log: bool = False) -> None:
        """Room for so many more steps, with arrays of their own where there is none."""
        if keeps(self._live):
            self._take(with_room(self._live, self.n_actions, n_steps, in_log))

    def _take(self, live: Live) -> None:
        """Go on with these parts."""
        if live is not self._live:
            self._live = self._worker.live = live
            self._worker.held = hold(live)

    def _next_refit(self, here: int) -> int:
        """The step of the next solution after step ``here``."""
        every = self.replay.every if isinstance(self.replay, Refit) else 2**48
        return here + every - here % every

    def _refit(self) -> None:
        """θ ← what the algorithm solves for on all samples."""
        live = self._live
        theta = live.point.theta
        log = _encoded(live, self.n_actions)
        if not len(log.action):
            return
        data = Empirical(log, self.encoder, self.target, self.n_actions)
        found, diverged = solve(self.algorithm, data, theta.u.reshape(self.n_actions, -1).copy(), lambda _: True)
        if diverged:
            live.counts[DIVERGED] = max(self._worker.steps, 1)
            return
        theta.u[:] = found.reshape(-1)
        theta.numbers[N] = theta.u @ theta.u
        live.counts[UPDATES] += 1


def _encoded(live: Live, A: int) -> Encoded:
    """The samples that are kept, as the solvers read them."""
    n, features, marks = live.stream.marks.item(OBSERVATIONS), live.samples.features, live.stream.marks
    table = features.places if hasattr(features, "places") else features.value
    rows = slice(marks.item(FIRST), marks.item(LAST))
    row = live.samples.row[rows].astype(np.int64)
    return Encoded(
        features=table.reshape(-1, features.n_active[0])[:n],
        observation=row // A,
        next_observation=live.samples.next_row[rows].astype(np.int64) // A,
        action=row % A,
        reward=live.samples.reward[rows],
        discount=live.samples.discount[rows],
        policy=None,
    )


def _logged(chunk: Any, encoder: Any) -> Logged:
    """Rows of a log as the compiled step is shown them."""
    first, after = (np.asarray(x, dtype=np.float64) for x in (chunk.observations, chunk.next_observations))
    terminated, truncated = np.asarray(chunk.terminated), np.asarray(chunk.truncated)
    same = np.append(False, (after[:-1] == first[1:]).all(axis=1) & (np.diff(chunk.episode) == 0))
    ends = np.append(~same[1:], True)  # rows after which another trajectory begins
    return Logged(
        observation=_shown(first, encoder),
        next_observation=_shown(after, encoder),
        action=np.asarray(chunk.actions, dtype=np.int64),
        reward=np.asarray(chunk.rewards, dtype=np.float64),
        end=np.where(terminated, TERMINATED, np.where(truncated | ends, CUT_OFF, WENT_ON)),
        follows=same,
    )


def _shown(rows: FloatArray, encoder: Any) -> FloatArray:
    shown = np.hstack([encoder.encode_batch(rows), rows]) if isinstance(encoder, Foreign) else rows
    return np.ascontiguousarray(shown).reshape(-1)


def transitions_of(live: Live, n_actions: int) -> Transitions:
    """What an agent keeps, as data."""
    stream, first, end = live.stream, first_needed(live, n_actions), live.stream.marks.item(OBSERVATIONS)
    how = stream.end[first:end] & HOW
    places = first + np.flatnonzero(how != OPEN)
    if not len(places):
        raise ValueError("buffer: nothing is kept yet")
    places = places[np.argsort(stream.trajectory[places], kind="stable")]
    raw, how = stream.raw.reshape(-1, stream.raw_size[0]), how[places - first]
    after = stream.after[places].astype(np.int64)
    over = (how != WENT_ON) | ~np.isin(after, places)  # the last step of an episode that goes on
    episodes = np.cumsum(over) - over
    made = Transitions.from_arrays(
        raw[places], live.taken[places], stream.reward[places], raw[after], how == TERMINATED,
        over & (how != TERMINATED), episodes, n_actions=n_actions,
    )  # fmt: skip
    made.description = "an agent's buffer"
    return made


def largest_value(live: Live, theta: FloatArray, encoder: Any, n_actions: int) -> float:
    """max |Q| over the observations that are kept, encoded as they stand in the table; 0 where there is none."""
    first, end = first_needed(live, n_actions), live.stream.marks.item(OBSERVATIONS)
    offset, width, found = live.offset.item(), encoder.n_active_, 0.0
    for k in range(first, end, ROWS_AT_ONCE):
        rows = slice(k * width, min(end, k + ROWS_AT_ONCE) * width)
        if encoder.kind == "binary":
            q = encoder.value_ * theta[:, live.places[rows].reshape(-1, width)].sum(axis=2)
        else:
            q = theta @ live.value[rows].reshape(-1, width).T
        found = max(found, float(np.abs(q + offset).max()))
    return found


def entries_of(vector: Any) -> FloatArray:
    """The entries of a vector: an array, or a scaled, or lagged, one."""
    if isinstance(vector, np.ndarray):
        return vector.copy()
    a, c = vector.numbers[SCALE], vector.numbers[LAG]
    return a * (vector.u + c * vector.g) if hasattr(vector, "g") else a * vector.u


def average_of(vector: Any) -> FloatArray:
    """The entries of the average of a vector that has one."""
    return average_entry(vector, slice(None))
