"""Watches: what a run sees of itself at every update, inside the loop.

A record shows one iterate in a thousand. The lowest, the mean and the largest ‖∇J‖² of a run are statistics of *all*
its iterates, so they are computed where every iterate passes: in the loop, by the compiled exact quantities and walks
of :mod:`gqlab.measure.compiled`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gqlab.estimators.base import answer
from gqlab.measure.compiled import cumulate_policy, exact_terms, walk
from gqlab.problems.problem import Problem
from gqlab.rules.dispatch import by_type, rule
from gqlab.rules.memory import ANYTHING, COUNT, DOUBLE, MOST, Array, Sizes, far, near
from gqlab.samples.random import WATCH_OFFSET, WATCH_WALK, below, word
from gqlab.samples.streams import key
from gqlab.support import checks
from gqlab.support.checks import FloatArray

#: What can be watched, in the order of the records' columns.
QUANTITIES = ("gradient", "mspbe", "reward")


@dataclass(frozen=True)
class Watch:
    """What :func:`gqlab.run` is to watch at every update: ``run(..., watch=gq.Watch("gradient"))``.

    Parameters
    ----------
    quantity : "gradient", "mspbe" or "reward"
        The exact ‖∇J(θ)‖², the exact J(θ), or r̂: the mean reward of a walk of ``n_steps`` under π_θ, with random
        numbers of its own.
    every : int
        Look at every ``every``-th update only, from a random offset of each run: the mean over these is an unbiased
        estimate of the mean over all (exactly so where ``every`` divides their number). A lowest and a largest value
        need ``every=1``.
    n_steps : int
        The steps of a walk.

    Examples
    --------
    >>> import gqlab as gq
    >>> mdp = gq.garnet(seed=0)
    >>> problem = gq.Problem(mdp, gq.random_features(mdp, dim=4))
    >>> result = gq.run(problem, gq.GreedyGQ(), 2000, n_runs=3, watch=gq.Watch("gradient"))
    >>> seen = result.watched["gradient"]  # of all iterates up to each record
    >>> seen.lowest.shape, bool((seen.lowest <= seen.mean).all())
    ((3, 3), True)
    """

    quantity: str = "gradient"
    every: int = 1
    n_steps: int = 100

    def __post_init__(self) -> None:
        checks.one_of("quantity", self.quantity, QUANTITIES)
        object.__setattr__(self, "every", checks.integer("every", self.every, least=1, below=2**32))
        object.__setattr__(self, "n_steps", checks.integer("n_steps", self.n_steps, least=1, below=2**24))

    def cost(self, n_states: int) -> int:
        """The cost of one look, in samples."""
        return 2 * n_states if self.quantity != "reward" else n_states + self.n_steps


class Watched(NamedTuple):
    """Statistics of all looks up to and including each record; (n_runs, n_records) each, NaN before the first."""

    lowest: FloatArray
    mean: FloatArray
    largest: FloatArray


def watches(value: Watch | Iterable[Watch] | None) -> tuple[Watch, ...]:
    """``watch`` as it is given: one, several or none; each quantity once."""
    given: Any = value
    several = isinstance(given, Iterable) and not isinstance(given, str) and bool(getattr(given, "shape", True))
    chosen: tuple[Any, ...] = () if given is None else tuple(given) if several else (given,)
    for k, watch in enumerate(chosen):
        checks.instance(
            "watch" if len(chosen) == 1 else f"watch[{k}]", watch, Watch, 'one such as gqlab.Watch("mspbe")'
        )
        if watch.quantity in [before.quantity for before in chosen[:k]]:
            raise ValueError(f"watch[{k}] is a second one of {watch.quantity!r}")
    return chosen


def check_watches(chosen: tuple[Watch, ...], problem: Problem) -> None:
    """A walk has to act, so the operator's compiled part needs the method for it."""
    if any(watch.quantity == "reward" for watch in chosen) and not hasattr(problem.target.compiled, "act"):
        raise ValueError(
            f"watch: 'reward' needs a compiled policy, and {problem.target.compiled.__name__} has no method "
            "act(self, row, q, p, A)"
        )


