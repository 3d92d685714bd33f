"""The constants of the theory against random problems and random points: none may ever be exceeded."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gqlab as gq
from gqlab.exact.moments import PossibleTransitions
from gqlab.theory import constants
from gqlab.theory.choose import eta_omega_interval
from gqlab.theory.conditions import conditions, recursion, sides
from gqlab.theory.constants import moments
from gqlab.theory.deviation import deviation, discounted_features
from gqlab.theory.ergodicity import certify, distances
from gqlab.theory.sampled import neighbours, random_points, sampled
from helpers.theory_problems import random_problem

seeds = st.integers(0, 10**6)
radii = st.sampled_from([0.1, 1.0, 10.0, 100.0])

#: Rounding, in ratios of differences as small as 1e-4.
TINY = 1 + 1e-6


@settings(max_examples=150, deadline=None, derandomize=True)
@given(seeds, radii)
def test_no_sampled_norm_or_lipschitz_ratio_exceeds_its_constant(seed: int, radius: float) -> None:
    problem = random_problem(seed)
    seen = sampled(problem, radius, n_points=300, seed=seed)
    for c in (constants.printed(problem, radius), constants.corrected(problem, radius)):
        for name, value in seen.items():
            most = c.parts.get(name, getattr(c, name, np.inf))  # k₁ and k₂ are parts of the printed version alone
            assert value <= most * TINY + 1e-7 * radius, (c.version, name, value, most)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(seeds)
def test_total_variation_distances_never_exceed_the_certificate(seed: int) -> None:
    problem = random_problem(seed)
    pair = certify(problem)
    d = distances(problem, below=1e-12)
    t = np.arange(1, len(d))
    assert d[-1] < 1e-12
    assert (d[1:] <= pair.Lambda * pair.rho**t + 1e-15).all()


@pytest.mark.parametrize("seed", range(12))
def test_total_variation_distances_on_garnets(seed: int) -> None:
    mdp = gq.garnet(seed=seed)
    problem = gq.Problem(mdp, gq.random_features(mdp, dim=4, seed=seed))
    pair, d = certify(problem), distances(problem)
    t = np.arange(1, len(d))
    assert (d[1:] <= pair.Lambda * pair.rho**t + 1e-15).all()


def transitions_chain(problem: gq.Problem) -> tuple[PossibleTransitions, np.ndarray, np.ndarray]:
    """Every sample that can happen, the kernel from one to the next, and their stationary probabilities."""
    x = problem.exact.transitions
    mdp = problem.mdp
    p = problem.behavior[x.s, x.a] * mdp.transition[x.s, x.a, x.s_next]
    follow = np.where(mdp.terminal[x.s_next][:, None], mdp.start, np.eye(mdp.n_states)[x.s_next])  # (N, S)
    return x, follow[:, x.s] * p, problem.exact.stationary[x.s] * p


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seeds, st.integers(1, 40))
def test_exact_variance_of_batch_means_stays_below_v(seed: int, M: int) -> None:
    """E‖Σ_{i<M} F(x_i)‖² by powers of the kernel of whole samples, from the worst first state, against M v."""
    problem = random_problem(seed)
    x, Q, D = transitions_chain(problem)
    u = deviation(problem, certify(problem))
    p = problem.behavior[x.s, x.a] * problem.mdp.transition[x.s, x.a, x.s_next]
    first = np.array([np.where(x.s == s, p, 0.0) for s in np.unique(x.s)])  # P(x_0 | s_0 = s), (n, N)

    def worst(X: np.ndarray) -> float:
        F = X - D @ X
        gram = F @ F.T
        powers = [np.eye(len(Q))]
        for _ in range(M - 1):
            powers.append(powers[-1] @ Q)
        later = np.cumsum([(power * gram).sum(axis=1) for power in powers[1:]], axis=0)  # Σ_{k≤K} E⟨F_0, F_k⟩
        total = np.zeros(len(first))
        for i in range(M):
            now = first @ powers[i]
            total += now @ np.diag(gram)
            if i < M - 1:
                total += 2 * now @ later[M - 2 - i]
        return float(total.max())

    phi = x.phi
    assert worst(x.reward[:, None] * phi) <= M * u.B**2 * (1 + 1e-9) + 1e-13
    assert worst(np.einsum("ni,nj->nij", phi, phi).reshape(len(phi), -1)) <= M * u.C**2 * (1 + 1e-9) + 1e-13
    assert worst(x.gamma[:, None] * phi) <= M * discounted_features(problem, certify(problem)) ** 2 * (1 + 1e-9) + 1e-13
    columns = sum(np.sqrt(worst((x.gamma * (x.s_next == t))[:, None] * phi) / M) for t in range(problem.mdp.n_states))
    assert columns <= u.K * (1 + 1e-9) + 1e-7


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seeds, radii)
def test_uniform_deviation_is_linear_in_the_batch_means(seed: int, radius: float) -> None:
    """For any batch and all θ: ‖G̃(θ,ω*) − ∇J‖ ≤ ‖ΔB‖ + R‖ΔC‖ + (R + Φ̂W)Σ‖ΔK_t‖, and likewise for H̃."""
    problem = random_problem(seed)
    c = constants.corrected(problem, radius)
    rng = np.random.default_rng(seed)
    x, _, _ = transitions_chain(problem)
    weights = rng.dirichlet(np.full(len(x.s), 0.2))  # the frequencies of a batch
    C, b, K = moments(problem)
    one_hot = np.eye(problem.mdp.n_states)[x.s_next]
    dB = np.linalg.norm((weights * x.reward) @ x.phi - b)
    dC = np.linalg.norm(np.einsum("n,ni,nj->ij", weights, x.phi, x.phi) - C)
    dK = np.linalg.norm(np.einsum("n,ni,nt->it", weights * x.gamma, x.phi, one_hot) - K, axis=0).sum()
    theta = random_points(rng, 200, problem.dim, radius)
    star = problem.exact.omega_star(theta)
    G, H = (np.einsum("n,kni->ki", weights, g) for g in problem.exact.sample_gradients(theta, star))
    G = G - problem.exact.gradient(theta)
    most = dB + radius * dC + (radius + c.phi_hat * c.omega_star) * dK
    assert np.linalg.norm(G, axis=1).max() <= most * TINY + 1e-9 * radius
    assert np.linalg.norm(H, axis=1).max() <= (dB + c.parts["U"] * dC + radius * dK) * TINY + 1e-9 * radius


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seeds, radii)
def test_lemmas_on_g_h_and_the_tracking_step(seed: int, radius: float) -> None:
    """Given a batch: Lemmas 3 and 4, E‖g‖² ≤ 5G², and one step of the tracking error, at random points."""
    problem = random_problem(seed)
    c = constants.corrected(problem, radius)
    rng = np.random.default_rng(seed)
    x = problem.exact.transitions
    batch = rng.dirichlet(np.full(len(x.s), 0.2))
    n, d = 40, problem.dim
    theta, omega = random_points(rng, n, d, radius), random_points(rng, n, d, radius)
    theta_ref, omega_ref = neighbours(rng, theta, radius), neighbours(rng, omega, radius)
    star, star_ref = problem.exact.omega_star(theta), problem.exact.omega_star(theta_ref)
    gradient = problem.exact.gradient(theta)

    def square(v: np.ndarray) -> np.ndarray:
        return (v**2).sum(axis=-1)

    def mean(v: np.ndarray) -> np.ndarray:
        return np.einsum("n,kn...->k...", batch, v)

    G, H = problem.exact.sample_gradients(theta, omega)
    G_ref, H_ref = problem.exact.sample_gradients(theta_ref, omega_ref)
    G_star, H_star = problem.exact.sample_gradients(theta, star)
    H_star_ref = problem.exact.sample_gradients(theta_ref, star_ref)[1]
    g = G - G_ref + mean(G_ref)[:, None]
    h = H - H_ref + mean(H_ref)[:, None]
    track, track_ref, moved = square(omega - star), square(omega_ref - star_ref), square(theta - theta_ref)
    bias = square(mean(G_star) - gradient)
    slack = 1e-9 * (1 + radius**2)
    lemma3 = 6 * c.L1**2 * track + 9 * c.L1**2 * track_ref + 9 * c.L2**2 * moved + 9 * bias + 9 * square(gradient)
    assert (mean(square(g)) <= lemma3 * TINY + slack).all()
    lemma4 = 6 * track + 9 * track_ref + 6 * c.L5**2 * moved + 6 * square(mean(H_star_ref))
    assert (mean(square(h)) <= lemma4 * TINY + slack).all()
    assert (mean(square(g)) <= 5 * c.G**2 * TINY).all()
    assert (mean(square(h)) <= 5 * c.H**2 * TINY).all()

    eta_theta, eta_omega = 10 ** rng.uniform(-6, 0), 10 ** rng.uniform(-4, 0)
    theta_new = (theta[:, None] - eta_theta * g).reshape(-1, d)
    norm = np.maximum(1, np.linalg.norm(theta_new, axis=1, keepdims=True) / radius)
    star_new = problem.exact.omega_star(theta_new / norm).reshape(g.shape)  # θ is projected, ω here is not
    after = mean(square(omega[:, None] - eta_omega * h - star_new))
    C_batch = np.einsum("n,ni,nj->ij", batch, x.phi, x.phi) - problem.exact.feature_covariance
    noise = square((omega - star) @ C_batch) + square(mean(H_star))
    step = (
        (1 - 0.5 * c.lambda_C * eta_omega) * track
        + 4 * eta_omega / c.lambda_C * noise
        + 2 * eta_omega**2 * mean(square(h))
        + c.drift * eta_theta**2 / eta_omega * mean(square(g))
    )
    assert (after <= step * TINY + slack).all()


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    seeds,
    st.sampled_from([0.5, 1.0, 20.0]),
    st.sampled_from([1, 100, 10_000]),
    st.sampled_from(["corrected", "printed"]),
)
def test_step_sizes_are_admissible_and_largest(seed: int, radius: float, M: int, version: str) -> None:
    problem = random_problem(seed)
    pair = gq.theory.step_sizes(problem, M, radius=radius, version=version)
    c = getattr(constants, version)(problem, radius)
    assert all(condition.holds for condition in conditions(c, pair.eta_theta, pair.eta_omega, M) if condition.needed)
    assert recursion(c, pair.eta_theta, pair.eta_omega, M).holds
    more = 1.01 * pair.eta_theta
    low, high = eta_omega_interval(c, more, M)
    assert low > high
    needed = {"printed": ["lr-1", "lr-2", "lr-3", "lr-4", "lr-5", "tracking"]}.get(
        version, ["lr-2", "lr-5", "tracking", "c_0"]
    )
    grid = np.geomspace(1e-40, 1.0, 4001)  # and no η_ω of a fine grid either
    values = sides(c, more, grid, M)
    ok = np.ones(len(grid), dtype=bool)
    for label in needed:
        ok &= np.broadcast_to(values[label][0], grid.shape) <= values[label][1]
    assert not ok.any()


@pytest.mark.long
@settings(max_examples=6, deadline=None, derandomize=True)
@given(seeds, st.sampled_from(["corrected", "printed"]))
def test_schedules_satisfy_everything_and_beat_random_ones(seed: int, version: str) -> None:
    problem = random_problem(seed)
    c = getattr(constants, version)(problem, 1.0)
    epsilon = 0.3 * c.C_grad_J**2
    rng = np.random.default_rng(seed)
    theta0 = random_points(rng, 1, problem.dim, 1.0)[0]
    plan = gq.theory.schedule(problem, epsilon, radius=1.0, version=version, theta0=theta0)
    assert plan.bound <= epsilon
    assert all(
        condition.holds
        for condition in conditions(c, plan.eta_theta, plan.eta_omega, plan.batch_size)
        if condition.needed
    )
    assert recursion(c, plan.eta_theta, plan.eta_omega, plan.batch_size).holds
    from gqlab.theory.bound import bound
    from gqlab.theory.choose import start_terms

    start = start_terms(problem, theta0, None, 1.0)
    for _ in range(3000):  # nothing near it does better
        eta_theta, eta_omega, M, T = np.array(
            [plan.eta_theta, plan.eta_omega, plan.batch_size, plan.n_epochs]
        ) * 10 ** rng.uniform(-1, 1, size=4)
        M, T = max(1, round(M)), max(1, round(T))
        if 0.99 * plan.samples <= M * T:
            continue
        fits = all(k.holds for k in conditions(c, eta_theta, eta_omega, M) if k.needed)
        fits = fits and recursion(c, eta_theta, eta_omega, M).holds
        assert not (fits and bound(c, eta_theta, eta_omega, M, T, *start).total <= epsilon)
