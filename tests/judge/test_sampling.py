"""Importance sampling along episodes: by hand, where numbers are extreme, and where episodes were cut off."""

from __future__ import annotations

import numpy as np
import pytest

import gqlab as gq
from gqlab.judge.simulated import sampled_log
from gqlab.mdp.values import policy_value


def test_importance_sampling_is_right_on_episodes_of_two_steps():
    """Two actions, equally likely; the reward of a step is its action: π(1) = 0.9 earns 0.9 + 0.5·0.9."""
    rng = np.random.default_rng(9)
    a = rng.integers(0, 2, (20_000, 2))
    n = a.size
    data = gq.Transitions.from_arrays(
        np.zeros((n, 1)), a.ravel(), a.ravel().astype(float), np.zeros((n, 1)),
        terminated=np.tile([False, True], len(a)), probabilities=np.full(n, 0.5),
    )  # fmt: skip
    found = gq.importance_sampling(data, lambda rows: np.tile([0.1, 0.9], (len(rows), 1)), discount=0.5)
    assert found.value == pytest.approx(0.9 * 1.5, abs=0.02)
    assert found.n_episodes == 20_000
    assert found.effective_episodes == pytest.approx(20_000 / 1.64**2, rel=0.05)


def test_an_episode_that_is_over_keeps_its_weight_in_importance_sampling():
    """Two episodes by hand: (a = 1, r = 4) and (a = 0, r = 1), (a = 1, r = 2); p = ½, π(1) = ¾, γ = ½.

    w at time 0: 3/2 and ½; at time 1 the first one, which is over, keeps 3/2, the second has ½ · 3/2:
    V = (3/2 · 4 + ½ · 1)/(3/2 + ½) + ½ · (¾ · 2)/(3/2 + ¾) = 13/4 + 1/3.
    """
    data = gq.Transitions.from_arrays(
        np.zeros((3, 1)), [1, 0, 1], [4.0, 1.0, 2.0], np.zeros((3, 1)),
        terminated=[True, False, True], probabilities=np.full(3, 0.5),
    )  # fmt: skip
    found = gq.importance_sampling(data, lambda rows: np.tile([0.25, 0.75], (len(rows), 1)), discount=0.5)
    assert found.value == pytest.approx(13 / 4 + 1 / 3, rel=1e-14)
    assert found.effective_episodes == pytest.approx(2.25**2 / (1.5**2 + 0.75**2), rel=1e-14)


def test_importance_sampling_of_hardly_possible_actions_stays_finite():
    """Probabilities of 1e-310, whose inverse is not a float64: such a row has all the weight."""
    data = gq.Transitions.from_arrays(
        np.zeros((3, 1)), [1, 0, 0], [4.0, 1.0, 2.0], np.zeros((3, 1)),
        terminated=[True, False, True], probabilities=[1e-310, 0.5, 0.5],
    )  # fmt: skip
    found = gq.importance_sampling(data, lambda rows: np.tile([0.5, 0.5], (len(rows), 1)), discount=0.5)
    assert found == (4.0, -np.inf, np.inf, 1.0, 2)
    never = gq.importance_sampling(data, lambda rows: np.tile([0.0, 0.0, 1.0][-2:], (len(rows), 1)), discount=0.5)
    assert never.value == 4.0
    nothing = gq.Transitions.from_arrays(np.zeros((2, 1)), [0, 0], [4.0, 1.0], np.zeros((2, 1)),
                                         terminated=[True, True], probabilities=[0.5, 0.5], n_actions=2)  # fmt: skip
    assert gq.importance_sampling(nothing, lambda rows: np.tile([0.0, 1.0], (len(rows), 1))) == (
        0.0,
        -np.inf,
        np.inf,
        0.0,
        2,
    )


@pytest.mark.parametrize(("p", "pi"), [(0.5, 0.9), (0.5, 0.2)], ids=["ratios that grow", "ratios that vanish"])
def test_importance_sampling_of_long_episodes_stays_finite(p, pi):
    """Every ratio is the same, so every weight is, and the value is the mean return."""
    n, rewards = 2000, np.concatenate([np.full(1000, 1.0), np.full(1000, 0.5)])
    data = gq.Transitions.from_arrays(
        np.zeros((n, 1)), np.zeros(n, int), rewards, np.zeros((n, 1)),
        terminated=np.arange(n) % 1000 == 999, probabilities=np.full(n, p), n_actions=2,
    )  # fmt: skip
    found = gq.importance_sampling(data, lambda rows: np.tile([pi, 1 - pi], (len(rows), 1)), discount=1.0)
    assert found.value == pytest.approx(750.0)
    assert found.effective_episodes == pytest.approx(2.0)


S, A = 6, 3
GARNET = gq.garnet(S, A, 3, discount=0.95, seed=33)
BEHAVIOR = np.random.default_rng(0).dirichlet(np.full(A, 5.0), size=S)


def test_the_rest_of_an_episode_that_was_cut_off_counts():
    """Cut at 10 rows of a discount of 0.95, 60 % of the value lie behind: counted as ended they would be missing."""
    data = sampled_log(GARNET, BEHAVIOR, 20_000, 10, seed=1)
    true = policy_value(GARNET, BEHAVIOR).mean()
    found = gq.importance_sampling(data, BEHAVIOR, discount=0.95, features="tabular")
    assert found.low < true < found.high
    assert found.value == pytest.approx(true, rel=0.02)
    assert found.effective_episodes == pytest.approx(2000)
    returns = (0.95 ** np.arange(10) * data.to_chunk().rewards.reshape(-1, 10)).sum(axis=1).mean()
    assert returns < 0.5 * true
    with pytest.raises(ValueError, match="features is None, but 2,000 of 2,000 episodes of the data were cut off"):
        gq.importance_sampling(data, BEHAVIOR, discount=0.95, features=None)
    with pytest.raises(ValueError, match="discount is 1, but no episode of the log ends"):
        gq.importance_sampling(data, BEHAVIOR, discount=1)


def test_the_interval_holds_the_truth_as_often_as_it_says():
    """200 logs of 100 episodes that end, and a policy close to theirs: 10 % of misses would be 3 standard errors."""
    ends = gq.FiniteMDP(GARNET.transition, GARNET.reward, 0.95, np.arange(S) == S - 1, [0.5, 0.5, 0, 0, 0, 0])
    target = 0.9 * BEHAVIOR + 0.1 * np.eye(A)[[0] * S]
    true = ends.start @ policy_value(ends, target)
    found = []
    for seed in range(200):
        data = sampled_log(ends, BEHAVIOR, 300, 400, seed=seed)
        one = gq.importance_sampling(data, target, discount=0.95, features="tabular")
        found.append(one.low < true < one.high)
    assert np.mean(found) > 0.9


def test_actions_with_other_labels_are_refused():
    data = gq.Transitions.from_arrays([0, 1], ["stay", "go"], [0, 1], terminated=[1, 1], probabilities=[0.5, 0.5])

    class Labelled:
        n_actions, action_labels = 2, ("stay", "jump")

        def probabilities(self, observations):
            return np.full((len(observations), 2), 0.5)

    with pytest.raises(ValueError, match="policy has the actions 'stay', 'jump', and the log has "):
        gq.importance_sampling(data, Labelled())
