"""The error of the updates, against sums over samples that call ``pseudo_gradient`` one by one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import gqlab as gq
from conftest import assert_close


def frozen_lake() -> gq.Problem:
    mdp = gq.FiniteMDP.from_gymnasium("FrozenLake-v1")
    return gq.Problem(mdp, gq.random_features(mdp, dim=8, kind="gaussian"))


def G(problem: gq.Problem, theta: np.ndarray, omega: np.ndarray, x: tuple[int, int, int]) -> np.ndarray:
    return gq.check.pseudo_gradient(problem, theta, omega, x)[0]


def test_greedy_gq_over_all_transitions(garnet_problem):
    problem = garnet_problem
    result = gq.run(problem, gq.GreedyGQ(), n_samples=600, n_runs=2, record_every=200, seed=3)
    error = gq.update_error(result)
    mdp, mu = problem.mdp, problem.exact.stationary
    joint = mu[:, None, None] * problem.behavior[..., None] * mdp.transition
    support = [tuple(map(int, x)) for x in np.argwhere(joint > 0)]
    for run in range(2):
        for k in range(3):
            theta, omega = result.theta[run, k], result.omega[run, k]
            g = np.array([G(problem, theta, omega, x) for x in support])
            check(error, run, k, g, np.array([joint[x] for x in support]), problem.exact.gradient(theta))


@pytest.mark.parametrize(
    "make", [pytest.param(frozen_lake, id="frozen-lake", marks=pytest.mark.long), pytest.param(None, id="garnet")]
)
def test_vr_greedy_gq_over_the_batch_of_the_run(make, garnet_problem):
    problem = make() if make else garnet_problem
    M, every = 40, 10
    theta0 = np.random.default_rng(0).normal(size=problem.dim)
    result = gq.run(
        problem, gq.VRGreedyGQ(0.1, 0.1, M), n_samples=80, n_runs=2, record_every=every, seed=3, theta0=theta0
    )  # fmt: skip
    error = gq.update_error(result)
    for run in range(2):
        path = np.stack(gq.trajectory(problem, 80, seed=3, run=run), axis=1)
        for k in range(8):
            m = k * every // M
            batch = [tuple(map(int, x)) for x in path[m * M : (m + 1) * M]]
            theta, omega = result.theta[run, k], result.omega[run, k]
            tilde = result.theta[run, m * M // every], result.omega[run, m * M // every]
            reference = np.array([G(problem, *tilde, x) for x in batch])
            g = np.array([G(problem, theta, omega, x) for x in batch]) - reference + reference.mean(axis=0)
            check(error, run, k, g, np.full(M, 1 / M), problem.exact.gradient(theta))


def check(error, run, k, g, weight, gradient):
    mean = weight @ g
    assert_close(error.bias_squared[run, k], np.sum((mean - gradient) ** 2), 1e-8)
    variance = weight @ ((g - mean) ** 2).sum(axis=1)
    assert abs(error.variance[run, k] - variance) <= 1e-8 * variance + 1e-25
    squared = ((g - gradient) ** 2).sum(axis=1)
    spread = np.sqrt(max(weight @ squared**2 - (weight @ squared) ** 2, 0) / 500)
    assert abs(error.sampled[run, k] - weight @ squared) <= 5 * spread + 1e-12
    assert_close(error.mean_squared[run, k], weight @ squared, 1e-8)


def test_errors_name_what_is_wrong(garnet_problem):
    result = gq.run(garnet_problem, gq.VRGreedyGQ(batch_size=100), n_samples=200, n_runs=1, record_every=30)
    with pytest.raises(ValueError, match="record_every is 30, which does not divide the batch size 100"):
        gq.update_error(result)
    plain = gq.run(garnet_problem, gq.GreedyGQ(), n_samples=10, n_runs=1)
    with pytest.raises(ValueError, match=r"^update_error needs the problem, and files do not hold it"):
        gq.update_error(replace(plain, problem=None))
    with pytest.raises(
        ValueError, match=r"^result is Problem\(.*\): a result knows its problem, give the result alone$"
    ):
        gq.update_error(garnet_problem)
    with pytest.raises(ValueError, match="expected Greedy-GQ or VR-Greedy-GQ"):
        gq.update_error(gq.run(garnet_problem, gq.ActorCritic(), n_samples=10, n_runs=1))


@pytest.mark.long
def test_errors_are_the_same_bytes_wherever_arrays_lie():
    """A loop of unknown length may be compiled in two ways, and choose by the distance of the arrays that it reads.

    With such loops one call in sixty had other last digits, on threads that share the memory of others.
    """
    mdp = gq.FiniteMDP.from_gymnasium("FrozenLake-v1", discount=0.95)
    table = np.random.default_rng(0).random((mdp.n_states, mdp.n_actions))
    target = gq.FixedPolicy(table / table.sum(axis=1, keepdims=True))
    problem = gq.Problem(mdp, gq.random_features(mdp, dim=8, kind="gaussian"), target=target)
    result = gq.run(problem, gq.VRGreedyGQ(0.2, 0.1, batch_size=3000), 30_000, n_runs=4, record_every=200)

    def errors(k: int) -> bytes:
        others = [np.empty(n) for n in np.random.default_rng(k).integers(1, 120, size=500)]
        return np.stack(gq.update_error(result, n_draws=5)).tobytes() if others else b""

    with ThreadPoolExecutor(6) as pool:
        assert len(set(pool.map(errors, range(240)))) == 1
