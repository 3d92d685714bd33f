"""What the tests share: the vectors and problems made from them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gqlab as gq
from gqlab.engine import memory

# Ray reads this once in a process: all tests of a process, and the clusters that they start, have to agree on it.
os.environ.setdefault("RAY_AUTH_MODE", "disabled")

#: d and A of the paper's problems: Garnet (:func:`garnet_problem`, and most examples), Frozen Lake, Baird's star.
USUAL_SIZES = {(4, 3), (8, 4), (7, 2)}

IS_UNROLLED = memory.is_unrolled

VECTORS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "greedy_gq.json").read_text())


def operator_of(target: dict[str, Any]) -> gq.Operator:
    match target["kind"]:
        case "softmax":
            return gq.Softmax(target["parameter"])
        case "mellowmax":
            return gq.Mellowmax(target["parameter"])
        case "epsilon_greedy":
            return gq.EpsilonGreedy(target["parameter"])
        case "greedy":
            return gq.Greedy()
        case "fixed":
            return gq.FixedPolicy(target["table"])
    raise AssertionError(target["kind"])


def problem_of(vector: dict[str, Any]) -> gq.Problem:
    mdp = gq.FiniteMDP(
        vector["transition"], vector["reward"], vector["discount"], vector.get("terminal"), vector.get("initial")
    )
    return gq.Problem(mdp, vector["features"], vector["behavior"], operator_of(vector["target"]))


def vector_name(vector: dict[str, Any]) -> str:
    name = f"{vector['target']['kind']}-{vector['target']['parameter']:g}"
    return name + ("-terminal" if "terminal" in vector else "")


def assert_close(actual: Any, expected: Any, tolerance: float = 1e-10) -> None:
    """Equal to ``tolerance``, relative to the largest entry."""
    expected = np.asarray(expected)
    assert np.shape(actual) == expected.shape
    assert np.abs(actual - expected).max() <= tolerance * max(np.abs(expected).max(), 1e-300)


@pytest.fixture(params=VECTORS, ids=vector_name)
def vector(request: pytest.FixtureRequest) -> dict[str, Any]:
    return request.param


@pytest.fixture
def garnet_problem() -> gq.Problem:
    mdp = gq.garnet(seed=0)
    return gq.Problem(mdp, gq.random_features(mdp, dim=4))


@pytest.fixture(autouse=True, scope="session")
def few_sizes():
    """Small problems of the usual sizes alone get code of their own, others the loops that large ones get.

    Compiling is most of what the tests do. Where code for a size is what is tested, see :func:`every_size`.
    """
    with pytest.MonkeyPatch.context() as patch:
        for module in ("memory", "layout"):
            patch.setattr(f"gqlab.engine.{module}.is_unrolled", lambda d, A: (d, A) in USUAL_SIZES)
        yield


@pytest.fixture
def every_size(monkeypatch):
    """Code for every small size, as users have it."""
    for module in ("memory", "layout"):
        monkeypatch.setattr(f"gqlab.engine.{module}.is_unrolled", IS_UNROLLED)


@pytest.fixture
def no_windows():
    """Pictures that nobody looks at, and that are closed; Matplotlib's settings stay what they were."""
    import matplotlib
    import matplotlib.pyplot as plt

    with matplotlib.rc_context():
        plt.switch_backend("Agg")
        yield
        plt.close("all")
