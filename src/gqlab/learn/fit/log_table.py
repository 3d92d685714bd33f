"""Logged transitions as the table of samples that the compiled functions read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gqlab.operators import FixedPolicy, Operator
from gqlab.operators.fixed_policy import FixedPolicyRule
from gqlab.operators.switch import join_operators
from gqlab.policies import Policy, as_policy
from gqlab.policies.policy import EXPECTED, TablePolicy
from gqlab.rules.blocks import BinaryBlocks, DenseBlocks
from gqlab.rules.gradient import Samples
from gqlab.samples.tables import per_problem
from gqlab.support import checks
from gqlab.support.checks import FloatArray

#: What ``target`` is once it is checked: an operator improves a policy, and is improved upon; a policy is evaluated.
Target = Operator | Policy


class Encoded(NamedTuple):
    """Transitions whose observations are encoded: row k of ``features`` is x of observation k."""

    features: NDArray[Any]  # (n_observations, n_active) places, or (n_observations, K) numbers
    observation: NDArray[np.int64]  # (n,)  which observation a transition begins with,
    next_observation: NDArray[np.int64]  # (n,)  and which it leads to
    action: NDArray[np.int64]  # (n,)
    reward: FloatArray  # (n,)
    discount: FloatArray  # (n,)  0 where it terminated
    policy: FloatArray | None  # (n_observations, A)  the policy that is evaluated, if one is


def check_target(target: Any, n_actions: int, size: int) -> Target:
    """What was given as ``target``, checked as far as it can be without data: an operator, or a policy."""
    if isinstance(target, Operator) and not isinstance(target, FixedPolicy):
        if target.tables():
            raise ValueError(f"target is {checks.shown(target)}, with tables over states: a log has observations")
        return target
    policy = as_policy("target", target, n_actions, size, expected=f"an operator such as gqlab.Greedy(), or {EXPECTED}")
    if isinstance(policy, TablePolicy):
        return target if isinstance(target, FixedPolicy) else FixedPolicy(policy.table)
    return policy


def probabilities_of(target: Target, observations: FloatArray, n_actions: int) -> FloatArray | None:
    """The probabilities of a given policy at observations, (n, n_actions); None for other operators."""
    if isinstance(target, Operator) and not isinstance(target, FixedPolicy):
        return None
    return as_policy("target", target, n_actions).probabilities(observations)


def encode_log(chunk: Any, encoder: Any, target: Target, n_actions: int, discount: float, order: Any = None) -> Encoded:
    """Encode the transitions of a chunk, in the order of its rows, or in another.

    In another order every transition has its two observations beside each other; in the order of the rows what one
    leads to and the next begins with is encoded once.
    """
    first, after = (np.asarray(x, dtype=np.float64) for x in (chunk.observations, chunk.next_observations))
    after = np.where(np.asarray(chunk.terminated)[:, None], first, after)  # nothing is bootstrapped from there
    n = len(first)
    rows = np.arange(n) if order is None else order
    if order is None:
        follows = np.append((after[:-1] == first[1:]).all(axis=1), False)
        extra = np.flatnonzero(~follows)
        observations = np.concatenate([first, after[extra]])
        observation, next_observation = rows, rows + 1
        next_observation[extra] = n + np.arange(len(extra))
    else:
        observations = np.empty((2 * n, first.shape[1]))
        observations[0::2], observations[1::2] = first[rows], after[rows]
        observation, next_observation = 2 * np.arange(n), 2 * np.arange(n) + 1
    return Encoded(
        features=encoder.encode_batch(observations),
        observation=observation,
        next_observation=next_observation,
        action=np.asarray(chunk.actions)[rows],
        reward=np.asarray(chunk.rewards, dtype=np.float64)[rows],
        discount=np.where(np.asarray(chunk.terminated)[rows], 0.0, discount),
        policy=probabilities_of(target, observations, n_actions),
    )


ROWS = ("observations", "actions", "rewards", "next_observations", "terminated")


def rows_of(chunk: Any, which: Any) -> dict[str, NDArray[Any]]:
    """Some rows of a chunk."""
    return {name: np.asarray(getattr(chunk, name))[which] for name in ROWS}


def joined(parts: list[dict[str, NDArray[Any]]]) -> Any:
    """Such rows behind one another, like a chunk."""
    return SimpleNamespace(**{name: np.concatenate([part[name] for part in parts]) for name in ROWS})


def samples_of(log: Encoded, encoder: Any, target: Target, n_actions: int) -> Samples:
    """The table that the compiled functions read."""
    n_observations, A = len(log.features), n_actions
    if n_observations * A >= 2**32:
        raise ValueError(f"too large: {n_observations:,} observations of {A} actions in memory")
    sizes = {
        "n_active": per_problem([encoder.n_active_]),
        "n_features": per_problem([encoder.n_features_out_]),
        "n_actions": per_problem([A]),
    }
    flat = log.features.reshape(-1)
    binary = encoder.kind == "binary"
    value: Any = np.array([encoder.value_ if binary else 0.0])
    if log.policy is not None:
        operator: Any = FixedPolicyRule(np.ascontiguousarray(log.policy).reshape(-1))
    else:
        operator = join_operators([target], [n_observations * A], [target.compiled], np.float64)  # type: ignore[list-item, union-attr]
    return Samples(
        features=BinaryBlocks(flat, value, **sizes) if binary else DenseBlocks(flat, **sizes),
        operator=operator,
        row=(log.observation * A + log.action).astype(np.uint32),
        next_row=(log.next_observation * A).astype(np.uint32),
        reward=log.reward,
        discount=log.discount,
        behavior=np.zeros(1),
        first_row=per_problem([0]),
        first_sample=per_problem([0]),
    )
