"""A grid is its cells, number for number."""

from __future__ import annotations

import numpy as np
import pytest

import gqlab as gq
from conftest import VECTORS, problem_of

PHI = np.random.default_rng(0).normal(size=(4, 2, 3))


def problems(count: int) -> list[gq.Problem]:
    """Different sizes, operators, kernels, terminal states; the same numbers of actions and features."""
    lake = gq.FiniteMDP([[[0.5, 0.5, 0], [0, 0.5, 0.5]], [[0, 0.5, 0.5], [1, 0, 0]], [[1, 0, 0], [1, 0, 0]]],
                        np.ones((3, 2)), 0.9, [False, False, True], [0.5, 0.5, 0.0])  # fmt: skip
    mdps = [gq.garnet(5 + k, 2, 2, seed=k) for k in range(count - 1)] + [lake]
    targets = [
        gq.Softmax(2.0),
        gq.FixedPolicy(np.full((6, 2), 0.5)),
        gq.Greedy(),
        gq.Mellowmax(3.0),
        gq.EpsilonGreedy(0.2),
    ]
    return [
        gq.Problem(mdp, gq.random_features(mdp, dim=3, seed=k), target=target)
        for k, (mdp, target) in enumerate(zip(mdps, targets, strict=True))
    ]


def test_every_cell_is_the_run_of_its_parameters():
    several = problems(5)
    algorithms = gq.vary(gq.GreedyGQ, eta_theta=[0.1, 0.2], radius=2.0)
    algorithms += gq.vary(gq.VRGreedyGQ, eta_omega=0.3, batch_size=[7, 30], radius=2.0)
    grid = gq.grid(several, algorithms, n_samples=100, n_runs=3, seeds=[4, 2**63], record_every=20)
    assert len(grid) == 5 * 4 * 2
    for label, result in grid:
        [algorithm] = [a for a in algorithms if a == result.algorithm]
        alone = gq.run(several[label["problem"]], algorithm, 100, n_runs=3, seed=int(label["seed"]), record_every=20)
        for name in ("theta", "omega", "updates", "samples", "output", "output_update"):
            assert np.array_equal(getattr(result, name), getattr(alone, name)), name
        assert result.metadata == alone.metadata
        assert label["eta_theta"] == algorithm.eta_theta
        assert label["algorithm"] == type(algorithm).__name__


def test_problems_of_different_sizes_run_in_one_call(garnet_problem):
    several = [*problems(5)[:2], garnet_problem]
    grid = gq.grid(several, gq.GreedyGQ(0.1, 0.2), n_samples=100, n_runs=3, record_every=20)
    for label, result in grid:
        alone = gq.run(several[label["problem"]], gq.GreedyGQ(0.1, 0.2), 100, n_runs=3, record_every=20)
        assert result.theta.tobytes() == alone.theta.tobytes()
    assert [result.theta.shape[-1] for result in grid.results] == [3, 3, 4]
    with pytest.raises(ValueError, match=r"theta0 has shape \(3,\), expected \(4,\)"):
        gq.grid(several, gq.GreedyGQ(), n_samples=100, theta0=np.zeros(3))


def test_a_cell_can_be_resumed(garnet_problem):
    grid = gq.grid(garnet_problem, gq.vary(gq.VRGreedyGQ, batch_size=[10, 20]), n_samples=100, n_runs=3, seeds=1)
    [half] = grid.select(batch_size=20).results
    whole = gq.run(garnet_problem, gq.VRGreedyGQ(batch_size=20), 300, n_runs=3, seed=1)
    assert np.array_equal(gq.run(garnet_problem, gq.VRGreedyGQ(batch_size=20), 300, resume=half).theta, whole.theta)


def test_a_cell_of_the_second_problem_can_be_resumed_alone():
    mdps = gq.garnet(3, seed=0), gq.garnet(40, seed=1)
    several = [gq.Problem(mdp, gq.random_features(mdp)) for mdp in mdps]
    for algorithm in (gq.GreedyGQ(), gq.VRGreedyGQ(batch_size=100)):
        half = gq.grid(several, algorithm, 500, n_runs=6).results[1]
        assert (half.state < 40).all()
        resumed, whole = gq.run(several[1], algorithm, 1000, resume=half), gq.run(several[1], algorithm, 1000, n_runs=6)
        for name in ("theta", "omega", "output", "output_update", "state", "next_output"):
            assert np.array_equal(getattr(resumed, name), getattr(whole, name)), name


def test_every_problem_begins_anew_in_its_own_first_states():
    """First states of different problems, and episodes of one step: every sample begins with a draw from them."""
    P = np.zeros((4, 2, 4))
    P[:, :, 3] = 1
    starts = [[0.1, 0.9, 0.0, 0.0], [0.0, 0.8, 0.2, 0.0], [0.3, 0.0, 0.7, 0.0]]
    several = [
        gq.Problem(gq.FiniteMDP(P, np.arange(8.0).reshape(4, 2), 0.9, np.arange(4) == 3, start), PHI)
        for start in starts
    ]
    grid = gq.grid(several, gq.GreedyGQ(0.3, 0.2), 200, n_runs=3, record_every=1)
    for problem, result in zip(several, grid.results, strict=True):
        alone = gq.run(problem, gq.GreedyGQ(0.3, 0.2), 200, n_runs=3, record_every=1)
        assert np.array_equal(result.theta, alone.theta)
        assert np.array_equal(result.state, alone.state)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"problems": []}, "problems is empty"),
        ({"seeds": []}, "seeds is empty"),
        ({"seeds": [0, -1]}, r"seeds\[1\] is -1, expected at least 0"),
        ({"algorithms": [gq.GreedyGQ(), "vr"]}, r"algorithms\[1\] is 'vr', expected one such as"),
        ({"problems": ["lake"]}, r"problems\[0\] is 'lake', expected a Problem"),
    ],
    ids=str,
)
def test_messages(arguments, message):
    with pytest.raises(ValueError, match=message):
        gq.grid(**{"problems": problem_of(VECTORS[0]), "algorithms": gq.GreedyGQ(), "n_samples": 10, **arguments})


def test_an_unknown_label(garnet_problem):
    with pytest.raises(ValueError, match="no label 'eta', expected one of problem, seed, algorithm, eta_theta"):
        gq.grid(garnet_problem, gq.GreedyGQ(), n_samples=10).select(eta=1)


@pytest.mark.parametrize(
    "algorithm",
    [gq.GreedyGQ(0.1, 0.05, 5.0), pytest.param(gq.VRGreedyGQ(0.1, 0.05, 50, 5.0), marks=pytest.mark.long)],
    ids=lambda algorithm: type(algorithm).__name__,
)
def test_single_precision_follows_double(garnet_problem, algorithm):
    kept = {"n_runs": 3, "theta0": np.ones(4)}
    single = gq.run(garnet_problem, algorithm, 500, dtype="float32", **kept)
    double = gq.run(garnet_problem, algorithm, 500, **kept)
    assert single.theta.dtype == np.float32
    assert np.abs(single.theta - double.theta).max() < 1e-4
    assert np.abs(single.theta - double.theta).max() > 0
    longer = gq.run(garnet_problem, algorithm, 700, resume=single)
    assert np.array_equal(longer.theta, gq.run(garnet_problem, algorithm, 700, dtype="float32", **kept).theta)


def test_another_precision_is_refused(garnet_problem):
    with pytest.raises(ValueError, match="dtype is 'float16', expected one of 'float64', 'float32'"):
        gq.run(garnet_problem, gq.GreedyGQ(), dtype="float16")
