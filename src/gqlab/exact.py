"""The exact quantities: expectations over D(s,a) = μ(s) π_b(a|s) and P, in NumPy float64, batched over θ.

    C = E[φφᵀ]     ω*(θ) = C⁻¹E[δφ]     J(θ) = ½ E[δφ]ᵀ C⁻¹ E[δφ]     ∇J(θ) = −E[δφ] + E[γ φ̂_{s'} φᵀ] ω*(θ)

With b = E[rφ] and K = E[γ φ 1{s'}ᵀ] (d, S), all of them are matrix products:

    E[δφ] = b + K V̄(θ) − Cθ          E[γ φ̂_{s'} φᵀ] ω = Σ_{s'} (Kᵀω)_{s'} φ̂_{s'}(θ)

Nothing here comes from :mod:`gqlab.rules`: each is a check of the other.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_factor, cho_solve

from gqlab import chains, checks
from gqlab.checks import FloatArray

if TYPE_CHECKING:
    from gqlab.problem import Problem

#: Numbers that one batch of parameters may hold at a time: larger inputs are cut into such batches.
BATCH_NUMBERS = 2_000_000


class Exact:
    """The exact quantities of one problem. ``theta`` is (..., d): every leading axis is batched."""

    def __init__(self, problem: Problem) -> None:
        mdp, phi = problem.mdp, problem.features
        self._problem = problem
        self._rows = phi.reshape(-1, phi.shape[-1])  # (S·A, d)
        mu = mdp.stationary(problem.behavior, "behavior")
        D = (mu[:, None] * problem.behavior)[..., None] * phi  # D(s,a) φ(s,a), (S, A, d)
        #: μ, the stationary distribution of the behaviour policy's chain, (S,).
        self.stationary: FloatArray = checks.frozen(mu)
        #: C = E[φφᵀ], (d, d).
        self.feature_covariance: FloatArray = checks.frozen(np.einsum("sai,saj->ij", D, phi))
        self._b = np.einsum("sai,sat,sat->i", D, mdp.transition, mdp.reward)
        self._K = np.einsum("sai,sat,sat->it", D, mdp.transition, mdp.discount)
        _check_rank(self.feature_covariance)
        self._C_factor = cho_factor(self.feature_covariance)

    def mspbe(self, theta: ArrayLike) -> FloatArray:
        """J(θ), (...).

        Examples
        --------
        >>> import numpy as np, gqlab as gq
        >>> mdp = gq.garnet(seed=0)
        >>> problem = gq.Problem(mdp, gq.random_features(mdp, dim=4))
        >>> problem.exact.mspbe(np.zeros((10, 4))).shape
        (10,)
        """
        return self._batched(self._mspbe, theta)

    def omega_star(self, theta: ArrayLike) -> FloatArray:
        """ω*(θ) = C⁻¹E[δφ], (..., d).

        Examples
        --------
        One state, one action, φ = 1, r = 2, γ = 0.5: δ(θ) = 2 + 0.5θ − θ, and C = 1.

        >>> import gqlab as gq
        >>> problem = gq.Problem(gq.FiniteMDP([[[1.0]]], [[2.0]], discount=0.5), [[[1.0]]])
        >>> problem.exact.omega_star([[0.0], [4.0]])
        array([[2.],
               [0.]])
        """
        return self._batched(self._omega_star, theta)

    def gradient(self, theta: ArrayLike) -> FloatArray:
        """∇J(θ), (..., d).

        Examples
        --------
        As above J = ½(2 − 0.5θ)², whose slope is −0.5(2 − 0.5θ).

        >>> import gqlab as gq
        >>> problem = gq.Problem(gq.FiniteMDP([[[1.0]]], [[2.0]], discount=0.5), [[[1.0]]])
        >>> problem.exact.gradient([0.0])
        array([-1.])
        """
        return self._batched(self._gradient, theta)

    def average_reward(self, theta: ArrayLike) -> FloatArray:
        """The long-run average reward of π_θ, (...), started from ``initial``, else from μ.

        Examples
        --------
        >>> import gqlab as gq
        >>> problem = gq.Problem(gq.FiniteMDP([[[1.0]]], [[2.0]], discount=0.5), [[[1.0]]])
        >>> problem.exact.average_reward([0.0])
        array(2.)
        """
        start = self.stationary if self._problem.mdp.initial is None else self._problem.mdp.initial
        paid = (self._problem.mdp.transition * self._problem.mdp.reward).sum(axis=-1)  # (S, A)

        def average(th: FloatArray) -> FloatArray:
            pi = self._problem.policy(th)
            K = self._problem.mdp.chain(pi)
            out = np.empty(len(th))
            # Chains with the same possible moves have the same classes: one batch for each such set.
            moves = np.packbits((K > 0).reshape(len(th), -1), axis=-1)
            _, group = np.unique(moves, axis=0, return_inverse=True)
            for k in range(group.max() + 1):
                mine = np.flatnonzero(group == k)
                mu = chains.long_run_distribution(K[mine], start)
                out[mine] = np.einsum("ns,nsa,sa->n", mu, pi[mine], paid)
            return out

        return self._batched(average, theta, square=True)

    def value(self, theta: ArrayLike) -> FloatArray:
        """The discounted value of π_θ in every state, (..., S); 0 in terminal states.

        Examples
        --------
        >>> import gqlab as gq
        >>> problem = gq.Problem(gq.FiniteMDP([[[1.0]]], [[2.0]], discount=0.5), [[[1.0]]])
        >>> problem.exact.value([0.0])  # 2 / (1 − 0.5)
        array([4.])
        """
        return self._batched(lambda th: _policy_value(self._problem, self._problem.policy(th)), theta, square=True)

    @cached_property
    def optimal_value(self) -> FloatArray:
        """The largest discounted value in every state, (S,), by policy iteration."""
        mdp = self._problem.mdp
        paid = (mdp.transition * mdp.reward).sum(axis=-1)
        policy = np.eye(mdp.n_actions)[np.zeros(mdp.n_states, dtype=int)]
        while True:
            V = _policy_value(self._problem, policy)
            Q = paid + (mdp.transition * mdp.discount) @ V
            kept = (policy * Q).sum(axis=-1)
            # An action replaces another only if it gains more than rounding: policies do not repeat.
            better = Q.max(axis=-1) > kept + 1e-12 * (1 + np.abs(kept))
            if not better.any():
                return checks.frozen(V)
            policy[better] = np.eye(mdp.n_actions)[Q.argmax(axis=-1)[better]]

    def _q(self, theta: FloatArray) -> FloatArray:
        return (theta @ self._rows.T).reshape(*theta.shape[:-1], *self._problem.features.shape[:2])

    def _mean_delta_phi(self, theta: FloatArray, q: FloatArray) -> FloatArray:
        return self._b + self._problem.target.value(q) @ self._K.T - theta @ self.feature_covariance

    def _solve(self, mean_delta_phi: FloatArray) -> FloatArray:
        return np.asarray(cho_solve(self._C_factor, mean_delta_phi.T)).T

    def _mspbe(self, theta: FloatArray) -> FloatArray:
        mean_delta_phi = self._mean_delta_phi(theta, self._q(theta))
        return 0.5 * (mean_delta_phi * self._solve(mean_delta_phi)).sum(axis=-1)

    def _omega_star(self, theta: FloatArray) -> FloatArray:
        return self._solve(self._mean_delta_phi(theta, self._q(theta)))

    def _gradient(self, theta: FloatArray) -> FloatArray:
        q = self._q(theta)
        mean_delta_phi = self._mean_delta_phi(theta, q)
        # Σ_{s'} (Kᵀω*)_{s'} φ̂_{s'},  φ̂_{s'} = Σ_a w_a φ(s',a)
        weights = (self._solve(mean_delta_phi) @ self._K)[..., None] * self._problem.target.weights(q)
        return weights.reshape(len(theta), -1) @ self._rows - mean_delta_phi

    def _batched(
        self, function: Callable[[FloatArray], FloatArray], theta: ArrayLike, square: bool = False
    ) -> FloatArray:
        """``function`` over the rows of ``theta``, a batch at a time, so that memory stays bounded."""
        d = self._rows.shape[1]
        th = checks.vectors("theta", theta, d)
        S, A = self._problem.features.shape[:2]
        size = max(1, BATCH_NUMBERS // (S * (S if square else A)))
        rows = th.reshape(-1, d)
        parts = [function(rows[i : i + size]) for i in range(0, len(rows), size)]
        out = np.concatenate(parts or [function(np.zeros((1, d)))[:0]])
        return out.reshape(th.shape[:-1] + out.shape[1:])


def _policy_value(problem: Problem, policy: FloatArray) -> FloatArray:
    """V = (I − Γ_π)⁻¹ r_π with Γ_π(s,s') = Σ_a π(a|s) P(s'|s,a) γ(s,a,s')."""
    mdp = problem.mdp
    paid = np.einsum("...sa,sat,sat->...s", policy, mdp.transition, mdp.reward)
    gamma = np.einsum("...sa,sat->...st", policy, mdp.transition * mdp.discount)
    return np.asarray(np.linalg.solve(np.eye(mdp.n_states) - gamma, paid[..., None])[..., 0])


def _check_rank(C: FloatArray) -> None:
    rank = int(np.linalg.matrix_rank(C, hermitian=True))
    if rank < len(C):
        raise ValueError(
            f"features: C = E[φφᵀ] is singular (rank {rank} of {len(C)}); "
            "the features are linearly dependent on the pairs that the behaviour policy visits"
        )
