"""Properties that hold for every problem, searched by Hypothesis."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import gqlab as gq
from gqlab.operators import OPERATORS

settings.register_profile("gqlab", deadline=None, max_examples=40, derandomize=True,
                          suppress_health_check=[HealthCheck.too_slow])  # fmt: skip
settings.load_profile("gqlab")


def made_operator(kind: type[gq.Operator], rng: np.random.Generator, S: int, A: int) -> gq.Operator:
    """One with random parameters; a kind that is not listed here has its defaults."""
    arguments = {
        gq.Softmax: lambda: rng.uniform(0, 4),
        gq.Mellowmax: lambda: rng.uniform(0.1, 8),
        gq.EpsilonGreedy: lambda: rng.uniform(),
        gq.FixedPolicy: lambda: rng.dirichlet(np.ones(A), size=S),
    }
    return kind(arguments[kind]()) if kind in arguments else kind()


@st.composite
def problems(draw: st.DrawFn) -> tuple[gq.Problem, np.random.Generator]:
    """Random problems: any operator, any rewards, with or without terminal states and per-transition discounts."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    S, A = draw(st.integers(2, 6)), draw(st.integers(1, 4))
    d = draw(st.integers(1, min(4, S * A - A)))
    P = rng.dirichlet(np.full(S, 0.5), size=(S, A))
    discount = rng.uniform(0, 0.99, size=(S, A, S)) if draw(st.booleans()) else rng.uniform(0, 0.99)
    terminal = initial = None
    if draw(st.booleans()):
        terminal = np.arange(S) == S - 1
        initial = np.append(rng.dirichlet(np.ones(S - 1)), 0.0)
    mdp = gq.FiniteMDP(P, rng.normal(size=(S, A, S)) * 3, discount, terminal, initial)
    behavior = rng.dirichlet(np.full(A, 2.0), size=S)
    operator = made_operator(draw(st.sampled_from(OPERATORS)), rng, S, A)
    problem = gq.Problem(mdp, gq.random_features(mdp, d, "gaussian", seed=int(rng.integers(1000))), behavior, operator)
    assume(np.linalg.cond(problem.exact.feature_covariance) < 1e4)
    return problem, rng


def mean_pseudo_gradient(problem: gq.Problem, theta, omega):
    """The (D, P)-weighted mean of the compiled G_x, H_x over all transitions."""
    mdp, mu = problem.mdp, problem.exact.stationary
    weight = mu[:, None, None] * problem.behavior[:, :, None] * mdp.transition
    G, H = np.zeros((2, problem.dim))
    for x in np.argwhere(weight > 0):
        g, h = gq.check.pseudo_gradient(problem, theta, omega, x)
        G += weight[tuple(x)] * g
        H += weight[tuple(x)] * h
    return G, H


@given(problems())
def test_the_mean_of_G_at_omega_star_is_the_gradient_and_that_of_H_vanishes(case):
    problem, rng = case
    theta = rng.normal(size=problem.dim) * 2
    omega = problem.exact.omega_star(theta)
    G, H = mean_pseudo_gradient(problem, theta, omega)
    scale = 1 + np.abs(omega).max() + np.abs(theta).max()
    assert np.abs(G - problem.exact.gradient(theta)).max() < 1e-10 * scale
    assert np.abs(H).max() < 1e-10 * scale


def smooth(problem: gq.Problem, theta, h: float) -> bool:
    """No greedy action changes within the finite difference."""
    q = np.sort(problem.features @ theta, axis=-1)
    return not isinstance(problem.target, gq.Greedy | gq.EpsilonGreedy) or q.shape[-1] == 1 or (
        np.diff(q, axis=-1).min() > 10 * h * np.abs(problem.features).max()
    )  # fmt: skip


@given(problems())
def test_gradient_is_the_slope_of_the_mspbe(case):
    problem, rng = case
    theta, h = rng.normal(size=problem.dim), 1e-5
    assume(smooth(problem, theta, h))
    steps = theta + h * np.concatenate([np.eye(problem.dim), -np.eye(problem.dim)])
    J = problem.exact.mspbe(steps)
    slope = (J[: problem.dim] - J[problem.dim :]) / (2 * h)
    gradient = problem.exact.gradient(theta)
    assert np.abs(slope - gradient).max() < 1e-5 * (1 + np.abs(gradient).max() + J.max())


@given(problems())
def test_phi_hat_is_the_slope_of_the_value(case):
    """φ̂_s against finite differences of V̄_s, in the NumPy operators."""
    problem, rng = case
    theta, h = rng.normal(size=problem.dim), 1e-6
    assume(smooth(problem, theta, h))
    phi_hat = np.einsum("sa,sai->si", problem.target.weights(problem.features @ theta), problem.features)
    for i in range(problem.dim):
        e = h * np.eye(problem.dim)[i]
        slope = problem.target.value(problem.features @ (theta + e)) - problem.target.value(
            problem.features @ (theta - e)
        )
        assert np.abs(slope / (2 * h) - phi_hat[:, i]).max() < 1e-6 * (1 + np.abs(phi_hat).max())


