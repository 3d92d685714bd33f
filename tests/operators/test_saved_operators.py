"""Operators of a user's own in files of models and agents: read back only where their class is given."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np
import pytest

import gqlab as gq
from gqlab.operators.saved import operator_from_dict, operator_to_dict
from gqlab.rules.boltzmann import boltzmann, boltzmann_policy
from gqlab.support.files import read_arrays, write_arrays


class SharpRule(NamedTuple):
    sigma: float

    def improve(self, row, q, w, A):
        top, over_Z, mean = boltzmann(q, self.sigma, w, A)
        for a in range(A):
            p = w[a] * over_Z
            w[a] = p + p * (self.sigma * (q[a] - top - mean))
        return top + mean

    def act(self, row, q, p, A):
        boltzmann_policy(q, self.sigma, p, A)


@dataclass(frozen=True)
class Sharp(gq.Operator):
    """A softmax under another name."""

    compiled: ClassVar[type] = SharpRule
    sigma: float = 3.0

    def policy(self, q):
        return gq.Softmax(self.sigma).policy(q)

    def weights(self, q):
        return gq.Softmax(self.sigma).weights(q)


class Plain(gq.Operator):
    """The same, and no dataclass."""

    compiled: ClassVar[type] = SharpRule

    def __init__(self, sigma=3.0):
        self.sigma = sigma

    policy, weights = Sharp.policy, Sharp.weights


@dataclass(frozen=True)
class Listed(Sharp):
    """With something that no file can hold."""

    more: object = field(default_factory=object)


CODER = gq.TileCoder(n_tilings=2, bins=2, low=[-1.2, -0.07], high=[0.6, 0.07]).fit([[0, 0]])
NAME = f"{__name__}:Sharp"


def model(target):
    theta = np.random.default_rng(0).normal(size=(3, CODER.n_features_out_))
    return gq.LinearQ(theta, CODER, target)


@pytest.mark.parametrize("target", [Sharp(2.0), Plain(2.0)], ids=["dataclass", "class"])
def test_a_model_with_an_operator_of_ones_own_survives_its_file(tmp_path, target):
    made = model(target)
    made.save(tmp_path / "model.npz")
    again = gq.LinearQ.load(tmp_path / "model.npz", operators=[gq.Softmax, type(target)])
    assert type(again.target) is type(target)
    np.testing.assert_array_equal(again.probabilities([[0.1, 0.0]]), made.probabilities([[0.1, 0.0]]))
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the whole message is compared
        gq.LinearQ.load(tmp_path / "model.npz")
    name = type(target).__name__
    file = tmp_path / "model.npz"
    assert str(error.value) == f"{file}: target is {__name__}:{name}, an operator that is not gqlab's: give its class, operators=[{name}]"  # fmt: skip


@pytest.mark.long
def test_an_agent_with_an_operator_of_ones_own_survives_its_file(tmp_path):
    agent = gq.Agent("MountainCar-v0", CODER, gq.GreedyGQ(0.1, 0.1), target=Sharp(2.0)).learn(300)
    agent.save(tmp_path / "agent.npz")
    with pytest.raises(ValueError, match=r"give its class, operators=\[Sharp\]$"):
        gq.Agent.load(tmp_path / "agent.npz")
    again = gq.Agent.load(tmp_path / "agent.npz", operators=[Sharp])
    np.testing.assert_array_equal(again.learn(200).theta, agent.learn(200).theta)


def test_no_module_is_imported_because_a_file_says_so(tmp_path, monkeypatch):
    """A model that names a class of a module which would leave a mark."""
    (tmp_path / "evil_operator.py").write_text(f"open({str(tmp_path / 'mark')!r}, 'w').close()")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    model(Sharp()).save("model.npz")
    arrays = read_arrays("model.npz")
    header = json.loads(str(arrays["header"]))
    assert header["target"] == {"name": NAME, "sigma": 3.0}
    header["target"] = {"name": "evil_operator:Sharp"}
    write_arrays(tmp_path / "model.npz", {**arrays, "header": np.array(json.dumps(header))})
    with pytest.raises(ValueError, match=r"target is evil_operator:Sharp, an operator that is not gqlab's"):
        gq.LinearQ.load("model.npz")
    assert gq.LinearQ.load("model.npz", operators=[Sharp]).target == Sharp()  # the class that the user gave
    assert not os.path.exists("mark")
    assert "evil_operator" not in sys.modules


def test_a_class_is_known_by_its_module_first():
    other = type("Sharp", (Sharp,), {"__module__": "elsewhere", "__qualname__": "Sharp"})
    for own in ([other, Sharp], [Sharp, other]):
        assert type(operator_from_dict({"name": NAME, "sigma": 1.0}, own)) is Sharp
        assert type(operator_from_dict({"name": "elsewhere:Sharp"}, own)) is other
    assert type(operator_from_dict({"name": "__main__:Sharp"}, [other])) is other


@pytest.mark.parametrize(
    "operator", [gq.Softmax(2.0), gq.Mellowmax(3.0), gq.Greedy(), gq.EpsilonGreedy(np.float32(0.25))]
)
def test_the_operators_of_gqlab_need_nobody(operator):
    assert operator_from_dict(json.loads(json.dumps(operator_to_dict(operator)))) == operator


@pytest.mark.parametrize(
    ("values", "own", "message"),
    [
        ({"name": "Nothing"}, None, "target is 'Nothing', expected one of the operators Softmax, Mellowmax, Greedy, "),
        ({}, None, "target is 'None', expected one of the operators"),
        ([1], None, "target is [1], expected the name and the numbers of an operator"),
        (
            {"name": "Softmax", "tau": 1.0},
            None,
            "target is Softmax, which cannot be made of what was saved: Softmax.__init__",
        ),
        ({"name": "Softmax", "sigma": -1.0}, None, "sigma is -1.0, expected"),
        ({"name": NAME}, [3], "operators: 3 is no class of operators"),
        (
            {"name": NAME},
            [gq.GreedyGQ],
            "operators: <class 'gqlab.algorithms.greedy_gq.GreedyGQ'> is no class of operators",
        ),
    ],
)
def test_what_is_no_operator_gets_one_line(values, own, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the whole message is compared
        operator_from_dict(values, own)
    assert str(error.value).startswith(message)


def test_what_cannot_be_saved_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"^target is Listed\(.*\), which cannot be saved: "):
        model(Listed()).save(tmp_path / "model.npz")
    assert list(tmp_path.iterdir()) == []
