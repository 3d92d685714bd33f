"""The family of estimators against plain NumPy loops, and against the cases that are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import family_loops
import gqlab as gq
from conftest import assert_close
from gqlab.samples.random import BATCH_INDEX, below, stream_key, word

N = 130
ETAS = gq.Decay(0.5, after=40.0), gq.Decay(0.3, after=40.0)


def problem_of(kind: str) -> gq.Problem:
    """Two problems of one size: a Garnet, and one with a terminal state, restarts and a discount for each transition."""
    if kind == "garnet":
        mdp = gq.garnet(seed=0)
        return gq.Problem(mdp, gq.random_features(mdp, dim=4))
    rng = np.random.default_rng(3)
    P = rng.dirichlet(np.ones(4), size=(4, 3))
    ends, initial = np.array([False, False, True, False]), np.array([0.3, 0.4, 0.0, 0.3])
    mdp = gq.FiniteMDP(P, rng.normal(size=(4, 3, 4)), rng.uniform(0.5, 0.95, size=(4, 3, 4)), ends, initial)
    phi = rng.normal(size=(4, 3, 4)) / 2
    phi[ends] = 0.0
    return gq.Problem(mdp, phi, rng.dirichlet(2 * np.ones(3), size=4), gq.Softmax(1.3))


#: The algorithm, and the plain loop with its parameters.
CASES: dict[str, tuple[gq.Algorithm, Callable, dict[str, Any]]] = {
    "averaged": (gq.AveragedGreedyGQ(*ETAS), family_loops.averaged, {}),
    "SAGA": (gq.SAGAGreedyGQ(*ETAS), family_loops.saga, {}),
    "streaming": (
        gq.StreamingGreedyGQ(*ETAS, first=7, growth=1.7), family_loops.streaming, {"first": 7, "growth": 1.7}
    ),
    "STORM": (gq.STORMGreedyGQ(*ETAS, a=0.8, power=0.7), family_loops.storm, {"a": 0.8, "power": 0.7}),
    "ROOT": (gq.STORMGreedyGQ(*ETAS), family_loops.storm, {"a": 1.0, "power": 1.0}),
    "STORM, constant a": (gq.STORMGreedyGQ(*ETAS, a=0.1, power=0.0), family_loops.storm, {"a": 0.1, "power": 0.0}),
    "SARAH": (
        gq.SARAHGreedyGQ(*ETAS, batch_size=9), family_loops.sarah, {"M": 9, "growth": 2.0, "keep": "all"}
    ),
    "SARAH, new samples": (
        gq.SARAHGreedyGQ(*ETAS, batch_size=9, growth=1.3, keep="new"),
        family_loops.sarah,
        {"M": 9, "growth": 1.3, "keep": "new"},
    ),
    "SVRG, new samples": (
        gq.VRGreedyGQ(*ETAS, batch_size=9, growth=1.5), family_loops.svrg, {"M": 9, "growth": 1.5, "keep": "new"}
    ),
    "SVRG, all samples": (
        gq.VRGreedyGQ(*ETAS, batch_size=9, growth=1.5, keep="all"),
        family_loops.svrg,
        {"M": 9, "growth": 1.5, "keep": "all"},
    ),
    "SVRG, all samples, no growth": (
        gq.VRGreedyGQ(*ETAS, batch_size=20, keep="all"), family_loops.svrg, {"M": 20, "growth": 1.0, "keep": "all"}
    ),
    "nested": (
        gq.NestedGreedyGQ(*ETAS, inner_steps=5, batch_size=3), family_loops.nested, {"inner_steps": 5, "batch_size": 3}
    ),
}  # fmt: skip


def samples_of(problem: gq.Problem, seed: int, run: int) -> list[tuple[int, int, int]]:
    return list(zip(*(column.tolist() for column in gq.trajectory(problem, N, seed, run)), strict=True))


def loop_of(name: str, problem: gq.Problem, seed: int, run: int, radius: float):
    """The plain loop's answers and last ω."""
    _, loop, parameters = CASES[name]
    if loop in (family_loops.svrg, family_loops.sarah):
        draws = stream_key(np.uint64(seed), run, BATCH_INDEX)
        parameters = parameters | {"index": lambda u, n: int(below(np.uint64(word(np.uint64(draws), u)), n))}
    z = np.array([np.full(4, 0.6), np.zeros(4)])
    etas = lambda t: (ETAS[0](t), ETAS[1](t))  # noqa: E731
    return loop(problem, samples_of(problem, seed, run), z, etas, radius, **parameters)


@pytest.mark.parametrize("kind", ["garnet", "terminal"])
@pytest.mark.parametrize("radius", [np.inf, 1.25], ids=["free", "projected"])
@pytest.mark.parametrize("name", CASES)
def test_every_member_is_its_formula_on_the_samples_of_the_run(name, radius, kind):
    problem = problem_of(kind)
    algorithm = replace(CASES[name][0], radius=radius)
    result = gq.run(problem, algorithm, N, 2, seed=4, theta0=np.full(4, 0.6), record_every=1)
    for run in range(2):
        theta, omega = loop_of(name, problem, 4, run, radius)
        assert_close(result.theta[run], theta)
        assert_close(result.omega[run, -1], omega)
        if np.isfinite(radius) and kind == "garnet":  # the ball was felt
            free, _ = loop_of(name, problem, 4, run, np.inf)
            assert np.abs(free - theta).max() > 1e-3


@pytest.mark.parametrize("kind", ["garnet", "terminal"])
@pytest.mark.parametrize("radius", [np.inf, 2.0], ids=["free", "ball"])
def test_least_squares_is_the_stationary_point_of_its_samples(kind, radius):
    problem = problem_of(kind)
    algorithm = gq.LeastSquaresGreedyGQ(first=20, growth=1.5, radius=radius)
    result = gq.run(problem, algorithm, N, 1, seed=4, theta0=np.full(4, 0.6), record_every=1)
    samples = samples_of(problem, 4, 0)
    z = np.array([np.full(4, 0.6), np.zeros(4)])
    theta, omega = family_loops.least_squares(problem, samples, z, radius, 20, 1.5)
    stationary = np.linalg.norm(family_loops.empirical(problem, samples[:101], theta[101])["gradient"]) < 1e-10
    assert stationary or np.isfinite(radius)
    assert_close(result.theta[0], theta, 1e-10 if stationary else 1e-4)
    assert np.abs(result.omega[0, -1] - omega).max() <= (1e-10 if stationary else 1e-4)
