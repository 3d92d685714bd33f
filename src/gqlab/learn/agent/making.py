"""The parts of an agent that keeps its transitions, put together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gqlab.algorithms import Algorithm, QLearning
from gqlab.algorithms.places import Way
from gqlab.algorithms.schedules import LinearDecay, join_schedules
from gqlab.encoders.foreign import Foreign
from gqlab.estimators.needs import Need
from gqlab.estimators.plain import Plain
from gqlab.learn.agent.core import compiled_encoder, exchange, exploration_of, features_of, samples_of
from gqlab.learn.agent.keeping import N_MARKS, Keeping
from gqlab.learn.agent.live import N_COUNTS, Live
from gqlab.learn.agent.replay import Refit, Replay
from gqlab.learn.agent.room import FIRST_ROOM
from gqlab.learn.fit.passes import lagged_point, live_part, values_of
from gqlab.operators import EpsilonGreedy, Operator
from gqlab.rules.averages import FADED, N_PACE, RATE, WEIGHT_OF_V, FollowedLagged, FollowedScaled
from gqlab.rules.lagged import LaggedPoint
from gqlab.rules.memory import Sizes
from gqlab.rules.vectors import N
from gqlab.samples.streams import RunIdentity
from gqlab.samples.tables import per_problem
from gqlab.support import checks


@dataclass(frozen=True)
class AgentSettings:
    """What an agent is made of."""

    encoder: Any
    n_actions: int
    n_envs: int
    algorithm: Any
    target: Operator
    discount: float
    epsilon: LinearDecay
    seed: int
    replay: Replay | Refit
    way: Way

    @property
    def d(self) -> int:
        """A · K."""
        return int(self.n_actions * self.encoder.n_features_out_)


def begin_at(live: Live, encoder: Any, n_actions: int, value: float) -> None:
    """All action values are ``value`` at first.

    Where the features of every state sum to one number, θ can do that; elsewhere an offset does.
    """
    theta, radius = live.point.theta, float(live.schedule.radius[0])
    if encoder.kind != "binary":
        live.offset[0] = value
        return
    entries = theta if isinstance(theta, np.ndarray) else theta.u
    entries[:] = value / (encoder.n_active_ * encoder.value_)
    if entries is not theta:
        theta.numbers[N] = entries @ entries
    if entries @ entries > radius**2:
        raise ValueError(f"initial_value is {value:g}: θ begins outside the ball of radius {radius:g}")


def make_keeping_live(made: AgentSettings) -> Live:
    """The parts of an agent that replays, at its beginning."""
    encoder, A, d = made.encoder, made.n_actions, made.d
    checks.memory("encoder", encoder, 8 * d)
    algorithm: Algorithm = QLearning(1.0) if isinstance(made.replay, Refit) else made.algorithm
    follows = Need.NEXT_ACTION in made.way.needs
    n = FIRST_ROOM
    target = EpsilonGreedy(made.epsilon.first) if follows else made.target
    samples = samples_of(features_of(encoder, n, A), target, n, A)
    epsilon = samples.operator.epsilon if follows else np.zeros(1)
    kind: Any = Plain if made.way.estimator is None else made.way.estimator
    values = values_of(algorithm, kind)
    estimator = live_part(kind, Sizes(d, A, 0, n, 0, values), values)
    binary = encoder.kind == "binary"
    return Live(
        encoder=compiled_encoder(encoder),
        samples=samples,
        stream=_keeping(made, n),
        estimator=estimator,
        point=_point(d, kind.drifts(), getattr(made.replay, "average", 0.0)),
        schedule=join_schedules([algorithm], [1], np.float64),
        exploration=exploration_of(made.epsilon, follows, made.target),
        identity=RunIdentity(np.uint64(made.seed), np.int64(0)),
        places=samples.features.places if binary else np.zeros(0, dtype=np.int32),
        value=np.zeros(0) if binary else samples.features.value,
        taken=np.zeros(n, dtype=np.int32),
        counts=np.zeros(N_COUNTS, dtype=np.int64),
        discount=np.array([made.discount]),
        offset=np.zeros(1),
        epsilon=epsilon,
        q=np.zeros(A),
        p=np.zeros(A),
        stop=np.zeros(1, dtype=np.int64),
        **(exchange(made.n_envs, size_kept(encoder)) | {"here": np.zeros(made.n_envs + 1, dtype=np.int64)}),
    )


def size_kept(encoder: Any) -> int:
    """The numbers that the compiled step is shown: the raw ones, behind the features where these are made outside."""
    raw = int(encoder.n_features_in_)
    return raw + int(encoder.n_features_out_) if isinstance(encoder, Foreign) else raw


def _keeping(made: AgentSettings, n: int) -> Keeping:
    kind: Any = Keeping
    replay, size = made.replay, int(made.encoder.n_features_in_)
    numbers = {
        "updates": np.array([getattr(replay, "updates", 0.0)]),
        "n_step": per_problem([replay.n_step]),
        "size": per_problem([replay.size or 0]),
        "recent": per_problem([getattr(replay, "sampling", "uniform") == "recent"]),
        "cuts": per_problem([replay.cut]),
        "raw_size": per_problem([size]),
    }
    arrays = {
        "raw": np.zeros(n * size),
        "reward": np.zeros(n),
        "after": np.zeros(n, dtype=np.uint32),
        "end": np.zeros(n, dtype=np.uint8),
        "trajectory": np.zeros(n, dtype=np.uint16),
        **{name: np.zeros(made.n_envs + 1, dtype=np.int64) for name in ("oldest", "waiting")},
        "marks": np.zeros(N_MARKS, dtype=np.int64),
    }
    return kind(**numbers, **arrays)


def _point(d: int, drifts: bool, average: float) -> LaggedPoint:
    """A point at 0, whose θ is followed by an average."""
    point = lagged_point(d, drifts)
    if average == 0:
        return point
    pace = np.zeros(N_PACE)
    pace[RATE], pace[WEIGHT_OF_V], pace[FADED] = average, 1.0, 1.0
    kind: Any = FollowedLagged if drifts else FollowedScaled
    return point._replace(theta=kind(*point.theta, np.zeros(d), pace))
