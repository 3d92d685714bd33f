"""The family of estimators against plain NumPy loops, and against the cases that are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gqlab as gq
from conftest import assert_close
from gqlab.lab.floor import count_samples, empirical_objective, known_shares
from gqlab.samples.random import BATCH_INDEX, below, stream_key, word
from helpers import family_loops

N = 130

#: For each member step sizes of the kind that it has by itself: the other kind would be code of its own to compile.
DECAYING, CONSTANT = (gq.Decay(0.5, after=40.0), gq.Decay(0.3, after=40.0)), (0.3, 0.2)


def problem_of(kind: str) -> gq.Problem:
    """Two problems of one size: a Garnet, and one with a terminal state, restarts and a discount for each transition."""
    if kind == "garnet":
        mdp = gq.garnet(seed=0)
        return gq.Problem(mdp, gq.random_features(mdp, dim=4))
    rng = np.random.default_rng(3)
    P = rng.dirichlet(np.ones(4), size=(4, 3))
    ends, initial = np.array([False, False, True, False]), np.array([0.3, 0.4, 0.0, 0.3])
    mdp = gq.FiniteMDP(P, rng.normal(size=(4, 3, 4)), rng.uniform(0.5, 0.95, size=(4, 3, 4)), ends, initial)
    phi = rng.normal(size=(4, 3, 4)) / 2
    phi[ends] = 0.0
    return gq.Problem(mdp, phi, rng.dirichlet(2 * np.ones(3), size=4), gq.Softmax(1.3))


#: The algorithm, and the plain loop with its parameters.
CASES: dict[str, tuple[gq.Algorithm, Callable, dict[str, Any]]] = {
    "averaged": (gq.AveragedGreedyGQ(*DECAYING), family_loops.averaged, {}),
    "SAGA": (gq.SAGAGreedyGQ(*DECAYING), family_loops.saga, {}),
    "streaming": (
        gq.StreamingGreedyGQ(*DECAYING, first=7, growth=1.7), family_loops.streaming, {"first": 7, "growth": 1.7}
    ),
    "STORM": (gq.STORMGreedyGQ(*DECAYING, a=0.8, power=0.7), family_loops.storm, {"a": 0.8, "power": 0.7}),
    "ROOT": (gq.STORMGreedyGQ(*DECAYING), family_loops.storm, {"a": 1.0, "power": 1.0}),
    "STORM, constant a": (gq.STORMGreedyGQ(*DECAYING, a=0.1, power=0.0), family_loops.storm, {"a": 0.1, "power": 0.0}),
    "SARAH": (
        gq.SARAHGreedyGQ(*DECAYING, batch_size=9), family_loops.sarah, {"M": 9, "growth": 2.0, "keep": "all"}
    ),
    "SARAH, new samples": (
        gq.SARAHGreedyGQ(*DECAYING, batch_size=9, growth=1.3, keep="new"),
        family_loops.sarah,
        {"M": 9, "growth": 1.3, "keep": "new"},
    ),
    "SVRG, new samples": (
        gq.VRGreedyGQ(*CONSTANT, batch_size=9, growth=1.5), family_loops.svrg, {"M": 9, "growth": 1.5, "keep": "new"}
    ),
    "SVRG, all samples": (
        gq.VRGreedyGQ(*CONSTANT, batch_size=9, growth=1.5, keep="all"),
        family_loops.svrg,
        {"M": 9, "growth": 1.5, "keep": "all"},
    ),
    "SVRG, all samples, no growth": (
        gq.VRGreedyGQ(*CONSTANT, batch_size=20, keep="all"), family_loops.svrg, {"M": 20, "growth": 1.0, "keep": "all"}
    ),
    "nested": (
        gq.NestedGreedyGQ(*CONSTANT, inner_steps=5, batch_size=3), family_loops.nested, {"inner_steps": 5, "batch_size": 3}
    ),
}  # fmt: skip


def samples_of(problem: gq.Problem, seed: int, run: int) -> list[tuple[int, int, int]]:
    return list(zip(*(column.tolist() for column in gq.trajectory(problem, N, seed, run)), strict=True))


def loop_of(name: str, problem: gq.Problem, seed: int, run: int, radii: tuple[float, float]):
    """The plain loop's answers and last ω."""
    algorithm, loop, parameters = CASES[name]
    if loop in (family_loops.svrg, family_loops.sarah):
        draws = stream_key(np.uint64(seed), run, BATCH_INDEX)
        parameters = parameters | {"index": lambda u, n: int(below(np.uint64(word(np.uint64(draws), u)), n))}
    z = np.array([np.full(4, 0.6), np.zeros(4)])
    steps = algorithm.eta_theta, algorithm.eta_omega
    etas = lambda t: tuple(eta(t) if isinstance(eta, gq.Decay) else eta for eta in steps)  # noqa: E731
    return loop(problem, samples_of(problem, seed, run), z, etas, radii, **parameters)


