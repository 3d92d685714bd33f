"""What a prompt and a notebook show: in short, with the cause first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import gqlab as gq
from gqlab.estimators.plain import Plain

#: What a prompt can show of one thing.
MOST = 300


@pytest.fixture(scope="module")
def problem():
    mdp = gq.garnet(seed=0)
    return gq.Problem(mdp, gq.random_features(mdp, dim=4))


@pytest.fixture(scope="module")
def things(problem):
    log = gq.collect("FrozenLake-v1", n_steps=300, seed=0)
    agent = gq.Agent("FrozenLake-v1").learn(50)
    return {
        "report": gq.theory.analyse(problem, gq.VRGreedyGQ(radius=100.0), n_epochs=10),
        "report of Greedy-GQ": gq.theory.analyse_greedy(problem, gq.GreedyGQ(radius=100.0), n_samples=1000),
        "health": gq.health(log),
        "decision": gq.decide(log, {"down": [[0, 1, 0, 0]] * 16}, discount=0.9, features="tabular"),
        "result": gq.run(problem, gq.GreedyGQ(), n_samples=300, n_runs=2),
        "agent": agent,
        "model": agent.model,
    }


def test_reprs_are_short_and_texts_are_whole(things):
    for name, thing in things.items():
        assert len(repr(thing)) < MOST, name
        assert "\n" not in repr(thing), name
    assert len(str(things["report"])) > 2000
    assert str(things["health"]) == things["health"].table()
    assert "interior" in repr(things["report"])


def test_notebooks_show_tables(things):
    for name in ("report", "report of Greedy-GQ", "health", "decision", "result", "agent", "model"):
        html = things[name]._repr_html_()
        assert "<table>" in html, name
    assert (
        "<script"
        not in gq.LinearQ(
            np.zeros((1, 1)), gq.Identity(bias=False).fit([[0], [1]]), metadata={"env": {"id": "<script>"}}
        )._repr_html_()
    )


def test_labels_that_not_all_cells_have_are_not_said_of_all(problem):
    grid = gq.grid(
        problem, [gq.GreedyGQ(0.01, 0.01), gq.VRGreedyGQ(0.01, 0.01, batch_size=100)], n_samples=300, n_runs=2
    )
    size, whole, part, *_ = repr(grid).splitlines()
    assert size == "GridResult: 2 cells, 4 runs, 0 diverged"
    assert whole == "  all: problem=0, seed=0, eta_theta=0.01, eta_omega=0.01, radius=inf"
    assert part.startswith("  where they have it: ")
    assert "batch_size=100" in part
    assert repr(gq.grid(problem, [gq.GreedyGQ()], n_samples=300, n_runs=1)).startswith("GridResult: 1 cell, 1 run, ")


class Typo(Plain):
    def step(self, world, point, cursor, u, rates, d, A):
        return self.qq, cursor


class Nameless(Plain):
    def step(self, world, point, cursor, u, rates, d, A):
        return nowhere, cursor  # noqa: F821


@dataclass(frozen=True)
class TypoGQ(gq.GreedyGQ):
    estimator: ClassVar[type] = Typo


@dataclass(frozen=True)
class NamelessGQ(gq.GreedyGQ):
    estimator: ClassVar[type] = Nameless


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (TypoGQ, r"^Unknown attribute 'qq' of type Typo, in .*test_reprs.py, line \d+: return self.qq, cursor"),
        (NamelessGQ, r"^name 'nowhere' is not defined, in .*test_reprs.py, line \d+: return nowhere, cursor"),
    ],
)
def test_code_that_does_not_compile_is_one_line_with_its_place(problem, kind, message):
    with pytest.raises(ValueError, match=message) as caught:
        gq.run(problem, kind(), n_samples=300, n_runs=1)
    assert len(str(caught.value)) < MOST


def test_environments_without_a_table_are_said_to_have_none():
    with pytest.raises(ValueError, match=r"^Blackjack-v1 has no table P with an initial distribution, as FrozenLake"):
        gq.FiniteMDP.from_gymnasium("Blackjack-v1")
