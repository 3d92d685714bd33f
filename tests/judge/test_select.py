"""select(): fitted to one part of the episodes, judged by the other."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import gqlab as gq
from gqlab.judge.decision import DecisionRow
from gqlab.judge.selecting import on_choice
from gqlab.judge.simulated import sampled_log
from gqlab.mdp.values import policy_value

S, A = 6, 3
GARNET = gq.garnet(S, A, 3, discount=0.9, seed=33)
BEHAVIOR = np.random.default_rng(0).dirichlet(np.full(A, 5.0), size=S)
LOG = sampled_log(GARNET, BEHAVIOR, 4000, 40, seed=2)
HOW = {"features": "tabular", "seed": 4}


def true_value(model):
    return policy_value(GARNET, model.probabilities(np.arange(float(S))[:, None])).mean()


def test_the_choice_has_the_largest_lower_bound_on_episodes_that_it_was_not_fitted_to():
    candidates = {
        "plain": gq.FittedQ(n_iterations=60),
        "little": gq.FittedQ(ridge=10.0, n_iterations=5),
        "LSPI": gq.LSPI(),
    }
    found = gq.select(LOG, candidates, gq.OneHot(S), 0.9, **HOW)
    fitted_to, judging = LOG.split(0.5, 4)
    model = gq.fit(fitted_to, gq.OneHot(S), candidates["plain"], discount=0.9, progress=False)
    assert np.array_equal(found.models["plain"].theta, model.theta)
    assert found.decision == gq.decide(judging, found.models, 0.9, **HOW)
    bounds = {name: row.gain_low for name, row in found.decision.items()}
    assert bounds[found.choice] == max(bounds.values()) > 0
    assert found.model is found.models[found.choice]
    assert true_value(found.model) > policy_value(GARNET, BEHAVIOR).mean()
    assert found.sentence.startswith(f"Take {found.choice}: it gains ")
    assert found.sentence in str(found)
    assert found.choice in found._repr_html_()
    assert not found.refitted


def test_refitted_the_claim_is_of_the_half():
    found = gq.select(LOG, {"LSPI": gq.LSPI()}, gq.OneHot(S), 0.9, refit=True, **HOW)
    whole = gq.fit(LOG, gq.OneHot(S), gq.LSPI(), discount=0.9, progress=False)
    assert np.array_equal(found.model.theta, whole.theta)
    assert not np.array_equal(found.model.theta, found.models["LSPI"].theta)
    assert found.refitted
    n = LOG.split(0.5, 4)[0].n_rows
    assert found.notes == (
        f"The model is fitted to all 4,000 rows; what is said of it is said of a fit to {n:,} of them, which the others judged.",
    )


def test_what_runs_now_is_kept_where_nothing_is_surely_better():
    few = sampled_log(GARNET, BEHAVIOR, 60, 6, seed=2)
    found = gq.select(few, {"LSPI": gq.LSPI()}, gq.OneHot(S), 0.9, refit=True, **HOW)
    assert (found.choice, found.model, found.refitted) == (None, None, False)
    assert found.sentence == (
        "Keep what runs now: LSPI is not better with 95 % confidence; the log has too few rows of what LSPI does."
    )


def test_candidates_may_have_encoders_and_passes_of_their_own():
    candidates = {
        "shared": gq.LSPI(),
        "own": (gq.LSPI(), gq.Fourier(1)),
        "passes": (gq.QLearning(0.1), None, 2),
    }
    models = gq.select(LOG, candidates, gq.OneHot(S), 0.9, **HOW).models
    fitted_to, _ = LOG.split(0.5, 4)
    how = {"discount": 0.9, "seed": 4, "progress": False}
    assert np.array_equal(models["shared"].theta, gq.fit(fitted_to, gq.OneHot(S), gq.LSPI(), **how).theta)
    assert np.array_equal(models["own"].theta, gq.fit(fitted_to, gq.Fourier(1), gq.LSPI(), **how).theta)
    learned = gq.fit(fitted_to, gq.OneHot(S), gq.QLearning(0.1), n_passes=2, **how)
    assert np.array_equal(models["passes"].theta, learned.theta)


def test_a_choice_whose_verdict_is_open_beside_the_others_is_explained():
    """Holm's rule asks more of one policy among many than its own lower bound does."""
    row = DecisionRow("a", 2.0, 1.0, 3.0, 0.5, 0.01, 1.0, "cannot say", 500.0, 0.0, 0.0)
    assert "its verdict is open, by Holm's rule" in on_choice(row)[0]
    assert on_choice(replace(row, verdict="better")) == []
    assert "the log is thin" in on_choice(replace(row, effective_rows=50.0))[0]


@pytest.fixture
def diverging():
    """Fitted Q iteration on this log doubles θ each time: features 1 and 2 of two states, and no reward but a little."""
    n = 60
    states = np.tile([1.0, 2.0], n // 2)
    return gq.Transitions.from_arrays(
        states, np.zeros(n, int), np.full(n, 1.0), np.full(n, 2.0), truncated=np.arange(n) % 6 == 5, n_actions=2
    )


def test_a_candidate_that_diverged_is_named_and_not_judged(diverging):
    encoder = gq.Identity(bias=False, scale=False)
    wild = gq.FittedQ(ridge=0.0, n_iterations=3000)
    candidates = {"wild": wild, "tame": gq.FittedQ(ridge=100.0, n_iterations=3)}
    found = gq.select(diverging, candidates, encoder, 0.999, features="tabular")
    assert found.models["wild"].metadata["diverged"]
    assert list(found.decision) == ["tame"]
    assert found.notes[0] == "wild: Its fit diverged: it is not judged."
    alone = gq.select(diverging, {"wild": wild}, encoder, 0.999, features="tabular")
    assert (alone.choice, alone.decision) == (None, None)
    assert "wild: Its fit diverged" in str(alone)


@pytest.mark.parametrize(
    ("candidates", "more", "message"),
    [
        ({}, {}, "candidates is empty, expected at least one"),
        ([gq.LSPI()], {}, "candidates is .*, expected a dict of names and algorithms"),
        ({"a": (gq.LSPI(), None, 1, 1)}, {}, r"candidates\['a'\] has 4 parts, expected \(algorithm, encoder\) or"),
        ({"a": 3}, {}, r"candidates\['a'\]: algorithm is 3, expected one such as"),
        ({"a": gq.LSPI()}, {"split": 1.0}, "split is 1.0, expected a finite number above 0 and below 1"),
        ({"a": gq.LSPI()}, {"refit": 1}, "refit is 1, expected True or False"),
        ({"a": gq.LSPI()}, {"discount": 1.0}, "discount is 1.0"),
        ({"log": gq.LSPI()}, {}, "'log' is no name of a policy"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(candidates, more, message):
    with pytest.raises(ValueError, match=message) as caught:
        gq.select(LOG, candidates, gq.OneHot(S), **{"discount": 0.9, **HOW, **more})
    assert "\n" not in str(caught.value)


def test_one_episode_cannot_be_split():
    with pytest.raises(ValueError, match="split: the data are one episode, expected at least 2"):
        gq.select(sampled_log(GARNET, BEHAVIOR, 50, 50), {"a": gq.LSPI()}, gq.OneHot(S), 0.9)


def test_the_function_is_reached_whatever_was_imported_before():
    code = "import gqlab.judge.selecting; import gqlab as gq; print(callable(gq.select), callable(gq.decide))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True True"
