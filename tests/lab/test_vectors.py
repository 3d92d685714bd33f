"""Every number of the vectors, made by an independent program, to 1e-10 relative."""

from __future__ import annotations

import numpy as np
import pytest

import gqlab as gq
from conftest import VECTORS, assert_close, problem_of, vector_name


def test_all_seven_problems_and_all_operators_are_here():
    assert len(VECTORS) == 7
    assert {v["target"]["kind"] for v in VECTORS} == {"softmax", "mellowmax", "epsilon_greedy", "greedy", "fixed"}
    assert sum("terminal" in v for v in VECTORS) == 1
    assert len({vector_name(v) for v in VECTORS}) == 7


def test_stationary_distribution_and_covariance(vector):
    exact = problem_of(vector).exact
    assert_close(exact.stationary, vector["stationary"])
    assert_close(exact.feature_covariance, vector["feature_covariance"])


def test_exact_quantities_in_one_batch(vector):
    exact = problem_of(vector).exact
    theta = np.array([e["theta"] for e in vector["exact"]])
    for name in ("mspbe", "gradient", "omega_star"):
        values = getattr(exact, name)(theta)
        for value, expected in zip(values, vector["exact"], strict=True):
            assert_close(value, expected[name])


def test_value_and_gradient_of_the_numpy_operators(vector):
    problem = problem_of(vector)
    for expected in vector["exact"]:
        q = problem.features @ np.array(expected["theta"])
        assert_close(problem.target.value(q), expected["vbar"])
        phi_hat = np.einsum("sa,sai->si", problem.target.weights(q), problem.features)
        assert_close(phi_hat, expected["phi_hat"])


def test_value_and_gradient_of_the_compiled_rules(vector):
    """G_x with ω = 0 gives δ, so V̄; G_x's dependence on ω gives φ̂: read both off the compiled pseudo-gradient."""
    problem = problem_of(vector)
    mdp, phi = problem.mdp, problem.features
    s = int(np.flatnonzero(~mdp.terminal)[0])
    for expected in vector["exact"]:
        theta = np.array(expected["theta"])
        for s_next in np.flatnonzero(~mdp.terminal & (mdp.discount[s, 0] > 0)):
            gamma, row = mdp.discount[s, 0, s_next], phi[s, 0]
            G0, _ = gq.check.pseudo_gradient(problem, theta, np.zeros(problem.dim), (s, 0, int(s_next)))
            delta = -(G0 @ row) / (row @ row)
            V = (delta - mdp.reward[s, 0, s_next] + row @ theta) / gamma
            assert abs(V - expected["vbar"][s_next]) <= 1e-10 * max(1, abs(V))
            G1, _ = gq.check.pseudo_gradient(problem, theta, row / (row @ row), (s, 0, int(s_next)))
            assert_close((G1 - G0) / gamma, expected["phi_hat"][s_next])


def test_pseudo_gradients(vector):
    problem = problem_of(vector)
    for expected in vector["pseudo_gradient"]:
        G, H = gq.check.pseudo_gradient(problem, expected["theta"], expected["omega"], expected["sample"])
        assert_close(G, expected["G"])
        assert_close(H, expected["H"])


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.uint16, np.uint64])
def test_samples_of_small_integer_types_are_the_same_samples(dtype):
    """60 states with 6 actions: rows beyond what 8 bits hold, and in the last state beyond what they hold signed."""
    mdp = gq.garnet(60, 6, 3, seed=0)
    problem = gq.Problem(mdp, gq.random_features(mdp, dim=4))
    x = np.stack(gq.trajectory(problem, 200), axis=1)
    x = x[x[:, 0] > 45]
    assert (x[:, 0] * 6).max() > 255
    theta, omega = np.random.default_rng(0).normal(size=(2, 4))
    small = x.astype(dtype)
    vr, indices = gq.VRGreedyGQ(0.1, 0.1, len(x)), np.arange(len(x))
    for function, arguments in (
        (gq.check.pseudo_gradient, lambda x: (theta, omega, tuple(x[0]))),
        (gq.check.greedy_gq_steps, lambda x: (gq.GreedyGQ(0.1, 0.1), theta, omega, x)),
        (gq.check.greedy_gq_steps, lambda x: (gq.GreedyGQ(0.1, 0.1), theta, omega, gq.Trajectory(*x.T))),
        (gq.check.svrg_epoch, lambda x: (vr, theta, omega, x, indices.astype(x.dtype))),
    ):
        given, expected = function(problem, *arguments(small)), function(problem, *arguments(x))
        assert np.array_equal(given, expected)


def test_sixty_greedy_gq_steps_projection_idle_and_active(vector):
    problem = problem_of(vector)
    assert sorted(e["radius"] < 1 for e in vector["gq"]) == [False, True]
    for e in vector["gq"]:
        algorithm = gq.GreedyGQ(e["eta_theta"], e["eta_omega"], e["radius"])
        theta, omega = gq.check.greedy_gq_steps(problem, algorithm, e["theta"], e["omega"], e["trajectory"])
        assert_close(theta, e["theta_end"])
        assert_close(omega, e["omega_end"])


def test_one_svrg_epoch_projection_idle_and_active(vector):
    problem = problem_of(vector)
    assert sorted(e["radius"] < 1 for e in vector["svrg"]) == [False, True]
    for e in vector["svrg"]:
        algorithm = gq.VRGreedyGQ(e["eta_theta"], e["eta_omega"], len(e["batch"]), e["radius"])
        theta, omega = gq.check.svrg_epoch(problem, algorithm, e["theta"], e["omega"], e["batch"], e["indices"])
        assert_close(theta, e["theta_end"])
        assert_close(omega, e["omega_end"])
