"""Problems, random MDPs and features."""

from __future__ import annotations

import numpy as np
import pytest

import gqlab as gq
from conftest import VECTORS, assert_close, problem_of


@pytest.mark.parametrize("seed", range(20))
def test_garnets_are_what_their_name_says(seed):
    mdp = gq.garnet(6, 2, 3, discount=0.8, seed=seed)
    assert ((mdp.transition > 0).sum(axis=-1) == 3).all()
    assert ((mdp.reward >= 0) & (mdp.reward <= 1)).all()
    assert len(np.unique(mdp.reward)) == mdp.reward.size
    K = mdp.chain(np.full((6, 2), 0.5))
    assert (np.linalg.matrix_power(K, 60) > 0).all()  # irreducible and aperiodic


def test_garnets_repeat_by_seed():
    assert np.array_equal(gq.garnet(seed=3).transition, gq.garnet(seed=3).transition)
    assert not np.array_equal(gq.garnet(seed=3).transition, gq.garnet(seed=4).transition)


@pytest.mark.parametrize("kind", ["uniform", "gaussian"])
def test_features_have_unit_rows(kind):
    phi = gq.random_features(gq.garnet(seed=0), dim=6, kind=kind, seed=1)
    assert_close(np.linalg.norm(phi, axis=-1), np.ones((5, 3)), 1e-14)
    assert (phi.min() > 0) == (kind == "uniform")


def test_behaviour_rows_of_terminal_states_are_not_read():
    mdp = problem_of(VECTORS[6]).mdp
    behavior = np.array(VECTORS[6]["behavior"])
    behavior[mdp.terminal] = 0.0
    problem = gq.Problem(mdp, VECTORS[6]["features"], behavior)
    assert_close(problem.exact.stationary, VECTORS[6]["stationary"], 1e-12)
