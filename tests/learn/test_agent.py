"""An agent's verbs: learn, predict, evaluate, save, load, set_env; callbacks, logs, and what bad input gets."""

from __future__ import annotations

import csv
import importlib
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numba
import numpy as np
import pytest
from sklearn.preprocessing import PolynomialFeatures

import gqlab as gq
from gqlab.cli.main import main
from gqlab.engine.compiled import foreign_sources, parts_of
from gqlab.engine.held import hold
from gqlab.learn.agent.live import TakenRule, live_step
from gqlab.learn.environments import env_of
from helpers.agent_loops import Rooms, Walk, coder, updates

SARSA = gq.Sarsa(0.3, trace=0.9)


def mountain_car(**settings: Any) -> gq.Agent:
    return gq.Agent("MountainCar-v0", gq.TileCoder(n_tilings=4, bins=4), SARSA, **settings)


def same(one: gq.Agent, two: gq.Agent) -> bool:
    """Whether two agents stand at the same place, bit for bit."""
    return (
        one.theta.tobytes() == two.theta.tobytes()
        and one.omega.tobytes() == two.omega.tobytes()
        and one.episodes.returns == two.episodes.returns
        and one.episodes.ends == two.episodes.ends
        and (one.num_timesteps, one.n_updates) == (two.num_timesteps, two.n_updates)
    )


# --- Acting ---------------------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_actions_and_another_seed_others():
    def actions(seed: int) -> list[int]:
        env = Walk()
        gq.Agent(env, coder(), SARSA, seed=seed).learn(300)
        return [step.action for step in env.log]

    assert actions(1) == actions(1)
    assert actions(1) != actions(2)


def test_without_exploration_it_takes_a_best_action_and_with_epsilon_any():
    env = Walk(limit=10)
    seen = []

    def note(agent: gq.Agent) -> None:
        place = env.place if env.steps else env.log[-1].next_observation
        seen.append((agent.model.q(place), agent._live.action.item(0), env.steps))

    gq.Agent(env, coder(), gq.QLearning(0.01), epsilon=0.0, seed=3).learn(400, callback=note)
    # θ has moved by one small update since the choice: only clear cases can be told.
    clear = [(q, a) for q, a, steps in seen if steps and np.sort(q)[-1] - np.sort(q)[-2] > 0.05]
    assert len(clear) > 50
    assert all(q.argmax() == a for q, a in clear)
    env = Walk()
    gq.Agent(env, coder(), gq.QLearning(0.2), epsilon=1.0, seed=3).learn(3000)
    counts = np.bincount([step.action for step in env.log])
    assert np.abs(counts - 1000).max() < 5 * np.sqrt(3000 * 2 / 9)  # 5 standard deviations


def test_predict_takes_one_observation_and_a_batch():
    agent = mountain_car().learn(500)
    one, state = agent.predict(np.array([-0.5, 0.0], np.float32))
    many, _ = agent.predict(np.array([[-0.5, 0.0], [0.1, 0.02]]))
    assert isinstance(one, int)
    assert state is None
    assert many.shape == (2,)
    assert many[0] == one == agent.model.q([-0.5, 0.0]).argmax()
    drawn, _ = agent.predict(np.zeros((200, 2)), deterministic=False)
    assert set(drawn.tolist()) <= {0, 1, 2}
    with pytest.raises(ValueError, match=r"observation has shape \(3,\), expected"):
        agent.predict(np.zeros(3))


def test_evaluate_repeats_itself_and_takes_keywords_of_the_environment_along():
    agent = mountain_car().learn(500)
    first, again = agent.evaluate(n_episodes=3, seed=5), agent.evaluate(None, 3, seed=5)
    assert first.returns.tolist() == again.returns.tolist()
    assert first.mean == first.returns.mean()
    assert (first.lengths == -first.returns).all()
    lake = gq.Agent(gymnasium.make("FrozenLake-v1", is_slippery=False), gq.OneHot(), SARSA, discount=0.9, seed=1)
    lake.learn(3000)
    assert lake.evaluate(n_episodes=5).mean == 1.0  # on ice that is not slippery a path is safe
    with pytest.raises(ValueError, match="env is missing: cannot recreate this environment: pass env="):
        gq.Agent(Walk(), coder(), SARSA).evaluate(n_episodes=1)