@pytest.mark.parametrize("kind", ["garnet", "terminal"])
@pytest.mark.parametrize("radii", [(np.inf, np.inf), (1.25, 0.3)], ids=["free", "projected"])
@pytest.mark.parametrize("name", CASES)
def test_every_member_is_its_formula_on_the_samples_of_the_run(name, radii, kind):
    problem = problem_of(kind)
    algorithm = replace(CASES[name][0], radius=radii[0], radius_omega=radii[1])
    result = gq.run(problem, algorithm, N, n_runs=2, seed=4, theta0=np.full(4, 0.6), record_every=1)
    for run in range(2):
        theta, omega = loop_of(name, problem, 4, run, radii)
        assert_close(result.theta[run], theta)
        assert_close(result.omega[run, -1], omega)
        for wide in ((np.inf, radii[1]), (radii[0], np.inf)):
            if np.isfinite(radii[0]) and kind == "garnet":  # either ball was felt
                free, _ = loop_of(name, problem, 4, run, wide)
                assert np.abs(free - theta).max() > 1e-3


@pytest.mark.parametrize("kind", ["garnet", "terminal"])
@pytest.mark.parametrize("radius", [np.inf, 2.0], ids=["free", "ball"])
def test_least_squares_is_the_stationary_point_of_its_samples(kind, radius):
    problem = problem_of(kind)
    algorithm = gq.LeastSquaresGreedyGQ(first=20, growth=1.5, radius=radius)
    result = gq.run(problem, algorithm, N, n_runs=1, seed=4, theta0=np.full(4, 0.6), record_every=1)
    samples = samples_of(problem, 4, 0)
    z = np.array([np.full(4, 0.6), np.zeros(4)])
    theta, omega = family_loops.least_squares(problem, samples, z, radius, 20, 1.5)
    stationary = np.linalg.norm(family_loops.empirical(problem, samples[:101], theta[101])["gradient"]) < 1e-10
    assert stationary or np.isfinite(radius)
    assert_close(result.theta[0], theta, 1e-10 if stationary else 1e-4)
    assert np.abs(result.omega[0, -1] - omega).max() <= (1e-10 if stationary else 1e-4)


KNOWN = gq.LeastSquaresGreedyGQ(first=20, growth=1.5, behavior="known")


def known_slope(problem: gq.Problem, n: int, seed: int, run: int, theta: np.ndarray) -> float:
    """‖∇Ĵ‖ of the objective of π_b P̂, made in NumPy, whose μ̂ comes from elimination."""
    shares = known_shares(problem, count_samples(problem, [n], seed, [run])[0])
    return float(np.linalg.norm(empirical_objective(problem, shares).gradient(theta[None, None])))


