"""The pieces of ``gqlab rates``, and the whole of it in small."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gqlab as gq
from gqlab.cli.main import main
from gqlab.lab.results import RunResult
from gqlab.measure.watch import Watched
from gqlab.studies.rates.choices import choose, edges
from gqlab.studies.rates.design import SCHEDULES, RateSettings
from gqlab.studies.rates.runs import Cohort, exact_descent, first_below, floors, running_mean, samples_needed, stages
from gqlab.studies.rates.statistics import interval, local_slopes, paired_slope, ratios, slope
from gqlab.support.sources import closure
from helpers.study_files import everything


def watched_run(problem: gq.Problem, algorithm: gq.Algorithm, every: int = 1, record_every: int = 20) -> RunResult:
    return gq.run(
        problem, algorithm, n_samples=1000, n_runs=3, theta0=np.ones(4), record_every=record_every,
        watch=gq.Watch("gradient", every=every),
    )  # fmt: skip


def test_first_below_of_a_result_with_a_known_answer(garnet_problem: gq.Problem) -> None:
    result = watched_run(garnet_problem, gq.GreedyGQ(radius=100.0), record_every=250)  # records 0, 250, …, 1000
    means = np.array([[np.nan, 8.0, 4.0, 2.0, 3.0], [6.0, 4.0, 2.0, 2.0, 1.0]])  # no look yet at the first record
    made = replace(result, watched={"gradient": Watched(means, means, means)})
    assert running_mean(made).tolist() == [np.inf, 6.0, 3.0, 2.0, 2.0]
    assert first_below(made, np.array([6.0, 5.9, 3.0, 2.0])).tolist() == [250, 500, 500, 750]
    assert np.isnan(first_below(made, np.array([1.9]))).all()
    assert first_below(made, np.array([6.0, 3.0]), after=500).tolist() == [750, 750]


def test_the_mean_is_over_every_iterate_and_a_batch_counts_when_it_is_drawn(garnet_problem: gq.Problem) -> None:
    algorithm = gq.VRGreedyGQ(0.1, 0.05, batch_size=50, radius=100.0)
    result = watched_run(garnet_problem, algorithm, record_every=1)
    squares = (garnet_problem.exact.gradient(result.theta) ** 2).sum(axis=-1).mean(axis=0)
    means = np.cumsum(squares) / np.arange(1, len(squares) + 1)
    np.testing.assert_allclose(running_mean(result), means, rtol=1e-9)
    assert first_below(result, np.array([means[7] * (1 + 1e-9)]))[0] == 50


def test_the_estimate_does_not_depend_on_the_records(garnet_problem: gq.Problem) -> None:
    for every in (1, 10):
        fine = watched_run(garnet_problem, gq.GreedyGQ(0.1, 0.05, 100.0), every, record_every=10)
        coarse = watched_run(garnet_problem, gq.GreedyGQ(0.1, 0.05, 100.0), every, record_every=250)
        shared = np.isin(fine.updates, coarse.updates[1:])
        np.testing.assert_allclose(running_mean(fine)[shared], running_mean(coarse)[1:], rtol=1e-12)


def test_stages_grow_to_the_budget_and_resolve_five_percent() -> None:
    plan = stages(2_000_000, n_runs=3, watch_every=10)
    assert plan[-1].n_samples == 2_000_000
    assert plan[0].watch_every == plan[0].record_every == 1
    for before, stage in itertools.pairwise(plan):
        assert stage.record_every <= 0.0505 * before.n_samples
        assert stage.watch_every == (40 if stage.n_samples > 63_000 else 10)
    assert [stage.n_samples for stage in plan[:3]] == [632, 2000, 6325]
    assert [stage.n_runs for stage in plan] == [30, 30, 30, 9, 3, 3, 3, 3]


def test_leaving_a_setting_early_does_not_change_the_least(garnet_problem: gq.Problem) -> None:
    theta0 = np.ones(4)
    start = float((garnet_problem.exact.gradient(theta0) ** 2).sum())
    epsilons = start * np.array([0.9, 0.5, 0.3])
    algorithms = gq.vary(gq.GreedyGQ, eta_theta=[0.001, 0.03, 0.1, 0.3], eta_omega=0.05, radius=100.0)
    cohort = Cohort(garnet_problem, theta0, seed=5)
    plan = stages(20_000, n_runs=1, watch_every=10)
    pruned = samples_needed(cohort, algorithms, epsilons, plan)
    every = samples_needed(cohort, algorithms, epsilons, plan, best_only=False)
    np.testing.assert_array_equal(np.nanmin(pruned, axis=0), np.nanmin(every, axis=0))


def test_slopes_of_power_laws() -> None:
    x = np.log([1.0, 2.0, 4.0, 8.0])
    rows = np.exp(np.array([1.5 * x, 2.5 * x + 1, 2.0 * x - 3]))
    rows[1, 3] = np.nan  # a point that was not reached is left out
    got = slope("s", x, rows, "2")
    # slopes 1.5, 2.5, 2: mean 2, standard deviation ½, t(0.975, 2) = 4.3027
    assert got.mean == pytest.approx(2.0)
    assert (got.low, got.high) == pytest.approx((2 - 4.30265 * 0.5 / 3**0.5, 2 + 4.30265 * 0.5 / 3**0.5), rel=1e-5)
    assert (got.n, got.theory) == (3, "2")
    local = local_slopes(x, rows)
    assert [s.mean for s in local] == pytest.approx([2.0, 2.0, 1.75])
    assert [s.n for s in local] == [3, 3, 2]
    bent = local_slopes(x, np.exp(np.array([[0.0, 1.0, 3.0, 6.0]])) ** np.log(2))
    assert [s.mean for s in bent] == pytest.approx([1.0, 2.0, 3.0])


def test_a_paired_difference_uses_the_points_that_both_have() -> None:
    x = np.log([1.0, 2.0, 4.0, 8.0])
    other = np.exp(np.array([3.0 * x, 2.0 * x]))
    samples = np.exp(np.array([2.0 * x, 0.5 * x]))
    samples[0, 3], other[0, 3] = 1e9, np.nan  # only one of the two reached it
    got = paired_slope("d", x, samples, other)
    # differences −1 and −1.5: mean −1.25, standard error ¼, t(0.975, 1) = 12.7062
    assert (got.mean, got.n) == (pytest.approx(-1.25), 2)
    assert got.high - got.mean == pytest.approx(12.7062 * 0.25, rel=1e-5)
    ratio = ratios(np.array([[2.0], [1.0]]), np.array([[4.0], [8.0]]))[0]
    assert ratio.mean == pytest.approx(4.0)  # √(2 · 8)
    assert interval("none", [np.nan]).n == 0


def test_a_choice_avoids_the_edge_within_the_resolution_and_is_reported_otherwise() -> None:
    algorithms = [gq.GreedyGQ(eta, eta * ratio) for eta in (0.1, 0.2, 0.4) for ratio in (0.5, 1.0, 2.0)]
    ends = edges(algorithms)
    assert ends.shape == (2, 9)
    assert np.flatnonzero(~ends.any(axis=0)).tolist() == [4]  # η_θ = 0.2 with ratio 1
    needed = np.full((9, 4), np.nan)
    needed[:, 0], needed[0, 0], needed[4, 0] = 200, 100, 104  # the inner one is within 5 %
    needed[:, 1], needed[0, 1], needed[4, 1] = 200, 100, 106  # it is not
    needed[3, 2] = 50  # nobody else got there; and nobody at all in the last
    assert choose(needed, ends.any(axis=0)).tolist() == [4, 0, 3, -1]
    batches = [gq.VRGreedyGQ(0.1, 0.1, batch_size=M) for M in (10, 20, 30)]
    assert edges(batches).tolist() == [
        [False] * 3,
        [False] * 3,
        [True, False, True],
    ]  # an axis of one value has no edge
    smallest = [gq.VRGreedyGQ(0.1, 0.1, batch_size=M) for M in (1, 20, 30)]
    assert edges(smallest)[2].tolist() == [False, False, True]  # no batch is smaller than 1


def test_exact_descent_on_a_quadratic() -> None:
    # γ = 0 and a table: J = ½‖C^{1/2}(θ − r)‖², C = I/2, so ‖∇J‖² = ¼‖θ − r‖², times (1 − η/2)² a step.
    mdp = gq.FiniteMDP([[[0.5, 0.5]], [[0.5, 0.5]]], [[1.0], [0.0]], discount=0.0)
    problem = gq.Problem(mdp, np.eye(2)[:, None, :])
    got = exact_descent(problem, np.array([3.0, 0.0]), np.array([1.0, 1000.0]), np.array([1.0, 0.5, 1e-3, 1e-7]), 60)
    # 1, ¼, 1/16, …: the sum is 4/3, reached within 0.5 n after 3 terms (1.3125), and 4/3 over ε later on
    assert got.tolist() == [1, 3, 1334, 13_333_334]


def test_floors_are_those_of_the_second_half(garnet_problem: gq.Problem) -> None:
    theta0 = garnet_problem.exact.stationary_point(np.ones(4))
    algorithm = gq.GreedyGQ(0.1, 0.05, 100.0)
    got = floors(Cohort(garnet_problem, theta0, seed=3), [algorithm], 2000, n_runs=2, watch_every=1)
    omega0 = garnet_problem.exact.omega_star(theta0)
    run = gq.run(garnet_problem, algorithm, 2000, n_runs=2, seed=3, theta0=theta0, omega0=omega0, record_every=1)
    late = (garnet_problem.exact.gradient(run.theta[:, 1001:]) ** 2).sum(axis=-1).mean()
    assert got[0] == pytest.approx(late, rel=2e-3)  # the watch has n + 1 iterates up to update n


def test_the_full_design_is_what_the_documents_say() -> None:
    settings = RateSettings()
    for family in settings.families:
        tried = family.grid.candidates()
        assert len(tried["GreedyGQ"]) == len(tried["VRGreedyGQ"]) == len(set(tried["VRGreedyGQ"]))
        assert {a.radius for algorithms in tried.values() for a in algorithms} == {100.0}
    assert settings.fractions[0] / settings.fractions[-1] >= 100 * (1 - 1e-9)
    assert settings.exact_fractions[0] / settings.exact_fractions[-1] >= 999
    assert settings.families[0].n_problems >= 10
    flat = next(family for family in settings.families if family.spread < 1)
    least = [
        np.linalg.eigvalsh(family.draw(0, 0).build()[0].exact.feature_covariance)[0]
        for family in (flat, replace(flat, spread=1.0))
    ]
    assert 0 < least[0] < 0.3 * least[1]
    eta_M = np.outer(settings.floor_etas, settings.floor_batch_sizes)
    assert (eta_M <= 1).any()
    assert (eta_M >= 100).any()


def test_the_schedules_are_powers_of_epsilon() -> None:
    first = gq.VRGreedyGQ(0.8, 0.4, batch_size=5, radius=100.0)
    ours = SCHEDULES["VR-Greedy-GQ, Corollary 2"].at(first, 1 / 8)
    assert (ours.eta_theta, ours.eta_omega, ours.batch_size) == (pytest.approx(0.2), pytest.approx(0.1), 40)
    greedy = SCHEDULES["Greedy-GQ, Theorem 4"].at(gq.GreedyGQ(0.8, 0.4, 100.0), 1 / 8)
    assert (greedy.eta_theta, greedy.eta_omega) == (pytest.approx(0.1), pytest.approx(0.05))


@pytest.mark.long
def test_a_quick_run_end_to_end_leaves_full_results_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rates.json").write_text("full")
    main(["rates", "--quick", "--out", str(tmp_path)])
    out = capsys.readouterr().out
    made = ["rates-quick.html", "rates-quick.json", "rates-quick.md", "rates-quick.png"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", *made, "rates.json", "times", "times.json"]
    assert (tmp_path / "rates.json").read_text() == "full"
    assert (tmp_path / "rates-quick.md").read_text().strip() in out
    garnets, sticky = json.loads((tmp_path / "rates-quick.json").read_text())["families"]
    assert np.shape(garnets["samples"]["GreedyGQ"]) == (2, 3)
    assert set(garnets["samples"]) == {"GreedyGQ", "VRGreedyGQ", *SCHEDULES, "SAGA"}
    assert np.nanmax(np.array(garnets["samples"]["VRGreedyGQ"], dtype=float)) <= 5000
    assert np.shape(sticky["floors"]) == (2, 2, 5)


@pytest.mark.long
@pytest.mark.parametrize("engine", ["processes", "ray"])
def test_every_engine_gives_the_bytes_of_threads_and_a_second_call_computes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    if engine == "ray":
        pytest.importorskip("ray")
    main(["rates", "--quick", "--out", str(tmp_path / "threads")])
    main(["rates", "--quick", "--out", str(tmp_path / engine), "--engine", engine, "--workers", "2"])
    expected = everything(tmp_path / "threads")
    assert everything(tmp_path / engine) == expected
    assert len(expected) == 4 + 20
    monkeypatch.setattr("gqlab.studies.study.run_tasks", None)
    main(["rates", "--quick", "--out", str(tmp_path / engine)])
    assert everything(tmp_path / engine) == expected


def test_rates_do_not_depend_on_what_draws_or_writes_them() -> None:
    found = closure("gqlab.studies.rates.measure").modules
    own = {name.rpartition(".")[2] for name in found if name.startswith("gqlab.studies.")}
    assert own == {"measure", "design", "runs", "choices"}
    assert not {name.split(".")[1] for name in found} & {"plots", "learn", "data", "cli", "encoders"}


def test_a_path_that_cannot_be_written_is_one_line_before_anything_is_computed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit) as end:
        main(["rates", "--out", str(tmp_path / "file")])
    printed = capsys.readouterr()
    assert end.value.code == 2
    assert printed.err.count("\n") == 1
    assert "cannot write" in printed.err
    assert not printed.out
