"""Whether compiled code looks at the bounds of its arrays: with ``NUMBA_BOUNDSCHECK=1``, as ``make bounds`` runs tests."""

from __future__ import annotations

import numba
import numpy as np
import pytest

import gqlab as gq
from gqlab.algorithms import ALGORITHMS
from gqlab.engine.compiled import entry
from gqlab.lab.execute import PLACES


@entry
def beyond(array, k):
    return array[k]


@pytest.mark.skipif(not numba.config.BOUNDSCHECK, reason="only with NUMBA_BOUNDSCHECK=1")
def test_an_index_beyond_the_end_is_an_error():
    """Without this the job could be clean because nothing is checked."""
    assert beyond(np.arange(3.0), 2) == 2.0
    with pytest.raises(IndexError):
        beyond(np.arange(3.0), 3)


@pytest.mark.skipif(not numba.config.BOUNDSCHECK, reason="only with NUMBA_BOUNDSCHECK=1")
@pytest.mark.parametrize(
    "name",
    [n for n, k in ALGORITHMS.items() if k.__module__.startswith("gqlab.algorithms.") and PLACES["cpu"].takes(k)],
)
def test_no_algorithm_leaves_its_arrays(name):
    """The whole loop: an epoch that ends, restarts, records, watches, and a second call that resumes."""
    mdp = gq.garnet(6, 3, 2, seed=0)
    ends = gq.FiniteMDP(mdp.transition, mdp.reward, 0.9, np.arange(6) == 5, [1, 0, 0, 0, 0, 0])
    problem = gq.Problem(ends, gq.random_features(ends, 9, seed=0))
    algorithm = ALGORITHMS[name]()
    # A watch is compiled with every algorithm, and the same in all: one has it.
    watch = [gq.Watch("gradient"), gq.Watch("reward", n_steps=5)] if name == "GreedyGQ" else None
    half = gq.run(problem, algorithm, 6000, n_runs=3, record_every=700, watch=watch, threads=1)
    assert np.isfinite(gq.run(problem, algorithm, 9000, resume=half, threads=1).theta).all()


@pytest.mark.skipif(not numba.config.BOUNDSCHECK, reason="only with NUMBA_BOUNDSCHECK=1")
@pytest.mark.parametrize(
    "algorithm",
    [
        gq.SARAHGreedyGQ(batch_size=9),
        gq.SARAHGreedyGQ(batch_size=50, growth=1.0, keep="new"),
        gq.VRGreedyGQ(0.1, 0.1, batch_size=50),
        gq.SAGAGreedyGQ(),
        gq.STORMGreedyGQ(),
        gq.StreamingGreedyGQ(first=7),
    ],
    ids=repr,
)
@pytest.mark.parametrize("encoder", [gq.OneHot(6), gq.Fourier(2, low=[0], high=[5])], ids=["sparse", "dense"])
def test_no_fit_leaves_its_arrays(encoder, algorithm):
    """Rows whose number no batch divides: the last epoch is begun, and its batch goes on into the rows again."""
    random = np.random.default_rng(0)
    states = random.integers(6, size=(131, 1)).astype(float)
    data = gq.Transitions.from_arrays(
        states[:-1], random.integers(3, size=130), random.normal(size=130), states[1:], n_actions=3
    )
    assert np.isfinite(gq.fit(data, encoder, algorithm, discount=0.9, n_passes=3).theta).all()
