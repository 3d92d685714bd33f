"""``gqlab watch`` of policies of every kind, in an environment that paints its own pictures."""

from __future__ import annotations

import sys

import gymnasium
import numpy as np
import pytest

import gqlab as gq
from gqlab.cli.main import main

pytest.importorskip("PIL.Image")

OWN = """
from dataclasses import dataclass
from typing import ClassVar

import gqlab as gq
import numpy as np
from gqlab.operators.softmax import SoftmaxRule

table = np.tile([0.2, 0.8], (9, 1))
fixed = gq.FixedPolicy(table)
model = gq.LinearQ(np.outer([1.0, 2.0], np.ones(9)), gq.OneHot(9).fit([[0]]))
wrong = 3


def right(observations):
    return np.tile([0.2, 0.8], (len(observations), 1))


@dataclass(frozen=True)
class Sharp(gq.Operator):
    compiled: ClassVar[type] = SoftmaxRule
    sigma: float = 3.0

    def policy(self, q):
        return gq.Softmax(self.sigma).policy(q)

    def weights(self, q):
        return gq.Softmax(self.sigma).weights(q)
"""


class Corridor(gymnasium.Env):
    """Nine places; action 1 goes right, 0 left; it ends at the right, and is cut off after 20 steps."""

    observation_space, action_space = gymnasium.spaces.Discrete(9), gymnasium.spaces.Discrete(2)
    metadata = {"render_modes": ["rgb_array"], "render_fps": 30}  # noqa: RUF012 - as Gymnasium has it

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = int(self.np_random.integers(4))
        return self.place, {}

    def step(self, action):
        self.place = max(0, self.place + (1 if action else -1))
        return self.place, -1.0, self.place == 8, False, {}

    def render(self):
        picture = np.zeros((10, 90, 3), np.uint8)
        picture[:, 10 * self.place : 10 * self.place + 10] = 255
        return picture


@pytest.fixture(autouse=True)
def corridor(tmp_path, monkeypatch):
    gymnasium.register("Corridor-v0", Corridor, max_episode_steps=20)
    (tmp_path / "own_policies.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    yield
    gymnasium.registry.pop("Corridor-v0")
    sys.modules.pop("own_policies", None)


def seen(capsys):
    return [line for line in capsys.readouterr().out.splitlines() if line.startswith("episode")]


@pytest.mark.parametrize("name", ["table", "fixed", "model", "right"])
def test_any_policy_in_a_file_is_watched(capsys, tmp_path, name):
    main(["watch", f"own_policies.py:{name}", "--env", "Corridor-v0", "--episodes", "2"])
    starts = [gymnasium.make("Corridor-v0").reset(seed=int(np.random.SeedSequence([0, k]).generate_state(1)[0]))[0] for k in (0, 1)]  # fmt: skip
    assert seen(capsys) == [f"episode {k + 1}: return {s - 8} in {8 - s} steps" for k, s in enumerate(starts)]
    assert (tmp_path / f"{name}.gif").exists()


def test_a_model_with_an_operator_of_ones_own_is_watched(capsys, tmp_path):
    main(["watch", "own_policies.py:model", "--env", "Corridor-v0", "--episodes", "1", "--out", "one.gif"])
    wanted = seen(capsys)
    own = sys.modules["own_policies"]
    gq.LinearQ(own.model.theta, own.model.encoder, own.Sharp(2.0)).save("model.npz")
    with pytest.raises(SystemExit):
        main(["watch", "model.npz", "--env", "Corridor-v0", "--episodes", "1"])
    assert capsys.readouterr().err.endswith("an operator that is not gqlab's: give its class, operators=[Sharp]\n")
    main(["watch", "model.npz", "--env", "Corridor-v0", "--episodes", "1", "--operator", "own_policies.py:Sharp"])
    assert seen(capsys) == wanted


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["own_policies.py:wrong", "--env", "Corridor-v0"], "policy is 3, expected a policy: a LinearQ"),
        (["own_policies.py:right"], "env is missing: the file does not say which one; give --env"),
        (
            ["own_policies.py:left", "--env", "Corridor-v0"],
            "model is 'own_policies.py:left': own_policies.py has nothing",
        ),
        (["other.py:left", "--env", "Corridor-v0"], "model is 'other.py:left': there is no file other.py"),
        (["own_policies.py:table", "--env", "CartPole-v1"], "policy is array("),
    ],
)
def test_messages(capsys, arguments, message):
    with pytest.raises(SystemExit) as end:
        main(["watch", *arguments])
    text = capsys.readouterr().err
    assert end.value.code == 2
    assert text.startswith(f"gqlab: {message}")
    assert text.count("\n") == 1
