"""From a log to estimates: two passes over its rows, a solve for each policy, and two more where it lacks rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse

from gqlab.data.transitions import Transitions
from gqlab.judge import passes
from gqlab.judge.estimates import ComparedPolicy, Estimate, Estimates, StudentInterval, gain_of, named, value_of
from gqlab.judge.features import Features
from gqlab.judge.rows import MOST_LEARNED, LogLook, blocks, parts, sample_piece
from gqlab.judge.sums import (
    UNSEEN,
    LogMoments,
    Matrices,
    PolicyMoments,
    PolicyWeights,
    RefinedWeights,
    added,
    behavior_sums,
    deltas,
)
from gqlab.learn.fit.shared_fit import InOrder
from gqlab.learn.fit.shrunk import Gram, Shrunk, System, constant, extremes, shrunk
from gqlab.support.checks import FloatArray
from gqlab.tasks.base import Engine, Task

#: Pairs that were hardly seen are bracketed where they may move a value by so many of its standard errors: less than
#: that costs an interval of 95 % less than one hundredth of its coverage.
LEAST_MOVE = 0.25


class Solved(NamedTuple):
    """A policy's system, solved; ``left_out`` is the value of pairs that were hardly seen, where they are left out."""

    policy: int
    sums: PolicyMoments
    solution: Shrunk
    u: FloatArray  # (d,)
    inverse: FloatArray
    refined: tuple[FloatArray, FloatArray]  # (d,) each: θ₂ = θ + (A + λI)⁻¹(b − Aθ), and u₂ = (A + λI)⁻ᵀu
    left_out: float | None = None


