"""∇²J against differences of ∇J, and the points where ∇J vanishes."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.special import softmax

import gqlab as gq
from conftest import assert_close
from gqlab.exact import stationary

SMOOTH = {
    "softmax 0.1": lambda seed: gq.Softmax(0.1),
    "softmax 1": lambda seed: gq.Softmax(1.0),
    "softmax 5": lambda seed: gq.Softmax(5.0),
    "mellowmax": lambda seed: gq.Mellowmax(5.0),
    "fixed": lambda seed: gq.FixedPolicy(np.random.default_rng(seed).dirichlet(np.ones(3), size=5)),
}


def problem_for(name: str, seed: int, discount: float = 0.95) -> gq.Problem:
    mdp = gq.garnet(discount=discount, seed=seed)
    return gq.Problem(mdp, gq.random_features(mdp, dim=4, seed=seed), target=SMOOTH[name](seed))


def softmax_curvature(self: gq.Softmax, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """∂w/∂q v of w_a = p_a(1 + σ(q_a − V̄)):  dp_a = σp_a(v_a − Σpv),  dV̄ = Σwv."""
    p = softmax(self.sigma * q, axis=-1)
    gap = self.sigma * (q - (p * q).sum(axis=-1, keepdims=True))
    dp = self.sigma * p * (v - (p * v).sum(axis=-1, keepdims=True))
    dV = (p * (1 + gap) * v).sum(axis=-1, keepdims=True)
    return dp * (1 + gap) + p * self.sigma * (v - dV)


def slopes_of_the_gradient(problem: gq.Problem, theta: np.ndarray, h: float = 1e-4) -> np.ndarray:
    """Central differences of the fourth order: (..., d, d)."""
    steps = h * np.eye(problem.dim)
    moved = [problem.exact.gradient(theta[..., None, :] + k * steps) for k in (-2, -1, 1, 2)]
    return (moved[0] - 8 * moved[1] + 8 * moved[2] - moved[3]) / (12 * h)


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("seed", range(3))
def test_the_hessian_is_the_slope_of_the_gradient(name, seed):
    problem = problem_for(name, seed)
    theta = np.random.default_rng(seed).normal(size=(6, 4)) * np.array([0.1, 0.5, 1, 2, 5, 10])[:, None]
    H = problem.exact.hessian(theta)
    assert H.shape == (6, 4, 4)
    assert np.array_equal(H, np.swapaxes(H, -1, -2))
    for here, slope in zip(H, slopes_of_the_gradient(problem, theta), strict=True):
        assert_close(here, slope, 1e-6)
    A = problem.exact.objective.linear_part(theta[None])[0]
    first = np.swapaxes(A, -1, -2) @ np.linalg.solve(problem.exact.feature_covariance, A)
    second = np.abs(H - first).max(axis=(1, 2)) / np.abs(H).max(axis=(1, 2))
    if name == "fixed":
        assert second.max() < 1e-9
    else:  # the term that a wrong sign would spoil is large enough to be seen
        assert second.max() > 1e-2


@pytest.mark.parametrize("seed", range(3))
def test_an_operator_that_knows_its_second_derivative_is_asked_for_it(seed, monkeypatch):
    problem = problem_for("softmax 5", seed)
    theta = np.random.default_rng(seed).normal(size=(4, 4))
    by_differences = problem.exact.hessian(theta)
    asked = []

    def curvature(self, q, v):
        asked.append(q.shape)
        assert q.shape == v.shape
        return softmax_curvature(self, q, v)

    monkeypatch.setattr(gq.Softmax, "curvature", curvature, raising=False)
    H = problem.exact.hessian(theta)
    assert asked == [(1, 4, 4, 5, 3)]
    assert_close(by_differences, H, 1e-7)
    for here, slope in zip(H, slopes_of_the_gradient(problem, theta), strict=True):
        assert_close(here, slope, 1e-7)
    assert np.linalg.norm(problem.exact.gradient(problem.exact.stationary_point())) <= 1e-12


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("discount", [0.9, 0.99])
def test_the_gradient_vanishes_at_the_stationary_points_of_12_garnets(name, discount):
    for seed in range(12):
        problem = problem_for(name, seed, discount)
        rng = np.random.default_rng(seed)
        for theta0 in (None, rng.normal(size=4), 15 * rng.normal(size=4)):
            theta = problem.exact.stationary_point(theta0)
            assert np.linalg.norm(problem.exact.gradient(theta)) <= 1e-12
            start = np.zeros(4) if theta0 is None else theta0
            assert problem.exact.mspbe(theta) <= problem.exact.mspbe(start)
            assert np.linalg.eigvalsh(problem.exact.hessian(theta))[0] > 0  # a minimum, not a saddle
            # Next to it ∇J grows as ∇²J says: the norm is small because the point is right.
            step = 1e-4 * rng.normal(size=4)
            change = problem.exact.gradient(theta + step)
            assert np.linalg.norm(change - problem.exact.hessian(theta) @ step) < 0.02 * np.linalg.norm(change)


@pytest.mark.parametrize("operator", [gq.Softmax(0.1), gq.Softmax(1.0), gq.Softmax(5.0), gq.Mellowmax(5.0)], ids=repr)
@pytest.mark.parametrize("kwargs", [{}, {"is_slippery": False}, {"map_name": "8x8"}], ids=str)
def test_the_gradient_vanishes_at_the_stationary_points_of_frozen_lakes(operator, kwargs):
    mdp = gq.FiniteMDP.from_gymnasium("FrozenLake-v1", discount=0.95, **kwargs)
    problem = gq.Problem(mdp, gq.random_features(mdp, dim=8, kind="gaussian"), target=operator)
    theta = problem.exact.stationary_point(np.ones(8))
    assert np.linalg.norm(problem.exact.gradient(theta)) <= 1e-12
    assert np.linalg.norm(theta) > 1e-4


def test_the_search_goes_down_where_the_hessian_is_not_positive():
    """Newton's own step would go up there: along a direction of negative curvature it heads for the saddle."""
    problem = problem_for("softmax 5", 1)
    theta = np.random.default_rng(1).normal(size=(400, 4)) * 3
    bent = theta[np.linalg.eigvalsh(problem.exact.hessian(theta))[:, 0] < -1e-3]
    assert len(bent) > 20
    J, H, gradient = (f(bent) for f in (problem.exact.mspbe, problem.exact.hessian, problem.exact.gradient))
    newton = bent - np.linalg.solve(H, gradient[..., None])[..., 0]
    assert (problem.exact.mspbe(newton) > J).any()
    for theta0, before in zip(bent, J, strict=True):
        end = problem.exact.stationary_point(theta0)
        assert problem.exact.mspbe(end) < before
        assert np.linalg.eigvalsh(problem.exact.hessian(end))[0] > 0