SPACES = {
    "Discrete": "Taxi-v4",
    "Tuple": "Blackjack-v1",
}


@pytest.mark.parametrize("name", SPACES.values(), ids=list(SPACES))
def test_discrete_observations_and_tuples_of_them_are_one_hot(name):
    agent = gq.Agent(name, gq.OneHot(), SARSA).learn(300)
    observation, _ = agent.env.reset(seed=0)
    assert agent.predict(observation)[0] in range(agent.n_actions)


def test_dictionaries_are_flattened():
    agent = gq.Agent(Rooms(), gq.TileCoder(n_tilings=3, bins=[3, 3, 2]), SARSA).learn(300)
    one, _ = agent.predict({"place": np.zeros(2), "side": 1})
    many, _ = agent.predict({"place": np.zeros((3, 2)), "side": np.ones(3)})
    assert many.tolist() == [one] * 3


def test_a_million_features():
    agent = gq.Agent("MountainCar-v0", gq.TileCoder(n_tilings=16, bins=160), SARSA).learn(2000)
    assert agent.theta.size > 10**6
    assert not agent.diverged
    assert 0 < np.count_nonzero(agent.theta) < 40_000


# --- Saving, loading, going on ------------------------------------------------------------------------------------


@pytest.mark.parametrize("stop", [1, 37, 200, 450])
def test_an_agent_that_was_saved_goes_on_bit_for_bit(tmp_path, stop):
    whole = mountain_car(epsilon=gq.LinearDecay(0.3, 0.0, over=700), seed=3).learn(900)
    part = mountain_car(epsilon=gq.LinearDecay(0.3, 0.0, over=700), seed=3).learn(stop)
    part.save(tmp_path / "agent.npz")
    part = gq.Agent.load(tmp_path / "agent.npz")
    assert same(part.learn(900 - stop), whole)


@pytest.mark.long
def test_a_batch_that_is_half_full_is_saved_too(tmp_path):
    algorithm = gq.VRGreedyGQ(0.3, 0.2, batch_size=50, radius=1.0)
    whole = gq.Agent(Walk(), coder(), algorithm, seed=3).learn(230)
    part = gq.Agent(Walk(), coder(), algorithm, seed=3).learn(120)
    part.save(tmp_path / "agent.npz")
    part = gq.Agent.load(tmp_path / "agent.npz", env=Walk())
    assert part.waiting == 20
    assert same(part.learn(110), whole)


@pytest.mark.long
def test_a_transformer_of_another_library_is_given_again(tmp_path):
    encoder = PolynomialFeatures(2).fit(np.zeros((1, 2)))
    whole = gq.Agent(Walk(limit=12), encoder, gq.Sarsa(0.05, trace=0.9), seed=1).learn(200)
    part = gq.Agent(Walk(limit=12), encoder, gq.Sarsa(0.05, trace=0.9), seed=1).learn(77)
    part.save(tmp_path / "agent.npz")
    part.model.save(tmp_path / "model.npz")
    with pytest.raises(ValueError, match="encoder is missing"):
        gq.Agent.load(tmp_path / "agent.npz", env=Walk())
    with pytest.raises(ValueError, match="encoder is missing"):
        gq.LinearQ.load(tmp_path / "model.npz")
    assert np.array_equal(gq.LinearQ.load(tmp_path / "model.npz", encoder=encoder).theta, part.theta)
    again = gq.Agent.load(tmp_path / "agent.npz", env=Walk(limit=12), encoder=encoder)
    assert same(again.learn(123), whole)


