"""Presets, with replay and without, and ``gqlab train --replay``."""

from __future__ import annotations

import importlib.util
import json
import math

import numpy as np
import pytest

import gqlab as gq
from gqlab.cli.main import main
from gqlab.learn.agent.presets import PRESETS, REPLAYING_PRESETS, preset_of
from gqlab.learn.agent.thresholds import steps_to_threshold
from gqlab.learn.environments import MOST_STEPS, limited_env

#: Box2D's module ends the process where its warning is an error.
pytestmark = pytest.mark.filterwarnings("ignore:builtin type:DeprecationWarning")

#: The features that other tests have compiled code for.
TINY = ["--encoder", "tiles:4,bins=4", "--every", "500", "--episodes", "5", "--seed", "3", "--quiet"]
REPLAY = ["--replay", "--updates", "4", "--n-step", "3", "--initial-value", "-20"]


def train(folder, *more: str) -> None:
    main(["train", "MountainCar-v0", "--out", str(folder), *TINY, *REPLAY, *more])


@pytest.mark.parametrize("replay", [False, True])
def test_every_environment_has_both_presets(replay):
    assert list(PRESETS) == list(REPLAYING_PRESETS)
    for env in PRESETS:
        if env.startswith("LunarLander") and importlib.util.find_spec("Box2D") is None:
            continue
        agent, preset = gq.Agent.preset(env, 7, replay=replay), preset_of(env, replay)
        assert (agent.seed, agent.discount, agent.algorithm) == (7, preset.discount, preset.algorithm)
        assert (agent.replay, agent.initial_value) == (preset.replay, preset.initial_value)
        assert (agent.replay is not None) == replay


def test_a_preset_replays_where_that_was_never_worse():
    known = {env for env in PRESETS if preset_of(env, None) is REPLAYING_PRESETS[env]}
    assert known == {"CartPole-v1", "FrozenLake8x8-v1", "CliffWalking-v1"}
    assert gq.Agent.preset("CartPole-v1").replay == REPLAYING_PRESETS["CartPole-v1"].replay
    assert gq.Agent.preset("MountainCar-v0").replay is None


@pytest.mark.long
def test_a_discrete_environment_is_learned_with_its_preset():
    agent = gq.Agent.preset("CliffWalking-v1", replay=True).learn(2000)
    assert agent.evaluate(limited_env("CliffWalking-v1"), 1).mean == -13  # the shortest way


def test_a_policy_that_goes_in_circles_is_checked_all_the_same():
    env = limited_env("CliffWalking-v1")
    up = np.tile([1.0, 0.0, 0.0, 0.0], (48, 1))
    assert gq.evaluate(up, env, 1).lengths.tolist() == [MOST_STEPS]
    assert limited_env("MountainCar-v0").spec.max_episode_steps == 200


def test_a_preset_is_replay_or_not():
    with pytest.raises(ValueError, match="replay is 3, expected True, False or None"):
        gq.Agent.preset("CartPole-v1", replay=3)
    with pytest.raises(ValueError, match=r"env is 'Pendulum-v1', expected one of 'MountainCar-v0'.*: others have no"):
        gq.Agent.preset("Pendulum-v1", replay=True)


def test_a_threshold_is_reached_when_the_next_two_checks_hold_it():
    steps = [10, 20, 30, 40]
    assert steps_to_threshold(steps, [5, 5, 5, 0], 5) == 10
    assert steps_to_threshold(steps, [5, 4, 5, 5], 5) == math.inf
    assert steps_to_threshold(steps, [4, 5, 6, 7], 5) == 20
    assert steps_to_threshold(steps[:2], [5, 5], 5) == math.inf


def test_train_replays_and_says_when_the_threshold_was_reached(tmp_path, capsys):
    train(tmp_path, "--steps", "1500", "--threshold", "-200", "--json")
    found = json.loads(capsys.readouterr().out)
    assert (found["threshold"], found["steps_to_threshold"]) == (-200, 500)
    agent = gq.Agent.load(tmp_path / "agent.npz")
    assert agent.replay == gq.Replay(updates=4, n_step=3)
    assert agent.algorithm == REPLAYING_PRESETS["MountainCar-v0"].algorithm
    assert (agent.initial_value, agent.num_timesteps, agent.buffer.n_rows) == (-20, 1500, 1500)
    page = (tmp_path / "report.html").read_text()
    assert "A mean return of −200.0 was reached after 500 steps, and held at the next two checks." in page
    assert "Replay(updates=4.0, n_step=3, size=None" in page
    assert not (tmp_path / "segments").exists()  # the file is whole
    train(tmp_path, "--steps", "2000")
    out = capsys.readouterr().out
    assert "A mean return of −110.0 was not reached and held at the next two checks." in out
    whole = tmp_path / "whole"
    train(whole, "--steps", "2000")
    assert (whole / "agent.npz").read_bytes() == (tmp_path / "agent.npz").read_bytes()


def test_train_takes_the_preset_with_replay(monkeypatch):
    from gqlab.cli.train import Train, plan_of

    plan, preset = plan_of(Train("CartPole-v1", replay=True, updates=2)), REPLAYING_PRESETS["CartPole-v1"]
    assert (plan.algorithm, plan.discount, plan.epsilon) == (preset.algorithm, preset.discount, preset.epsilon)
    assert (plan.steps, plan.every, plan.threshold) == (20_000, 1000, 475)
    assert plan.replay.updates == 2
    assert plan.replay.n_step == preset.replay.n_step
    changed = plan_of(Train("CartPole-v1", replay=True, algorithm="QLearning", epsilon=0.2, discount=0.5))
    assert (changed.algorithm, changed.discount) == (gq.QLearning(0.25), 0.5)
    assert changed.epsilon == gq.LinearDecay(0.2, 0.0, over=20_000)
    plain = plan_of(Train("CartPole-v1"))
    assert (plain.replay, plain.discount, plain.steps, plain.every) == (None, 0.99, 100_000, 10_000)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--updates", "4"], "updates is 4.0, which is for --replay"),
        (["--replay", "--updates", "0"], "updates is 0"),
        (["--replay", "--algorithm", "Sarsa", "--trace", "0.5"], "with replay there are no traces"),
        (["--replay", "--algorithm", "STORMGreedyGQ"], "algorithm is 'STORMGreedyGQ', expected one of"),
        (["--replay", "--n-step", "9", "--size", "5"], "size is 5, less than n_step = 9"),
    ],
)
def test_what_does_not_fit_replay_gets_one_line(options, message, tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["train", "MountainCar-v0", "--out", str(tmp_path / "none"), *options])
    assert message in capsys.readouterr().err
    assert not (tmp_path / "none" / "agent.npz").exists()
