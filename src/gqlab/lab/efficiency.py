"""The efficiency bounds: how small n E‖∇J(θ̂)‖² can be in the limit, whether or not the behaviour policy is known.

At a stationary point θ*, with ω* = ω*(θ*) and B = E[γφφ̂ᵀ],

    ψ_x = G_x(θ*, ω*) − BᵀC⁻¹H_x(θ*, ω*)          E[ψ] = 0
    U(s) − E[U(s⁺)|s] = E[ψ_x|s]                  e = ψ_x + U(s⁺) − U(s)

ψ_x is what one sample adds to ∇Ĵ(θ*), to first order, and e the part of it that could not be foreseen in s: the mean of
n samples has the covariance E[eeᵀ]/n in the limit. Where π_b is known, the part E[e|s,a] that depends on the action
alone need not be estimated. Theorem 6 in docs/theory_proofs.md has the statement and the proof.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from gqlab.problems.problem import Problem
from gqlab.support import checks
from gqlab.support.checks import FloatArray

#: θ counts as stationary where ‖∇J‖ is at most this times the root of E‖ψ‖², or at most STATIONARY by itself.
RELATIVE, STATIONARY = 1e-6, 1e-11


@dataclass(frozen=True)
class Efficiency:
    """The limits of n E‖∇J(θ̂)‖² at a stationary point: each is the trace of a matrix.

    Attributes
    ----------
    unknown : float
        Where the behaviour policy is not known: no estimator does better near this problem, in the minimax sense, and
        the stationary point of the samples' own J does as well.
    known : float
        Where it is known.
    covariance_unknown, covariance_known : (d, d) array
        The matrices: of √n ∇J(θ̂).
    curvature : float
        The least eigenvalue of ∇²J(θ*): the bounds are about minima at which it is positive. Near 0 the limit comes
        late.
    """

    unknown: float
    known: float
    covariance_unknown: FloatArray
    covariance_known: FloatArray
    curvature: float

    def floor(self, n_samples: int) -> float:
        """What the statistical floor of n samples is near, in the mean: unknown/n."""
        return self.unknown / checks.integer("n_samples", n_samples, least=1)


def efficiency(problem: Problem, theta: ArrayLike) -> Efficiency:
    """The efficiency bounds at a stationary point of J, exact.

    Parameters
    ----------
    problem : Problem
    theta : (d,) array
        Where ∇J = 0, as ``problem.exact.stationary_point()`` finds it; ``ValueError`` elsewhere, and for an operator
        that is not smooth.

    Examples
    --------
    One state, one action, reward 1 or −1 with equal chances: ψ is linear in the reward's mean alone.

    >>> import gqlab as gq
    >>> mdp = gq.FiniteMDP([[[0.5, 0.5]], [[0.5, 0.5]]], [[[1.0, -1.0]], [[1.0, -1.0]]], discount=0.5)
    >>> problem = gq.Problem(mdp, [[[1.0]], [[1.0]]])
    >>> bounds = gq.efficiency(problem, problem.exact.stationary_point())
    >>> round(bounds.unknown, 12), round(bounds.known, 12)  # ∇J = −½E[r − ½θ], of variance ¼
    (0.25, 0.25)
    """
    checks.instance("problem", problem, Problem, "a Problem")
    point = checks.array("theta", theta, (problem.dim,))
    if problem.target.smoothness(problem.mdp.n_actions, 1.0) is None:
        raise ValueError(f"target is {problem.target!r}, not a smooth operator: its J has no efficiency bounds")
    psi = influence(problem, point)
    _check_stationary(problem, point, psi)
    x, weight = problem.exact.transitions, problem.exact.transitions.probability
    U = potentials(problem, psi)
    follow, spread = _restarts(problem, U)  # E[U(s⁺)|s'], and the covariance of U(s⁺) where s' is terminal
    e = psi + follow[x.s_next] - U[x.s]
    surprise = e - _given_pair(problem, e)[x.s * problem.mdp.n_actions + x.a]
    restart = weight[problem.mdp.terminal[x.s_next]].sum() * spread
    unknown, known = (np.einsum("n,ni,nj->ij", weight, part, part) + restart for part in (e, surprise))
    curvature = float(np.linalg.eigvalsh(problem.exact.hessian(point))[0])
    return Efficiency(float(np.trace(unknown)), float(np.trace(known)), unknown, known, curvature)


def influence(problem: Problem, theta: FloatArray) -> FloatArray:
    """ψ_x for every x of ``problem.exact.transitions``, (N, d): the derivative of ∇J(θ) along the samples' law."""
    exact = problem.exact
    C, _, K = exact.moments
    B = K @ exact.phi_hat(theta)
    G, H = exact.sample_gradients(theta, exact.omega_star(theta))
    return np.asarray(G - H @ np.linalg.solve(C, B))


def potentials(problem: Problem, psi: FloatArray) -> FloatArray:
    """U (S, d), the solution of Poisson's equation for E[ψ|s] on the recurrent states; 0 elsewhere."""
    mdp, mu, x = problem.mdp, problem.exact.stationary, problem.exact.transitions
    inside = np.flatnonzero(mu > 0)
    checks.memory("problem", f"with {len(inside)} states", len(inside) ** 2)
    chain = mdp.chain(problem.behavior)[np.ix_(inside, inside)]
    mean = np.zeros((mdp.n_states, psi.shape[1]))
    np.add.at(mean, x.s, x.probability[:, None] * psi)
    mean = mean[inside] / mu[inside, None]
    U = np.zeros((mdp.n_states, psi.shape[1]))
    U[inside] = np.linalg.solve(np.eye(len(inside)) - chain + mu[inside], mean)
    return U


def _restarts(problem: Problem, U: FloatArray) -> tuple[FloatArray, FloatArray]:
    """E[U(s⁺)|s'] for every s', (S, d), and the covariance of U(s⁺) after a terminal one."""
    mdp = problem.mdp
    mean = mdp.start @ U
    spread = np.einsum("s,si,sj->ij", mdp.start, U - mean, U - mean)
    return np.where(mdp.terminal[:, None], mean, U), spread


def _given_pair(problem: Problem, e: FloatArray) -> FloatArray:
    """E[e|s,a], (S·A, d)."""
    x, n_rows = problem.exact.transitions, problem.rows.shape[0]
    row = x.s * problem.mdp.n_actions + x.a
    total, share = np.zeros((n_rows, e.shape[1])), np.zeros(n_rows)
    np.add.at(total, row, x.probability[:, None] * e)
    np.add.at(share, row, x.probability)
    return np.asarray(total / np.maximum(share, 1e-300)[:, None])


def _check_stationary(problem: Problem, theta: FloatArray, psi: FloatArray) -> None:
    size = float(np.linalg.norm(problem.exact.gradient(theta)))
    scale = float(np.sqrt(problem.exact.transitions.probability @ (psi**2).sum(axis=1)))
    if size > max(RELATIVE * scale, STATIONARY):
        raise ValueError(
            f"theta: ‖∇J‖ is {size:.3g} there, and the bounds are about a stationary point; "
            "problem.exact.stationary_point(theta) finds one"
        )
