"""What fit makes of every algorithm that a log allows, against plain NumPy loops along the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gqlab as gq
from gqlab.learn.fit.fitting import room_for
from helpers import family_loops
from helpers.log_loops import GAMMA, A, S, encoder_of, index_of, log_of, problem_of, traced

N, PASSES = 60, 3
NAMES = ("observations", "actions", "rewards", "next_observations", "terminated")
DECAYING, CONSTANT = (gq.Decay(0.5, after=40.0), gq.Decay(0.3, after=40.0)), (0.3, 0.2)

#: The algorithm, and the plain loop with its parameters.
CASES: dict[str, tuple[gq.Algorithm, Callable[..., Any], dict[str, Any]]] = {
    "averaged": (gq.AveragedGreedyGQ(*DECAYING), family_loops.averaged, {}),
    "SAGA": (gq.SAGAGreedyGQ(*DECAYING), family_loops.saga, {"numbers": [t % N for t in range(PASSES * N)]}),
    "streaming": (
        gq.StreamingGreedyGQ(*DECAYING, first=7, growth=1.7), family_loops.streaming, {"first": 7, "growth": 1.7}
    ),
    "STORM": (gq.STORMGreedyGQ(*DECAYING, a=0.8, power=0.7), family_loops.storm, {"a": 0.8, "power": 0.7}),
    "ROOT": (gq.STORMGreedyGQ(*DECAYING), family_loops.storm, {"a": 1.0, "power": 1.0}),
    "SARAH": (
        gq.SARAHGreedyGQ(*DECAYING, batch_size=9), family_loops.sarah, {"M": 9, "growth": 2.0, "keep": "all"}
    ),
    "SARAH, new samples": (
        gq.SARAHGreedyGQ(*DECAYING, batch_size=20, growth=1.0, keep="new"),
        family_loops.sarah,
        {"M": 20, "growth": 1.0, "keep": "new"},
    ),
    "SVRG": (gq.VRGreedyGQ(*CONSTANT, batch_size=20), family_loops.svrg, {"M": 20, "growth": 1.0, "keep": "new"}),
    "nested": (
        gq.NestedGreedyGQ(*CONSTANT, inner_steps=5, batch_size=3), family_loops.nested, {"inner_steps": 5, "batch_size": 3}
    ),
}  # fmt: skip

#: Compiled each time; the others by `make long`.
ALWAYS = {("SAGA", "sparse"), ("STORM", "dense")}
BOTH = [(name, kind) for name in CASES for kind in ("sparse", "dense")]


def steps_of(algorithm: Any) -> Callable[[int], tuple[float, float]]:
    etas = algorithm.eta_theta, algorithm.eta_omega
    return lambda t: tuple(eta(t) if isinstance(eta, gq.Decay) else eta for eta in etas)


@pytest.mark.parametrize("radii", [(np.inf, np.inf), (1.25, 0.3)], ids=["free", "projected"])
@pytest.mark.parametrize(
    ("name", "kind"),
    [pytest.param(*case, marks=[pytest.mark.long] * (case not in ALWAYS), id=" ".join(case)) for case in BOTH],
)
def test_a_fit_is_the_formula_along_the_rows(name, kind, radii):
    encoder = encoder_of(kind)
    problem = problem_of(encoder)
    rows, data = log_of(problem, N)
    algorithm, loop, parameters = CASES[name]
    if loop in (family_loops.svrg, family_loops.sarah):
        parameters = parameters | {"index": index_of(4)}
    algorithm = replace(algorithm, radius=radii[0], radius_omega=radii[1])
    theta0 = np.full((A, encoder.n_features_out_), 0.2)
    model = gq.fit(data, encoder, algorithm, discount=GAMMA, n_passes=PASSES, rows="in order", seed=4, theta0=theta0)
    first = np.array([theta0.ravel(), np.zeros(theta0.size)])
    # A batch that is begun within the passes goes on into the rows that would follow.
    longer = PASSES * rows if loop not in (family_loops.svrg, family_loops.sarah) else 2 * PASSES * rows
    answers, _ = loop(problem, longer, first, steps_of(algorithm), radii, **parameters)
    assert model.history["updates"][-1] == PASSES * N // algorithm.samples_per_update
    for updates, theta in zip(model.history["updates"], model.history["theta"], strict=True):
        np.testing.assert_allclose(theta.ravel(), answers[updates], rtol=0, atol=1e-12)
    if np.isfinite(radii[0]):
        free, _ = loop(problem, longer, first, steps_of(algorithm), (np.inf, np.inf), **parameters)
        assert np.abs(free[-1] - answers[-1]).max() > 1e-3  # the balls were felt


def test_there_is_room_for_the_batch_of_the_epoch_that_is_begun_last():
    """Epochs of 9, 18, 36, … updates: 100 are in the one that ends with 135."""
    sarah = gq.SARAHGreedyGQ(batch_size=9)
    assert room_for(sarah, 100) == 135
    assert room_for(sarah, 135) == 135
    assert room_for(gq.VRGreedyGQ(batch_size=30), 100) == 120
    assert room_for(gq.GreedyGQ(), 100) == 100
    assert room_for(gq.NestedGreedyGQ(inner_steps=5, batch_size=3), 100) == 100


def begins_of(data: gq.Transitions) -> list[bool]:
    episode = data.to_chunk().episode
    return [True, *(episode[1:] != episode[:-1]).tolist()]


TRACED = {
    "GQ(.8)": gq.GreedyGQ(0.2, 0.1, trace=0.8, radius=1.5, radius_omega=0.4),
    "QRC(.5)": gq.QRC(0.2, 0.2, beta=0.7, trace=0.5),
    "Q(.9)": gq.QLearning(0.2, trace=0.9),
}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param(name, kind, marks=[pytest.mark.long] * ((name, kind) != ("GQ(.8)", "sparse")), id=f"{name} {kind}")
        for name in TRACED
        for kind in ("sparse", "dense")
    ],
)
def test_traces_go_along_episodes_and_end_with_them(name, kind, monkeypatch):
    monkeypatch.setattr("gqlab.learn.fit.passes.LEAST_TRACE", 0.0)
    encoder = encoder_of(kind)
    problem = problem_of(encoder)
    rows, data = log_of(problem, N)
    begins = begins_of(data)
    assert 3 < sum(begins) < N / 3
    model = gq.fit(data, encoder, TRACED[name], discount=GAMMA, n_passes=2)
    theta, _ = traced(problem, 2 * rows, TRACED[name], 2 * begins)
    np.testing.assert_allclose(model.theta.ravel(), theta, rtol=0, atol=1e-12)
    across, _ = traced(problem, 2 * rows, TRACED[name], [False] * 2 * N)
    assert np.abs(across - theta).max() > 1e-4  # that traces end is felt
    uncut, _ = traced(problem, 2 * rows, replace(TRACED[name], trace=0.0), 2 * begins)
    assert np.abs(uncut - theta).max() > 1e-4  # and so are traces


@pytest.mark.long
def test_traces_of_a_policy_that_is_not_greedy_are_carried_on_by_the_ratio(monkeypatch):
    monkeypatch.setattr("gqlab.learn.fit.passes.LEAST_TRACE", 0.0)
    encoder = encoder_of("sparse")
    problem = problem_of(encoder, gq.Softmax(2.0))
    probability = np.random.default_rng(1).uniform(0.2, 0.9, N)
    rows, data = log_of(problem, N, probabilities=probability)
    algorithm = gq.GreedyGQ(0.2, 0.1, trace=0.8)
    model = gq.fit(data, encoder, algorithm, gq.Softmax(2.0), discount=GAMMA, n_passes=2)
    theta, _ = traced(problem, 2 * rows, algorithm, 2 * begins_of(data), np.tile(probability, 2))
    np.testing.assert_allclose(model.theta.ravel(), theta, rtol=0, atol=1e-12)


@pytest.mark.parametrize("trace", [pytest.param(0.0), pytest.param(0.9, marks=pytest.mark.long)])
def test_sarsa_learns_from_the_rows_that_know_their_next_action(trace, monkeypatch):
    """Rows that terminated need none; the last row of a log, and rows that were cut off, have none."""
    monkeypatch.setattr("gqlab.learn.fit.passes.LEAST_TRACE", 0.0)
    encoder = encoder_of("sparse")
    problem = problem_of(encoder)
    rows, whole = log_of(problem, N)
    chunk = whole.to_chunk()
    cut = np.zeros(N, dtype=bool)
    cut[[10, 11, 37]] = True
    cut &= ~chunk.terminated
    columns = chunk.observations, chunk.actions, chunk.rewards, chunk.next_observations
    data = gq.Transitions.from_arrays(*columns, terminated=chunk.terminated, truncated=cut, n_actions=A)
    ended = chunk.terminated | cut
    known = [t for t in range(N) if chunk.terminated[t] or (not cut[t] and t + 1 < N)]
    assert 2 <= N - len(known) <= 4
    followed = [(*rows[t], rows[min(t + 1, N - 1)][1]) for t in known]
    begins = [t == 0 or bool(ended[t - 1]) for t in known]
    algorithm = gq.Sarsa(0.2, trace=trace)
    model = gq.fit(data, encoder, algorithm, discount=GAMMA, n_passes=2, rows="in order")
    theta, _ = traced(problem, 2 * followed, algorithm, 2 * begins)
    np.testing.assert_allclose(model.theta.ravel(), theta, rtol=0, atol=1e-12)
    assert model.history["updates"].tolist() == [0, len(known), 2 * len(known)]
    assert model.metadata["evaluates"] == "the policy of the data"


def test_rows_over_files_follow_each_other_across_what_is_read_at_a_time(tmp_path, monkeypatch):
    """The next action of the last row of a block is in the next one, and so is the rest of its episode."""
    encoder = encoder_of("sparse")
    _, data = log_of(problem_of(encoder), N)
    data.to_parquet(tmp_path / "log.parquet")
    monkeypatch.setattr("gqlab.data.parquet.ROWS", 7)
    files = gq.Transitions.from_parquet(tmp_path / "log.parquet")
    assert max(len(chunk) for chunk in files.chunks()) <= 8
    algorithm = gq.Sarsa(0.2)
    read = gq.fit(files, encoder, algorithm, discount=GAMMA, n_passes=2)
    loaded = gq.fit(data, encoder, algorithm, discount=GAMMA, n_passes=2, rows="in order")
    np.testing.assert_array_equal(read.theta, loaded.theta)
    assert read.history["updates"].tolist() == loaded.history["updates"].tolist()


def test_a_log_of_single_rows_knows_no_next_action():
    data = gq.Transitions.from_arrays([[0.0], [1.0]], [0, 1], [0.0, 1.0], [[2.0], [3.0]], truncated=[True, True])
    with pytest.raises(ValueError, match=r"^data: no row knows its next action"):
        gq.fit(data, gq.OneHot(S), gq.Sarsa(0.1))


# --- The order of the rows, and what is measured ---------------------------------------------------------------------


def test_the_order_of_the_rows_is_drawn_from_the_seed():
    encoder = encoder_of("sparse")
    _, data = log_of(problem_of(encoder), N)
    shuffled = [gq.fit(data, encoder, gq.QLearning(0.3), discount=GAMMA, n_passes=1, seed=seed) for seed in (3, 3, 8)]
    np.testing.assert_array_equal(shuffled[0].theta, shuffled[1].theta)
    assert np.abs(shuffled[0].theta - shuffled[2].theta).max() > 1e-6
    # As a pass in that very order.
    chunk, order = data.to_chunk(), np.random.default_rng([3, 0]).permutation(N)
    again = gq.Transitions.from_arrays(**{name: getattr(chunk, name)[order] for name in NAMES}, n_actions=A)
    model = gq.fit(again, encoder, gq.QLearning(0.3), discount=GAMMA, n_passes=1, rows="in order")
    np.testing.assert_allclose(model.theta, shuffled[0].theta, rtol=0, atol=1e-15)


def test_iterates_are_measured_by_every_so_many_th_row_of_all_files(tmp_path, monkeypatch):
    """Whatever is read at a time, in memory, over files and on an engine the same rows are picked."""
    encoder = encoder_of("sparse")
    _, data = log_of(problem_of(encoder), N)
    data.to_parquet(tmp_path / "log.parquet")
    monkeypatch.setattr("gqlab.learn.fit.fitting.MOST_MEASURED", 20)
    monkeypatch.setattr("gqlab.learn.fit.shared_fit.MOST_MEASURED", 20)
    monkeypatch.setattr("gqlab.data.parquet.ROWS", 7)
    files = gq.Transitions.from_parquet(tmp_path / "log.parquet")
    how = {"discount": GAMMA, "n_passes": 1}
    loaded = gq.fit(data, encoder, gq.QLearning(0.1), rows="in order", **how)
    for model in (
        gq.fit(files, encoder, gq.QLearning(0.1), **how),
        gq.fit(files, encoder, gq.QLearning(0.1), engine="threads", **how),
    ):
        for name in ("mspbe", "gradient"):
            np.testing.assert_allclose(model.history[name], loaded.history[name], rtol=1e-12)
    chunk = data.to_chunk()
    picked = gq.Transitions.from_arrays(**{name: getattr(chunk, name)[::3] for name in NAMES}, n_actions=A)
    alone = gq.fit(picked, encoder, gq.QLearning(0.1), rows="in order", theta0=loaded.theta, **how)
    np.testing.assert_allclose(alone.history["mspbe"][0], loaded.history["mspbe"][-1], rtol=1e-12)


# --- Means over all the data -----------------------------------------------------------------------------------------


def test_whole_data_means_are_the_same_in_memory_over_files_and_on_engines(tmp_path):
    encoder = encoder_of("sparse")
    _, data = log_of(problem_of(encoder), N)
    data.to_parquet(tmp_path / "log.parquet")
    files = gq.Transitions.from_parquet(tmp_path / "log.parquet")
    algorithm = gq.WholeDataVRGreedyGQ(0.2, 0.1, epoch_updates=25, radius=2.0)
    how = {"discount": GAMMA, "n_passes": 3, "seed": 2}
    loaded = gq.fit(data, encoder, algorithm, **how)
    assert loaded.history["updates"].tolist() == [0, 25, 50, 75]
    for other in (files.load(), files):
        np.testing.assert_array_equal(gq.fit(other, encoder, algorithm, **how).theta, loaded.theta)
    for workers in (1, 2):
        engine = gq.tasks.Threads(workers)
        np.testing.assert_array_equal(gq.fit(files, encoder, algorithm, engine=engine, **how).theta, loaded.theta)
    half = gq.fit(data, encoder, algorithm, checkpoint=tmp_path / "fit.npz", **{**how, "n_passes": 1})
    assert len(half.history["updates"]) == 2
    np.testing.assert_array_equal(
        gq.fit(data, encoder, algorithm, checkpoint=tmp_path / "fit.npz", **how).theta, loaded.theta
    )


def test_the_first_step_of_an_epoch_is_along_the_mean_over_all_rows():
    """At the reference point both pseudo-gradients of the row cancel: what is left is −η times the whole mean."""
    encoder = encoder_of("sparse")
    problem = problem_of(encoder)
    rows, data = log_of(problem, N)
    algorithm = gq.WholeDataVRGreedyGQ(0.2, 0.1, epoch_updates=1)
    z = np.zeros((2, A * S))
    model = gq.fit(data, encoder, algorithm, discount=GAMMA, n_passes=2)
    for k in (1, 2):
        mean = np.mean([family_loops.F(problem, z, row) for row in rows], axis=0)
        z = z - np.array([[0.2], [0.1]]) * mean
        np.testing.assert_allclose(model.history["theta"][k].ravel(), z[0], rtol=0, atol=1e-13)
