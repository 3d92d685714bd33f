"""The leaderboard: its statistics against runs and floors made by hand, its files, its arguments."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gqlab as gq
from conftest import assert_close
from gqlab.cli import compare as commands
from gqlab.cli.main import main
from gqlab.lab.floor import count_samples, empirical_objective
from gqlab.studies.compare import measure
from gqlab.studies.compare.bounds import bounds_of
from gqlab.studies.compare.design import FAMILIES, FULL, LINEUP, QUICK, Budget, Problems
from gqlab.studies.compare.figure import apart
from gqlab.studies.compare.leaderboard import Leaderboard, Row
from gqlab.studies.compare.measure import faster, measure_runs, nanoseconds, run_bytes
from gqlab.studies.compare.report import robust, spread
from gqlab.studies.compare.rivals import lspi
from gqlab.studies.page import count, number
from gqlab.studies.study import run_study
from helpers.study_files import everything

TINY = Budget(n_problems=2, n_runs=2, robust_runs=1, n_samples=3000, first_seed=1000)
LINES = {"SAGA": LINEUP["SAGA"], "Greedy-GQ": LINEUP["Greedy-GQ"]}

OWN = """
from dataclasses import dataclass
from typing import ClassVar
import gqlab as gq
from gqlab.estimators.plain import Plain


@dataclass(frozen=True)
class Slow(gq.Algorithm):
    estimator: ClassVar[type] = Plain
    eta_theta: float = 0.001
    eta_omega: float = 0.001
    radius: float = 10.0


def build(seed):
    mdp = gq.garnet(seed=seed)
    return gq.Problem(mdp, gq.random_features(mdp, dim=4, seed=seed))


one = build(0)
nothing = 7
"""


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    """The command at a tiny scale, in a folder of its own with the user's file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))  # the user's folder joins it
    monkeypatch.setattr(commands, "FULL", TINY)
    (tmp_path / "own_scheme.py").write_text(OWN)
    yield tmp_path
    sys.modules.pop("own_scheme", None)


def test_a_multiple_is_mean_over_runs_over_mean_of_floors(tmp_path):
    study = Leaderboard("title", Problems("garnet", TINY.seeds), {"SAGA": LINEUP["SAGA"]}, TINY)
    comparison = run_study(study, tmp_path).gathered
    [row] = comparison.rows
    for k, seed in enumerate((1000, 1001)):
        problem = FAMILIES["garnet"].build(seed)
        result = gq.run(problem, LINEUP["SAGA"], 3000, n_runs=2, seed=seed, theta0=np.ones(4))
        gradient = (problem.exact.gradient(result.theta[:, -1]) ** 2).sum(axis=-1)
        star = problem.exact.stationary_point(np.ones(4))
        each = [
            gq.floor(problem, 3000, seed=seed, run=j, theta0=np.ones(4), theta=star).gradient_squared for j in range(2)
        ]
        assert_close(row.multiple[k, 0], gradient.mean() / np.mean(each), 1e-9)
        bounds = gq.efficiency(problem, star)
        expected = 3000 * gradient.mean() / np.array([bounds.unknown, bounds.known])
        assert_close(comparison.of_bounds(row)[k], expected, 1e-9)
    assert row.evaluations == 1.0
    assert row.nanoseconds > 0
    assert row.bytes == run_bytes(FAMILIES["garnet"].build(1000), LINEUP["SAGA"], 3000)
    assert len(row.factors) == 6
    problem = FAMILIES["garnet"].build(1000)
    slow = gq.run(
        problem, faster(LINEUP["SAGA"].for_problem(problem), 0.25), 3000, seed=1000, n_runs=1, theta0=np.ones(4)
    )
    found = measure.measure_factor(Problems("garnet", (1000,)), LINEUP["SAGA"], 0.25, TINY.moments, 1, 3000)
    assert_close(found["gradient"], (problem.exact.gradient(slow.theta[:, -1]) ** 2).sum(axis=-1)[None, None], 1e-12)


def test_a_target_that_is_not_smooth_has_a_dash_for_its_bounds():
    problem = gq.Problem(gq.garnet(seed=0), gq.random_features(gq.garnet(seed=0), dim=4), target=gq.Greedy())
    assert np.isnan(bounds_of(problem, np.ones(4))).all()
    assert number(float("nan")) == "–"


def test_nanoseconds_are_of_one_sample_of_one_run_of_one_problem(monkeypatch):
    assert nanoseconds([1e-3, 2e-3], n_samples=100, n_runs=5, n_results=3) == 2000.0
    problems = Problems("garnet", TINY.seeds)
    ticks = iter(range(10_000))
    # Every look at the clock of a core is a second later than the last: two looks for a block of runs, which takes 1 s.
    monkeypatch.setattr("gqlab.engine.cpu.time.thread_time", lambda: float(next(ticks)))
    found = measure_runs(problems, LINEUP["SAGA"], (3000,), n_runs=2, n_samples=3000)
    blocks = 4  # of 2 problems × 2 runs on one thread
    assert found["times"] == {"nanoseconds": 1e9 * blocks / (3000 * 2 * 2)}


