"""Several seeds as one object, pictures of what was learned, and optimal policies."""

from __future__ import annotations

import json

import matplotlib as mpl
import numpy as np
import pytest

import gqlab as gq
from gqlab.cli.main import main
from gqlab.learn.agent.many import bootstrap_interval, interquartile_mean, seeds_of

mpl.use("Agg")


def middle_half(scores: list[float]) -> float:
    """The mean without the lowest and the highest quarter, by hand."""
    rest = sorted(scores)
    cut = len(rest) // 4
    rest = rest[cut : len(rest) - cut]
    return sum(rest) / len(rest)


@pytest.mark.parametrize("n", [1, 3, 4, 7, 10])
def test_the_interquartile_mean_leaves_out_a_quarter_at_either_end(n):
    scores = np.random.default_rng(n).normal(size=n) ** 3
    assert np.isclose(interquartile_mean(scores), middle_half(scores.tolist()))
    curves = np.random.default_rng(n).normal(size=(n, 5))
    assert np.allclose(interquartile_mean(curves), [middle_half(column) for column in curves.T.tolist()])


def test_the_interval_is_that_of_resampled_seeds():
    """Against a plain loop with draws of its own: the ends of two bootstraps differ by their noise."""
    scores = np.random.default_rng(1).normal(10, 3, size=12)
    low, high = bootstrap_interval(scores)
    draw = np.random.default_rng(2)
    means = sorted(middle_half([scores[draw.integers(12)] for _ in range(12)]) for _ in range(4000))
    assert abs(low - means[100]) < 0.35
    assert abs(high - means[3900]) < 0.35
    assert low < interquartile_mean(scores) < high
    assert bootstrap_interval(np.full(5, 2.0)) == (2.0, 2.0)


def many(folder, **more):
    settings = {"seeds": 3, "total_timesteps": 300, "n_episodes": 5, "engine": "threads", "workers": 1, **more}
    return gq.learn_many("FrozenLake-v1", folder=folder, **settings)


def test_seeds_are_learned_kept_and_found_again(tmp_path):
    found = many(tmp_path)
    assert found.curves.shape == (3, 10)
    assert found.returns.shape == (3, 5)
    assert found.steps.tolist() == list(range(30, 301, 30))
    before = (tmp_path / "seed-1" / "agent.npz").read_bytes()
    again = many(tmp_path)
    assert np.array_equal(again.returns, found.returns)
    assert (tmp_path / "seed-1" / "agent.npz").read_bytes() == before
    alone = gq.Agent("FrozenLake-v1", seed=1, epsilon=gq.LinearDecay(0.1, 0.0, over=300)).learn(300)
    assert np.array_equal(found.model(1).theta, alone.theta)
    assert found.agent(1).num_timesteps == 300
    assert "interquartile mean of the return over 3 seeds" in found.sentence
    axes = found.plot()
    assert len([line for line in axes.lines if line.get_label() == "_seed"]) == 3
    json.dumps(found.to_dict())
    with pytest.raises(ValueError, match="seed is 9, expected one of 0, 1, 2"):
        found.agent(9)


@pytest.mark.parametrize("bad", [0, -1, [1, 1], [], [-2], "ab"])
def test_seeds_are_different_whole_numbers(bad):
    with pytest.raises(ValueError, match="seeds"):
        seeds_of(bad)


def test_what_is_wrong_with_an_environment_is_said_before_anything_is_learned(tmp_path):
    with pytest.raises(ValueError, match="NoSuch"):
        gq.learn_many("NoSuch-v0", folder=tmp_path, engine="threads")
    with pytest.raises(TypeError, match="unexpected keyword argument 'speed'"):
        many(tmp_path, speed=3)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_the_command_learns_with_several_seeds_and_writes_a_page(tmp_path, capsys):
    main(["train", "FrozenLake-v1", "--seeds", "2", "--steps", "200", "--every", "100", "--episodes", "5", "--json",
          "--out", str(tmp_path), "--quiet"])  # fmt: skip
    found = json.loads(capsys.readouterr().out)
    assert found["seeds"] == [0, 1]
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"report.html", "seeds.csv", "curve.png", "curve.svg", "seed-0", "seed-1"}
    assert "interquartile mean" in (tmp_path / "report.html").read_text()


# --- Pictures ---------------------------------------------------------------------------------------------------------


def test_a_model_shows_values_and_actions_over_the_numbers_that_are_named():
    encoder = gq.Identity(bias=False, scale=False).fit([[0, 0, 0], [1, 2, 1]])
    columns = [{"name": name, "kind": "number"} for name in "xvz"]
    model = gq.LinearQ([[0.0, 1.0, 5.0], [1.0, 0.0, 0.0]], encoder, metadata={"observation_columns": columns})
    left, right = model.plot(("x", "v"), at={"z": 0.0}, bounds=[(0, 1), (0, 2)])
    assert (left.get_xlabel(), left.get_ylabel(), right.get_title("left")) == ("x", "v", "greedy action")
    values = left.collections[0].get_array().reshape(120, 120)
    assert np.isclose(values[-1, 0], 2.0)  # x = 0, v = 2: the first action
    assert np.isclose(values[0, -1], 1.0)
    line = model.plot("v", at={"x": 1.0, "z": 0.0}, bounds=(0, 2))
    assert line.get_xlabel() == "v"
    for bad, message in (
        ({"over": "y"}, "over is 'y'"),
        ({"over": (0, 0)}, "two different"),
        ({"at": {"q": 1}}, "at is 'q'"),
        ({"bounds": [(1, 0), (0, 1)]}, "bounds is"),
        ({}, "bounds is missing"),
        ({"over": (0, 1, 2)}, "one or two"),
    ):
        with pytest.raises(ValueError, match=message):
            model.plot(**bad)


def test_an_agent_on_a_grid_shows_its_arrows():
    agent = gq.Agent("FrozenLake-v1", gq.OneHot(), gq.Sarsa(0.5)).learn(200)
    texts = {text.get_text() for text in agent.plot().texts}
    assert {"G", "S", "×"} <= texts


def test_other_numbers_stand_at_their_medians():
    data = gq.collect("CartPole-v1", n_steps=200, seed=0)
    model = gq.fit(data, gq.Fourier(1), gq.LSPI(), discount=0.9)
    assert np.allclose(model.metadata["typical"], np.median(data.to_chunk().observations, axis=0))
    assert len(model.plot((0, 2))) == 2


# --- Optimal policies -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_optimal_values_and_policies_are_those_of_value_iteration(seed):
    mdp = gq.garnet(n_states=30, n_actions=4, branching=3, discount=0.9, seed=seed)
    Q = np.zeros((30, 4))
    for _ in range(400):
        Q = mdp.expected_reward + np.einsum("sat,sat,t->sa", mdp.transition, mdp.discount, Q.max(axis=1))
    assert np.allclose(mdp.optimal_q(), Q, atol=1e-10)
    assert np.array_equal(mdp.optimal_policy(), np.eye(4)[Q.argmax(axis=1)])


def test_of_equally_good_actions_the_first_is_taken():
    mdp = gq.FiniteMDP(np.ones((1, 3, 1)), [[[0.0], [1.0], [1.0]]], 0.5)
    assert mdp.optimal_policy().tolist() == [[0.0, 1.0, 0.0]]
