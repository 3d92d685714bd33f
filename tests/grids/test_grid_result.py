"""Grids as tables, and the best of their cells. No run is needed: the results are made by hand."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import gqlab as gq
from helpers.made_results import Loaded, made_result, watched


def made_grid(problem: gq.Problem, finals: list[list[float]], labels: dict[str, list], diverged: dict | None = None):
    """A grid, opened without its problems, whose cell k has runs with these watched means of ‖∇J‖² at the end."""
    results = []
    for k, runs in enumerate(finals):
        theta = np.full((len(runs), 3, problem.dim), 0.1 * k)
        values = np.stack([np.full(len(runs), 9.0), np.full(len(runs), 8.0), runs], axis=1)
        results.append(made_result(problem, theta, (diverged or {}).get(k), watched=watched(values), problem=None))
    return gq.GridResult(results, {name: np.array(column) for name, column in labels.items()})


TWO = {
    "problem": [0] * 8,
    "seed": [0, 1] * 4,
    "algorithm": ["GreedyGQ"] * 4 + ["QRC"] * 4,
    "eta_theta": [0.1, 0.1, 0.2, 0.2] * 2,
    "beta": [np.nan] * 4 + [1.0] * 4,
}


def test_the_best_setting_is_that_of_the_lowest_mean_over_all_runs_and_seeds(garnet_problem):
    # The single best run, 0.1, belongs to a setting that is worse on average: a seed is never chosen.
    grid = made_grid(garnet_problem, [[0.1, 9], [9, 9], [2, 2], [2, 4], [5, 5], [5, 5], [6, 6], [1, 6]], TWO)
    best = grid.best()
    assert best.labels["eta_theta"].tolist() == [0.2, 0.2, 0.2, 0.2]
    assert best.labels["seed"].tolist() == [0, 1, 0, 1]
    assert best.labels["score"].tolist() == [2.5, 2.5, 4.75, 4.75]
    assert [best.results[k] for k in range(4)] == [grid.results[k] for k in (2, 3, 6, 7)]
    assert grid.best(largest=True).labels["score"].tolist() == [6.775, 6.775, 5.0, 5.0]
    assert grid.best(per="eta_theta").labels["algorithm"].tolist() == ["GreedyGQ", "GreedyGQ", "QRC", "QRC"]


def test_step_sizes_that_fit_the_problem_are_one_setting(garnet_problem):
    labels = {
        "problem": [0, 0, 1, 1],
        "seed": [0] * 4,
        "algorithm": ["GreedyGQ"] * 4,
        "eta_theta": [0.3, 0.1, 0.03, 0.01],
    }
    grid = made_grid(garnet_problem, [[1, 1], [2, 2], [5, 5], [3, 3]], labels)
    best = grid.best(per="algorithm")
    assert best.labels["eta_theta"].tolist() == [0.1, 0.01]
    assert best.labels["score"].tolist() == [2.5, 2.5]


def test_a_setting_with_a_diverged_run_is_the_worst_and_of_equal_ones_the_first_wins(garnet_problem):
    lost = {0: [5, -1], 4: [0, 0], 6: [0, 0]}
    grid = made_grid(garnet_problem, [[0, 0], [0, 0], [7, 7], [7, 7], [1, 1], [1, 1], [np.nan, 1], [1, 1]], TWO, lost)
    best = grid.best("gradient.mean")
    assert best.labels["eta_theta"].tolist() == [0.2, 0.2, 0.1, 0.1]
    assert best.labels["score"].tolist() == [7.0, 7.0, np.inf, np.inf]
    assert grid.best(lambda result: np.ones(2)).labels["eta_theta"].tolist() == [0.2, 0.2, 0.1, 0.1]
    assert grid.best(lambda result: 1.0).labels["eta_theta"].tolist() == [0.1, 0.1, 0.1, 0.1]


def test_an_exact_metric_is_that_of_the_cells_own_problem():
    problems = [gq.Problem(mdp, gq.random_features(mdp, 3)) for mdp in (gq.garnet(4, 2, seed=k) for k in range(2))]
    theta = np.random.default_rng(0).normal(size=(4, 2, 2, 3))
    results = [made_result(problems[k // 2], theta[k]) for k in range(4)]
    labels = {"problem": np.array([0, 0, 1, 1]), "seed": np.zeros(4), "eta_theta": np.array([1.0, 2.0, 1.0, 2.0])}
    grid = gq.GridResult(results, labels)
    for metric, better in (("mspbe", min), ("value", max)):
        scores = np.array(
            [
                problem.exact.mspbe(result.theta[:, -1]).mean()
                if metric == "mspbe"
                else (problem.exact.value(result.theta[:, -1]) @ problem.mdp.start).mean()
                for problem, result in ((problems[k // 2], results[k]) for k in range(4))
            ]
        )
        chosen = grid.best(metric, per="problem").labels["score"]
        assert np.allclose(chosen, [better(scores[:2]), better(scores[2:])])
        both = better(scores[[0, 2]].mean(), scores[[1, 3]].mean())
        assert np.allclose(grid.best(metric, per=["seed"]).labels["score"], both)


def test_the_table_leaves_out_what_does_not_vary_and_counts_the_diverged(garnet_problem):
    grid = made_grid(garnet_problem, [[0, 0]] * 8, TWO, {2: [3, -1]})
    assert repr(grid).splitlines() == [
        "GridResult: 8 cells, 16 runs, 1 diverged",
        "  all: problem=0, beta=1",
        "  seed  algorithm  eta_theta  diverged",
        "  0     GreedyGQ   0.1        0",
        "  1     GreedyGQ   0.1        0",
        "  0     GreedyGQ   0.2        1",
        "  1     GreedyGQ   0.2        0",
        *[f"  {seed}     QRC        {eta}        0" for eta in (0.1, 0.2) for seed in (0, 1)],
    ]
    html = grid._repr_html_()
    assert html.count("<tr>") == 9
    assert "<td>GreedyGQ</td>" in html
    assert repr(grid.select(seed=7)) == "GridResult: 0 cells"
    strange = gq.GridResult(grid.results[:1], {"algorithm": np.array(["<b>"]), "problem": np.array([0])})
    assert "<b>" not in strange._repr_html_()


def test_many_cells_are_cut(garnet_problem):
    many = made_grid(garnet_problem, [[0.0]] * 40, {"problem": [0] * 40, "seed": list(range(40))})
    lines = repr(many).splitlines()
    assert len(lines) == 3 + 13
    assert [line.strip() for line in lines[-7:]] == ["…", "34", "35", "36", "37", "38", "39"]


def test_results_that_are_loaded_are_asked_for_one_at_a_time(garnet_problem):
    made = made_grid(garnet_problem, [[1, 2]] * 8, TWO)
    lazy = gq.GridResult(Loaded(list(made.results)), made.labels)
    assert repr(lazy).splitlines()[0] == "GridResult: 8 cells"
    part = lazy.select(algorithm="QRC").select(seed=1)
    assert len(part) == 2
    assert lazy.results.asked == 0
    assert part.results[1] is made.results[7]
    assert part.results[-1:][0] is made.results[7]
    assert lazy.results.asked == 2


def test_the_long_form_has_every_record_of_every_run_once(garnet_problem):
    theta = np.random.default_rng(1).normal(size=(2, 3, 4))
    result = made_result(garnet_problem, theta, [-1, 15], watched=watched(np.arange(6.0).reshape(2, 3)))
    frame = result.to_dataframe(["mspbe", "reward"])
    assert len(frame) == 6
    for k, (run, record) in enumerate(np.ndindex(2, 3)):
        row = frame.iloc[k]
        assert (row.run, row.samples, row.updates) == (run, 10 * record, 10 * record)
        assert row.gradient_mean == 3 * run + record
        assert bool(row.diverged) == (run == 1 and record == 2)
        assert row.theta_3 == theta[run, record, 3]
        assert row.omega_0 == 0.5 * theta[run, record, 0]
        expected = garnet_problem.exact.mspbe(theta[run, record])
        assert row.mspbe == (np.inf if row.diverged else pytest.approx(expected))
        assert row.reward == (
            -np.inf if row.diverged else pytest.approx(garnet_problem.exact.average_reward(theta[run, record]))
        )
    assert "theta_0" not in result.to_dataframe(iterates=False)
    grid = gq.GridResult(
        [result, result], {"problem": np.array([0, 0]), "eta_theta": np.array([0.1, gq.Decay(0.3)], object)}
    )
    whole = grid.to_dataframe("gradient")
    assert whole.cell.tolist() == [0] * 6 + [1] * 6
    assert set(whole.eta_theta) == {0.1, str(gq.Decay(0.3))}
    assert whole.iloc[6:].theta_3.tolist() == frame.theta_3.tolist()


def test_the_dataset_has_named_axes_and_shorter_cells_are_filled_up(garnet_problem):
    theta = np.random.default_rng(1).normal(size=(2, 3, 4))
    long, short = made_result(garnet_problem, theta), made_result(garnet_problem, theta[:1, :2], [5])
    one = long.to_xarray("mspbe")
    assert one.theta.dims == ("run", "record", "feature")
    assert np.array_equal(one.theta, theta)
    assert np.allclose(one.mspbe, garnet_problem.exact.mspbe(theta))
    assert one.attrs["problem"] == garnet_problem.fingerprint
    assert float(one.sel(run=1).isel(record=2).samples) == 20
    grid = gq.GridResult([long, short], {"problem": np.array([0, 0]), "seed": np.array([3, 4])})
    data = grid.to_xarray()
    assert dict(data.sizes) == {"cell": 2, "run": 2, "record": 3, "feature": 4}
    assert data.seed.values.tolist() == [3, 4]
    assert np.array_equal(data.theta[0], theta)
    assert np.array_equal(data.theta[1, :1, :2], theta[:1, :2])
    assert np.isnan(data.theta[1, 1]).all()
    assert data.samples.values.tolist() == [[0, 10, 20], [0, 10, -1]]
    assert data.diverged.values.tolist() == [[False, False], [True, False]]


@pytest.mark.parametrize("package", ["pandas", "xarray"])
def test_a_missing_package_is_named_in_one_line(garnet_problem, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    result = made_result(garnet_problem, np.zeros((1, 2, 4)))
    with pytest.raises(ImportError, match=rf"^{package} is missing; pip install 'gqlab\[frames\]'$"):
        result.to_dataframe() if package == "pandas" else result.to_xarray()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda g, p: g.best("gradients"), "metric is 'gradients', expected one of 'gradient'"),
        (lambda g, p: g.best("value"), "metric is 'value', which was not watched and needs the problem: use .*, or problems= of open_grid"),
        (lambda g, p: g.best("gradient", p), r"^best\(\): a result knows its problem, leave it out$"),
        (lambda g, p: g.plot(p, "mspbe"), r"^plot\(\): a result knows its problem, leave it out$"),
        (lambda g, p: g.best(lambda r: np.zeros(7)), r"metric gives shape \(7,\), expected a number, \(2,\) or \(2, 3\)"),
        (lambda g, p: g.best(lambda r: 1 / 0), "metric fails: ZeroDivisionError: division by zero"),
        (lambda g, p: g.best(per="eta"), "per is 'eta', expected one of 'problem', 'seed'"),
        (lambda g, p: g.best(largest=1), "largest is 1, expected True or False"),
        (lambda g, p: g.to_dataframe("mspbe"), "metrics is 'mspbe', which needs the problem, and files do not hold it: use result.with"),
        (lambda g, p: g.to_xarray(p), r"^to_xarray\(\): a result knows its problem, leave it out$"),
        (lambda g, p: g.to_dataframe(p), r"^to_dataframe\(\): a result knows its problem, leave it out$"),
        (lambda g, p: g.to_xarray(["mspbe", 3]), "metrics is 3, expected one of 'gradient', 'mspbe'"),
        (lambda g, p: g.to_dataframe(iterates="all"), "iterates is 'all', expected True or False"),
    ],
)  # fmt: skip
def test_messages(garnet_problem, call, message):
    with pytest.raises(ValueError, match=message):
        call(made_grid(garnet_problem, [[1, 2]] * 8, TWO), garnet_problem)
