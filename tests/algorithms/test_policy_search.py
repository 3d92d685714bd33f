"""Actor-critic and policy gradient against expectations and gradients that are computed here, without ratios."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest

import gqlab as gq
from conftest import assert_close
from helpers.policy_steps import actor_critic_direction, policy_gradient_estimate


def problem_of(seed: int, terminal: bool = False, n_actions: int = 3, dim: int = 4) -> gq.Problem:
    """Three states, a behaviour policy that is not uniform, σ ≠ 1; d and A of the usual size."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(3), size=(3, n_actions))
    ends = np.array([False, False, True]) if terminal else None
    initial = np.array([0.3, 0.7, 0.0]) if terminal else rng.dirichlet(np.ones(3))
    mdp = gq.FiniteMDP(P, rng.normal(size=(3, n_actions, 3)), 0.9, ends, initial)
    behavior = rng.dirichlet(2 * np.ones(n_actions), size=3)
    return gq.Problem(mdp, rng.normal(size=(3, n_actions, dim)), behavior, gq.Softmax(1.3))


def scores(problem: gq.Problem, theta: np.ndarray) -> np.ndarray:
    """∇ log π_θ(a|s), (S, A, d), by central differences of log π."""
    h = 1e-6
    steps = h * np.eye(problem.dim)
    up, down = (np.log(problem.policy(theta + sign * steps)) for sign in (1, -1))
    return np.moveaxis((up - down) / (2 * h), 0, -1)


def steps_of(problem: gq.Problem) -> list[tuple[int, int, int]]:
    """Every transition that can happen."""
    mdp = problem.mdp
    return [tuple(map(int, x)) for x in np.argwhere(mdp.transition * problem.behavior[..., None] > 0)]


@pytest.mark.parametrize("terminal", [False, True])
def test_mean_actor_critic_step_is_the_documented_expectation(terminal):
    problem = problem_of(3, terminal)
    rng = np.random.default_rng(0)
    theta, omega = rng.normal(size=(2, problem.dim))
    mdp, mu, pi_b = problem.mdp, problem.exact.stationary, problem.behavior
    mean_theta, mean_omega = np.zeros((2, problem.dim))
    for s, a, s_next in steps_of(problem):
        weight = mu[s] * pi_b[s, a] * mdp.transition[s, a, s_next]
        step = actor_critic_direction(problem, theta, omega, (s, a, s_next))
        mean_theta += weight * step[0]
        mean_omega += weight * step[1]
    pi = problem.policy(theta)
    Q = problem.features @ omega
    V = (pi * Q).sum(axis=-1)
    backup = (mdp.transition * (mdp.reward + mdp.discount * V)).sum(axis=-1)
    # on-policy in the action: π_θ itself, no ratio
    expected_theta = np.einsum("s,sa,sa,sai->i", mu, pi, backup - V[:, None], scores(problem, theta))
    expected_omega = np.einsum("s,sa,sa,sai->i", mu, pi_b, backup - Q, problem.features)
    assert_close(mean_theta, expected_theta, 1e-7)
    assert_close(mean_omega, expected_omega)


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("horizon", [1, 2, 3, 4])
def test_mean_policy_gradient_is_the_enumerated_gradient(horizon, terminal):
    """Over all trajectories under π_b, the mean estimate is the gradient of π_θ's return, by enumeration under π_θ."""
    problem = problem_of(5, terminal, n_actions=2, dim=2)  # every trajectory is enumerated
    mdp, pi_b = problem.mdp, problem.behavior
    theta = np.array([0.4, -0.7])
    estimate = np.zeros(2)
    total = 0.0
    for path in paths(problem, horizon):
        probability = mdp.start[path[0][0]]
        for s, a, s_next in path:
            probability *= pi_b[s, a] * mdp.transition[s, a, s_next]
        total += probability
        estimate += probability * policy_gradient_estimate(problem, theta, path)
    assert abs(total - 1) < 1e-12
    h = 1e-5
    expected = [
        (horizon_return(problem, theta + h * e, horizon) - horizon_return(problem, theta - h * e, horizon)) / (2 * h)
        for e in np.eye(2)
    ]
    assert np.abs(estimate - expected).max() < 1e-8


def paths(problem: gq.Problem, horizon: int) -> list[list[tuple[int, int, int]]]:
    """Every trajectory of ``horizon`` steps; one that arrives in a terminal state ends there."""
    ends = problem.mdp.terminal
    done: list[list[tuple[int, int, int]]] = []
    open_paths = [[x] for x in steps_of(problem) if problem.mdp.start[x[0]] > 0]
    while open_paths:
        path = open_paths.pop()
        if len(path) == horizon or ends[path[-1][2]]:
            done.append(path)
        else:
            open_paths.extend([*path, x] for x in steps_of(problem) if x[0] == path[-1][2])
    return done


def horizon_return(problem: gq.Problem, theta: np.ndarray, horizon: int) -> float:
    """E_π[Σ_{t<H} (Π_{k<t} γ_k) r_t] by backward recursion."""
    mdp, pi = problem.mdp, problem.policy(theta)
    V = np.zeros(mdp.n_states)
    for _ in range(horizon):
        V = np.einsum("sa,sat->s", pi, mdp.transition * (mdp.reward + mdp.discount * V))
    return float(mdp.start @ V)


