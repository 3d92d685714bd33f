"""Step sizes that change, against loops in plain NumPy."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import gqlab as gq
from conftest import assert_close
from gqlab import algorithms
from helpers.plain_loops import greedy_gq, vr_greedy_gq

N, RUNS, SEED = 90, 2, 3
THETA0 = np.array([0.5, -0.5, 1.0, 0.0])

#: η_θ and η_ω: each power that has a form of its own and one that has none, alike, different, and beside a number.
PAIRS = [
    (gq.Decay(0.3, after=20, power=0.5), gq.Decay(0.2, after=50, power=0.5)),
    (gq.Decay(0.3, after=20, power=1), gq.Decay(0.2, after=5, power=0.5)),
    (gq.Decay(0.3, after=20, power=0), gq.Decay(0.2, after=5, power=1)),
    (gq.Decay(0.3, after=20, power=0.7), gq.Decay(0.2, after=7.5, power=0)),
    (gq.Decay(0.3, after=20, power=0.7), 0.2),
    (0.3, gq.Decay(0.2, after=0.5, power=0.7)),
]


def eta_at(eta, t: int) -> float:
    return eta.eta * (1 + t / eta.after) ** -eta.power if isinstance(eta, gq.Decay) else eta


@pytest.mark.parametrize("pair", PAIRS, ids=repr)
@pytest.mark.parametrize("vr", [False, True], ids=["GreedyGQ", "VRGreedyGQ"])
def test_runs_are_the_loop_with_the_step_sizes_of_the_formula(pair, vr, garnet_problem):
    algorithm = replace(gq.VRGreedyGQ(*pair, batch_size=30) if vr else gq.GreedyGQ(*pair), radius=1.5, radius_omega=0.4)
    result = gq.run(garnet_problem, algorithm, N, n_runs=RUNS, seed=SEED, theta0=THETA0, record_every=1)

    def etas(t):
        return eta_at(pair[0], t), eta_at(pair[1], t)

    for run in range(RUNS):
        x = gq.trajectory(garnet_problem, N, SEED, run)
        indices = gq.check.batch_indices(algorithm, N, SEED, run) if vr else None
        expected = (
            vr_greedy_gq(garnet_problem, x, indices, THETA0, np.zeros(4), etas, (1.5, 0.4))
            if vr
            else greedy_gq(garnet_problem, x, THETA0, np.zeros(4), etas, (1.5, 0.4))
        )
        assert_close(result.theta[run], expected[:, 0], 1e-12)
        assert_close(result.omega[run], expected[:, 1], 1e-12)


def test_a_decay_of_power_0_is_the_number(garnet_problem):
    decayed = gq.run(garnet_problem, gq.GreedyGQ(gq.Decay(0.3, power=0), 0.1), N, n_runs=RUNS, seed=SEED)
    plain = gq.run(garnet_problem, gq.GreedyGQ(0.3, 0.1), N, n_runs=RUNS, seed=SEED)
    assert_close(decayed.theta, plain.theta, 1e-12)


@pytest.mark.parametrize("make", [gq.GreedyGQ, lambda *eta: gq.VRGreedyGQ(*eta, batch_size=15)], ids=["plain", "vr"])
def test_a_decay_is_anytime(make, garnet_problem):
    """What is to come changes nothing of what has been, and a run that stops can go on."""
    algorithm = make(*PAIRS[1])
    short, long = (gq.run(garnet_problem, algorithm, n, n_runs=RUNS, seed=SEED, record_every=15) for n in (45, 90))
    assert np.array_equal(short.theta, long.theta[:, :4])
    assert np.array_equal(gq.run(garnet_problem, algorithm, 90, resume=short).theta, long.theta)


def test_a_decay_is_saved_with_the_algorithm(tmp_path, garnet_problem):
    algorithm = gq.GreedyGQ(*PAIRS[3])
    assert algorithms.from_dict(algorithm.to_dict()) == algorithm
    result = gq.run(garnet_problem, algorithm, N, n_runs=RUNS, seed=SEED)
    result.save(tmp_path / "r.npz")
    back = gq.RunResult.load(tmp_path / "r.npz")
    assert back.algorithm == algorithm
    assert back.algorithm.eta_theta == gq.Decay(0.3, after=20.0, power=0.7)


def test_a_grid_is_labelled_with_decays_and_finds_them(garnet_problem):
    decay = gq.Decay(0.3, after=20)
    grid = gq.grid(garnet_problem, gq.vary(gq.GreedyGQ, eta_theta=[0.1, decay, 0.2]), N, n_runs=RUNS)
    assert grid.labels["eta_theta"].tolist() == [0.1, decay, 0.2]
    [found] = grid.select(eta_theta=decay).results
    assert np.array_equal(found.theta, gq.run(garnet_problem, gq.GreedyGQ(decay), N, n_runs=RUNS).theta)


def test_a_decay_can_be_called():
    decay = gq.Decay(2.0, after=10, power=1)
    assert [decay(t) for t in (0, 10, 30)] == [2.0, 1.0, 0.5]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: gq.Decay(0.0), "eta is 0.0, expected a finite number above 0"),
        (lambda: gq.Decay(-1), "eta is -1, expected a finite number above 0"),
        (lambda: gq.Decay("slow"), "eta is 'slow', expected a number"),
        (lambda: gq.Decay(0.1, after=0), "after is 0, expected a finite number above 0"),
        (lambda: gq.Decay(0.1, after=np.inf), "after is inf, expected a finite number above 0"),
        (lambda: gq.Decay(0.1, power=-0.5), "power is -0.5, expected a finite number at least 0"),
        (lambda: gq.Decay(0.1, power=np.nan), "power is nan, expected a finite number at least 0"),
    ],
)
def test_message(make, message):
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        make()