def watch_parameters(chosen: tuple[Watch, ...]) -> dict[str, int]:
    """The parameters of :class:`Watching`; a quantity that is not watched has 0."""
    by_quantity = {watch.quantity: watch for watch in chosen}
    every = {f"{name}_every": by_quantity[name].every if name in by_quantity else 0 for name in QUANTITIES}
    return {**every, "n_steps": by_quantity["reward"].n_steps if "reward" in by_quantity else 0}


@by_type
def look(self, exact, run, parts, u, d, A):
    """Watch: see the iterate of update u."""


@by_type
def write_watched(self, watched, row):
    """Watch: write what it has seen so far into a row of ``watched``."""


class Unwatched(NamedTuple):
    """No watch."""

    nothing: Any  # (1,)

    @staticmethod
    def memory(n: Sizes) -> dict[str, Array]:
        return {"nothing": near(1)}

    def look(self, exact, run, parts, u, d, A):
        pass

    def write_watched(self, watched, row):
        pass


class Watching(NamedTuple):
    """Lowest, sum and largest of each quantity, kept from update to update and from call to call."""

    gradient_every: int
    mspbe_every: int
    reward_every: int
    n_steps: int
    gradient: Any  # (3,)  lowest, sum, largest
    mspbe: Any  # (3,)
    reward: Any  # (3,)
    looks: Any  # (3,)  how often each was looked at
    theta: Any  # (d,)  in double precision
    mean_delta_phi: Any  # (d,)
    omega: Any  # (d,)
    slope: Any  # (d,)
    q: Any  # (A,)
    w: Any  # (A,)
    weights: Any  # (S · A,)
    policy: Any  # (S · A,)

    @staticmethod
    def memory(n: Sizes) -> dict[str, Array]:
        return {
            **dict.fromkeys(("gradient", "mspbe", "reward"), near(3, DOUBLE, kept=True, within=ANYTHING)),
            "looks": near(3, COUNT, kept=True, within=(0, MOST)),
            **dict.fromkeys(("theta", "mean_delta_phi", "omega", "slope"), near(n.d, DOUBLE)),
            **dict.fromkeys(("q", "w"), near(n.A, DOUBLE)),
            **dict.fromkeys(("weights", "policy"), far(n.states * n.A, DOUBLE)),
        }

    def look(self, exact, run, parts, u, d, A):
        gradient, mspbe, reward = (
            due(run, self.gradient_every, u, 0),
            due(run, self.mspbe_every, u, 1),
            due(run, self.reward_every, u, 2),
        )
        if gradient or mspbe or reward:
            answer(parts.estimator, parts.point, self.theta, d)
        if gradient or mspbe:
            J, norm_squared = exact_terms(exact, self, gradient, d, A)
            if gradient:
                see(self.gradient, self.looks, 0, norm_squared)
            if mspbe:
                see(self.mspbe, self.looks, 1, J)
        if reward:
            cumulate_policy(exact, self, d, A)
            r = walk(exact.walks, self.policy, word(key(run, WATCH_WALK), u), self.n_steps, A)
            see(self.reward, self.looks, 2, r)

    def write_watched(self, watched, row):
        tell_one(self.gradient, self.looks[0], watched, row, 0)
        tell_one(self.mspbe, self.looks[1], watched, row, 3)
        tell_one(self.reward, self.looks[2], watched, row, 6)


@rule
def due(run, every, u, stream):
    """Whether a quantity is looked at after update u: never (0), always (1), or periodically from its offset on."""
    if every <= 1:
        return every == 1
    return u % every == below(word(key(run, WATCH_OFFSET), stream), every)


@rule
def see(seen, looks, k, value):
    """Take one more value into (lowest, sum, largest)."""
    if looks[k] == 0 or value < seen[0]:
        seen[0] = value
    if looks[k] == 0 or value > seen[2]:
        seen[2] = value
    seen[1] += value
    looks[k] += 1


@rule
def tell_one(seen, looks, watched, row, column):
    watched[row, column] = seen[0] if looks > 0 else np.nan
    watched[row, column + 1] = seen[1] / looks if looks > 0 else np.nan
    watched[row, column + 2] = seen[2] if looks > 0 else np.nan
