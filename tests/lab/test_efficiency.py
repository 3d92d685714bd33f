"""The efficiency bounds against finite differences of the law, sums of correlations, and the spread of simulated means."""

from __future__ import annotations

import numpy as np
import pytest

import gqlab as gq
from conftest import assert_close
from gqlab.exact.moments import FeatureMoments
from gqlab.exact.objective import ProjectedBellmanError
from gqlab.lab.efficiency import influence, potentials
from gqlab.lab.floor import count_samples, floors, known_shares
from gqlab.samples.tables import problem_tables


def problem_of(kind: str, seed: int = 0) -> gq.Problem:
    """A Garnet; one with a terminal state, restarts and discounts of its own; a chain of period 2; state 0 transient."""
    rng = np.random.default_rng(seed)
    if kind == "garnet":
        mdp = gq.garnet(seed=seed)
        return gq.Problem(mdp, gq.random_features(mdp, dim=4, seed=seed), target=gq.Mellowmax(2.0) if seed else None)
    P = rng.dirichlet(np.ones(4), size=(4, 3))
    ends, initial = None, None
    if kind == "terminal":
        ends, initial = np.array([False, False, True, False]), np.array([0.3, 0.4, 0.0, 0.3])
    if kind == "periodic":
        P[:2, :, :2] = P[2:, :, 2:] = 0.0
    if kind == "transient":
        P[:, :, 0] = 0.0
    P /= P.sum(axis=-1, keepdims=True)
    mdp = gq.FiniteMDP(P, rng.normal(size=(4, 3, 4)), rng.uniform(0.5, 0.9, size=(4, 3, 4)), ends, initial)
    phi = rng.normal(size=(4, 3, 3)) / 2
    if ends is not None:
        phi[ends] = 0.0
    return gq.Problem(mdp, phi, rng.dirichlet(2 * np.ones(3), size=4), gq.Softmax(1.3))


KINDS = ["garnet", "terminal", "periodic", "transient"]