def test_memory_is_what_the_page_says():
    problem = FAMILIES["garnet"].build(1000)
    d, A, S, K, n = 4, 3, 5, 30, 10_000
    work = {"plain": 2 * A + A + 2}
    expected = {
        "averaged Greedy-GQ": d + work["plain"],
        "SAGA": K * (A + 3) + 4 * d + work["plain"] + A + 2,
        "streaming SVRG": 4 * d + work["plain"] + A + 2,
        "ROOT (STORM, a = 1/t)": 4 * d + work["plain"],
    }
    for name, numbers in expected.items():
        assert run_bytes(problem, LINEUP[name].for_problem(problem), n) == 8 * (2 * d + numbers), name
    kept = gq.run(problem, gq.LeastSquaresGreedyGQ(), 100, n_runs=1).memory
    numbers = sum(v.size for k, v in kept.items() if k != "theta" and v.dtype.kind == "f")
    assert numbers == d * d + d * S + 2 * d


def test_how_robust_a_row_is():
    row = Row(
        "x", "", np.ones((2, 1)), 1.0, 1.0, 1, 0, np.array([9.0, 2.0, 1.0, 3.9, 4.1, np.inf]), np.ones(1), np.ones(1)
    )
    assert row.robust == 0.5
    assert robust(row) == "3 of 6"
    assert replace(row, factors=np.array([])).robust is None
    assert robust(replace(row, factors=np.array([]))) == "–"
    assert replace(row, multiple=np.array([[1.0], [2.1], [2.0], [9.0]])).near.tolist() == [0.5]


def test_steps_are_multiplied():
    fast = faster(gq.GreedyGQ(gq.Decay(0.2), 0.1), 4.0)
    assert (fast.eta_theta, fast.eta_omega) == (gq.Decay(0.8), 0.4)
    assert faster(gq.QLearning(0.5), 0.5) == gq.QLearning(0.25)


def test_numbers_and_places():
    assert [number(x) for x in (0.984, 12.34, 345.6, 2.5e6, np.inf)] == ["0.98", "12.3", "346", "2.5·10⁶", "∞"]
    assert [count(n) for n in (3000, 300_000, 2_000_000, 3210)] == ["3k", "300k", "2M", "3210"]
    assert spread(np.array([3.0, 1.0, 2.0])) == "2.00 [1.00, 3.00]"
    wanted = np.array([0.1, 0.11, 0.12, 0.5, 0.9, 0.9])
    placed = apart(wanted, 0.05)
    assert (np.diff(placed) > 0.05 - 1e-12).all()
    assert_close(placed, np.array([0.06, 0.11, 0.16, 0.5, 0.875, 0.925]), 1e-12)
    assert_close(apart(np.zeros(4), 0.05), np.array([-0.06, -0.01, 0.04, 0.09]), 1e-12)  # no lower than the page


def test_lspi_solves_the_linear_equation_of_a_fixed_policy_at_once():
    problem = FAMILIES["garnet-fixed-policy"].build(1000)
    counts = count_samples(problem, [500], 0, range(3))[0]
    found = lspi(problem, counts, np.ones(4))
    assert found.converged.all()
    m = empirical_objective(problem, counts).mean_delta_phi(found.theta[:, None])
    assert np.abs(m).max() < 1e-12


def test_the_command_writes_everything_once_and_then_reads_it(tiny, capsys, monkeypatch):
    main(["compare", "--algorithm", "SAGAGreedyGQ", "own_scheme.py:Slow"])
    out, err = capsys.readouterr()
    assert re.search(r"^SAGA +\d", out, flags=re.M)
    assert re.search(r"^Slow +\d", out, flags=re.M)
    assert re.search(r"compare 100% .* 00:00 left", err)
    folder = tiny / "results" / "compare" / "garnet"
    files = {path.name for path in folder.iterdir()}
    assert files == {f"compare.{kind}" for kind in ("html", "json", "md", "png", "svg")} | {
        "data",
        "times",
        "times.json",
    }
    times = json.loads((folder / "times.json").read_text())
    [measured] = [call for call in times["calls"] if call["call"] == "Slow"]
    assert measured["nanoseconds"] > 0
    assert "nanoseconds" not in (folder / "compare.json").read_text()
    page = (folder / "compare.html").read_text()
    assert "<script" not in page
    links = set(re.findall(r'(?:href|src)="(?!#|data:)([^"]*)"', page))
    assert not links, links
    numbers = json.loads((folder / "compare.json").read_text())
    assert [row["name"] for row in numbers["rows"]] == ["SAGA", "Slow"]

    def never(*_: object) -> None:
        raise AssertionError("what is finished is not done again")

    monkeypatch.setattr("gqlab.studies.study.make_call", never)
    main(["compare", "--algorithm", "SAGA", "own_scheme.py:Slow", "--json"])
    again = json.loads(capsys.readouterr().out)
    assert again["rows"] == numbers["rows"]


