"""The statistical floor against the objective of the samples, computed here sample by sample."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import gqlab as gq
from conftest import assert_close
from gqlab.lab.floor import count_samples, empirical_objective, floors
from gqlab.samples.tables import problem_tables
from helpers.family_loops import empirical


def problem_of(seed: int = 0, target: gq.Operator | None = None, scale: float = 1.0) -> gq.Problem:
    mdp = gq.garnet(seed=seed)
    return gq.Problem(mdp, scale * gq.random_features(mdp, dim=4, seed=seed), target=target)


def terminal_problem() -> gq.Problem:
    rng = np.random.default_rng(3)
    mdp = gq.FiniteMDP(
        rng.dirichlet(np.ones(4), size=(4, 3)), rng.normal(size=(4, 3, 4)), rng.uniform(0.5, 0.95, size=(4, 3, 4)),
        [False, False, True, False], [0.3, 0.4, 0.0, 0.3],
    )  # fmt: skip
    phi = rng.normal(size=(4, 3, 4)) / 2
    phi[2] = 0.0
    return gq.Problem(mdp, phi, rng.dirichlet(2 * np.ones(3), size=4), gq.Softmax(1.3))


def samples_of(problem: gq.Problem, n: int, seed: int, run: int) -> list[tuple[int, int, int]]:
    return list(zip(*(column.tolist() for column in gq.trajectory(problem, n, seed, run)), strict=True))


def test_counts_are_those_of_the_trajectory():
    problem = terminal_problem()
    counts = count_samples(problem, [10, 200], seed=5, runs=[0, 3])
    assert counts.shape == (2, 2, len(problem_tables(problem).transitions))
    for k, n in enumerate((10, 200)):
        for j, run in enumerate((0, 3)):
            seen = samples_of(problem, n, 5, run)
            expected = [seen.count(tuple(x)) for x in problem_tables(problem).transitions.tolist()]
            assert counts[k, j].tolist() == expected


@pytest.mark.parametrize("n", [2, 30, 400])
@pytest.mark.parametrize("problem", [problem_of(), terminal_problem(), problem_of(1, gq.Mellowmax(2.0))], ids=repr)
def test_the_floor_is_a_stationary_point_of_the_samples_own_objective(problem, n):
    found = gq.floor(problem, n, seed=2, run=1, theta0=np.full(4, 0.3), theta=np.full(4, -1.0))
    here = empirical(problem, samples_of(problem, n, 2, 1), found.theta)
    scale = np.abs(here["gradient"]).max() / max(np.abs(here["omega"]).max(), 1e-12)
    assert found.empirical_gradient_squared <= 1e-20
    assert (here["gradient"] ** 2).sum() <= 1e-18, scale
    assert found.empirical_mspbe == pytest.approx(here["J"], abs=1e-14)
    assert found.gradient_squared == pytest.approx(float((problem.exact.gradient(found.theta) ** 2).sum()))


def test_values_and_slopes_of_the_objective_of_samples():
    problem = terminal_problem()
    theta = np.array([0.4, -0.2, 0.1, 0.9])
    here = empirical(problem, samples_of(problem, 300, 2, 1), theta)
    objective = empirical_objective(problem, count_samples(problem, [300], 2, [1])[0])
    at = theta[None, None]
    assert_close(objective.value(at)[0, 0], here["J"], 1e-12)
    assert_close(objective.gradient(at)[0, 0], here["gradient"], 1e-12)
    assert_close(objective.omega(at)[0, 0], here["omega"], 1e-12)
    assert_close(objective.hessian(at)[0, 0], here["H"], 1e-7)


def test_of_two_stationary_points_that_with_the_smaller_objective_is_taken():
    """A problem with several: the floor from both starts is the better one of those from each."""
    differ = 0
    for seed in range(40):
        problem = problem_of(seed, gq.Softmax(5.0))
        counts = count_samples(problem, [400], 0, range(3))[0]
        starts = np.random.default_rng(seed).normal(scale=8.0, size=(3, 2, 4))
        one, other, both = (floors(problem, counts, starts[:, which]) for which in ([0], [1], [0, 1]))
        least = np.fmin(*(np.where(np.isnan(f.gradient_squared), np.inf, f.empirical_mspbe) for f in (one, other)))
        known = np.isfinite(least)
        assert np.array_equal(np.isnan(both.gradient_squared), ~known)
        assert_close(both.empirical_mspbe[known], least[known], 1e-8)
        differ += int((np.abs(one.empirical_mspbe - other.empirical_mspbe) > 1e-6)[known].sum())
        if differ:
            return
    raise AssertionError("no problem had two stationary points")


@pytest.mark.parametrize("kind", [gq.SAGAGreedyGQ, gq.VRGreedyGQ, gq.NestedGreedyGQ])
def test_the_multiple_is_a_ratio_of_means(kind):
    problem = problem_of()
    result = gq.run(problem, kind(radius=50.0), 6050, n_runs=4, seed=3, theta0=np.ones(4))
    n = int(result.samples[-1])
    each = [
        gq.floor(problem, n, seed=3, run=k, theta0=np.ones(4), theta=result.theta[k, -1]).gradient_squared
        for k in range(4)
    ]
    gradient = (problem.exact.gradient(result.theta[:, -1]) ** 2).sum(axis=-1)
    assert result.floor_multiple() == pytest.approx(gradient.mean() / np.mean(each), rel=1e-6)


def test_where_there_is_no_floor_it_says_so():
    """The greedy operator has no zero gradient on most Garnets."""
    lost = 0
    for seed in range(4):
        problem = problem_of(seed, gq.Greedy())
        result = gq.run(problem, gq.GreedyGQ(radius=100.0), 2000, n_runs=2, theta0=np.ones(4))
        counts = count_samples(problem, [2000], 0, range(2))[0]
        starts = np.stack([result.theta[:, 0], result.theta[:, -1]], axis=1)
        if np.isnan(floors(problem, counts, starts).gradient_squared).any():
            with pytest.raises(
                ValueError, match=r"so there is no floor: under Greedy\(\), which is not known to be smooth"
            ):
                result.floor_multiple()
            with pytest.raises(
                ValueError, match=r"^n_samples: no stationary point of the objective made of the 2000 samples"
            ):
                [gq.floor(problem, 2000, run=k, theta0=np.ones(4)) for k in range(2)]
            lost += 1
    assert lost


def test_what_a_floor_is_refused():
    problem = problem_of()
    result = gq.run(problem, gq.GreedyGQ(), 100, n_runs=1)
    with pytest.raises(
        ValueError, match=r"^floor_multiple needs the problem, and files do not hold it: use result\.with"
    ):
        replace(result, problem=None).floor_multiple()
    own = gq.run(problem, gq.PolicyGradient(n_trajectories=2, horizon=5), 100, n_runs=1)
    with pytest.raises(ValueError, match="draws its own trajectories: it has no floor"):
        own.floor_multiple()
    for bad, message in (
        ({"n_samples": 0}, "n_samples is 0"),
        ({"n_samples": 10, "run": -1}, "run is -1"),
        ({"n_samples": 10, "theta0": [1.0]}, "theta0 has shape"),
    ):
        with pytest.raises(ValueError, match=message):
            gq.floor(problem, **bad)


def test_a_number_may_be_an_array_of_one(garnet_problem):
    one, other = (gq.floor(garnet_problem, 300, run=run) for run in (np.array(3), 3))
    assert np.array_equal(one.theta, other.theta)