@pytest.mark.parametrize("scale", [1e3, 1e6])
def test_large_rewards_are_solved_as_far_as_float64_goes(scale):
    """θ scales with the rewards if the softmax is as much flatter: the point must, too."""
    mdp = gq.garnet(seed=1, discount=0.99)
    phi = gq.random_features(mdp, dim=4)
    small = gq.Problem(mdp, phi).exact.stationary_point()
    large = gq.Problem(gq.FiniteMDP(mdp.transition, scale * mdp.reward, 0.99), phi, target=gq.Softmax(1 / scale))
    assert_close(large.exact.stationary_point() / scale, small, 1e-9)


def test_greedy_problems_say_where_the_search_stopped():
    mdp = gq.garnet(seed=0)
    problem = gq.Problem(mdp, gq.random_features(mdp, dim=4, seed=0), target=gq.Greedy())
    with pytest.raises(ValueError, match="no stationary point was reached") as error:
        problem.exact.stationary_point(np.ones(4))
    text = str(error.value)
    assert "\n" not in text
    assert "under Greedy(), which is not known to be smooth, none need exist" in text
    stopped = np.array(re.search(r"theta = \[(.*)\], where", text)[1].split(", "), dtype=float)
    norm = float(re.search(r"‖∇J‖ = ([0-9.e-]+)", text)[1])
    assert np.linalg.norm(problem.exact.gradient(stopped)) == pytest.approx(norm, rel=0.01)
    assert problem.exact.mspbe(stopped) < problem.exact.mspbe(np.ones(4))


@pytest.mark.parametrize("operator", [gq.Greedy(), gq.EpsilonGreedy(0.1)], ids=repr)
def test_a_greedy_problem_whose_gradient_has_a_zero_is_solved(operator):
    mdp = gq.garnet(seed=3)
    problem = gq.Problem(mdp, gq.random_features(mdp, dim=4, seed=3), target=operator)
    assert np.linalg.norm(problem.exact.gradient(problem.exact.stationary_point())) <= 1e-12


def test_the_search_gives_up_after_its_most_steps(garnet_problem, monkeypatch):
    monkeypatch.setattr(stationary, "MOST_STEPS", 2)
    with pytest.raises(ValueError, match="stopped after 2 steps at theta = ") as error:
        garnet_problem.exact.stationary_point()
    assert "smooth" not in str(error.value)


def test_the_fixed_point_is_the_zero_of_the_mean_td_error():
    for seed in range(12):
        problem = problem_for("fixed", seed)
        theta = problem.exact.fixed_point
        x = problem.exact.transitions
        mean = (x.probability * problem.exact.delta(theta)) @ x.phi  # E[δφ], transition by transition
        assert np.abs(mean).max() < 1e-12
        assert_close(problem.exact.stationary_point(), theta, 1e-9)


SINGULAR = np.zeros((2, 2, 2))  # action a leads to state a and is discounted by γ_a
SINGULAR[:, 0, 0] = SINGULAR[:, 1, 1] = 1.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: gq.Problem(gq.garnet(seed=0), gq.random_features(gq.garnet(seed=0))).exact.fixed_point,
            "target is Softmax(sigma=1.0): only a FixedPolicy has a fixed point; see stationary_point",
        ),
        (  # φ = (1, 2), the target takes action 1: E[φ(φ − γφ̂)] = (1² + 2²)/2 − (2γ_0 + 4γ_1)/2 = 0
            lambda: (
                gq.Problem(
                    gq.FiniteMDP(SINGULAR, [[1.0, 0], [1, 0]], np.broadcast_to([[0.75], [0.875]], (2, 2, 2))),
                    [[[1.0], [2.0]], [[1.0], [2.0]]],
                    target=gq.FixedPolicy([[0.0, 1.0], [0.0, 1.0]]),
                ).exact.fixed_point
            ),
            "features: A = E[φ(φ − γφ̂)ᵀ] is singular (rank 0 of 1): there is no unique fixed point",
        ),
        (
            lambda: problem_for("softmax 1", 0).exact.stationary_point(np.zeros(3)),
            "theta0 has shape (3,), expected (4,)",
        ),
        (
            lambda: problem_for("softmax 1", 0).exact.stationary_point([0, 0, np.nan, 0]),
            "theta0[2] is nan, expected a finite number",
        ),
    ],
)
def test_messages(make, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        make()