class Moody(Walk):
    """An environment that no seed makes repeat itself."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return super().reset(seed=None)


def test_an_environment_that_does_not_repeat_itself_is_refused(tmp_path):
    agent = gq.Agent(Moody(), coder(), SARSA).learn(55)
    agent.save(tmp_path / "agent.npz")
    with pytest.raises(ValueError, match=r"this environment does not repeat itself|cannot resume in an environment"):
        gq.Agent.load(tmp_path / "agent.npz", env=Moody())


def test_what_cannot_be_loaded_is_told(tmp_path):
    agent = gq.Agent(Walk(), coder(), SARSA).learn(10)
    agent.save(tmp_path / "agent.npz")
    with pytest.raises(ValueError, match="env is missing"):
        gq.Agent.load(tmp_path / "agent.npz")
    with pytest.raises(ValueError, match=r"expected float64|another one|it takes 2 numbers"):
        gq.Agent.load(tmp_path / "agent.npz", env="CartPole-v1")
    agent.model.save(tmp_path / "model.npz")
    with pytest.raises(ValueError, match=r"model.npz is not a file of gqlab.Agent"):
        gq.Agent.load(tmp_path / "model.npz")


KILLED = """
import sys, gqlab as gq
agent = gq.Agent("MountainCar-v0", gq.TileCoder(n_tilings=4, bins=4), gq.Sarsa(0.3, trace=0.9), seed=3)
agent.learn(10**9, callback=gq.CheckpointCallback(2500, sys.argv[1]), log=sys.argv[1])
"""


@pytest.mark.long
def test_an_agent_that_was_killed_goes_on_from_its_last_checkpoint(tmp_path):
    with subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)]) as process:
        deadline = time.monotonic() + 300
        while not (tmp_path / "agent-5000.npz").exists() or not (tmp_path / "progress.csv").exists():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()
    last = max(tmp_path.glob("agent-*.npz"), key=lambda path: int(path.stem.partition("-")[2]))
    agent = gq.Agent.load(last)
    whole = mountain_car(seed=3).learn(agent.num_timesteps + 1500)
    assert same(agent.learn(1500, log=tmp_path), whole)
    rows = rows_of(tmp_path)  # whole after the kill, and gone on with
    assert [int(row["time/total_timesteps"]) for row in rows] == [1000 * (k + 1) for k in range(len(rows))]
    assert 0 <= agent.num_timesteps - 1000 * len(rows) < 1000
    assert not list(tmp_path.glob(".*.part"))


def test_set_env_goes_on_with_a_new_episode():
    agent = mountain_car().learn(150)
    agent.set_env("MountainCar-v0")
    agent.learn(250)
    assert agent.num_timesteps == 400
    assert agent.episodes.lengths == [200]  # the first was left after 150 steps
    with pytest.raises(ValueError, match="env has observations of 4 numbers, 2 actions and 1 copies; this agent needs"):
        agent.set_env("CartPole-v1")


def test_a_vector_environment_goes_on_with_new_episodes(tmp_path):
    def env() -> Any:
        return gymnasium.vector.SyncVectorEnv([lambda: Walk(limit=9)] * 2)

    agent = gq.Agent(env(), coder(), SARSA, seed=1).learn(100)
    agent.save(tmp_path / "agent.npz")
    with pytest.raises(ValueError, match="the agent had a vector environment of 2"):
        gq.Agent.load(tmp_path / "agent.npz")
    again = gq.Agent.load(tmp_path / "agent.npz", env=env())
    assert np.array_equal(again.theta, agent.theta)
    again.learn(100)
    assert again.num_timesteps >= 200
    assert np.isfinite(again.theta).all()


# --- Callbacks and logs -------------------------------------------------------------------------------------------


class Recorder(gq.Callback):
    def __init__(self, calls: list[str], name: str, every: int, last: int | None = None) -> None:
        self.calls, self.name, self.every, self.last = calls, name, every, last

    def on_training_start(self, agent: gq.Agent) -> None:
        self.calls.append(f"{self.name} starts")

    def on_step(self, agent: gq.Agent) -> bool:
        self.calls.append(f"{self.name} {agent.num_timesteps}")
        return agent.num_timesteps != self.last

    def on_episode_end(self, agent: gq.Agent, total: float, length: int) -> None:
        self.calls.append(f"{self.name} episode of {length}: {total:g}")

    def on_training_end(self, agent: gq.Agent) -> None:
        self.calls.append(f"{self.name} ends")


def test_every_callback_is_called_in_order_and_one_can_end_learning():
    calls: list[str] = []
    agent = mountain_car().learn(1000, callback=[Recorder(calls, "a", 100, last=300), Recorder(calls, "b", 150)])
    assert agent.num_timesteps == 300
    assert calls == [
        "a starts", "b starts", "a 100", "b 150", "a episode of 200: -200", "b episode of 200: -200", "a 200", "a 300", "b 300",
        "a ends", "b ends",
    ]  # fmt: skip


def test_callbacks_are_told_of_the_end_where_an_error_ends_learning():
    calls: list[str] = []

    def fail(agent: gq.Agent) -> None:
        if agent.num_timesteps == 20:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        mountain_car().learn(100, callback=[Recorder(calls, "a", 1000), fail])
    assert calls == ["a starts", "a ends"]


def test_the_best_model_is_kept(tmp_path):
    watch = gq.EvalCallback(every=200, n_episodes=2, best=tmp_path / "best.npz")
    env = Walk(limit=20)
    watch.env = Walk(limit=20)
    gq.Agent(env, coder(), SARSA, seed=1).learn(1000, callback=watch)
    means = [mean for _, mean in watch.history]
    assert [steps for steps, _ in watch.history] == [200, 400, 600, 800, 1000]
    assert watch.best_mean == max(means)
    best = gq.LinearQ.load(tmp_path / "best.npz")
    assert best.metadata["timesteps"] == watch.history[int(np.argmax(means))][0]
    assert best.evaluate(Walk(limit=20), 2).mean == watch.best_mean
    with pytest.raises(ValueError, match="env is missing"):
        gq.Agent(Walk(), coder(), SARSA).learn(10, callback=gq.EvalCallback(every=1000))  # told before the first step


def test_learning_stops_at_a_reward():
    agent = mountain_car().learn(5000, callback=gq.StopOnReward(-200.0, n_episodes=3))
    assert len(agent.episodes) == 3
    assert agent.num_timesteps == 600
    assert agent.learn(100).num_timesteps == 700


def test_a_vector_environment_calls_back_too():
    calls: list[str] = []
    env = gymnasium.vector.SyncVectorEnv([lambda: Walk(limit=9)] * 2)
    gq.Agent(env, coder(), SARSA, seed=1).learn(60, callback=Recorder(calls, "a", 10))
    steps = [int(line.split()[1]) for line in calls if line.split()[1].isdigit()]
    assert len(steps) == 6
    assert all(10 * (k + 1) <= step <= 10 * (k + 1) + 1 for k, step in enumerate(steps))
    assert any("episode of 9" in line for line in calls)


def rows_of(folder: Path) -> list[dict[str, str]]:
    with open(folder / "progress.csv", newline="") as file:
        return list(csv.DictReader(file))


def test_the_log_has_a_row_every_thousand_steps_and_goes_on(tmp_path):
    agent = mountain_car(epsilon=gq.LinearDecay(0.1, 0.0, over=4000)).learn(2500, log=tmp_path)
    agent.learn(1500, log=tmp_path)
    rows = rows_of(tmp_path)
    assert [row["time/total_timesteps"] for row in rows] == ["1000", "2000", "3000", "4000"]
    assert float(rows[1]["rollout/exploration_rate"]) == pytest.approx(0.05)
    assert float(rows[0]["rollout/ep_rew_mean"]) == np.mean(agent.episodes.returns[:5])
    (tmp_path / "progress.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="is not a log of gqlab"):
        agent.learn(10, log=tmp_path)


def test_tensorboard_reads_the_same_numbers(tmp_path):
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    mountain_car().learn(2000, log=tmp_path)
    found = events.EventAccumulator(str(tmp_path)).Reload()
    scalars = found.Scalars("rollout/ep_rew_mean")
    assert [event.step for event in scalars] == [1000, 2000]
    np.testing.assert_allclose(
        [event.value for event in scalars], [float(row["rollout/ep_rew_mean"]) for row in rows_of(tmp_path)]
    )


def test_progress_is_told_on_stderr(capsys):
    mountain_car().learn(4000, progress=True)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "4.00k/4.00k" in printed.err
    assert re.search(r"return -\d+\.\d", printed.err)


# --- What can go wrong --------------------------------------------------------------------------------------------


def test_an_agent_that_diverges_says_so_once_and_stays_finite():
    with pytest.warns(
        RuntimeWarning, match=r"the agent diverged in step \d+ and learns no more: make a new one"
    ) as warned:
        agent = gq.Agent(Walk(limit=12), coder(), gq.QLearning(300.0), seed=3).learn(5000)
    assert len(warned) == 1
    assert agent.diverged
    assert agent.num_timesteps < 5000
    assert np.isfinite(agent.theta).all()
    assert agent.n_updates < agent.num_timesteps


class Broken(Walk):
    """After 30 steps it shows, or pays, something that is no number."""

    observed: float = np.nan
    bad_reward: float | None = None

    def step(self, action: int) -> Any:
        place, reward, *rest = super().step(action)
        if len(self.log) == 30:
            if self.bad_reward is not None:
                return place, self.bad_reward, *rest
            place[1] = self.observed
        return place, reward, *rest


@pytest.mark.parametrize(("observed", "bad_reward"), [(np.nan, None), (np.inf, None), (0.0, np.nan), (0.0, -np.inf)])
def test_a_number_that_is_not_finite_is_refused_before_anything_is_learned_from_it(observed, bad_reward):
    env = Broken(limit=10**6)
    env.observed, env.bad_reward = observed, bad_reward
    agent = gq.Agent(env, coder(), SARSA, seed=1)
    with pytest.raises(
        ValueError, match=r"env: after step 30 the observation is .* and the reward .*, expected finite"
    ):
        agent.learn(100)
    assert agent.n_updates == 29
    agent.learn(100)  # a new episode
    assert agent.n_updates == 129


class Interrupted(Walk):
    """Ctrl-C in the middle of a step."""

    def step(self, action: int) -> Any:
        self.calls = getattr(self, "calls", 0) + 1
        if self.calls == 30:
            raise KeyboardInterrupt
        return super().step(action)


def test_after_an_interrupt_it_goes_on_with_a_new_episode():
    env = Interrupted(limit=12)
    agent = gq.Agent(env, coder(), gq.QLearning(0.2), discount=0.95, epsilon=0.3, seed=4)
    with pytest.raises(KeyboardInterrupt):
        agent.learn(700)
    agent.learn(671)
    theta, _ = updates(agent, env.log, agent.algorithm, agent.target)
    np.testing.assert_allclose(agent.theta.ravel(), theta, atol=1e-10)


def test_a_time_limit_of_ones_own_is_kept(tmp_path):
    agent = gq.Agent(gymnasium.make("MountainCar-v0", max_episode_steps=30), gq.TileCoder(4, 4), SARSA).learn(45)
    assert agent.evaluate(n_episodes=2).lengths.tolist() == [30, 30]
    agent.save(tmp_path / "agent.npz")
    assert gq.Agent.load(tmp_path / "agent.npz").learn(15).episodes.lengths == [30, 30]


def test_no_file_asks_for_a_module():
    with pytest.raises(ValueError, match="would import a module, which no file may ask for"):
        env_of({"id": "antigravity:Env-v0"})


BAD = [
    (lambda: gq.Agent("NoSuch-v0", coder(), SARSA), "env is 'NoSuch-v0'"),
    (lambda: gq.Agent("Pendulum-v1", coder(), SARSA), "continuous actions are not supported"),
    (lambda: gq.Agent(3, coder(), SARSA), "env is 3, expected an id or a Gymnasium environment"),
    (lambda: gq.Agent(Walk(), "tiles", SARSA), "encoder is 'tiles'"),
    (lambda: gq.Agent("CartPole-v1", gq.TileCoder(), SARSA), "low|high|bounds"),
    (
        lambda: gq.Agent(Walk(), gq.TileCoder(low=[0] * 3, high=[1] * 3).fit(np.zeros((1, 3))), SARSA),
        "it takes 3 numbers",
    ),
    (
        lambda: gq.Agent(Walk(), coder(), gq.SAGAGreedyGQ()),
        "algorithm is SAGAGreedyGQ.* needs samples that are numbered",
    ),
    (
        lambda: gq.Agent(Walk(), coder(), gq.VRGreedyGQ(growth=2.0)),
        "algorithm is VRGreedyGQ.* needs memory that grows with the number of updates",
    ),
    (lambda: gq.Agent(Walk(), coder(), SARSA, discount=1.5), "discount is 1.5"),
    (lambda: gq.Agent(Walk(), coder(), SARSA, epsilon=2), "epsilon is 2"),
    (lambda: gq.Agent(Walk(), coder(), SARSA, target=gq.FixedPolicy([[1.0]])), "target is FixedPolicy"),
    (
        lambda: gq.Agent(Walk(), coder(), SARSA, target=gq.Softmax(1.0)),
        "that of Sarsa is the action that is taken next",
    ),
    (lambda: gq.Agent(Walk(), gq.TileCoder(8, 16000), SARSA), "bytes|memory|tiles"),
    (lambda: gq.Agent(Walk(), coder(), SARSA, seed=-1), "seed is -1"),
    (lambda: gq.Agent(Walk(), coder(), SARSA).learn(-1), "total_timesteps is -1"),
    (lambda: gq.Agent(Walk(), coder(), SARSA).learn(1, callback=3), "callback is 3"),
    (lambda: gq.Agent.preset("NoSuch-v0"), "env is 'NoSuch-v0', expected one of 'MountainCar-v0'"),
    (lambda: gq.Agent.preset(["x"]), r"env is \['x'\], expected one of"),
    (lambda: gq.Sarsa(0.1, trace=1.5), "trace is 1.5"),
]


@pytest.mark.parametrize(("call", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_input_gets_one_line(call, message):
    with pytest.raises(ValueError, match=message) as error:
        call()
    assert "\n" not in str(error.value)


def test_the_key_of_compiled_code_covers_the_parts_that_are_held():
    gq.Agent(Walk(), coder(), SARSA).learn(1)
    if not live_step.signatures:
        pytest.skip("nothing is compiled")
    kinds = {kind.__name__ for signature in live_step.signatures for kind in parts_of(signature)}
    assert {"Live", "TileRule", "Traces", "LaggedPoint"} <= kinds
    assert TakenRule.__name__ in kinds


OWN = """
from typing import NamedTuple


