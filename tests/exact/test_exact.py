"""The exact quantities against sums that are written out, and against the compiled rules."""

from __future__ import annotations

import numpy as np
import pytest

import gqlab as gq
from conftest import assert_close, problem_of


def points(problem: gq.Problem, n: int = 6) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    return rng.normal(size=(n, problem.dim)) * 2, rng.normal(size=(n, problem.dim))


def test_moments_are_the_sums_that_define_them(vector):
    problem = problem_of(vector)
    mdp, S, d = problem.mdp, problem.mdp.n_states, problem.dim
    C, b, K = np.zeros((d, d)), np.zeros(d), np.zeros((d, S))
    total = 0.0
    for s, a, t in np.ndindex(mdp.transition.shape):
        p = problem.exact.stationary[s] * problem.behavior[s, a] * mdp.transition[s, a, t]
        phi = problem.features[s, a]
        C += p * np.outer(phi, phi)
        b += p * mdp.reward[s, a, t] * phi
        K[:, t] += p * mdp.discount[s, a, t] * phi
        total += p
    for actual, expected in zip(problem.exact.moments, (C, b, K), strict=True):
        assert_close(actual, expected, 1e-13)
    assert_close(problem.exact.transitions.probability.sum(), total, 1e-13)
    assert problem.exact.feature_covariance is problem.exact.moments.C


def test_sample_gradients_are_those_of_the_compiled_rules(vector):
    problem = problem_of(vector)
    x = problem.exact.transitions
    theta, omega = points(problem)
    G, H = problem.exact.sample_gradients(theta, omega)
    assert G.shape == H.shape == (6, len(x.s), problem.dim)
    for k, n in np.ndindex(G.shape[:2]):
        g, h = gq.check.pseudo_gradient(problem, theta[k], omega[k], (x.s[n], x.a[n], x.s_next[n]))
        assert_close(G[k, n], g, 1e-12)
        assert_close(H[k, n], h, 1e-12)


def test_the_mean_field_is_the_mean_of_the_sample_gradients(vector):
    problem = problem_of(vector)
    exact, (theta, omega) = problem.exact, points(problem)
    p = exact.transitions.probability
    for mean, each in zip(exact.mean_field(theta, omega), exact.sample_gradients(theta, omega), strict=True):
        assert_close(mean, np.einsum("n,kni->ki", p, each), 1e-12)
    G, H = exact.mean_field(theta, exact.omega_star(theta))
    assert_close(G, exact.gradient(theta), 1e-12)
    assert np.abs(H).max() < 1e-12


def test_phi_hat_is_the_slope_of_the_value(vector):
    problem = problem_of(vector)
    theta, _ = points(problem)
    h = 1e-6
    steps = h * np.eye(problem.dim)[:, None]

    def V(th):
        return problem.target.value(np.einsum("...i,sai->...sa", th, problem.features))

    slope = np.moveaxis((V(theta + steps) - V(theta - steps)) / (2 * h), 0, -1)
    assert np.abs(problem.exact.phi_hat(theta) - slope).max() < 1e-7


def test_theta_and_omega_are_batched_together(garnet_problem, monkeypatch):
    exact = garnet_problem.exact
    rng = np.random.default_rng(0)
    theta, omega = rng.normal(size=(3, 1, 4)), rng.normal(size=(7, 4))
    whole = exact.mean_field(theta, omega)
    samples = exact.sample_gradients(theta, omega)
    assert whole[0].shape == (3, 7, 4)
    assert samples[1].shape == (3, 7, 30, 4)
    assert exact.mean_field(np.empty((0, 4)), omega[0])[1].shape == (0, 4)
    assert exact.delta(np.empty((0, 4))).shape == (0, 30)
    assert exact.phi_hat(theta).shape == (3, 1, 5, 4)
    monkeypatch.setattr("gqlab.exact.exact.BATCH_NUMBERS", 50)
    for k in range(2):
        assert_close(exact.mean_field(theta, omega)[k], whole[k], 1e-13)
        assert_close(exact.sample_gradients(theta, omega)[k], samples[k], 1e-13)
        assert_close(exact.mean_field(theta[2, 0], omega[4])[k], whole[k][2, 4], 1e-13)
    with pytest.raises(ValueError, match=r"theta has shape \(3, 1, 4\) and omega \(2, 4, 4\)"):
        exact.mean_field(np.zeros((3, 1, 4)), np.zeros((2, 4, 4)))


def test_exact_quantities_are_made_once_and_only_when_asked_for(garnet_problem, monkeypatch):
    made = []
    monkeypatch.setattr("gqlab.problems.problem.Exact", lambda problem: made.append(problem) or object())
    problem = gq.Problem(garnet_problem.mdp, garnet_problem.features)
    problem.policy(np.zeros(4))
    assert len({problem, garnet_problem}) == 2  # hashable, whether asked or not
    assert not made
    assert problem.exact is problem.exact
    assert made == [problem]


def test_a_problem_without_exact_quantities_can_be_made_and_says_so_every_time():
    mdp = gq.garnet(seed=0)
    problem = gq.Problem(mdp, np.ones((5, 3, 2)))
    assert problem.dim == 2
    for _ in range(2):
        with pytest.raises(ValueError, match="rank 1 of 2"):
            problem.exact.mspbe([0.0, 0.0])


def test_action_values_solve_their_equation(vector):
    """V = Σ π Q, and Q by iterating its own Bellman equation from 0; both 0 in terminal states."""
    problem = problem_of(vector)
    mdp, (theta, _) = problem.mdp, points(problem)
    Q, V, pi = problem.exact.q(theta), problem.exact.value(theta), problem.policy(theta)
    assert_close((pi * Q).sum(axis=-1), V, 1e-12)
    again = np.zeros(mdp.transition.shape[:2])
    for _ in range(3000):
        again = (mdp.transition * (mdp.reward + mdp.discount * (pi[2] * again).sum(axis=-1))).sum(axis=-1)
    assert_close(Q[2], again, 1e-9)
    assert (Q[:, mdp.terminal] == 0).all()
    assert problem.exact.q(np.empty((0, problem.dim))).shape == (0, *mdp.transition.shape[:2])


TABLE = np.full((5, 3), 1 / 3)


@pytest.mark.parametrize(
    "operator",
    [gq.Softmax(1.0), gq.Mellowmax(2.0), gq.Greedy(), gq.EpsilonGreedy(0.1), gq.FixedPolicy(TABLE)],
    ids=repr,
)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_no_quantity_is_given_for_numbers_that_are_not_finite(garnet_problem, operator, bad):
    exact = gq.Problem(garnet_problem.mdp, garnet_problem.features, target=operator).exact
    theta = np.zeros((2, 3, 4))
    theta[1, 2, 3] = bad
    for name in ("mspbe", "omega_star", "gradient", "average_reward", "value", "q", "phi_hat", "delta"):
        with pytest.raises(ValueError, match=rf"^theta\[1, 2, 3\] is {bad}, expected a finite number$"):
            getattr(exact, name)(theta)
    for name in ("mean_field", "sample_gradients"):
        with pytest.raises(ValueError, match=rf"^omega\[1, 2, 3\] is {bad}, expected a finite number$"):
            getattr(exact, name)(np.zeros(4), theta)
        with pytest.raises(ValueError, match=rf"^theta\[1, 2, 3\] is {bad}, expected a finite number$"):
            getattr(exact, name)(theta, np.zeros(4))