@pytest.mark.parametrize("kind", ["garnet", "terminal"])
def test_least_squares_that_know_the_behaviour_are_the_stationary_point_of_its_chain(kind):
    problem = problem_of(kind)
    result = gq.run(problem, KNOWN, 2000, n_runs=3, seed=4, record_every=1)
    plain = gq.run(problem, gq.LeastSquaresGreedyGQ(first=20, growth=1.5), 2000, n_runs=3, seed=4, record_every=1)
    moments = KNOWN.moments(2001)
    for run in range(3):
        slopes = [known_slope(problem, n, 4, run, result.theta[run, n]) for n in moments]
        assert max(slopes) < 1e-10, slopes
    early, late = moments[0], moments[-1]
    assert np.abs(result.theta[:, late] - plain.theta[:, late]).max() > 1e-4
    counts = count_samples(problem, [early], 4, range(3))[0]
    unsure = [k for k in range(3) if np.allclose(known_shares(problem, counts)[k], counts[k] / early)]
    for run in unsure:  # some action has not been tried: the plain form
        assert_close(result.theta[run, early], plain.theta[run, early], 1e-8)


def test_least_squares_that_know_the_behaviour_resume_and_share_a_call():
    small = problem_of("garnet")
    mdp = gq.garnet(n_states=9, n_actions=3, branching=4, seed=1)
    large = gq.Problem(mdp, gq.random_features(mdp, dim=4))
    grid = gq.grid([large, small, large], KNOWN, 300, n_runs=2)
    for problem, result in zip([large, small, large], grid.results, strict=True):
        again = gq.run(problem, KNOWN, 700, resume=result)
        whole = gq.run(problem, KNOWN, 700, n_runs=2)
        assert np.array_equal(again.theta, whole.theta)
        assert set(whole.memory) == {"theta", "theta_start", "next", "next_anew", "count", "mu"}
        assert whole.memory["count"].shape == (2, len(problem.exact.transitions.s))
        assert_close(whole.memory["mu"].sum(axis=1), np.ones(2), 1e-12)


def test_a_chain_of_period_two_settles_too():
    P = np.zeros((4, 3, 4))
    P[:2, :, 2:], P[2:, :, :2] = 0.5, [0.3, 0.7]
    mdp = gq.FiniteMDP(P, np.random.default_rng(0).normal(size=(4, 3)), 0.9)
    problem = gq.Problem(mdp, gq.random_features(mdp, dim=4), target=gq.Softmax(1.0))
    result = gq.run(problem, KNOWN, 1000, n_runs=1, seed=1, record_every=1)
    last = int(KNOWN.moments(1001)[-1])
    assert known_slope(problem, last, 1, 0, result.theta[0, last]) < 1e-9


def test_knowing_the_behaviour_needs_a_problem():
    assert repr(KNOWN).endswith("behavior='known')")
    assert "behavior" not in gq.LeastSquaresGreedyGQ().to_dict()
    data = gq.collect("FrozenLake-v1", n_steps=50, seed=0)
    for call in (
        lambda: gq.fit(data, gq.OneHot(16), KNOWN, discount=0.9),
        lambda: gq.Agent("CartPole-v1", gq.Fourier(1), KNOWN),
        lambda: gq.run(problem_of("garnet"), KNOWN, 100, n_runs=1, device="cuda"),
    ):
        with pytest.raises(ValueError, match=r"which needs .* does not offer that") as caught:
            call()
        assert "\n" not in str(caught.value)


# --- Special cases --------------------------------------------------------------------------------------------------


def theta_of(problem: gq.Problem, algorithm: gq.Algorithm, n: int = 200, **more) -> np.ndarray:
    return gq.run(problem, algorithm, n, n_runs=2, theta0=np.full(4, 0.6), record_every=1, **more).theta