def test_a_helper_of_a_users_file_is_part_of_the_key_of_its_algorithm_alone(tiny):
    (tiny / "own_scheme.py").write_text(OWN.replace("eta_theta: float = 0.001", "eta_theta: float = step_helper.ETA"))
    source = (tiny / "own_scheme.py").read_text()
    (tiny / "own_scheme.py").write_text(f"import step_helper\n{source}")
    keys = []
    for text in ("ETA = 0.001", "ETA = 0.001  # the same", "ETA = 0.001"):
        (tiny / "step_helper.py").write_text(text)
        for name in ("own_scheme", "step_helper"):
            sys.modules.pop(name, None)
        lineup = {"Greedy-GQ": LINEUP["Greedy-GQ"]} | {"Slow": commands.lineup_of(("own_scheme.py:Slow",))["Slow"]}
        study = Leaderboard("title", Problems("garnet", TINY.seeds), lineup, TINY)
        keys.append({call.label: call.key for call in study.calls()})
    sys.modules.pop("step_helper", None)
    assert keys[0] == keys[2]
    changed = {label for label in keys[0] if keys[0][label] != keys[1][label]}
    assert changed == {label for label in keys[0] if label.startswith("Slow")}
    assert len(changed) == 7  # its own steps, and six multiples


@pytest.mark.long
def test_a_users_own_algorithm_and_problem_run_in_other_processes(tiny):
    given = ["--problem", "own_scheme.py:build", "--algorithm", "SAGA", "own_scheme.py:Slow"]
    for engine in ("threads", "processes"):
        main(["compare", *given, "--engine", engine, "--workers", "1", "--out", engine])
    found = [everything(tiny / engine) for engine in ("threads", "processes")]
    assert found[0] == found[1]


def test_a_problem_of_ones_own(tiny, capsys):
    main(["compare", "--problem", "own_scheme.py:one", "--algorithm", "averaged Greedy-GQ"])
    assert "one problem, 2 runs, seed 1000" in capsys.readouterr().out
    _, problems, name = commands.problems_of("own_scheme.py:build", (3, 4))
    assert name == "build"
    assert [problem.fingerprint for problem in problems.build()] == list(problems.fingerprints)
    assert problems.each()[1].build()[0].fingerprint == problems.fingerprints[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--problem", "lake"], r"problem is 'lake', expected one of garnet, garnet-gamma-0.9, .*, or FILE.py:NAME"),
        (["--problem", "none.py:x"], r"problem is 'none.py:x': there is no file none.py"),
        (["--problem", "own_scheme.py:x"], r"own_scheme.py has nothing of the name x"),
        (["--problem", "own_scheme.py:nothing"], r"is 7, expected a Problem or a function from a seed to one"),
        (["--algorithm", "SVRG"], r"algorithm is 'SVRG', expected one of least squares, .*SAGA, .*, or FILE.py:NAME"),
        (["--algorithm", "own_scheme.py:build"], r"expected one that follows the trajectory of the run"),
        (["--algorithm", "PolicyGradient"], r"expected one that follows the trajectory of the run"),
        (["--problems", "0"], r"problems is 0, expected"),
        (["--n-samples", "100"], r"n_samples is 100, expected"),
    ],
    ids=range(9),
)
def test_bad_arguments_get_one_line(tiny, capsys, arguments, message):
    with pytest.raises(SystemExit) as end:
        main(["compare", *arguments])
    assert end.value.code == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert re.search(message, err), err
    assert not Path("results").exists()


def test_names_choose_and_files_join(tiny):
    assert list(commands.lineup_of(())) == list(LINEUP)
    assert list(commands.lineup_of(("own_scheme.py:Slow",))) == [*LINEUP, "Slow"]
    assert list(commands.lineup_of(("STORMGreedyGQ",))) == ["ROOT (STORM, a = 1/t)", "STORM, a = t^−⅔"]
    assert commands.lineup_of(("QRC",)) == {"QRC": gq.QRC(radius=100.0)}


def test_the_design_is_the_registered_one():
    """What decides the published table: a change of it is a change of the document."""
    assert Budget(n_problems=12, n_runs=10, robust_runs=3, n_samples=300_000, first_seed=31_000) == FULL
    assert set(range(QUICK.first_seed, QUICK.first_seed + QUICK.n_problems)) <= set(range(1000, 1024))
    docs = Path(__file__).parents[2] / "docs"
    page = (docs / "estimators.md").read_text() + (docs / "estimators_tables.md").read_text()
    assert "seeds 31000 to 31011" in page
    for name, family in FAMILIES.items():
        n = "one problem, 10 runs" if name == "garnet-20000" else "12 problems, 10 runs each"  # a large one is enough
        assert f"**{family.title}: {n}" in page, name
