"""The compiled side of an agent: its parts, put together, and their arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gqlab.algorithms import Algorithm
from gqlab.algorithms.places import RunPlace, Way, way_in
from gqlab.algorithms.schedules import LinearDecay, join_schedules
from gqlab.encoders.foreign import Foreign
from gqlab.engine.memory import declared
from gqlab.estimators.needs import Need
from gqlab.estimators.traces import Traces
from gqlab.learn.agent.live import N_COUNTS, AtOnce, CopyRule, Exploration, Live, Recent, TakenRule
from gqlab.learn.fit.passes import form_for, live_part, point_for, trace_values, values_of
from gqlab.operators import Greedy, Operator
from gqlab.operators.switch import join_operators
from gqlab.rules.blocks import BinaryBlocks, DenseBlocks
from gqlab.rules.gradient import Samples
from gqlab.rules.memory import Sizes
from gqlab.samples.streams import RunIdentity
from gqlab.samples.tables import per_problem
from gqlab.support import checks

#: What an environment can be asked for: the next sample when it is there, and the last M of them.
AGENT = RunPlace("gqlab.Agent", frozenset({Need.BATCH, Need.EPISODES, Need.NEXT_ACTION, Need.CPU}))


def way_beside(algorithm: Algorithm) -> Way:
    """How an algorithm runs beside an environment; ``ValueError`` where it does not."""
    way = way_in(AGENT, algorithm)
    if Need.BATCH in way.needs and algorithm.epoch_size < 1:
        raise ValueError(f"algorithm is {checks.shown(algorithm)}: it has batches, but its epoch_size is 0")
    return way


def with_step_sizes(algorithm: Algorithm, encoder: Any) -> Algorithm:
    """The algorithm with a number for each step size that was not given: features must be known to have ‖φ‖ ≤ 1."""
    if None not in (algorithm.eta_theta, algorithm.eta_omega):
        return algorithm
    if isinstance(encoder, Foreign) or not getattr(encoder, "scale", True):
        name = "eta_theta" if algorithm.eta_theta is None else "eta_omega"
        raise ValueError(f"{name} is None: features of {checks.shown(encoder)} have any length, so give a step size")
    return algorithm.for_norm(1.0)


def features_of(encoder: Any, n_observations: int, n_actions: int) -> Any:
    """A table for so many encoded observations."""
    sizes = {
        "n_active": per_problem([encoder.n_active_]),
        "n_features": per_problem([encoder.n_features_out_]),
        "n_actions": per_problem([n_actions]),
    }
    n = n_observations * encoder.n_active_
    checks.memory("encoder", encoder, n, 4 if encoder.kind == "binary" else 8)
    if n_observations * n_actions >= 2**32:
        raise ValueError(f"too large: {n_observations} observations of {n_actions} actions")
    binary: Any = BinaryBlocks
    if encoder.kind == "binary":
        return binary(np.zeros(n, dtype=np.int32), np.array([encoder.value_]), **sizes)
    return DenseBlocks(np.zeros(n), **sizes)


def make_live(
    encoder: Any,
    n_actions: int,
    n_envs: int,
    algorithm: Algorithm,
    target: Operator,
    discount: float,
    epsilon: LinearDecay,
    seed: int,
) -> Live:
    """The parts of an agent at its beginning."""
    way = way_beside(algorithm)
    A, M = n_actions, algorithm.epoch_size if Need.BATCH in way.needs else 0
    d, n = A * encoder.n_features_out_, n_envs + M  # n: samples, one for each environment and those of a batch
    checks.memory("encoder", encoder, 6 * d)
    follows = Need.NEXT_ACTION in way.needs
    samples = samples_of(features_of(encoder, 2 * n, A), target, n, A)
    if follows:
        samples = samples._replace(operator=TakenRule(np.zeros(2 * n, dtype=np.int64)))
    binary = encoder.kind == "binary"
    kind = form_for(way.estimator, samples.features)
    values = trace_values(encoder, algorithm, discount) if kind is Traces else values_of(algorithm, kind)
    sizes = Sizes(d, A, 2 * n, n, 0, values, n_envs)
    checks.memory("algorithm", algorithm, sum(array.size for array in declared(kind, sizes).values()))
    return Live(
        encoder=compiled_encoder(encoder),
        samples=samples,
        stream=Recent(per_problem([n_envs]), per_problem([M])) if M else AtOnce(np.zeros(1)),
        estimator=live_part(kind, sizes, values),
        point=point_for(kind, d, A),
        schedule=join_schedules([algorithm], [1], np.float64),
        exploration=exploration_of(epsilon, follows, target),
        identity=RunIdentity(np.uint64(seed), np.int64(0)),
        places=samples.features.places if binary else np.zeros(0, dtype=np.int32),
        value=np.zeros(0) if binary else samples.features.value,
        taken=samples.operator.action if follows else np.zeros(2 * n, dtype=np.int64),
        counts=np.zeros(N_COUNTS, dtype=np.int64),
        discount=np.array([discount]),
        offset=np.zeros(1),
        epsilon=np.zeros(1),
        q=np.zeros(A),
        p=np.zeros(A),
        stop=np.zeros(1, dtype=np.int64),
        **exchange(n_envs, size_shown(encoder)),
    )


def size_shown(encoder: Any) -> int:
    """The numbers that the compiled step is shown of an observation: features, where these are made outside."""
    return int(encoder.n_features_out_ if isinstance(encoder, Foreign) else encoder.n_features_in_)


def compiled_encoder(encoder: Any) -> Any:
    return CopyRule(np.array([size_shown(encoder)])) if isinstance(encoder, Foreign) else encoder.compiled


def samples_of(features: Any, target: Operator, n: int, A: int) -> Samples:
    """A table of n samples."""
    return Samples(
        features=features,
        operator=join_operators([target], [2 * n * A], [target.compiled], float),
        row=np.zeros(n, dtype=np.uint32),
        next_row=np.zeros(n, dtype=np.uint32),
        reward=np.zeros(n),
        discount=np.zeros(n),
        behavior=np.zeros(1),
        first_row=per_problem([0]),
        first_sample=per_problem([0]),
    )


def exchange(n_envs: int, size: int) -> dict[str, Any]:
    """What is passed between the environments and the compiled step."""
    return {
        **{name: np.zeros(n_envs * size) for name in ("observation", "first_observation")},
        "reward": np.zeros(n_envs),
        **{name: np.zeros(n_envs, dtype=np.int64) for name in ("terminated", "status", "action")},
        "here": 2 * np.arange(n_envs),
    }


def exploration_of(epsilon: LinearDecay, follows: bool, target: Operator) -> Any:
    kind: Any = Exploration
    first, last, over = (np.array([value]) for value in (epsilon.first, epsilon.last, epsilon.over))
    is_greedy = type(target) is Greedy
    cuts = is_greedy and not follows
    return kind(first, last, over, per_problem([not is_greedy]), per_problem([cuts]))


def arrays_of(value: Any, name: str = "") -> Iterator[tuple[str, NDArray[Any]]]:
    """Every array of parts within parts, by its path."""
    if isinstance(value, np.ndarray):
        yield name, value
    elif isinstance(value, tuple):
        fields = getattr(value, "_fields", range(len(value)))
        for field, inner in zip(fields, value, strict=True):
            yield from arrays_of(inner, f"{name}.{field}" if name else str(field))
