"""The exact quantities: expectations over D(s,a) = μ(s) π_b(a|s) and P, in NumPy float64, batched over θ.

    C = E[φφᵀ]     ω*(θ) = C⁻¹E[δφ]     J(θ) = ½ E[δφ]ᵀ C⁻¹ E[δφ]     ∇J(θ) = −E[δφ] + E[γ φ̂_{s'} φᵀ] ω*(θ)

With b = E[rφ] and K = E[γ φ 1{s'}ᵀ] (d, S), all of them are matrix products:

    E[δφ] = b + K V̄(θ) − Cθ          E[γ φ̂_{s'} φᵀ] ω = Σ_{s'} (Kᵀω)_{s'} φ̂_{s'}(θ)

and the means of the update directions, the first of which is ∇J at ω = ω*(θ), are

    E[G_x(θ, ω)] = Σ_{s'} (Kᵀω)_{s'} φ̂_{s'}(θ) − E[δφ]          E[H_x(θ, ω)] = Cω − E[δφ]

Nothing here comes from :mod:`gqlab.rules`: each checks the other.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from gqlab.exact import stationary
from gqlab.exact.moments import FeatureMoments, Means, PossibleTransitions, moments, possible_transitions
from gqlab.exact.objective import ProjectedBellmanError
from gqlab.mdp import values
from gqlab.operators.base import Operator
from gqlab.support import checks
from gqlab.support.checks import FloatArray

#: The most numbers in one batch of parameters: larger inputs are split into batches.
BATCH_NUMBERS = 2_000_000


class ExactSetting(Means, Protocol):
    """What the exact quantities describe: what means are taken over, and the operator that turns θ into a policy."""

    @property
    def target(self) -> Operator: ...

    def policy(self, theta: ArrayLike) -> FloatArray: ...  # (..., S, A)


class Exact(checks.Frozen):
    """The exact quantities of one problem. ``theta`` is (..., d): every leading axis is batched."""

    def __init__(self, problem: ExactSetting) -> None:
        self._problem = problem
        self._n_rows, self._dim = problem.rows.shape  # S·A, d
        #: μ, the stationary distribution of the behaviour policy's chain, (S,).
        self.stationary: FloatArray = checks.frozen(problem.mdp.stationary(problem.behavior, "behavior"))
        #: (C, b, K): every mean over D and P is computed from these.
        self.moments: FeatureMoments = moments(problem, self.stationary)
        #: J of these means, (1, k, …).
        self.objective = ProjectedBellmanError(
            problem.rows, problem.target, FeatureMoments(*(m[None] for m in self.moments))
        )

    @property
    def feature_covariance(self) -> FloatArray:
        """C = E[φφᵀ], (d, d)."""
        return self.moments.C

    @cached_property
    def transitions(self) -> PossibleTransitions:
        """The samples x = (s, a, s') that the behaviour policy can encounter, with their φ, r, γ and probability.

        Examples
        --------
        >>> import numpy as np, gqlab as gq
        >>> mdp = gq.garnet(n_states=5, n_actions=3, branching=2, seed=0)
        >>> x = gq.Problem(mdp, gq.random_features(mdp, dim=4)).exact.transitions
        >>> len(x.s), round(float(x.probability.sum()), 12)
        (30, 1.0)
        """
        return possible_transitions(self._problem, self.stationary)

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
        return self._batched(lambda th: self.objective.value(th[None])[0], theta)

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
        return self._batched(lambda th: self.objective.omega(th[None])[0], theta)

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
        return self._batched(lambda th: self.objective.gradient(th[None])[0], theta)

    def hessian(self, theta: ArrayLike) -> FloatArray:
        """∇²J(θ), (..., d, d): from the operator's second derivative, or from differences of its first.

        Examples
        --------
        As above the slope is −1 + 0.25θ.

        >>> import gqlab as gq
        >>> problem = gq.Problem(gq.FiniteMDP([[[1.0]]], [[2.0]], discount=0.5), [[[1.0]]])
        >>> problem.exact.hessian([0.0])
        array([[0.25]])
        """
        return self._batched(
            lambda th: self.objective.hessian(th[None])[0], theta, numbers=self._n_rows * self._dim + self._dim**2
        )

    def stationary_point(self, theta0: ArrayLike | None = None) -> FloatArray:
        """A θ* with ∇J(θ*) = 0, (d,), by a descending Newton method from ``theta0`` (d,), default 0.

        ‖∇J(θ*)‖ is at most 1e-12, or at rounding level where rewards or features are large. J may have
        several such points, and J(θ*) need not be 0. An operator that is not smooth (:class:`Greedy`) may have none:
        if the search finds none it raises a ``ValueError`` that gives the last θ and ‖∇J‖ there.

        Examples
        --------
        >>> import numpy as np, gqlab as gq
        >>> mdp = gq.garnet(seed=0)
        >>> exact = gq.Problem(mdp, gq.random_features(mdp, dim=4)).exact
        >>> theta = exact.stationary_point()
        >>> bool(np.linalg.norm(exact.gradient(theta)) <= 1e-12), round(float(exact.mspbe(theta)), 4)
        (True, 0.0633)
        """
        d = self._dim
        start = np.zeros(d) if theta0 is None else checks.array("theta0", theta0, (d,))
        try:
            return stationary.stationary_point(self.objective, start)
        except ValueError as error:
            text = str(error).removeprefix("theta0: ")
            raise ValueError(text if theta0 is None else f"theta0: {text}") from None

    @cached_property
    def fixed_point(self) -> FloatArray:
        """Under a :class:`FixedPolicy`, the one θ with E[δφ] = 0, (d,), which TD methods and TDC converge to.

        ``ValueError`` for any other target, and where E[φ(φ − γφ̂)ᵀ] is singular.

        Examples
        --------
        One state, one action, φ = 1, r = 2, γ = 0.5: θ = 2 + 0.5θ.

        >>> import gqlab as gq
        >>> mdp = gq.FiniteMDP([[[1.0]]], [[2.0]], discount=0.5)
        >>> gq.Problem(mdp, [[[1.0]]], target=gq.FixedPolicy([[1.0]])).exact.fixed_point
        array([4.])
        """
        return checks.frozen(stationary.fixed_point(self.objective))

    def mean_field(self, theta: ArrayLike, omega: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """(E[G_x(θ, ω)], E[H_x(θ, ω)]), two (..., d): where the updates go on average.

        Examples
        --------
        At ω = ω*(θ) the first is ∇J and the second vanishes.

        >>> import numpy as np, gqlab as gq
        >>> mdp = gq.garnet(seed=0)
        >>> exact = gq.Problem(mdp, gq.random_features(mdp, dim=4)).exact
        >>> theta = np.ones(4)
        >>> G, H = exact.mean_field(theta, exact.omega_star(theta))
        >>> bool(np.allclose(G, exact.gradient(theta))), bool(np.allclose(H, 0))
        (True, True)
        """
        both = self._batched(self._mean_field, theta, omega)
        return both[..., 0, :], both[..., 1, :]

    def sample_gradients(self, theta: ArrayLike, omega: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """(G_x(θ, ω), H_x(θ, ω)), two (..., N, d), for every x of :attr:`transitions`.

        Examples
        --------
        One transition, φ = 1, r = 2, γ = 0.5: G = −δφ + γωφ̂ = −2 + 0.5 and H = ω − δ = 1 − 2 at θ = 0, ω = 1.

        >>> import gqlab as gq
        >>> problem = gq.Problem(gq.FiniteMDP([[[1.0]]], [[2.0]], discount=0.5), [[[1.0]]])
        >>> problem.exact.sample_gradients([0.0], [1.0])
        (array([[-1.5]]), array([[-1.]]))
        """
        both = self._batched(self._sample_gradients, theta, omega, numbers=2 * self.transitions.phi.size)
        return both[..., 0, :, :], both[..., 1, :, :]

    def delta(self, theta: ArrayLike) -> FloatArray:
        """δ_x(θ) = r + γ V̄_{s'}(θ) − φ(s,a)ᵀθ, (..., N), for every x of :attr:`transitions`.

        Examples
        --------
        >>> import gqlab as gq
        >>> problem = gq.Problem(gq.FiniteMDP([[[1.0]]], [[2.0]], discount=0.5), [[[1.0]]])
        >>> problem.exact.delta([1.0])  # 2 + 0.5 − 1
        array([1.5])
        """
        return self._batched(self._delta, theta, numbers=len(self.transitions.s))

    def phi_hat(self, theta: ArrayLike) -> FloatArray:
        """φ̂_s(θ) = ∇_θ V̄_s(θ), (..., S, d).

        Examples
        --------
        >>> import numpy as np, gqlab as gq
        >>> mdp = gq.garnet(seed=0)
        >>> phi = gq.random_features(mdp, dim=4)
        >>> phi_hat = gq.Problem(mdp, phi).exact.phi_hat(np.zeros(4))  # at θ = 0 all actions weigh the same
        >>> bool(np.allclose(phi_hat, phi.mean(axis=1)))
        True
        """
        return self._batched(lambda th: self.objective.phi_hat(th[None])[0], theta, numbers=self._n_rows * self._dim)

    def average_reward(self, theta: ArrayLike) -> FloatArray:
        """The long-run average reward of π_θ, (...), started from ``initial``, else from μ.

        Examples
        --------
        >>> import gqlab as gq
        >>> problem = gq.Problem(gq.FiniteMDP([[[1.0]]], [[2.0]], discount=0.5), [[[1.0]]])
        >>> problem.exact.average_reward([0.0])
        array(2.)
        """
        problem = self._problem
        start = self.stationary if problem.mdp.initial is None else problem.mdp.initial
        return self._batched(
            lambda th: values.average_reward(problem.mdp, problem.policy(th), start),
            theta,
            numbers=self._chain_numbers,
        )

    def value(self, theta: ArrayLike) -> FloatArray:
        """The discounted value of π_θ in every state, (..., S); 0 in terminal states.

        Examples
        --------
        >>> import gqlab as gq
        >>> problem = gq.Problem(gq.FiniteMDP([[[1.0]]], [[2.0]], discount=0.5), [[[1.0]]])
        >>> problem.exact.value([0.0])  # 2 / (1 − 0.5)
        array([4.])
        """
        return self._batched(
            lambda th: values.policy_value(self._problem.mdp, self._problem.policy(th)),
            theta,
            numbers=self._chain_numbers,
        )

    def q(self, theta: ArrayLike) -> FloatArray:
        """The discounted action value of π_θ, (..., S, A), which φᵀθ approximates; 0 in terminal states.

        Examples
        --------
        One state; action 0 yields 1, action 1 nothing. At θ = 0 both are equally likely: V = 0.5/(1 − 0.5) = 1.

        >>> import gqlab as gq
        >>> mdp = gq.FiniteMDP([[[1.0], [1.0]]], [[1.0, 0.0]], discount=0.5)
        >>> gq.Problem(mdp, [[[1.0], [0.0]]]).exact.q([0.0])
        array([[1.5, 0.5]])
        """
        return values.action_value(self._problem.mdp, self.value(theta))

    @cached_property
    def optimal_value(self) -> FloatArray:
        """The largest discounted value in every state, (S,), by policy iteration.

        For more than 500 states by a modified one, until the residual of Bellman's equation is at most
        ``1e-13 (1 + max |V|)``: the error is at most γ/(1 − γ) times that.
        """
        return checks.frozen(values.optimal_value(self._problem.mdp))

    @property
    def _chain_numbers(self) -> int:
        """The numbers of one chain."""
        mdp = self._problem.mdp
        return mdp.n_states**2 if mdp.is_small else len(mdp.arcs.s_next)

    def _delta(self, theta: FloatArray) -> FloatArray:
        x = self.transitions
        V = self._problem.target.value(self.objective.q(theta))
        return np.asarray(x.reward + x.gamma * V[:, x.s_next] - theta @ x.phi.T)

    def _mean_field(self, theta: FloatArray, omega: FloatArray) -> FloatArray:
        q = self.objective.q(theta[None])
        mean_delta_phi = self.objective.mean_delta_phi(theta[None], q)[0]
        G = self.objective.correction(q, omega[None])[0] - mean_delta_phi
        H = omega @ self.moments.C - mean_delta_phi
        return np.stack([G, H], axis=1)

    def _sample_gradients(self, theta: FloatArray, omega: FloatArray) -> FloatArray:
        x, phi_hat = self.transitions, self.objective.phi_hat(theta[None])[0]
        delta, phi_omega = self._delta(theta), omega @ x.phi.T
        G = -delta[..., None] * x.phi + (x.gamma * phi_omega)[..., None] * phi_hat[:, x.s_next]
        H = (phi_omega - delta)[..., None] * x.phi
        return np.stack([G, H], axis=1)

    def _batched(
        self,
        function: Callable[..., FloatArray],
        theta: ArrayLike,
        omega: ArrayLike | None = None,
        numbers: int | None = None,
    ) -> FloatArray:
        """``function`` over the rows of θ (and ω), a batch at a time, so that memory stays bounded.

        ``numbers``: how many of them one row needs; default S·A.
        """
        points = self._points(theta, omega)
        lead, d = points[0].shape[:-1], self._dim
        size = max(1, BATCH_NUMBERS // (self._n_rows if numbers is None else numbers))
        rows = [point.reshape(-1, d) for point in points]
        names = "theta" if omega is None else "theta and omega"
        try:
            with np.errstate(all="ignore"):  # from numbers too large: reported below
                parts = [function(*(row[i : i + size] for row in rows)) for i in range(0, len(rows[0]), size)]
                out = np.concatenate(parts or [function(*(np.zeros((1, d)) for _ in rows))[:0]])
        except ValueError as error:  # from an operator, which speaks of q: name what was given instead
            raise ValueError(f"{names}: {error}") from None
        if not np.isfinite(out).all():
            raise ValueError(f"{names}: the result overflows: some entry is too large")
        return out.reshape(lead + out.shape[1:])

    def _points(self, theta: ArrayLike, omega: ArrayLike | None) -> list[FloatArray]:
        """θ (and ω) as finite numbers, with the same leading axes."""
        points = []
        for name, value in (("theta", theta), *([] if omega is None else [("omega", omega)])):
            points.append(checks.vectors(name, value, self._dim))
        try:
            return list(np.broadcast_arrays(*points))
        except ValueError:
            shapes = f"theta has shape {points[0].shape} and omega {points[1].shape}"
            raise ValueError(f"{shapes}: their leading axes do not fit together") from None
