"""The leaderboard: its statistics against runs and floors made by hand, its files, its arguments."""

from __future__ import annotations

import json
import re
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
from gqlab.studies.compare.design import FAMILIES, FULL, LINEUP, QUICK, Scale
from gqlab.studies.compare.figure import apart
from gqlab.studies.compare.measure import Bench, Row, faster, run_bytes
from gqlab.studies.compare.report import number, robust, samples, spread
from gqlab.studies.compare.rivals import lspi
from gqlab.studies.compare.store import Store

TINY = Scale(n_problems=2, n_runs=2, robust_runs=1, n_samples=3000, first_seed=1000)
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
    monkeypatch.setattr(commands, "FULL", TINY)
    (tmp_path / "own_scheme.py").write_text(OWN)
    yield tmp_path
    import sys

    sys.modules.pop("own_scheme", None)


def test_a_multiple_is_mean_over_runs_over_mean_of_floors(tmp_path):
    bench = Bench(FAMILIES["garnet"], TINY, Store(tmp_path))
    row = bench.row("SAGA", LINEUP["SAGA"])
    for k, seed in enumerate((1000, 1001)):
        problem = FAMILIES["garnet"].build(seed)
        result = gq.run(problem, LINEUP["SAGA"], 3000, n_runs=2, seed=seed, theta0=np.ones(4))
        gradient = (problem.exact.gradient(result.theta[:, -1]) ** 2).sum(axis=-1)
        star = problem.exact.stationary_point(np.ones(4))
        each = [
            gq.floor(problem, 3000, seed=seed, run=j, theta0=np.ones(4), theta=star).gradient_squared for j in range(2)
        ]
        assert_close(row.multiple[k, 0], gradient.mean() / np.mean(each), 1e-9)
    assert row.evaluations == 1.0
    assert row.nanoseconds > 0
    assert row.bytes == run_bytes(bench.problems[0], LINEUP["SAGA"], 3000)
    assert len(row.factors) == 6


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
    assert [number(x) for x in (0.984, 12.34, 345.6, 2.5e6, np.inf)] == ["0.98", "12.3", "346", "2.5e+06", "∞"]
    assert [samples(n) for n in (3000, 300_000, 2_000_000, 3210)] == ["3k", "300k", "2M", "3210"]
    assert spread(np.array([3.0, 1.0, 2.0])) == "2.00 [1.00, 3.00]"
    wanted = np.array([0.1, 0.11, 0.12, 0.5, 0.9, 0.9])
    placed = apart(wanted, 0.05)
    assert (np.diff(placed) > 0.05 - 1e-12).all()
    assert_close(placed, np.array([0.06, 0.11, 0.16, 0.5, 0.875, 0.925]), 1e-12)
    assert_close(apart(np.zeros(4), 0.05), np.array([-0.06, -0.01, 0.04, 0.09]), 1e-12)  # no lower than the page


def test_a_store_gives_back_what_is_whole(tmp_path):
    store, key = Store(tmp_path), {"a": [1, 2.5], "b": "x"}
    assert store.load(key) is None
    store.save(key, {"y": [0.1, 1e-300]})
    assert store.load(key) == {"y": [0.1, 1e-300]}
    assert store.load({"a": [1, 2.5], "b": "z"}) is None
    [path] = tmp_path.iterdir()
    whole = path.read_bytes()
    for k in range(0, len(whole), 7):
        path.write_bytes(whole[:k] + bytes([whole[k] ^ 1]) + whole[k + 1 :])
        assert store.load(key) in (None, {"y": [0.1, 1e-300]})  # a space in the text is no damage
    for damaged in (b"", whole[: len(whole) // 2], b"[]", b"[" * 100_000):
        path.write_bytes(damaged)
        assert store.load(key) is None


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
    assert "Slow, 2 of 2" in err
    folder = tiny / "results" / "compare" / "garnet"
    files = {path.name for path in folder.iterdir()}
    assert files == {"compare.html", "compare.json", "compare.md", "compare.png", "compare.svg", "data"}
    page = (folder / "compare.html").read_text()
    assert "<script" not in page
    links = set(re.findall(r'(?:href|src)="(?!#|data:)([^"]*)"', page))
    assert not links, links
    numbers = json.loads((folder / "compare.json").read_text())
    assert [row["name"] for row in numbers["rows"]] == ["SAGA", "Slow"]

    def never(*_: object) -> None:
        raise AssertionError("what is finished is not done again")

    for name in ("_main", "_factors", "_floors"):
        monkeypatch.setattr(measure.Bench, name, never)
    main(["compare", "--algorithm", "SAGA", "own_scheme.py:Slow", "--json"])
    again = json.loads(capsys.readouterr().out)
    assert again["rows"] == numbers["rows"]


def test_a_problem_of_ones_own(tiny, capsys):
    main(["compare", "--problem", "own_scheme.py:one", "--algorithm", "averaged Greedy-GQ"])
    assert "one problem, 2 runs, seed 1000" in capsys.readouterr().out
    family, name = commands.family_of("own_scheme.py:build")
    assert name == "build"
    assert family.build(3).dim == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--problem", "lake"], r"problem is 'lake', expected one of garnet, garnet-gamma-0.9, .*, or FILE.py:NAME"),
        (["--problem", "none.py:x"], r"problem is 'none.py:x': there is no file none.py"),
        (["--problem", "own_scheme.py:x"], r"own_scheme.py has nothing of the name x"),
        (["--problem", "own_scheme.py:nothing"], r"is 7, expected a Problem or a function from a seed to one"),
        (["--algorithm", "SVRG"], r"algorithm is 'SVRG', expected one of least squares, SAGA, .*, or FILE.py:NAME"),
        (["--algorithm", "own_scheme.py:build"], r"expected one that follows the trajectory of the run"),
        (["--algorithm", "PolicyGradient"], r"expected one that follows the trajectory of the run"),
        (["--seeds", "0"], r"seeds is 0, expected"),
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
    assert Scale(n_problems=12, n_runs=10, robust_runs=3, n_samples=300_000, first_seed=31_000) == FULL
    assert set(range(QUICK.first_seed, QUICK.first_seed + QUICK.n_problems)) <= set(range(1000, 1024))
    page = (Path(__file__).parents[2] / "docs" / "estimators.md").read_text()
    assert "seeds 31000 to 31011" in page
    for name, family in FAMILIES.items():
        n = "one problem, 10 runs" if name == "garnet-20000" else "12 problems, 10 runs each"  # a large one is enough
        assert f"**{family.title}: {n}" in page, name