class Estimator:
    """The passes and solves for several policies on one log."""

    def __init__(
        self, data: Transitions, seen: LogLook, features: Features, policies: Sequence[Any], discount: float,
        reward_range: tuple[float, float] | None = None, engine: Engine | None = None,
    ) -> None:  # fmt: skip
        self.seen, self.gamma, self.m = seen, discount, Matrices(features, data.n_actions)
        self.policies, self.A = list(policies), data.n_actions
        self.extremes = worth(seen, discount, reward_range)
        self.shared: dict[str, Any] = {
            "data": data, "parts": parts(data), "firsts": seen.firsts, "features": features, "policies": self.policies,
            "n_actions": data.n_actions, "discount": discount,
        }  # fmt: skip
        self.engine = engine
        if engine is not None:
            engine.prepare(self.shared)
        if seen.n_rows <= MOST_LEARNED:
            self.shared["cache"] = passes.cached(self.shared)
            self.sample = [pair for part in self.shared["cache"] for pair in part]
        else:
            sampled = blocks(sample_piece(seen.sample), features)
            self.sample = [(block, passes.asked(self.policies, block)) for block in sampled]
        self.n_sampled = sum(len(block.action) for block, _ in self.sample)

    def each(self, function: Any, *arguments: Any) -> Iterator[Any]:
        """``function(shared, k, *arguments)`` of every part, in their order: sums have the same digits everywhere."""
        numbers = range(len(self.shared["parts"]))
        if self.engine is None:
            return (function(self.shared, k, *arguments) for k in numbers)
        return InOrder(self.engine, (Task(passes.on_one_thread, (function, k, *arguments)) for k in numbers)).results()

    def estimates(self, base: int | None = None) -> Estimates:
        """Everything; gains are over policy ``base``, or over what runs now."""
        self.sum_up()
        n = self.seen.n_rows
        behavior, u_tail = self.solve_behavior()
        solved = [self.solve(p, sums) for p, sums in enumerate(self.policy_sums)]
        now, returns, sides = self.residuals(solved, base, (behavior.theta, u_tail))
        first = [self.estimate(one, side, base, sides, returns) for one, side in zip(solved, sides, strict=True)]
        bracketed = self.bracket(solved, first)
        if bracketed:
            _, _, more = self.residuals(bracketed, None, (behavior.theta, u_tail))
            for one, side in zip(bracketed, more, strict=True):
                wide = self.estimate(one, side, base, sides, returns)
                first[one.policy] = first[one.policy].with_bracket(
                    wide.values, () if one.policy == base else wide.gains
                )
                if one.policy == base:  # what the others are compared with is as uncertain
                    for p in set(range(len(first))) - {base}:
                        first[p] = first[p].with_bracket((), (gain_of(sides[p], side, self.gram, self.c, n),))
        return Estimates(now, first, behavior.theta)

    # --- Systems -----------------------------------------------------------------------------------------------------

    def sum_up(self) -> None:
        """The first pass: the sums of the log and of all policies."""
        log: Any = None
        each: list[Any] = [None] * len(self.policies)
        for part in self.each(passes.first_pass):
            log = added(log, part.log)
            each = [added(total, new) for total, new in zip(each, part.policies, strict=True)]
        self.log: LogMoments = log
        self.policy_sums: list[PolicyMoments] = each
        self.gram = Gram(log.gram)
        self.c = np.tile(self._constant(), self.A)
        seen = self.seen
        mean = seen.reward_sum / seen.n_rows
        self.spread = max(seen.most - mean, mean - seen.least)
        self.denominator = seen.n_rows - self.gamma * (seen.n_rows - seen.n_terminated)  # Σ (1 − γ·live)
        self.v0 = seen.reward_sum / self.denominator

    def _constant(self) -> FloatArray:
        """c of one action, (K,)."""
        features = self.m.features
        whole = features.n_active * features.value if features.binary else None
        return constant(features.K, whole, self.gram.blocks.sum(axis=0), self.log.features)

    def system(self, gram: Gram, ahead: Any, b: FloatArray) -> System:
        """A = C − Σ γφφ̄'ᵀ, b and c."""
        if gram.blocks.ndim == 3:
            C: Any = scipy.linalg.block_diag(*gram.blocks)
        else:
            diagonal = gram.blocks.reshape(-1)
            C = np.diag(diagonal) if self.m.dense else scipy.sparse.diags_array(diagonal)
        return System(self.seen.n_rows, C - ahead, b, self.c[: len(b)], self.v0, self.spread)

    def solve(self, p: int, sums: PolicyMoments, lam: float | None = None, left_out: float | None = None) -> Solved:
        """Solve for policy p; with λ given, next pairs that were hardly seen have the value ``left_out``."""
        system = self.system(self.gram, sums.ahead, self.log.b + (left_out or 0.0) * sums.lost)
        known = None if lam is None else self.gram.inverse(lam)

        def squares(theta: FloatArray) -> float:
            how = PolicyWeights(theta.reshape(self.A, -1), theta, known, left_out)
            rows = (deltas(self.m, block, pi(p), self.gamma, how)[0] for block, pi in self.sample)
            return sum(float(delta @ delta) for delta in rows) * self.seen.n_rows / self.n_sampled

        solution = shrunk(system, self.gram, squares, lam)
        factor, inverse = solution.factor, self.gram.inverse(solution.lam) if known is None else known
        u = factor.solve(sums.start / self.seen.n_episodes, transposed=True)
        step = solution.lam * factor.solve(solution.theta - self.v0 * system.c)  # b − Aθ = λ(θ − v0 c)
        refined = solution.theta + step, factor.solve(u, transposed=True)
        return Solved(p, sums, solution, u, inverse, refined, left_out)

    def solve_behavior(self) -> tuple[Shrunk, FloatArray]:
        """V_b of the state, and what its values behind the cuts weigh: (K,) each."""
        gram = Gram(self.gram.blocks.sum(axis=0, keepdims=True))
        system = self.system(gram, self.log.ahead, self.log.b.reshape(self.A, -1).sum(axis=0))

        def squares(theta: FloatArray) -> float:
            rows = (behavior_sums(self.m, block, self.gamma, theta[None], theta[None]) for block, _ in self.sample)
            return sum(one.square for one in rows) * self.seen.n_rows / self.n_sampled

        solution = shrunk(system, gram, squares)
        return solution, solution.factor.solve(self.log.tail / self.seen.n_episodes, transposed=True)

    def bracket(self, solved: list[Solved], first: list[Estimate]) -> list[Solved]:
        """Policies again, with pairs that were hardly seen at the least and at the most that rewards allow.

        Those of which the log is thin. Where a state has one feature nothing is known of such a pair, not even from
        others like it: there also those that come to such pairs so often that it matters.
        """
        inverses = {p: solved[p].inverse for p, one in enumerate(first) if one.thin or self.may_be_unknown(one.inverse)}
        sums: dict[int, Any] = dict.fromkeys(inverses)
        for part in self.each(passes.kept_pass, inverses) if inverses else ():
            sums = {p: added(total, part[p]) for p, total in sums.items()}
        return [
            self.solve(p, total, solved[p].solution.lam, extreme)
            for p, total in sums.items()
            if first[p].thin or self.matters(solved[p], total, first[p])
            for extreme in self.extremes
        ]

    def may_be_unknown(self, inverse: FloatArray) -> bool:
        """Whether states have one feature, and some pair was hardly seen."""
        return inverse.ndim == 2 and bool((inverse * self.m.features.value**2 > UNSEEN).any())

    def matters(self, one: Solved, sums: PolicyMoments, found: Estimate) -> bool:
        """Whether pairs that were hardly seen, at such values as rewards allow, may move the value by LEAST_MOVE."""
        comes = float(one.u @ sums.lost) + sums.start_lost / self.seen.n_episodes  # Σ γ^t P(such a pair at t)
        least, most = self.extremes
        return abs(comes) * (most - least) > LEAST_MOVE * found.values[0].se

    # --- Residuals ---------------------------------------------------------------------------------------------------

    def weights(self, one: Solved) -> PolicyWeights:
        """What the residuals of a policy are computed with."""
        lam, shape, (theta2, u2) = one.solution.lam, (self.A, -1), one.refined
        refined = RefinedWeights(
            theta2.reshape(shape), (one.u + lam * u2).reshape(shape), lam**2 * float(u2 @ self.c) / self.denominator
        )
        prior = lam * float(one.u @ self.c) / self.denominator
        theta, u = one.solution.theta.reshape(shape), one.u.reshape(shape)
        return PolicyWeights(theta, u, one.inverse, one.left_out, self.v0, prior, refined)

    def residuals(
        self, solved: list[Solved], base: int | None, behavior: tuple[FloatArray, FloatArray]
    ) -> tuple[StudentInterval, FloatArray, list[ComparedPolicy]]:
        """The second pass: what runs now, G of every episode, and what the residuals of policies say."""
        m, P = self.seen.n_episodes, len(solved)
        judged = [(one.policy, self.weights(one)) for one in solved]
        returns, corrections, starts, numbers = np.zeros(m), np.zeros((1 + P, m)), np.zeros((P, 2, m)), 0.0
        for part in self.each(passes.second_pass, judged, base, (behavior[0][None], behavior[1][None])):
            numbers = numbers + part.numbers
            for first, of_block, sums in part.episodes:
                returns[first : first + len(of_block)] += of_block
                corrections[:, first : first + len(of_block)] += sums
            for which, values in part.starts:
                starts[:, :, which] = values
        G = returns + m * corrections[0]
        sides = [
            ComparedPolicy(one.solution, one.u, named(row), V0[0], V0[1], sums)
            for one, row, V0, sums in zip(solved, numbers, starts, corrections[1:], strict=True)  # type: ignore[call-overload]
        ]
        return (
            StudentInterval(float(G.mean()), float(np.sqrt(G.var(ddof=1) / m)) if m > 1 else np.inf, m - 1.0),
            G,
            sides,
        )

    def estimate(
        self, one: Solved, side: ComparedPolicy, base: int | None, sides: list[ComparedPolicy], returns: FloatArray
    ) -> Estimate:
        """One policy."""
        n, numbers, lam = self.seen.n_rows, side.numbers, one.solution.lam
        value = value_of(side, float(side.starts.mean()), self.gram, self.c, n)
        gain = gain_of(side, returns if base is None else sides[base], self.gram, self.c, n)
        return Estimate(
            values=(value,),
            gains=(gain,),
            effective_rows=numbers["w"] ** 2 / numbers["ww"] if numbers["ww"] > 0 else 0.0,
            unsupported=lam * float(one.u @ self.c),
            theta=one.solution.theta.reshape(self.A, -1),
            lam=lam,
            inverse=one.inverse,
        )


def worth(seen: LogLook, discount: float, reward_range: tuple[float, float] | None) -> tuple[float, float]:
    """The least and the most that an action may be worth; it may end an episode, though no row of the log does."""
    length = 1 / (1 - discount) if discount < 1 else float(seen.longest)
    return extremes(*(reward_range or (seen.least, seen.most)), length, ends=True)
