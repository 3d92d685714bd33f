"""QRC: Greedy-GQ whose ω is drawn towards 0, and where its mean update stands still."""

from __future__ import annotations

import numpy as np
import pytest

import gqlab as gq
from conftest import VECTORS, assert_close, problem_of
from helpers.plain_loops import greedy_gq

N, RUNS, SEED = 80, 2, 3
ETA = (0.3, 0.2)


def test_beta_0_is_greedy_gq_bit_for_bit(garnet_problem):
    theta0 = np.ones((RUNS, 4))
    for radius in (1.5 * 2, np.inf):
        qrc = gq.run(
            garnet_problem,
            gq.QRC(*ETA, beta=0.0, radius=radius),
            N,
            n_runs=RUNS,
            seed=SEED,
            theta0=theta0,
            record_every=1,
        )
        plain = gq.run(
            garnet_problem, gq.GreedyGQ(*ETA, radius), N, n_runs=RUNS, seed=SEED, theta0=theta0, record_every=1
        )
        assert np.array_equal(qrc.theta, plain.theta)
        assert np.array_equal(qrc.omega, plain.omega)


@pytest.mark.parametrize("beta", [0.3, 1.0, 4.0])
def test_runs_are_the_loop_of_the_formula(beta, garnet_problem):
    theta0, omega0 = np.array([[0.5, -0.5, 1.0, 0.0], [0.1, 0.2, -0.9, 1.0]])
    result = gq.run(
        garnet_problem,
        gq.QRC(*ETA, beta, radius=1.6),
        N,
        n_runs=RUNS,
        seed=SEED,
        theta0=theta0,
        omega0=omega0,
        record_every=1,
    )
    for run in range(RUNS):
        x = gq.trajectory(garnet_problem, N, SEED, run)
        expected = greedy_gq(garnet_problem, x, theta0, omega0, lambda t: ETA, radii=(1.6, 1.6), beta=beta)
        assert_close(result.theta[run], expected[:, 0], 1e-12)
        assert_close(result.omega[run], expected[:, 1], 1e-12)


def mean_move(problem: gq.Problem, beta: float, theta, omega) -> tuple[np.ndarray, np.ndarray]:
    """−(E Δθ, E Δω) at η = 1: the mean over D and P of the compiled moves themselves."""
    joint = problem.exact.stationary[:, None, None] * problem.behavior[:, :, None] * problem.mdp.transition
    G, H = np.zeros((2, problem.dim))
    for x in np.argwhere(joint > 0):
        after = gq.check.greedy_gq_steps(problem, gq.QRC(1.0, 1.0, beta), theta, omega, [x])
        G += joint[tuple(x)] * (theta - after[0])
        H += joint[tuple(x)] * (omega - after[1])
    return G, H


def omega_beta(problem: gq.Problem, beta: float, theta) -> np.ndarray:
    """(C + βI)⁻¹ E[δφ]."""
    C = problem.exact.feature_covariance
    return np.linalg.solve(C + beta * np.eye(problem.dim), C @ problem.exact.omega_star(theta))


@pytest.mark.parametrize("beta", [0.0, 0.5, 3.0])
def test_at_a_fixed_theta_the_mean_update_of_omega_stands_still_at_omega_beta(beta, vector):
    problem = problem_of(vector)
    theta = np.random.default_rng(0).normal(size=problem.dim)
    omega = omega_beta(problem, beta, theta)
    _, still = mean_move(problem, beta, theta, omega)
    _, moved = mean_move(problem, beta, theta, omega + 0.1)
    assert np.abs(still).max() < 1e-12 * (1 + np.abs(theta).max())
    assert np.abs(moved).max() > 1e-3


@pytest.mark.parametrize("beta", [0.0, 0.5, 3.0])
def test_where_E_delta_phi_can_be_0_that_is_a_fixed_point_for_every_beta(beta):
    [vector] = [v for v in VECTORS if v["target"]["kind"] == "fixed"]
    problem = problem_of(vector)
    for move in mean_move(problem, beta, problem.exact.fixed_point, np.zeros(problem.dim)):
        assert np.abs(move).max() < 1e-11
    assert np.abs(mean_move(problem, beta, problem.exact.fixed_point + 1.0, np.zeros(problem.dim))[0]).max() > 1e-3


def jacobian(problem: gq.Problem, beta: float, theta) -> np.ndarray:
    """Of g_β(θ) = −E[δφ] + E[γ φ̂ φᵀ] ω_β(θ), by central differences."""
    h = 1e-5
    rows = []
    for e in np.eye(problem.dim):
        up, down = (
            mean_move(problem, beta, theta + k * h * e, omega_beta(problem, beta, theta + k * h * e))[0]
            for k in (1, -1)
        )
        rows.append((up - down) / (2 * h))
    return np.array(rows)


def test_the_mean_update_of_theta_is_a_gradient_at_beta_0_and_no_gradient_beyond(garnet_problem):
    """The Jacobian of a gradient is symmetric."""
    theta = np.array([1.0, -2.0, 0.5, 3.0])
    for beta, is_gradient in ((0.0, True), (1.0, False), (4.0, False)):
        J = jacobian(garnet_problem, beta, theta)
        asymmetry = np.abs(J - J.T).max() / np.abs(J).max()
        assert asymmetry < 1e-7 if is_gradient else asymmetry > 1e-3


def test_beta_is_checked():
    with pytest.raises(ValueError, match=r"^beta is -1, expected a finite number at least 0$"):
        gq.QRC(beta=-1)