def test_a_run_of_policy_gradient_is_its_own_update_repeated():
    """One update of many trajectories lands near the exact gradient step; each run has trajectories of its own."""
    problem = problem_of(5)
    theta0 = np.array([0.4, -0.7, 0.2, 0.1])
    algorithm = gq.PolicyGradient(eta_theta=1.0, n_trajectories=20_000, horizon=3)
    result = gq.run(problem, algorithm, n_samples=60_000, n_runs=2, theta0=theta0)
    h = 1e-5
    gradient = [
        (horizon_return(problem, theta0 + h * e, 3) - horizon_return(problem, theta0 - h * e, 3)) / (2 * h)
        for e in np.eye(4)
    ]
    moved = result.theta[:, 1] - theta0
    assert np.abs(moved - gradient).max() < 0.06  # five standard errors of the larger component
    assert not np.array_equal(moved[0], moved[1])


def test_a_run_of_actor_critic_makes_the_documented_steps_on_the_documented_trajectory():
    problem = problem_of(3)
    algorithm = gq.ActorCritic(0.1, 0.05, radius=0.8)
    result = gq.run(problem, algorithm, n_samples=50, n_runs=2, seed=4, record_every=1)
    for run in range(2):
        theta, omega = np.zeros((2, problem.dim))
        samples = gq.trajectory(problem, 50, seed=4, run=run)
        for t, x in enumerate(zip(*samples, strict=True)):
            step = actor_critic_direction(problem, theta, omega, x)
            theta, omega = theta + 0.1 * step[0], omega + 0.05 * step[1]
            theta, omega = (v * min(1, 0.8 / max(np.linalg.norm(v), 1e-300)) for v in (theta, omega))
            assert_close(result.theta[run, t + 1], theta, 1e-9)
            assert_close(result.omega[run, t + 1], omega, 1e-9)