def gradient_of(problem: gq.Problem, probability: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """∇J(θ) under another law of the possible samples."""
    x = problem.exact.transitions
    weight = probability / probability.sum()
    C = np.einsum("n,ni,nj->ij", weight, x.phi, x.phi)
    b = (weight * x.reward) @ x.phi
    K = np.zeros((problem.dim, problem.mdp.n_states))
    np.add.at(K.T, x.s_next, (weight * x.gamma)[:, None] * x.phi)
    means = FeatureMoments(C[None], b[None], K[None])
    return ProjectedBellmanError(problem.rows, problem.target, means).gradient(theta[None, None])[0, 0]


@pytest.mark.parametrize("kind", KINDS)
def test_the_influence_is_the_derivative_along_the_law(kind):
    problem = problem_of(kind)
    theta = problem.exact.stationary_point()
    psi, p = influence(problem, theta), problem.exact.transitions.probability
    assert np.abs(p @ psi).max() < 1e-10
    rng = np.random.default_rng(0)
    for _ in range(5):
        other = p * rng.uniform(0.5, 1.5, size=len(p))
        change, h = other / other.sum() - p, 1e-4
        slope = (gradient_of(problem, p + h * change, theta) - gradient_of(problem, p - h * change, theta)) / (2 * h)
        assert_close(slope, change @ psi, 1e-6)


@pytest.mark.parametrize("kind", ["garnet", "terminal", "transient"])
def test_the_covariance_is_the_sum_of_all_correlations(kind):
    """Σ = E[ψψᵀ] + Σ_k (E[ψ_0ψ_kᵀ] + its transpose), term by term along the chain of the samples."""
    problem = problem_of(kind)
    theta = problem.exact.stationary_point()
    x, mdp, psi = problem.exact.transitions, problem.mdp, influence(problem, problem.exact.stationary_point())
    step = problem.behavior[x.s, x.a] * mdp.transition[x.s, x.a, x.s_next]
    follow = np.where(mdp.terminal[x.s_next][:, None], mdp.start, np.eye(mdp.n_states)[x.s_next])
    chain = follow[:, x.s] * step  # from sample to sample
    total, later = np.einsum("n,ni,nj->ij", x.probability, psi, psi), psi
    for _ in range(400):
        later = chain @ later
        term = np.einsum("n,ni,nj->ij", x.probability, psi, later)
        total += term + term.T
    bounds = gq.efficiency(problem, theta)
    assert_close(bounds.covariance_unknown, total, 1e-9)
    assert bounds.unknown == pytest.approx(np.trace(total))
    assert bounds.known < bounds.unknown
    assert np.linalg.eigvalsh(bounds.covariance_unknown - bounds.covariance_known).min() > -1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_known_of_the_behaviour_is_the_derivative_along_the_transitions(kind):
    """known = Σ D(s,a) Cov of the slope of ∇J along P(·|s,a), by differences of problems whose P is another one."""
    problem = problem_of(kind)
    theta = problem.exact.stationary_point()
    mdp, mu, h, total = problem.mdp, problem.exact.stationary, 1e-5, 0.0
    for s, a in np.argwhere(mu[:, None] * problem.behavior > 0):
        slopes = {}
        for t in np.flatnonzero(mdp.transition[s, a]):
            moved = []
            for sign in (1, -1):
                P = mdp.transition.copy()
                P[s, a] = (1 - sign * h) * P[s, a] + sign * h * np.eye(mdp.n_states)[t]
                changed = gq.FiniteMDP(P, mdp.reward, mdp.discount, mdp.terminal, mdp.initial)
                moved.append(gq.Problem(changed, problem.features, problem.behavior, problem.target))
            up, down = (np.asarray(other.exact.gradient(theta)) for other in moved)
            slopes[t] = (up - down) / (2 * h)
        p = mdp.transition[s, a, list(slopes)]
        total += (
            mu[s]
            * problem.behavior[s, a]
            * (p @ np.square(list(slopes.values())).sum(axis=1))
            / (mu[s] * problem.behavior[s, a]) ** 2
        )
    if kind == "terminal":  # that the start is estimated too comes on top
        psi = influence(problem, theta)
        U, x = potentials(problem, psi), problem.exact.transitions
        spread = mdp.start @ ((U - mdp.start @ U) ** 2).sum(axis=1)
        total += x.probability[mdp.terminal[x.s_next]].sum() * spread
    assert gq.efficiency(problem, theta).known == pytest.approx(total, rel=1e-4)


@pytest.mark.parametrize("kind", ["garnet", "terminal", "periodic"])
def test_simulated_counts_spread_as_the_bounds_say(kind):
    """2,000 trajectories of 20,000 samples: the covariances of √n ∇J(θ̂) of both plug-ins."""
    problem, n, runs = problem_of(kind), 20_000, 2000
    theta = problem.exact.stationary_point()
    bounds = gq.efficiency(problem, theta)
    counts = count_samples(problem, [n], seed=3, runs=range(runs))[0]
    starts = np.tile(theta, (runs, 1, 1))
    for shares, expected in (
        (counts, bounds.covariance_unknown),
        (known_shares(problem, counts), bounds.covariance_known),
    ):
        gradient = problem.exact.gradient(floors(problem, shares, starts).theta)
        found = n * gradient.T @ gradient / runs
        assert np.trace(found) == pytest.approx(np.trace(expected), rel=0.12)
        assert np.linalg.norm(found - expected) < 0.15 * np.linalg.norm(expected)


def test_a_known_behaviour_keeps_the_marginals_that_are_known():
    problem = problem_of("terminal")
    counts = count_samples(problem, [30, 5000], seed=1, runs=range(3))
    s, a, s_next = problem_tables(problem).transitions.T
    shares = known_shares(problem, counts[1])
    assert_close(shares.sum(axis=1), np.ones(3), 1e-12)
    pair = np.zeros((3, *problem.behavior.shape))
    np.add.at(pair, (slice(None), s, a), shares)
    state = pair.sum(axis=-1, keepdims=True)
    assert_close(pair, state * problem.behavior, 1e-12)  # every state's actions have their exact shares
    entered = np.zeros((3, 4))
    np.add.at(entered, (slice(None), s_next), shares)
    others = [1, 3]
    ended = entered[:, 2]
    met = np.zeros((3, 4))
    np.add.at(met, (slice(None), s), counts[1])
    arrived = np.zeros((3, 4))
    np.add.at(arrived, (slice(None), s_next), counts[1])
    began = np.maximum(met - arrived, 0)
    began /= began.sum(axis=1, keepdims=True)
    assert_close(
        state[:, others, 0], entered[:, others] + ended[:, None] * began[:, others], 1e-12
    )  # and it is stationary
    few = counts[0][:, :]
    assert np.array_equal(known_shares(problem, few[:1] * 0 + np.eye(len(s), dtype=int)[:1]), np.eye(len(s))[:1])


def test_the_floor_of_one_who_knows_the_behaviour():
    problem = problem_of("garnet")
    known = gq.floor(problem, 20_000, seed=4, behavior="known")
    assert known.empirical_gradient_squared <= 1e-20
    counts = count_samples(problem, [20_000], 4, [0])[0]
    again = floors(problem, known_shares(problem, counts), np.zeros((1, 1, 4)))
    assert known.gradient_squared == again.gradient_squared[0]
    with pytest.raises(ValueError, match=r"^behavior is 'both', expected one of 'unknown', 'known'$"):
        gq.floor(problem, 100, behavior="both")


@pytest.mark.parametrize(
    ("target", "theta", "message"),
    [
        (gq.Softmax(1.0), np.ones(4), r"^theta: ‖∇J‖ is .* there, and the bounds are about a stationary point"),
        (gq.Greedy(), np.ones(4), r"^target is Greedy\(\), not a smooth operator"),
        (gq.Softmax(1.0), np.ones(3), "^theta has shape"),
    ],
    ids=range(3),
)
def test_it_refuses_what_it_is_not_about(target, theta, message):
    mdp = gq.garnet(seed=0)
    with pytest.raises(ValueError, match=message) as caught:
        gq.efficiency(gq.Problem(mdp, gq.random_features(mdp, dim=4), target=target), theta)
    assert "\n" not in str(caught.value)
