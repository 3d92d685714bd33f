"""Algorithm × place, cell by cell: each runs, or says in one line which of its needs is not met."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import cuda

import gqlab as gq
from gqlab.algorithms.places import unmet_need
from helpers.agent_loops import Walk

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "_ext"))
import places

A, ENCODER = 3, gq.TileCoder(n_tilings=3, bins=3, low=[-1, -1], high=[1, 1])

#: So that they run on a few hundred samples.
SMALL = {"batch_size": 20, "epoch_updates": 20, "first": 15, "inner_steps": 5, "n_trajectories": 2, "horizon": 5}

#: Compiled each time, to show both kinds of point; the other cells that run by `make long`.
ALWAYS = {("`STORMGreedyGQ`", "`fit` in memory"), ("`STORMGreedyGQ`", "`Agent`"), ("`FittedQ`", "`fit` in memory")}


def small(algorithm: gq.Algorithm) -> gq.Algorithm:
    own = {field.name for field in fields(algorithm)}
    return replace(algorithm, **{name: value for name, value in SMALL.items() if name in own})


@pytest.fixture(scope="module")
def data():
    return gq.collect(Walk(limit=12), n_steps=300, seed=0, progress=False)


@pytest.fixture(scope="module")
def files(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("logs") / "log.parquet"
    data.to_parquet(path)
    return gq.Transitions.from_parquet(path)


def run(problem: gq.Problem, algorithm: gq.Algorithm, **how: Any) -> np.ndarray:
    return gq.run(problem, algorithm, n_samples=200, n_runs=2, **how).theta


def grid(problem: gq.Problem, algorithm: gq.Algorithm) -> np.ndarray:
    [(_, result)] = gq.grid(problem, algorithm, n_samples=200, n_runs=2)
    return result.theta


def agent(algorithm: gq.Algorithm) -> np.ndarray:
    return gq.Agent(Walk(limit=12), ENCODER, algorithm).learn(60).theta


def replaying(algorithm: gq.Algorithm) -> np.ndarray:
    """With what the cell of the table says."""
    refits = places.over_kept(algorithm) == "`Refit`"
    how: Any = gq.Refit(every=30) if refits else gq.Replay(updates=2)
    return gq.Agent(Walk(limit=12), ENCODER, algorithm, replay=how).learn(60).theta


def fit(data: gq.Transitions, algorithm: gq.Algorithm, **how: Any) -> np.ndarray:
    return gq.fit(data, ENCODER, algorithm, **how).theta


@pytest.fixture
def calls(garnet_problem, data, files) -> dict[str, list[Callable[[gq.Algorithm], np.ndarray]]]:
    """What a place is called by."""
    return {
        "`run`, `grid`": [lambda a: run(garnet_problem, a), lambda a: grid(garnet_problem, a)],
        "on a GPU": [lambda a: run(garnet_problem, a, device="cuda")],
        "`Agent`": [agent],
        REPLAYED: [replaying],
        "`fit` in memory": [lambda a: fit(data, a)],
        "over files": [lambda a: fit(files, a)],
        "on an engine": [lambda a: fit(files, a, engine="threads")],
    }


REPLAYED = "with `replay`"
CELLS = [(name, column) for name in places.rows() for column in places.COLUMNS]
OPEN = [(n, c) for n, c in CELLS if places.cell(places.COLUMNS[c], places.rows()[n])[0] in "✓`"]
CLOSED = [cell for cell in CELLS if cell not in OPEN]


@pytest.mark.parametrize(
    ("name", "column"),
    [pytest.param(*cell, marks=[pytest.mark.long] * (cell not in ALWAYS), id=" ".join(cell)) for cell in OPEN],
)
def test_an_algorithm_runs_where_its_needs_are_met(name, column, calls):
    if column == "on a GPU" and not cuda.is_available():
        pytest.skip("no GPU")
    for call in calls[column]:
        theta = call(small(places.rows()[name]))
        assert np.isfinite(theta).all()
        assert np.abs(theta).max() > 0


@pytest.mark.parametrize(("name", "column"), CLOSED, ids=[" ".join(cell) for cell in CLOSED])
def test_elsewhere_one_line_says_which_need_is_not_met(name, column, calls):
    algorithm = small(places.rows()[name])
    if column == REPLAYED:
        with pytest.raises(ValueError, match=r"^(algorithm is .*, which has no form over|trace is .*no traces)[^\n]*$"):
            replaying(algorithm)
        return
    need = unmet_need(places.COLUMNS[column][-1], algorithm)
    for call in calls[column]:
        with pytest.raises(ValueError, match=r"^algorithm is \w+\(.*, which needs .*does not offer that") as error:
            call(algorithm)
        assert "\n" not in str(error.value)
        assert f"which needs {need.value}: " in str(error.value)


def test_the_page_has_the_table():
    page = places.PAGE.read_text()
    assert places.with_table(page) == page
    assert page.count("✓") > 50
    assert len(OPEN) + len(CLOSED) == len(places.rows()) * len(places.COLUMNS)
