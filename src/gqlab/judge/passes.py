"""Passes over the rows of a log: functions of a part, which any engine may call, and their results in order.

Every function gets first what all of them share: the data and their parts, the features, the policies and γ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gqlab.judge.rows import LogBlock, blocks, pieces
from gqlab.judge.sums import (
    BehaviorSums,
    LogMoments,
    Matrices,
    PolicyMoments,
    PolicyWeights,
    added,
    behavior_sums,
    log_sums,
    policy_sums,
    residuals,
    row_values,
)
from gqlab.learn.fit.part_tasks import Shared
from gqlab.support.checks import FloatArray, RowError


class First(NamedTuple):
    """The sums of a part: of the log, and of each policy."""

    log: LogMoments
    policies: list[PolicyMoments]


class Second(NamedTuple):
    """What the residuals of a part give: numbers for each policy, and sums over some episodes at a time."""

    numbers: FloatArray  # (P, len(NUMBERS))
    square: float  # Σ δ² of the behaviour
    episodes: list[tuple[int, FloatArray, FloatArray]]  # the first, returns and corrections (n_e,), (1 + P, n_e)
    starts: list[tuple[NDArray[np.int64], FloatArray]]  # episodes, and V(s₀) of each policy, (P, 2, n_starts)


def on_one_thread(shared: Shared, function: Callable[..., Any], k: int, *arguments: Any) -> Any:
    """``function(shared, k, *arguments)`` in a worker, on one thread: several would change the last digits."""
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    with threadpool_limits(1, user_api="blas"):
        return function(shared, k, *arguments)


def part_blocks(shared: Shared, k: int) -> Iterator[tuple[LogBlock, Callable[[int], FloatArray]]]:
    """The blocks of part k, each with the probabilities of policy number p at its observations."""
    cache = shared.get("cache")
    if cache is not None:
        yield from cache[k]
        return
    firsts, all_parts = shared["firsts"], shared["parts"]
    behind = firsts[k + 1][1] if k + 1 < len(firsts) else 0  # the time of the row behind
    for piece in pieces(shared["data"], all_parts[k], firsts[k], goes_on=behind > 0):
        for block in blocks(piece, shared["features"]):
            yield block, asked(shared["policies"], block)


def asked(policies: list[Any], block: LogBlock) -> Callable[[int], FloatArray]:
    """The probabilities of policies at a block's observations, each computed once."""
    answers: dict[int, FloatArray] = {}

    def probabilities(p: int) -> FloatArray:
        if p not in answers:
            try:
                answers[p] = policies[p].probabilities(block.observations)
            except RowError as error:
                raise ValueError(f"{error}: {_placed(block, error.row)}") from None
        return answers[p]

    return probabilities


def _placed(block: LogBlock, k: int) -> str:
    """Where observation k of a block is in the log."""
    leads, j = k >= len(block.first), k
    if leads:  # an observation that no row of the block begins with
        j = int(np.flatnonzero(block.after == k)[0])
    at = ", ".join(f"{x:g}" for x in block.observations[k])
    where = f"row {block.time[j]} of episode {block.episode[j]}"
    return f"{'what ' if leads else ''}{where}{' leads to' if leads else ''}, at the observation ({at})"


def first_pass(shared: Shared, k: int) -> First:
    """The systems of all policies."""
    m, gamma = _matrices(shared), shared["discount"]
    log: LogMoments | None = None
    each: list[Any] = [None] * len(shared["policies"])
    for block, pi in part_blocks(shared, k):
        log = added(log, log_sums(m, block, gamma))
        each = [added(total, policy_sums(m, block, pi(p), gamma)) for p, total in enumerate(each)]
    assert log is not None
    return First(log, each)


def kept_pass(shared: Shared, k: int, inverses: dict[int, FloatArray]) -> dict[int, PolicyMoments]:
    """The systems of the policies in ``inverses``, without pairs that were hardly seen."""
    m, gamma = _matrices(shared), shared["discount"]
    each: dict[int, Any] = dict.fromkeys(inverses)
    for block, pi in part_blocks(shared, k):
        for p, inverse in inverses.items():
            each[p] = added(each[p], policy_sums(m, block, pi(p), gamma, inverse))
    return each


def second_pass(
    shared: Shared,
    k: int,
    judged: list[tuple[int, PolicyWeights]],
    base: int | None,
    behavior: tuple[FloatArray, FloatArray],
) -> Second:
    """Residuals of policies, ``(policy, θ and the like)`` each, against the one at place ``base`` among them."""
    m, gamma = _matrices(shared), shared["discount"]
    numbers: Any = 0.0
    square, episodes, starts = 0.0, [], []
    for block, pi in part_blocks(shared, k):
        rows = [row_values(m, block, pi(p), gamma, how) for p, how in judged]
        found = [residuals(block, one, None if base is None else rows[base]) for one in rows]
        now: BehaviorSums = behavior_sums(m, block, gamma, *behavior)
        numbers = numbers + np.stack([one.numbers for one in found])
        square += now.square
        corrections = np.stack([now.corrections, *(one.corrections for one in found)])
        episodes.append((int(block.episode[0]), now.returns, corrections))
        starts.append((block.episode[block.starts], np.stack([one.starts for one in found])))
    return Second(numbers, square, episodes, starts)


def _matrices(shared: Shared) -> Matrices:
    return Matrices(shared["features"], shared["n_actions"])


def cached(shared: Shared) -> list[list[tuple[LogBlock, Callable[[int], FloatArray]]]]:
    """All blocks of all parts, encoded once."""
    return [list(part_blocks(shared, k)) for k in range(len(shared["parts"]))]
