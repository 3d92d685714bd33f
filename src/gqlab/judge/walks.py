"""Episodes as importance sampling walks along them, with values from the solve."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gqlab.data.split import lengths_of
from gqlab.data.transitions import Transitions
from gqlab.judge import passes
from gqlab.judge.estimates import Estimates, StudentInterval
from gqlab.judge.estimator import Estimator
from gqlab.judge.importance import Walk, Weighed, weighed
from gqlab.judge.rows import look
from gqlab.judge.sums import PolicyWeights, deltas
from gqlab.support.checks import FloatArray


def walk_of(judge: Estimator, p: int, theta: FloatArray) -> Walk:
    """The episodes of a log under policy p, with action values φᵀθ, (A, K)."""
    ratio, y, delta, starts, at = [], [], [], [], 0
    first: list[NDArray[np.intp]] = []
    how = PolicyWeights(theta, theta, None)
    for k in range(len(judge.shared["parts"])):
        for block, pi in passes.part_blocks(judge.shared, k):
            assert block.probability is not None
            n = len(block.action)
            of_block, V = deltas(judge.m, block, pi(p), judge.gamma, how)
            ratio.append(log_ratio(pi(p)[block.first, block.action], block.probability))
            y.append(block.reward + np.where(block.cut, judge.gamma * V[block.after], 0.0))
            delta.append(of_block)
            starts.append(V[block.first[block.starts]])
            first.append(block.starts + at)
            at += n
    whole = [np.concatenate(parts) for parts in (ratio, y, delta, starts)]
    return Walk(whole[0], whole[1], whole[2], whole[3], np.concatenate(first))


def log_ratio(pi: FloatArray, probability: FloatArray) -> FloatArray:
    """log π/p; −∞ where the policy never takes that action."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(pi) - np.log(probability))


def other_methods(
    judge: Estimator, found: Estimates, methods: list[str], data: Transitions, seed: int
) -> list[dict[str, Weighed]]:
    """The estimates of importance sampling for every policy; none where the log has no probabilities."""
    out: list[dict[str, Weighed]] = [{} for _ in found.policies]
    if not methods or not judge.seen.has_probabilities:
        return out
    halves = _halves(judge, data, seed) if "dr" in methods and judge.seen.n_episodes > 1 else []
    for p, estimate in enumerate(found.policies):
        walk = walk_of(judge, p, estimate.theta)
        for method in methods:
            if method == "dr":
                out[p]["dr"] = _crossed(halves, p, judge.gamma) if halves else weighed("dr", walk, judge.gamma)
            else:
                out[p][method] = weighed(method, walk, judge.gamma)
    return out


def _halves(judge: Estimator, data: Transitions, seed: int) -> list[Estimator]:
    """The same policies on two halves of the episodes, with the same features."""
    side = np.random.default_rng([seed, 3]).permutation(judge.seen.n_episodes) % 2
    out, lengths = [], lengths_of(data.chunks())
    for k in (0, 1):
        half = data._of_episodes(side == k, lengths)
        out.append(Estimator(half, look(half, seed), judge.m.features, judge.policies, judge.gamma))
        out[-1].sum_up()
    return out


def _crossed(halves: Sequence[Estimator], p: int, discount: float) -> Weighed:
    """Doubly robust: the episodes of each half with the values of the other."""
    theta = [half.solve(p, half.policy_sums[p]).solution.theta.reshape(half.A, -1) for half in halves]
    found = [weighed("dr", walk_of(half, p, theta[1 - k]), discount) for k, half in enumerate(halves)]
    m = np.array([half.seen.n_episodes for half in halves], dtype=np.float64)
    share = m / m.sum()
    mean = float(share @ [one.interval.estimate for one in found])
    se = float(np.sqrt(np.sum((share * [one.interval.se for one in found]) ** 2)))
    return Weighed(
        StudentInterval(mean, se, max(float(m.sum()) - 2, 1.0)), sum(one.effective_episodes for one in found)
    )
