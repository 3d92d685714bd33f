"""The family at the statistical floor, in a small form: 30,000 samples, ten runs, three Garnets.

With fresh Garnets and seeds a correct implementation would fail how often? Of 200 Garnets, 20000 to 20199, with the same
budget, none broke any of the bounds (largest: SAGA 1.84, streaming 2.09, least squares 1.03, averaging 5.93). So with 95 %
confidence less than 1.5 % of all Garnets do, and less than 4.5 % of tries with three.
"""

from __future__ import annotations

import numpy as np
import pytest

import gqlab as gq

#: The largest multiple of the floor that is allowed.
BOUNDS = {gq.SAGAGreedyGQ: 3.5, gq.StreamingGreedyGQ: 3.5, gq.LeastSquaresGreedyGQ: 1.3, gq.AveragedGreedyGQ: 20.0}


def multiples(seed: int) -> dict[type, float]:
    mdp = gq.garnet(seed=seed)
    problem = gq.Problem(mdp, gq.random_features(mdp, dim=4, seed=seed))
    return {
        kind: gq.run(problem, kind(radius=100.0), 30_000, n_runs=10, seed=seed, theta0=np.ones(4)).floor_multiple()
        for kind in (*BOUNDS, gq.VRGreedyGQ)
    }


@pytest.mark.parametrize("seed", [101, 102, 103])
def test_the_family_is_at_the_floor(seed):
    found = multiples(seed)
    for kind, most in BOUNDS.items():
        assert found[kind] <= most, kind
    assert found[gq.VRGreedyGQ] > 1.5 * found[gq.SAGAGreedyGQ]
