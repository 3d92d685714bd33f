"""Feature tables φ(s,a), shape (S, A, d), with rows of unit length (the paper's Assumption 1) or zero."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gqlab.mdp.finite import FiniteMDP
from gqlab.support import checks
from gqlab.support.checks import FloatArray


def random_features(mdp: FiniteMDP, dim: int = 4, kind: str = "uniform", seed: int = 0) -> FloatArray:
    """Random unit rows, (S, A, dim): uniform on [0, 1] or gaussian before they are scaled.

    Examples
    --------
    >>> import gqlab as gq
    >>> phi = gq.random_features(gq.garnet(seed=0), dim=4)
    >>> phi.shape
    (5, 3, 4)
    """
    checks.instance("mdp", mdp, FiniteMDP, "a FiniteMDP")
    d = checks.integer("dim", dim, least=1)
    checks.one_of("kind", kind, ("uniform", "gaussian"))
    rng = np.random.default_rng([checks.integer("seed", seed, least=0, below=2**64), 1])
    shape = (mdp.n_states, mdp.n_actions, d)
    checks.memory("dim", d, 2 * math.prod(shape))
    # Uniform on (0, 1], where no row vanishes.
    rows = 1 - rng.random(shape) if kind == "uniform" else rng.standard_normal(shape)
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def tabular_features(mdp: FiniteMDP, behavior: ArrayLike | None = None) -> FloatArray:
    """One feature for every pair (s, a) that the behaviour policy visits in the long run, (S, A, d).

    A pair that it does not visit in the long run (a terminal or transient state, an action that it never takes) has a
    zero row: there is no data to learn its value from, and a feature for it would make C = E[φφᵀ] singular.

    Parameters
    ----------
    mdp : FiniteMDP
    behavior : (S, A) array, optional
        The policy that generates the data, as given to :class:`Problem`; default uniform.

    Examples
    --------
    With a table J vanishes at the exact action values.

    >>> import numpy as np, gqlab as gq
    >>> mdp = gq.FiniteMDP.from_gymnasium("FrozenLake-v1", discount=0.95)
    >>> phi = gq.tabular_features(mdp)
    >>> phi.shape  # 16 states less 5 terminal ones, 4 actions
    (16, 4, 44)
    >>> uniform = gq.FixedPolicy(np.full((16, 4), 1 / 4))
    >>> exact = gq.Problem(mdp, phi, target=uniform).exact
    >>> bool(np.allclose(phi @ exact.fixed_point, exact.q(np.zeros(44))))
    True
    """
    checks.instance("mdp", mdp, FiniteMDP, "a FiniteMDP")
    S, A = mdp.n_states, mdp.n_actions
    pi_b = np.full((S, A), 1 / A) if behavior is None else checks.array("behavior", behavior, (S, A))
    visited = (mdp.stationary(pi_b, "behavior")[:, None] > 0) & (pi_b > 0)
    return _one_hot(np.where(visited, np.cumsum(visited).reshape(S, A) - 1, -1))


def aggregated_features(mdp: FiniteMDP, groups: ArrayLike) -> FloatArray:
    """State aggregation: the pairs of one group share one feature, (S, A, d).

    Parameters
    ----------
    mdp : FiniteMDP
    groups : (S,) or (S, A) array of whole numbers
        The group of every state, 0, 1, …: then each group has one feature for every action, and φ(s,a) is the unit
        vector number ``groups[s] * A + a`` of d = n_groups · A. Or the group of every pair: then φ(s,a) is the unit
        vector number ``groups[s, a]`` of d = n_groups. No number may be skipped, or its feature would be zero
        everywhere and C = E[φφᵀ] singular. Entries of terminal states are not read; their rows are zero.

    Examples
    --------
    Aggregate the lake by its rows: the column of a state is ignored.

    >>> import numpy as np, gqlab as gq
    >>> mdp = gq.FiniteMDP.from_gymnasium("FrozenLake-v1", discount=0.95)
    >>> phi = gq.aggregated_features(mdp, np.arange(16) // 4)
    >>> phi.shape
    (16, 4, 16)
    >>> phi[1, 2].argmax(), phi[6, 0].argmax()  # state 1 is in row 0, state 6 in row 1
    (np.int64(2), np.int64(4))
    """
    checks.instance("mdp", mdp, FiniteMDP, "a FiniteMDP")
    labels = _labels(mdp, groups)
    pairs = labels if labels.ndim == 2 else labels[:, None] * mdp.n_actions + np.arange(mdp.n_actions)
    return _one_hot(np.where(mdp.terminal[:, None], -1, pairs))


def _labels(mdp: FiniteMDP, groups: ArrayLike) -> NDArray[np.intp]:
    """``groups`` as whole numbers; those of states that are not terminal are 0, 1, … without a gap."""
    S, A = mdp.n_states, mdp.n_actions
    labels = checks.plain_array("groups", groups)
    if labels.shape not in ((S,), (S, A)):
        raise ValueError(f"groups has shape {labels.shape}, expected ({S},) or ({S}, {A})")
    if labels.dtype.kind not in "iu":
        raise ValueError(f"groups has dtype {labels.dtype}, expected whole numbers")
    bad = np.argwhere((labels < 0) & ~mdp.terminal.reshape(-1, *[1] * (labels.ndim - 1)))
    if len(bad):
        raise ValueError(f"groups{checks.place(bad[0])} is {labels[tuple(bad[0])]}, expected at least 0")
    used = labels[~mdp.terminal]
    missing = np.setdiff1d(np.arange(min(int(used.max()) + 1, used.size + 1)), used)
    if len(missing):
        raise ValueError(
            f"groups has no {missing[0]}, but {used[used > missing[0]].min()}: number the groups of states that are "
            "not terminal 0, 1, … without a gap, or C = E[φφᵀ] is singular"
        )
    return labels.astype(np.intp)  # narrow integer types would overflow later


def _one_hot(number: NDArray[np.intp]) -> FloatArray:
    """The unit vectors of these numbers, (..., largest + 1); −1 is a row of zeros."""
    return (number[..., None] == np.arange(number.max() + 1)).astype(np.float64)
