"""Fitted Q evaluation at its fixed point: one linear system, shrunk towards the constant that the log suggests."""

from __future__ import annotations

import warnings

import numpy as np
import scipy.linalg

from gqlab.learn.fit.empirical import Empirical
from gqlab.learn.fit.shrunk import LAMBDAS, Gram, Shrunk, System, shift, shrunk
from gqlab.support.checks import FloatArray

#: A warning where the values move by more than this share with λ.
MOST_MOVED = 0.01

#: What may be left of the system where it is solved, as a share of its right-hand side.
MOST_LEFT = 1e-6

#: How far values may be beyond what rewards allow, as a share of it.
MOST_BEYOND = 0.1

#: Who called gqlab.fit, counted from where a warning is given.
FROM_FIT = 8


def evaluated(data: Empirical, ridge: float | None) -> FloatArray:
    """θ of the policy that ``data`` hold, (A, K); ``ridge``: λ for each row, where the data are not to choose it."""
    assert data.blocks is not None
    assert data.log.policy is not None
    scale = _scale(data)  # λ is a number of rows of unit length
    gram = Gram(data.blocks * data.n / scale**2)
    ahead = data.sums_ahead(data.log.policy[data.log.next_observation])
    A = scipy.linalg.block_diag(*gram.blocks) - ahead / scale**2
    rewards = data.log.reward
    v0 = float(rewards.sum() / (1 - data.log.discount).sum())
    c = np.tile(data.constant() * scale, data.A)
    b = data.block_sums(rewards).reshape(-1) / scale
    system = System(data.n, A, b, c, v0, float(np.abs(rewards - rewards.mean()).max()))

    def squares(theta: FloatArray) -> float:
        delta = data.delta(theta.reshape(data.A, -1) / scale)
        return float(delta @ delta)

    found = shrunk(system, gram, squares, None if ridge is None else max(ridge * data.n / scale**2, LAMBDAS[0]))
    _warn(data, system, found, scale)
    return found.theta.reshape(data.A, -1) / scale


def _scale(data: Empirical) -> float:
    """The root of mean ‖x‖² over the rows: 1 for what encoders of gqlab make that are binary."""
    assert data.blocks is not None
    square = float(np.einsum("akk->", data.blocks))
    return float(np.sqrt(square)) if square > 0 else 1.0


def _warn(data: Empirical, system: System, found: Shrunk, scale: float) -> None:
    """Where the system is not solved, values are beyond what rewards allow, or their mean moves with λ."""
    text = _not_solved(system, found) or _beyond_reason(data, found, scale) or _moved(data, system, found, scale)
    if text:
        warnings.warn(text, RuntimeWarning, stacklevel=FROM_FIT)


def _not_solved(system: System, found: Shrunk) -> str:
    right = system.b + found.lam * system.v0 * system.c
    left = system.A @ found.theta + found.lam * found.theta - right
    solved = np.linalg.norm(left) <= MOST_LEFT * np.linalg.norm(right)
    whole = "the values of the policy have not converged: their system is close to singular; use fewer features"
    return "" if solved else whole


def _values(data: Empirical, found: Shrunk, scale: float) -> FloatArray:
    """V of every row, (n,)."""
    assert data.log.policy is not None
    pi, x = data.log.policy[data.log.observation], data.x[data.log.observation]
    return np.asarray((pi * np.asarray(x @ (found.theta.reshape(data.A, -1) / scale).T)).sum(axis=1))


def _beyond_reason(data: Empirical, found: Shrunk, scale: float) -> str:
    V, (least, most) = _values(data, found, scale), data.worth()
    slack = MOST_BEYOND * max(most - least, abs(most), abs(least))
    far = V.max() if V.max() > most + slack else V.min() if V.min() < least - slack else None
    if far is None:
        return ""
    return (
        f"the values of the policy reach {far:.4g}, but rewards allow {least:.4g} to {most:.4g}: these features cannot "
        "hold them; gqlab.decide judges with others"
    )


def _moved(data: Empirical, system: System, found: Shrunk, scale: float) -> str:
    assert data.log.policy is not None
    pi, x = data.log.policy[data.log.observation], data.x[data.log.observation]
    mean = np.asarray(x.T @ pi).T.reshape(-1) / (data.n * scale)
    size = float(np.sqrt(np.mean(_values(data, found, scale) ** 2)))
    moved = abs(shift(system, found, found.factor.solve(mean, transposed=True)))
    if moved <= MOST_MOVED * size:
        return ""
    return (
        f"the values of the policy move by {100 * moved / size:.1f} % with λ = {found.lam:.2g}: the data hold too "
        "little of what it does; gqlab.decide says how sure its value is"
    )
