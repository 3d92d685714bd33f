"""Plots: what is drawn is what was computed, and nothing else changes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

import gqlab as gq
from gqlab.plots.style import PALETTE, axes_of, styled
from gqlab.plots.worlds import directions
from helpers.made_results import made_result, watched


@pytest.fixture(autouse=True)
def no_windows():
    with matplotlib.rc_context():
        plt.switch_backend("Agg")
        yield
        plt.close("all")


@pytest.fixture
def result(garnet_problem):
    return made_result(garnet_problem, np.random.default_rng(2).normal(size=(11, 5, 4)))


def test_the_line_is_the_median_of_the_exact_gradient_and_the_band_holds_four_runs_in_five(garnet_problem, result):
    ax = result.plot(label="mine")
    [line] = ax.lines
    norms = [[(garnet_problem.exact.gradient(t) ** 2).sum() for t in run] for run in result.theta]
    assert np.allclose(line.get_ydata(), np.median(norms, axis=0))
    assert line.get_xdata().tolist() == [0, 10, 20, 30, 40]
    [band] = ax.collections
    corners = band.get_paths()[0].vertices
    ordered = np.sort(norms, axis=0)
    for x, low, high in zip(line.get_xdata(), ordered[1], ordered[9], strict=True):
        heights = corners[corners[:, 0] == x][:, 1]
        assert np.allclose([heights.min(), heights.max()], [low, high])
    assert ax.get_legend().get_texts()[0].get_text() == "mine"


def test_a_diverged_run_counts_as_infinite_and_the_line_ends_where_half_have(garnet_problem):
    theta = np.ones((3, 4, 4))
    one = made_result(garnet_problem, theta, [15, -1, -1]).plot()
    assert len(one.lines) == 1
    assert np.isfinite(one.lines[0].get_ydata()).all()
    two = made_result(garnet_problem, theta, [5, 15, -1]).plot()
    line, cross = two.lines
    assert line.get_xdata().tolist() == [0, 10]
    assert (cross.get_xdata().tolist(), cross.get_marker()) == ([20], "x")
    far = made_result(garnet_problem, np.full((1, 2, 4), 1e200)).plot()
    assert len(far.lines[0].get_xdata()) == 0


def test_what_was_watched_is_drawn_without_the_problem(garnet_problem):
    values = np.array([[5.0, 4.0], [7.0, 2.0], [6.0, 3.0]])
    result = made_result(garnet_problem, np.zeros((3, 2, 4)), watched=watched(values), problem=None)
    for metric, shift in (("gradient", 0), ("gradient.mean", 0), ("gradient.lowest", -1), ("gradient.largest", 1)):
        ax = result.plot(metric)
        assert ax.lines[0].get_ydata().tolist() == [6.0 + shift, 3.0 + shift]
        if metric != "gradient":
            again = result.with_problem(garnet_problem).plot(metric)
            assert again.lines[0].get_ydata().tolist() == [6.0 + shift, 3.0 + shift]
    assert result.plot().get_ylabel() == "mean of ‖∇J(θ)‖² so far"
    own = result.plot(metric=lambda r: r.theta[:, :, 0] + 4)
    assert own.lines[0].get_ydata().tolist() == [4.0, 4.0]


def test_of_records_with_the_same_samples_the_last_is_drawn(garnet_problem):
    result = made_result(
        garnet_problem, np.arange(4.0).reshape(1, 4, 1) * np.ones(4), samples=np.array([0, 10, 10, 10])
    )
    ax = result.plot(metric=lambda r: r.theta[:, :, 0])
    assert (ax.lines[0].get_xdata().tolist(), ax.lines[0].get_ydata().tolist()) == ([0, 10], [0, 3])
    assert len(result.plot(metric=lambda r: r.theta[:, :, 0], x="updates").lines[0].get_xdata()) == 4


def test_a_grid_against_its_samples_and_against_a_step_size(garnet_problem):
    theta = np.random.default_rng(3).normal(size=(6, 4, 2, 4))
    results = [made_result(garnet_problem, t, [-1, -1, 0, 0] if k == 5 else None) for k, t in enumerate(theta)]
    labels = {
        "problem": [0] * 6,
        "seed": [0, 1] * 3,
        "eta_theta": [0.1, 0.1, 1.0, 1.0, 10.0, 10.0],
        "algorithm": ["QRC"] * 6,
    }
    grid = gq.GridResult(results, {name: np.array(c) for name, c in labels.items()})
    final = [garnet_problem.exact.mspbe(t[:, -1]) for t in theta]
    ax = grid.plot("mspbe", x="eta_theta")
    [line] = ax.lines
    wanted = [np.median(np.concatenate(final[2 * k : 2 * k + 2])) for k in range(2)]
    assert np.allclose(line.get_ydata()[:2], wanted)
    assert line.get_xdata().tolist() == [0.1, 1.0, 10.0]
    assert ax.get_xscale() == "log"
    curves = grid.plot("mspbe")
    assert [text.get_text() for text in curves.get_legend().get_texts()] == [
        f"eta_theta={x}" for x in ("0.1", "1", "10")
    ]
    assert [line.get_color() for line in curves.lines] == list(PALETTE[:3])
    assert len(grid.plot(by="algorithm").lines) == 1
    with pytest.raises(
        ValueError, match="by: that makes 17 lines, expected at most 16; give fewer labels, or select cells"
    ):
        gq.GridResult([results[0]] * 17, {"problem": np.zeros(17, int), "eta": np.arange(17.0)}).plot()
    other = gq.GridResult([results[0], made_result(garnet_problem, np.zeros((1, 9, 4)))], {"problem": np.zeros(2, int)})
    with pytest.raises(ValueError, match="by: cells of the line None were recorded at different samples"):
        other.plot()


@pytest.mark.parametrize(("metric", "scale"), [("gradient", "log"), ("mspbe", "log"), ("reward", "linear")])
def test_results_and_grids_have_the_same_axis_however_far_the_values_are_apart(garnet_problem, metric, scale):
    near, far = (made_result(garnet_problem, np.full((3, 2, 4), 1.0) * [[1.0], [end]]) for end in (1.1, 50.0))
    labels = {"problem": np.zeros(2, int), "eta_theta": np.array([0.1, 0.2])}
    grids = [gq.GridResult([result] * 2, labels) for result in (near, far)]
    axes = [result.plot(metric) for result in (near, far)]
    axes += [grid.plot(metric, x=x) for grid in grids for x in ("samples", "eta_theta")]
    assert [ax.get_yscale() for ax in axes] == [scale] * 6


def test_nothing_global_changes_and_given_axes_are_used_and_returned(garnet_problem, result):
    before, (figure, ax) = dict(matplotlib.rcParams), plt.subplots()
    numbers = plt.get_fignums()
    assert result.plot(ax=ax) is ax
    assert gq.compare_plot({"a": result, "b": result}, ax=ax) is ax
    assert garnet_problem.plot(ax=figure.add_subplot()) in figure.axes
    assert plt.get_fignums() == numbers
    result.plot()
    assert dict(matplotlib.rcParams) == before
    assert len({line.get_color() for line in ax.lines}) == 3


def test_the_style_stays_with_the_ticks_that_are_drawn_later():
    with styled():
        ax = axes_of(None)
        size = matplotlib.rcParams["xtick.labelsize"]
    with matplotlib.rc_context({"xtick.labelsize": 30, "xtick.color": "red"}):
        ax.figure.canvas.draw()
    assert {label.get_fontsize() for label in ax.get_xticklabels()} == {size}
    assert "red" not in {label.get_color() for label in ax.get_xticklabels()}


def test_users_can_take_the_style_by_its_name():
    with plt.style.context("gqlab.plots.gqlab"):
        assert matplotlib.rcParams["axes.prop_cycle"].by_key()["color"] == list(PALETTE)


# --- Problems -------------------------------------------------------------------------------------------------------

LEFT, DOWN, RIGHT, UP = [-1, 0], [0, 1], [1, 0], [0, -1]


@pytest.mark.parametrize(
    ("name", "options", "ways"),
    [
        ("FrozenLake-v1", {"is_slippery": True}, [LEFT, DOWN, RIGHT, UP]),
        ("FrozenLake-v1", {"is_slippery": False, "map_name": "8x8"}, [LEFT, DOWN, RIGHT, UP]),
        ("CliffWalking-v1", {}, [UP, RIGHT, DOWN, LEFT]),
    ],
)
def test_the_arrows_point_where_the_actions_lead(name, options, ways):
    mdp = gq.FiniteMDP.from_gymnasium(name, **options)
    assert directions(mdp.transition, mdp.state_ids, mdp.grid_shape).tolist() == ways


def test_a_lake_shows_its_values_and_the_arrows_of_the_policy():
    lake = gq.FiniteMDP.from_gymnasium("FrozenLake-v1", is_slippery=False)
    problem = gq.Problem(lake, gq.tabular_features(lake))
    ax = problem.plot()
    [mesh] = ax.collections
    shown = np.ma.filled(mesh.get_array().astype(float), np.nan)
    assert np.allclose(shown.ravel()[~lake.terminal], problem.exact.optimal_value[~lake.terminal])
    assert np.isnan(shown.ravel()[lake.terminal]).all()
    assert Counter(text.get_text() for text in ax.texts if text.get_text()) == {"×": 4, "G": 1, "S": 1}
    arrows = [text for text in ax.texts if not text.get_text()]
    ends = {tuple(np.sign(np.round(np.subtract(arrow.xy, arrow.xyann), 9)).astype(int)) for arrow in arrows}
    assert ends == {(1, 0), (0, 1), (-1, 0)}  # an optimal way never goes up here
    flat = problem.plot(np.zeros(problem.dim))
    assert len([text for text in flat.texts if not text.get_text()]) == 4 * 11  # every action is as likely


def test_a_small_chain_is_a_graph():
    mdp = gq.FiniteMDP([[[0, 1]], [[0.5, 0.5]]], [[1], [0]], 0.9)
    ax = gq.Problem(mdp, np.eye(2)[:, None]).plot()
    assert [text.get_text() for text in ax.texts] == ["", "", "", "0", "1"]  # three transitions, two states


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p, r: gq.Problem(gq.garnet(25, 2), np.ones((25, 2, 1))).plot(), "problem has 25 states, more than the 24"),
        (lambda p, r: p.plot(shape=(2, 2)), r"shape is \(2, 2\): 4 cells, expected more than 4, the largest state"),
        (lambda p, r: p.plot(shape=(10**6, 10**6)), "and at most 900"),
        (lambda p, r: p.plot(shape="ab"), r"shape is 'ab', expected \(rows, columns\)"),
        (lambda p, r: p.plot([1.0]), r"theta has shape \(1,\), expected \(4,\)"),
        (lambda p, r: replace(r, problem=None).plot(), "metric is 'gradient', which was not watched and needs the problem: use result.with_problem"),
        (lambda p, r: r.plot(p), r"^plot\(\): a result knows its problem, leave it out$"),
        (lambda p, r: r.plot(p, "mspbe"), r"^plot\(\): a result knows its problem, leave it out$"),
        (lambda p, r: r.floor_multiple(p), r"^floor_multiple\(\): a result knows its problem, leave it out$"),
        (lambda p, r: gq.compare_plot({"a": r}, p, "mspbe"), r"^compare_plot\(\): a result knows its problem, leave it out$"),
        (
            lambda p, r: gq.compare_plot({"a": r, "b": replace(r, problem=None, watched=watched(np.ones((11, 5))))}),
            r"results\['b'\] was loaded without its problem, but the first knows its own: gradient would mean two things",
        ),
        (
            lambda p, r: gq.compare_plot({"a": replace(r, problem=None, watched=watched(np.ones((11, 5)))), "b": r}),
            r"results\['b'\] knows its own, but the first was loaded without its problem: gradient would mean two",
        ),
        (lambda p, r: r.plot(x="steps"), "x is 'steps', expected one of 'samples', 'updates'"),
        (lambda p, r: r.plot(band=1), "band is 1, expected a finite number at least 0 and below 1"),
        (lambda p, r: r.plot(ax=3), "ax is 3, expected Axes of Matplotlib"),
        (lambda p, r: r.plot(lambda _: 1.0), r"metric gives shape \(\), expected one number for each record"),
        (lambda p, r: gq.compare_plot([r]), "results is .*, expected a dictionary of results by their names"),
        (lambda p, r: gq.compare_plot({"a": r, "b": 2}), r"results\['b'\] is 2, expected a RunResult"),
    ],
)  # fmt: skip
def test_messages(garnet_problem, result, call, message):
    with pytest.raises(ValueError, match=message):
        call(garnet_problem, result)
    assert plt.get_fignums() == []