def test_growth_1_with_new_samples_is_algorithm_1_bit_for_bit():
    problem, usual = problem_of("garnet"), gq.VRGreedyGQ(batch_size=20)
    same = gq.VRGreedyGQ(batch_size=20, growth=1.0, keep="new")
    assert usual == same
    assert usual.to_dict() == {
        "name": "VRGreedyGQ", "eta_theta": 0.02, "eta_omega": 0.01, "batch_size": 20, "radius": np.inf
    }  # fmt: skip
    x, indices = gq.trajectory(problem, 200), gq.check.batch_indices(same, 200)
    z = np.full(4, 0.6), np.zeros(4)
    for m in range(10):
        batch = gq.Trajectory(*(column[20 * m : 20 * m + 20] for column in x))
        z = gq.check.svrg_epoch(problem, same, *z, batch, indices[m])
        assert_close(theta_of(problem, same)[0, 20 * m + 20], z[0], 1e-13)


def test_storm_with_a_1_and_one_inner_step_are_the_cases_that_are_known():
    problem, etas = problem_of("garnet"), DECAYING
    plain = theta_of(problem, gq.GreedyGQ(*etas))
    assert_close(theta_of(problem, gq.STORMGreedyGQ(*etas, a=1.0, power=0.0)), plain, 1e-12)
    means = np.cumsum(plain[:, 1:], axis=1) / np.arange(1, 201)[:, None]
    assert_close(theta_of(problem, gq.AveragedGreedyGQ(*etas))[:, 1:], means, 1e-12)


@pytest.mark.parametrize("kind", [gq.AveragedGreedyGQ, gq.SAGAGreedyGQ, gq.StreamingGreedyGQ, gq.STORMGreedyGQ,
                                  gq.SARAHGreedyGQ, gq.NestedGreedyGQ, gq.LeastSquaresGreedyGQ])  # fmt: skip
def test_the_size_of_the_features_does_not_matter(kind):
    """With features c·φ and the default steps, θ/c has the values that θ has with φ."""
    problem = problem_of("garnet")
    larger = gq.Problem(problem.mdp, 8.0 * problem.features)
    usual = gq.run(problem, kind(), 400, n_runs=2, theta0=np.full(4, 0.8))
    scaled = gq.run(larger, kind(), 400, n_runs=2, theta0=np.full(4, 0.1))
    assert_close(8.0 * scaled.theta, usual.theta, 1e-9)
    if kind is not gq.LeastSquaresGreedyGQ:
        largest = (problem.features**2).sum(axis=-1).max()
        assert usual.algorithm.eta_theta == (0.32 / largest if kind is gq.NestedGreedyGQ else gq.Decay(0.32 / largest))
        given = kind(eta_theta=0.5)
        assert given.for_problem(larger).eta_theta == 0.5  # one that is given is taken as it is
        assert given.for_problem(larger).eta_omega == kind().for_problem(larger).eta_omega


@pytest.mark.parametrize("kind", [gq.SAGAGreedyGQ, gq.LeastSquaresGreedyGQ])
def test_what_is_kept_in_a_grid_is_what_the_problem_needs(kind):
    """Cells of one call share arrays of the largest size; each is resumed as if it had been alone."""
    small = problem_of("garnet")
    mdp = gq.garnet(n_states=9, n_actions=3, branching=4, seed=1)
    large = gq.Problem(mdp, gq.random_features(mdp, dim=4))
    grid = gq.grid([large, small, large], kind(), 300, n_runs=2)
    for problem, result in zip([large, small, large], grid.results, strict=True):
        alone = gq.run(problem, kind(), 300, n_runs=2)
        assert {name: array.shape for name, array in result.memory.items()} == {
            name: array.shape for name, array in alone.memory.items()
        }
        again = gq.run(problem, kind(), 600, resume=result)
        assert np.array_equal(again.theta, gq.run(problem, kind(), 600, n_runs=2).theta)


def test_the_family_takes_a_fixed_policy_and_ends_at_its_fixed_point():
    problem = problem_of("garnet")
    policy = np.random.default_rng(0).dirichlet(np.ones(3), size=5)
    evaluation = gq.Problem(problem.mdp, problem.features, target=gq.FixedPolicy(policy))
    for kind in (gq.AveragedGreedyGQ, gq.SAGAGreedyGQ, gq.StreamingGreedyGQ, gq.LeastSquaresGreedyGQ):
        result = gq.run(evaluation, kind(), 100_000, n_runs=3)
        assert result.floor_multiple() < 4, kind


