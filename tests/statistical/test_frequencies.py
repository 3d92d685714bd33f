"""Frequencies of everything that is drawn, by chi-square tests.

Seeds are fixed, so a test passes always or never. LEVEL is the probability that a correct implementation with fresh
seeds would fail one of these tests: below 1e-4 for the whole file.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2_contingency, chisquare

import gqlab as gq
from conftest import VECTORS, problem_of, vector_name

LEVEL = 1e-6


@pytest.mark.parametrize("vector", VECTORS, ids=vector_name)
def test_transitions_follow_behaviour_and_kernel(vector):
    problem = problem_of(vector)
    x = gq.trajectory(problem, 200_000, seed=1)
    joint = problem.behavior[:, :, None] * problem.mdp.transition
    for s in np.flatnonzero(~problem.mdp.terminal):
        here = x.s == s
        counts = np.zeros(joint.shape[1:])
        np.add.at(counts, (x.a[here], x.s_next[here]), 1)
        possible = joint[s] > 0
        assert counts[~possible].sum() == 0
        assert chisquare(counts[possible], joint[s][possible] * here.sum()).pvalue > LEVEL


def test_restarts_and_first_states_follow_the_initial_distribution():
    problem = problem_of(VECTORS[6])
    mdp = problem.mdp
    x = gq.trajectory(problem, 200_000, seed=2)
    after = x.s[1:][mdp.terminal[x.s_next[:-1]]]
    first = [gq.trajectory(problem, 1, seed=3, run=k).s[0] for k in range(3000)]
    for drawn in (after, np.array(first)):
        counts = np.bincount(drawn, minlength=mdp.n_states)
        assert counts[mdp.initial == 0].sum() == 0
        possible = mdp.initial > 0
        assert chisquare(counts[possible], mdp.initial[possible] * counts.sum()).pvalue > LEVEL


def test_without_an_initial_distribution_first_states_are_uniform():
    problem = problem_of(VECTORS[0])
    counts = np.bincount([gq.trajectory(problem, 1, seed=4, run=k).s[0] for k in range(3000)], minlength=5)
    assert chisquare(counts).pvalue > LEVEL


def test_indices_are_uniform_and_independent_of_the_one_before():
    M = 30
    index = gq.check.batch_indices(gq.VRGreedyGQ(batch_size=M), 300_000, seed=5).ravel()
    assert chisquare(np.bincount(index, minlength=M)).pvalue > LEVEL
    pairs = np.zeros((M, M))
    np.add.at(pairs, (index[:-1:2], index[1::2]), 1)
    assert chi2_contingency(pairs).pvalue > LEVEL


@pytest.mark.parametrize("algorithm", [gq.GreedyGQ(), gq.VRGreedyGQ(batch_size=10)], ids=repr)
def test_the_output_iterate_is_uniform(garnet_problem, algorithm):
    result = gq.run(garnet_problem, algorithm, 40, n_runs=20_000, seed=6)
    assert chisquare(np.bincount(result.output_update, minlength=40)).pvalue > LEVEL
    half = gq.run(garnet_problem, algorithm, 20, n_runs=20_000, seed=6)
    resumed = gq.run(garnet_problem, algorithm, 40, resume=half)
    assert chisquare(np.bincount(resumed.output_update, minlength=40)).pvalue > LEVEL


def test_runs_and_seeds_are_independent(garnet_problem):
    """Actions of two runs, and of two seeds, at the same time step."""
    n = 60_000
    one = gq.trajectory(garnet_problem, n, seed=7, run=0).a
    for other in (gq.trajectory(garnet_problem, n, seed=7, run=1).a, gq.trajectory(garnet_problem, n, seed=8, run=0).a):
        table = np.zeros((3, 3))
        np.add.at(table, (one, other), 1)
        assert chi2_contingency(table).pvalue > LEVEL


def test_the_mean_update_of_a_long_run_is_the_exact_one(garnet_problem):
    """The average of G_x over a long trajectory tends to the exact mean: z-score by batch means, level as above."""
    theta = np.array([1.0, -2.0, 0.5, 3.0])
    omega = garnet_problem.exact.omega_star(theta)
    n, parts = 400_000, 100
    x = np.stack(gq.trajectory(garnet_problem, n, seed=9), axis=1)
    kinds, which = np.unique(x, axis=0, return_inverse=True)
    G = np.array([gq.check.pseudo_gradient(garnet_problem, theta, omega, k)[0] for k in kinds])[which.ravel()]
    means = G.reshape(parts, -1, 4).mean(axis=1)
    z = (means.mean(axis=0) - garnet_problem.exact.gradient(theta)) / (means.std(axis=0, ddof=1) / np.sqrt(parts))
    assert (np.abs(z) < 5.2).all()  # Student's t with 99 degrees of freedom: 1e-6 each