@pytest.mark.parametrize(
    ("algorithm", "n_samples", "every"),
    [(gq.ActorCritic(0.05, 0.05), 3000, 100), (gq.PolicyGradient(0.05, 5, 10), 3000, 7), (gq.QLearning(), 3000, 100)],
    ids=lambda v: type(v).__name__,
)
def test_saving_and_resuming_change_nothing(algorithm, n_samples, every):
    problem = problem_of(3)
    whole = gq.run(problem, algorithm, n_samples=n_samples, n_runs=3, record_every=every)
    half = gq.run(problem, algorithm, n_samples=n_samples // 2, n_runs=3, record_every=every)
    with tempfile.TemporaryDirectory() as folder:
        half.save(Path(folder) / "half.npz")
        half = gq.RunResult.load(Path(folder) / "half.npz")
    assert half.algorithm == algorithm
    resumed = gq.run(problem, algorithm, n_samples=n_samples, resume=half)
    for name in ("theta", "omega", "updates", "samples", "output", "output_update"):
        assert np.array_equal(getattr(whole, name), getattr(resumed, name)), name


def test_results_do_not_depend_on_threads():
    problem = problem_of(3)
    for algorithm in (gq.ActorCritic(), gq.PolicyGradient(0.02, 4, 6)):
        one, two = (gq.run(problem, algorithm, n_samples=2400, n_runs=5, threads=k) for k in (1, 2))
        assert np.array_equal(one.theta, two.theta)


def test_counts_of_policy_gradient():
    algorithm = gq.PolicyGradient(n_trajectories=3, horizon=4)
    result = gq.run(problem_of(3), algorithm, n_samples=50, n_runs=1, record_every=1)
    assert result.updates.tolist() == [0, 1, 2, 3, 4]
    assert result.samples.tolist() == [0, 12, 24, 36, 48]
    assert result.gradient_evaluations.tolist() == [0, 12, 24, 36, 48]


@pytest.mark.long
def test_large_problems_take_sizes_at_run_time():
    """d·A = 80: loops are not unrolled, and the result is still the documented step."""
    mdp = gq.garnet(n_states=30, n_actions=4, branching=3, seed=1)
    problem = gq.Problem(mdp, gq.random_features(mdp, dim=20, kind="gaussian"))
    result = gq.run(problem, gq.ActorCritic(0.1, 0.1), n_samples=2, n_runs=1, record_every=1)
    first = next(zip(*gq.trajectory(problem, 1), strict=True))
    step = actor_critic_direction(problem, np.zeros(20), np.zeros(20), first)
    assert_close(result.omega[0, 1], 0.1 * step[1])
    assert gq.run(problem, gq.PolicyGradient(), n_samples=3600, n_runs=1).updates[-1] == 2


def test_q_learning_is_greedy_gq_without_the_correction():
    problem = gq.baird()
    x = gq.trajectory(problem, 30)
    theta = np.r_[np.ones(6), 10.0]
    for s, a, s_next in zip(*x, strict=True):
        q = problem.features @ theta
        delta = problem.mdp.reward[s, a, s_next] + 0.99 * q[s_next].max() - q[s, a]
        theta = theta + 0.05 * delta * problem.features[s, a]
    result = gq.run(problem, gq.QLearning(0.05), n_samples=30, n_runs=1, theta0=[1, 1, 1, 1, 1, 1, 10])
    assert_close(result.theta[0, -1], theta)
    assert not result.omega.any()


BAIRD = {"n_samples": 300_000, "n_runs": 5, "theta0": np.r_[np.ones(6), 10.0]}


def test_baird_has_a_growing_direction():
    problem = gq.baird()
    assert gq.run(problem, gq.QLearning(0.1), **BAIRD).diverged.all()
    small = gq.run(problem, gq.QLearning(0.01), **BAIRD)
    assert (np.linalg.norm(small.theta[:, -1], axis=-1) > 1e6).all()


@pytest.mark.parametrize(
    "algorithm",
    [gq.GreedyGQ(0.02, 0.02), pytest.param(gq.VRGreedyGQ(0.02, 0.02, batch_size=1000), marks=pytest.mark.long)],
    ids=lambda algorithm: type(algorithm).__name__,
)
def test_others_do_not_follow_it(algorithm):
    problem = gq.baird()
    result = gq.run(problem, algorithm, **BAIRD)
    assert not result.diverged.any()
    assert (problem.exact.mspbe(result.theta[:, -1]) < 1e-3 * problem.exact.mspbe(BAIRD["theta0"])).all()


def test_errors_name_what_is_wrong():
    problem = gq.baird()
    for algorithm in (gq.ActorCritic(), gq.PolicyGradient()):
        with pytest.raises(ValueError, match=r"target is Greedy\(\), but .* needs a softmax policy"):
            gq.run(problem, algorithm)
    with pytest.raises(ValueError, match="omega0 is given, but QLearning has no ω"):
        gq.run(problem, gq.QLearning(), omega0=np.zeros(7))
    with pytest.raises(ValueError, match="an update takes 1800 samples, more than n_samples = 1000"):
        gq.run(problem_of(3), gq.PolicyGradient(), n_samples=1000)
    with pytest.raises(ValueError, match="horizon is 0"):
        gq.PolicyGradient(horizon=0)
    with pytest.raises(ValueError, match="eta_theta is -1"):
        gq.QLearning(eta_theta=-1)
    with pytest.raises(ValueError, match=r"theta has shape \(3,\), expected \(..., 7\)"):
        gq.sampled_reward(problem, np.zeros(3))


def test_sampled_reward_tends_to_the_average_reward():
    mdp = gq.FiniteMDP.from_gymnasium("FrozenLake-v1", is_slippery=False)
    for m in (gq.garnet(seed=3), mdp):
        problem = gq.Problem(m, gq.random_features(m, dim=5, kind="gaussian"))
        theta = np.random.default_rng(1).normal(size=(4, 5))
        sampled = gq.sampled_reward(problem, np.repeat(theta[:, None], 50, axis=1), n_steps=4000)
        error = sampled.std(axis=1) / np.sqrt(50)
        exact = problem.exact.average_reward(theta)
        assert (np.abs(sampled.mean(axis=1) - exact) < 5 * error + 1e-3 * exact).all()
    assert len(set(sampled[0])) > 1


def test_a_grid_of_all_algorithms_is_its_runs_one_by_one():
    problems = [problem_of(seed) for seed in (3, 4)]
    algorithms = [gq.GreedyGQ(), gq.ActorCritic(0.1, 0.1), gq.PolicyGradient(0.1, 3, 5), gq.PolicyGradient(0.1, 4, 5)]
    grid = gq.grid(problems, algorithms, n_samples=600, n_runs=2, record_every=10)
    for k, result in enumerate(grid.results):
        alone = gq.run(problems[k // 4], algorithms[k % 4], n_samples=600, n_runs=2, record_every=10)
        assert result.algorithm == algorithms[k % 4]
        assert np.array_equal(result.theta, alone.theta)
        assert np.array_equal(result.omega, alone.omega)


@pytest.mark.long
def test_single_precision_stays_close():
    problem = problem_of(3)
    for algorithm in (gq.ActorCritic(0.05, 0.05), gq.PolicyGradient(0.05, 5, 10)):
        double, single = (gq.run(problem, algorithm, n_samples=500, n_runs=2, dtype=t) for t in ("float64", "float32"))
        assert single.theta.dtype == np.float32
        assert np.abs(double.theta - single.theta).max() < 1e-3


@pytest.mark.parametrize("algorithm", [gq.ActorCritic(), gq.PolicyGradient(0.02, 4, 6), gq.QLearning()], ids=repr)
def test_the_first_record_is_the_first_point(algorithm):
    problem = problem_of(3)
    theta0 = np.random.default_rng(0).normal(size=(3, 4))
    result = gq.run(problem, algorithm, n_samples=240, n_runs=3, theta0=theta0)
    assert np.array_equal(result.theta[:, 0], theta0)
    assert not result.omega[:, 0].any()