# --- Counts ---------------------------------------------------------------------------------------------------------


def test_what_the_members_cost():
    u = np.array([0, 1, 9, 10, 30, 31, 70])
    growing = gq.VRGreedyGQ(batch_size=10, growth=2.0)
    assert growing.epoch_ends(70).tolist() == [0, 10, 30, 70]
    assert growing.samples(u).tolist() == [0, 10, 10, 10, 30, 70, 70]
    assert growing.gradient_evaluations(u).tolist() == [0, 12, 28, 30, 90, 132, 210]
    everything = replace(growing, keep="all")
    assert everything.gradient_evaluations(u).tolist() == [0, 12, 28, 30, 100, 172, 250]
    assert growing.n_updates(69) == 30
    assert growing.whole(u).tolist() == [0, 10, 10, 10, 30, 70, 70]
    assert gq.VRGreedyGQ(batch_size=10, growth=1.5).epoch_ends(60).tolist() == [0, 10, 25, 48, 82]
    assert gq.STORMGreedyGQ().gradient_evaluations(u).tolist() == [0, 1, 17, 19, 59, 61, 139]
    streaming = gq.StreamingGreedyGQ(first=10, growth=2.0)
    assert streaming.gradient_evaluations(u).tolist() == [0, 1, 9, 11, 30 + 21 + 30, 31 + 22 + 30, 70 + 61 + 70]
    assert gq.LeastSquaresGreedyGQ().gradient_evaluations(u).tolist() == [0] * 7
    nested = gq.NestedGreedyGQ(inner_steps=3, batch_size=2)
    assert nested.samples(u).tolist() == (5 * u).tolist()
    assert nested.n_updates(14) == 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: gq.VRGreedyGQ(growth=0.5), "growth is 0.5, expected a finite number at least 1"),
        (lambda: gq.VRGreedyGQ(keep="old"), "keep is 'old', expected one of 'new', 'all'"),
        (lambda: gq.STORMGreedyGQ(a=0), "a is 0, expected a finite number above 0"),
        (lambda: gq.STORMGreedyGQ(power=-1), "power is -1"),
        (lambda: gq.StreamingGreedyGQ(first=0), "first is 0"),
        (lambda: gq.StreamingGreedyGQ(growth=1.0), "growth is 1.0, expected a finite number above 1"),
        (lambda: gq.LeastSquaresGreedyGQ(growth=float("nan")), "growth is nan"),
        (lambda: gq.LeastSquaresGreedyGQ(behavior="half"), "behavior is 'half', expected one of 'unknown', 'known'"),
        (lambda: gq.NestedGreedyGQ(inner_steps=0), "inner_steps is 0"),
        (lambda: gq.NestedGreedyGQ(batch_size=1.5), "batch_size is 1.5"),
        (lambda: gq.SAGAGreedyGQ(eta_theta=-1.0), "eta_theta is -1.0"),
        (lambda: gq.AveragedGreedyGQ(radius=0), "radius is 0"),
        (lambda: gq.check.batch_indices(gq.VRGreedyGQ(growth=2.0), 9000), "has growing batches"),
        (lambda: gq.check.batch_indices(gq.NestedGreedyGQ(), 9000), "has no batches"),
    ],
    ids=range(14),
)
def test_bad_parameters_get_one_line(make, message):
    with pytest.raises(ValueError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_least_squares_is_a_method_for_the_cpu():
    with pytest.raises(
        ValueError, match=r"needs the linear algebra of a CPU: gqlab.run on device 'cuda' does not offer"
    ):
        gq.run(problem_of("garnet"), gq.LeastSquaresGreedyGQ(), 100, n_runs=1, device="cuda")
