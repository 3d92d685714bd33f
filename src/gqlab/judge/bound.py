"""What no estimator can beat on a finite problem: the semiparametric efficiency bound, computed exactly.

A log holds episodes from ``initial``, under the behaviour b, each until a terminal state or ``horizon`` rows. With

    p(s,a)   the frequency of (s, a) among its rows,      L    the mean number of rows of an episode,
    d(s,a)   the discounted visits of the policy π,       w = d/p,    δ = r + γV(s') − Q(s,a),

the variance of an estimate of V̄ = E V(s₀) from n rows is at least 1/n times

    L·Var V(s₀) + E_p[w²δ²]                                                     (Kallus and Uehara, for MDPs)

and that of an estimate of the gain V̄ − V̄_b over a behaviour that nobody told us

    L·Var(V(s₀) − V_b(s₀)) + E_p[(wδ − w_b δ_b)²],    w_b(s) = d_b(s)/p(s),  δ_b = r + γV_b(s') − V_b(s).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gqlab.mdp.finite import FiniteMDP
from gqlab.mdp.values import action_value, policy_value
from gqlab.support import checks
from gqlab.support.checks import FloatArray


class EfficiencyBound(NamedTuple):
    """Standard deviations per row: divided by √n, the least standard errors from n rows."""

    value: float
    gain: float
    true_value: float
    true_gain: float


def efficiency_bound(
    mdp: FiniteMDP, behavior: ArrayLike, target: ArrayLike, horizon: int, initial: ArrayLike | None = None
) -> EfficiencyBound:
    """The least standard errors that a policy's value, and its gain over the behaviour, can be estimated with.

    Parameters
    ----------
    mdp : FiniteMDP
    behavior, target : (S, A) array
        What made the log, and the policy whose value is estimated.
    horizon : int
        Rows after which an episode is cut off.
    initial : (S,) array, optional
        The distribution of first states; the MDP's own by default.

    Returns
    -------
    EfficiencyBound
        ``value`` and ``gain``: divide by √n; infinite where the behaviour never does what the target does. Beside
        them the true value and the true gain.

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> from gqlab.judge.bound import efficiency_bound
    >>> mdp = gq.garnet(5, 3, 2, discount=0.9, seed=0)
    >>> uniform = np.full((5, 3), 1 / 3)
    >>> same = efficiency_bound(mdp, uniform, uniform, horizon=20)
    >>> same.true_gain, bool(0 < same.value < np.inf)
    (0.0, True)
    """
    b, pi = (table_of(name, value, mdp) for name, value in (("behavior", behavior), ("target", target)))
    start = mdp.start if initial is None else checks.array("initial", initial, (mdp.n_states,))
    checks.probabilities("initial", start)
    visits = logged_visits(mdp, b, checks.integer("horizon", horizon, least=1), start)  # (S,), rows of an episode
    length = float(visits.sum())
    V, V_b = policy_value(mdp, pi), policy_value(mdp, b)
    Q = action_value(mdp, V)
    arcs = mdp.arcs
    s, a = np.divmod(arcs.row, mdp.n_actions)
    p_arc = (visits[:, None] * b / length)[s, a] * arcs.probability
    d, d_b = discounted_visits(mdp, pi, start), discounted_visits(mdp, b, start)
    with np.errstate(divide="ignore", invalid="ignore"):
        w = np.nan_to_num(d[:, None] * pi * length / (visits[:, None] * b), posinf=np.inf, nan=0.0)[s, a]
        w_b = np.nan_to_num(d_b * length / visits, posinf=np.inf, nan=0.0)[s]
    delta = arcs.reward + arcs.discount * V[arcs.s_next] - Q[s, a]
    delta_b = arcs.reward + arcs.discount * V_b[arcs.s_next] - V_b[s]
    difference = V - V_b
    if not (np.isfinite(w).all() and np.isfinite(w_b).all()):
        value = gain = np.inf
    else:
        value = float(np.sqrt(length * _variance(V, start) + p_arc @ (w * delta) ** 2))
        gain = float(np.sqrt(length * _variance(difference, start) + p_arc @ (w * delta - w_b * delta_b) ** 2))
    return EfficiencyBound(value, gain, float(start @ V), float(start @ difference))


def table_of(name: str, value: Any, mdp: FiniteMDP) -> FloatArray:
    """A policy's table, (S, A), checked; rows of terminal states are not read."""
    table = checks.array(name, value, (mdp.n_states, mdp.n_actions))
    checks.probabilities(name, table, skip=mdp.terminal)
    return table


def _variance(values: FloatArray, p: FloatArray) -> float:
    return float(p @ (values - p @ values) ** 2)


def logged_visits(mdp: FiniteMDP, behavior: FloatArray, horizon: int, start: FloatArray) -> FloatArray:
    """How many rows of an episode begin in each state, in the mean, (S,)."""
    step = mdp.over_actions(behavior, mdp.arcs.probability).T
    visits, now = np.zeros(mdp.n_states), start
    for _ in range(horizon):
        visits += now
        now = np.where(mdp.terminal, 0.0, step @ now)
        if now.sum() < 1e-15:
            break
    return visits


def discounted_visits(mdp: FiniteMDP, policy: FloatArray, start: FloatArray) -> FloatArray:
    """Σ_t γ^t P(s_t = s), (S,); discounts of transitions multiply along the way."""
    ahead = mdp.over_actions(policy, mdp.arcs.probability * mdp.arcs.discount).toarray()
    return np.asarray(np.linalg.solve(np.eye(mdp.n_states) - ahead.T, start))