@given(problems())
def test_the_svrg_correction_vanishes_at_the_reference(case):
    """The first step of an epoch is the batch mean, whichever sample is drawn."""
    problem, rng = case
    theta, omega = rng.normal(size=(2, problem.dim))
    batch = np.stack(gq.trajectory(problem, 12, seed=int(rng.integers(1000))), axis=1)
    algorithm = gq.VRGreedyGQ(0.3, 0.2, 12)
    mean = np.mean([gq.check.pseudo_gradient(problem, theta, omega, x) for x in batch], axis=0)
    scale = 1 + np.abs(mean).max()
    for index in (0, 5, 11):
        after = gq.check.svrg_epoch(problem, algorithm, theta, omega, batch, [index])
        assert np.abs(after[0] - (theta - 0.3 * mean[0])).max() < 1e-12 * scale
        assert np.abs(after[1] - (omega - 0.2 * mean[1])).max() < 1e-12 * scale


@given(problems())
def test_an_inner_step_is_the_corrected_one(case):
    """The second step, written out from single pseudo-gradients."""
    problem, rng = case
    reference = rng.normal(size=(2, problem.dim))
    batch = np.stack(gq.trajectory(problem, 9, seed=int(rng.integers(1000))), axis=1)
    algorithm, eta = gq.VRGreedyGQ(0.3, 0.2, 9), np.array([[0.3], [0.2]])
    at_reference = np.array([gq.check.pseudo_gradient(problem, *reference, x) for x in batch])
    first = reference - eta * at_reference.mean(axis=0)
    j = int(rng.integers(9))
    at_first = np.array(gq.check.pseudo_gradient(problem, *first, batch[j]))
    expected = first - eta * (at_first - at_reference[j] + at_reference.mean(axis=0))
    after = np.array(gq.check.svrg_epoch(problem, algorithm, *reference, batch, [0, j]))
    assert np.abs(after - expected).max() < 1e-11 * (1 + np.abs(expected).max())


@given(problems())
def test_relabelling_states_and_actions_changes_nothing(case):
    problem, rng = case
    mdp, S, A = problem.mdp, problem.mdp.n_states, problem.mdp.n_actions
    theta = rng.normal(size=(3, problem.dim))
    q = np.sort(theta @ problem.features.reshape(-1, problem.dim).T)
    assume(np.diff(q, axis=-1).min() > 1e-9)  # away from ties
    s, a = rng.permutation(S), rng.permutation(A)
    pairs, triples = np.ix_(s, a), np.ix_(s, a, s)
    initial = None if mdp.initial is None else mdp.initial[s]
    P = np.where(mdp.terminal[:, None, None], 1 / S, mdp.transition)
    relabelled = gq.FiniteMDP(P[triples], mdp.reward[triples], mdp.discount[triples], mdp.terminal[s], initial)
    target = (
        gq.FixedPolicy(problem.target.table[pairs]) if isinstance(problem.target, gq.FixedPolicy) else problem.target
    )
    other = gq.Problem(relabelled, problem.features[pairs], problem.behavior[pairs], target)
    for name in ("mspbe", "gradient", "omega_star", "average_reward"):
        first, second = getattr(problem.exact, name)(theta), getattr(other.exact, name)(theta)
        assert np.abs(first - second).max() < 1e-8 * (1 + np.abs(first).max()), name
    assert np.abs(problem.exact.value(theta)[:, s] - other.exact.value(theta)).max() < 1e-8 * (
        1 + np.abs(mdp.reward).max()
    )
    assert np.abs(problem.exact.stationary[s] - other.exact.stationary).max() < 1e-12
    assert np.abs(problem.exact.optimal_value[s] - other.exact.optimal_value).max() < 1e-8 * (
        1 + np.abs(mdp.reward).max()
    )
    assert np.abs(problem.policy(theta)[:, s][:, :, a] - other.policy(theta)).max() < 1e-9


@settings(max_examples=20)
@given(
    n_runs=st.integers(1, 9), threads=st.integers(1, 4), record_every=st.integers(1, 400),
    seed=st.integers(0, 2**64 - 1), vr=st.booleans(),
)  # fmt: skip
def test_a_run_is_the_same_for_any_number_of_runs_threads_and_records(n_runs, threads, record_every, seed, vr):
    mdp = gq.garnet(seed=0)
    problem = gq.Problem(mdp, gq.random_features(mdp, dim=4))
    algorithm = gq.VRGreedyGQ(0.2, 0.1, 60, 3.0) if vr else gq.GreedyGQ(0.2, 0.1, 3.0)
    every = gq.run(problem, algorithm, 300, n_runs=9, seed=seed, record_every=1, threads=1)
    thinned = gq.run(problem, algorithm, 300, n_runs=n_runs, seed=seed, record_every=record_every, threads=threads)
    assert np.array_equal(thinned.theta, every.theta[:n_runs, thinned.updates])
    assert np.array_equal(thinned.omega, every.omega[:n_runs, thinned.updates])
    assert np.array_equal(thinned.output, every.output[:n_runs])