class OwnTiles(NamedTuple):
    width: float

    def encode_row(self, observation, first, index, value, first_out):
        index[first_out] = 1
"""


def test_an_encoder_of_ones_own_is_part_of_the_key(tmp_path, monkeypatch):
    (tmp_path / "own_tiles.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    own = importlib.import_module("own_tiles")
    live = gq.Agent(Walk(), coder(), SARSA)._live
    held = hold(live._replace(encoder=own.OwnTiles(1.0)))
    kinds = list(parts_of((numba.typeof(held),)))
    assert own.OwnTiles in kinds
    assert any(b"OwnTiles" in source for source in foreign_sources(own.OwnTiles))


def test_evaluations_begin_where_learning_did_not(monkeypatch):
    """Their seeds are others than those of the episodes that were learned from."""
    seeds: dict[str, set[int]] = {"learn": set(), "evaluate": set()}
    now = ["learn"]
    reset = gymnasium.Env.reset

    def noted(self, *, seed=None, options=None):
        seeds[now[0]].add(seed)
        return reset(self, seed=seed, options=options)

    monkeypatch.setattr(gymnasium.Env, "reset", noted)
    agent = gq.Agent("MountainCar-v0", gq.TileCoder(n_tilings=4, bins=4), gq.Sarsa(0.3, trace=0.9)).learn(1000)
    now[0] = "evaluate"
    agent.evaluate(n_episodes=5)
    assert len(seeds["evaluate"]) == 5
    assert not seeds["evaluate"] & seeds["learn"]


def test_the_best_model_stays_when_an_agent_goes_on(tmp_path):
    agent = gq.Agent("MountainCar-v0", gq.TileCoder(n_tilings=4, bins=4), gq.Sarsa(0.3, trace=0.9)).learn(200)
    model = agent.model
    replace(model, metadata={**model.metadata, "mean_return": 0.0}).save(tmp_path / "best.npz")
    watch = gq.EvalCallback(every=200, n_episodes=1, best=tmp_path / "best.npz")
    agent.learn(200, callback=watch)
    assert watch.best_mean == 0.0
    np.testing.assert_array_equal(gq.LinearQ.load(tmp_path / "best.npz").theta, model.theta)


def test_train_leaves_a_folder_free_where_it_could_not_begin(tmp_path, capsys):
    line = ["train", "CartPole-v1", "--steps", "200", "--episodes", "1", "--quiet", "--out", str(tmp_path / "run")]
    with pytest.raises(SystemExit):
        main([*line, "--encoder", "tiles:8"])  # two bounds are infinite
    assert "no finite bounds for dimension 1, 3" in capsys.readouterr().err
    main(line)
    main([*line[:3], "300", *line[4:]])
    assert "exploration until step 200, and kept it" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["train", "MountainCar-v0", "--eta-omega", "0.5", "--out", str(tmp_path / "other")])
    assert "eta_omega is 0.5, which Sarsa does not take" in capsys.readouterr().err
