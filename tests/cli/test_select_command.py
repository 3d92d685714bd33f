"""``gqlab select``: candidates in a file, fitted to one half of a log and judged by the other."""

from __future__ import annotations

import json

import numpy as np
import pytest

import gqlab as gq
from gqlab.cli.main import main
from gqlab.judge.simulated import sampled_log

S, A = 6, 3
MDP = gq.garnet(S, A, 2, discount=0.9, seed=5)

CANDIDATES = """
[plain]
algorithm = "FittedQ"
ridge = 1e-6

[coarse]
algorithm = "LSPI"
encoder = "fourier:1"

[steps]
algorithm = "GreedyGQ"
eta_theta = 0.1
passes = 2
"""


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("select") / "log.parquet"
    sampled_log(MDP, np.full((S, A), 1 / A), n_rows=4000, horizon=40, seed=3).to_parquet(path)
    return path


def select(log, folder, *options, candidates=CANDIDATES):
    file = folder / "candidates.toml"
    file.write_text(candidates)
    main(["select", str(log), "--candidates", str(file), "--encoder", f"onehot:{S}", "--discount", "0.9",
          "--features", "tabular", "--out", str(folder / "out"), *options])  # fmt: skip


def expected(log, **how):
    candidates = {
        "plain": gq.FittedQ(ridge=1e-6),
        "coarse": (gq.LSPI(), gq.Fourier(1)),
        "steps": (gq.GreedyGQ(0.1), None, 2),
    }
    data = gq.Transitions.from_parquet(log)
    return gq.select(data, candidates, gq.OneHot(S), 0.9, features="tabular", **how)


def test_candidates_in_a_file_lead_to_a_model(log, tmp_path, capsys):
    select(log, tmp_path)
    found, out = expected(log), tmp_path / "out"
    assert found.choice == "plain"
    printed = capsys.readouterr().out
    assert printed.startswith(found.table)
    assert printed.startswith("Take plain: it gains ")
    record = json.loads((out / "decision.json").read_text())
    assert record["choice"] == "plain"
    assert record["policies"] == json.loads(json.dumps(found.decision.to_dict()))["policies"]
    assert record["candidates"]["coarse"] == repr(gq.LSPI())
    assert np.array_equal(gq.LinearQ.load(out / "model.npz").theta, found.models["plain"].theta)
    page = (out / "report.html").read_text()
    assert page.index("Take plain") < page.index("<svg") < page.index("In numbers") < page.index("What could be wrong")
    for word in ("candidate coarse", "LSPI(", "Fourier(order=1", "2 passes", "50 % of the episodes"):
        assert word in page


def test_the_model_of_all_rows_comes_with_the_claim_of_a_half(log, tmp_path, capsys):
    select(log, tmp_path, "--refit", "--json")
    record = json.loads(capsys.readouterr().out)
    found = expected(log, refit=True)
    assert record["refitted"]
    assert "The model is fitted to all 4,000 rows; what is said of it is said of a fit to 2,0" in record["notes"][0]
    model = gq.LinearQ.load(tmp_path / "out" / "model.npz")
    assert np.array_equal(model.theta, found.model.theta)
    assert not np.array_equal(model.theta, found.models["plain"].theta)
    assert "The model is fitted to all 4,000 rows" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.parametrize("name", ["decision.json", "model.npz", "report.html", "gains.png"])
def test_nothing_is_overwritten_without_force(log, tmp_path, capsys, name):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).write_text("kept")
    with pytest.raises(SystemExit, match="2"):
        select(log, tmp_path)
    error = capsys.readouterr().err
    assert f"holds {'a decision' if name == 'decision.json' else name} already" in error
    assert [path.read_text() for path in (tmp_path / "out").iterdir()] == ["kept"]


def test_a_choice_of_nothing_leaves_no_model_of_an_earlier_one(tmp_path, capsys):
    few = tmp_path / "few.parquet"
    sampled_log(MDP, np.full((S, A), 1 / A), n_rows=60, horizon=6, seed=3).to_parquet(few)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "model.npz").write_text("of an earlier choice")
    select(few, tmp_path, "--force", "--refit")
    printed = capsys.readouterr().out
    assert printed.startswith(
        "Keep what runs now: none of 3 candidates is better with 95 % confidence; the log has too"
    )
    assert not (tmp_path / "out" / "model.npz").exists()
    assert "model.npz" not in printed


def diverging(path):
    """Fitted Q iteration on this log doubles θ each time."""
    n = 60
    rows = gq.Transitions.from_arrays(
        np.tile([1.0, 2.0], n // 2), np.zeros(n, int), np.ones(n), np.full(n, 2.0), truncated=np.arange(n) % 6 == 5,
        n_actions=2,
    )  # fmt: skip
    rows.to_parquet(path)
    return path


def test_a_candidate_that_diverged_is_named_and_the_others_are_judged(tmp_path, capsys):
    wild = '[wild]\nalgorithm = "FittedQ"\nridge = 0.0\nn_iterations = 3000\n'
    tame = '[tame]\nalgorithm = "FittedQ"\nridge = 100.0\nn_iterations = 3\n'
    options = ["--encoder", "identity:no,scale=no", "--discount", "0.999"]
    log = diverging(tmp_path / "log.parquet")
    select(log, tmp_path, *options, candidates=wild + tame)
    assert "\nwild: Its fit diverged: it is not judged.\n" in capsys.readouterr().out
    assert "wild: Its fit diverged" in (tmp_path / "out" / "report.html").read_text()
    select(log, tmp_path, *options, "--force", candidates=wild)
    out = capsys.readouterr().out
    assert out.startswith("Keep what runs now: the fit of the only candidate diverged, and nothing is left to judge.")
    assert json.loads((tmp_path / "out" / "decision.json").read_text())["choice"] is None
    assert not (tmp_path / "out" / "gains.png").exists()


@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        ("", "is empty, expected tables such as [careful]"),
        ("[plain", "candidates.toml is not TOML: "),
        ('algorithm = "LSPI"', "algorithm: it is 'LSPI', expected a table such as [algorithm]"),
        ("[plain]\nridge = 1", "plain: algorithm is None, expected one of"),
        ('[plain]\nalgorithm = "Fitted"', "plain: algorithm is 'Fitted', expected one of"),
        ('[plain]\nalgorithm = "ActorCritic"', "plain: algorithm is 'ActorCritic', expected one of"),
        (
            '[plain]\nalgorithm = "LSPI"\nrigde = 1',
            "plain: rigde is 1, which LSPI does not take; expected any of ridge",
        ),
        ('[plain]\nalgorithm = "LSPI"\nridge = -1', "plain: ridge is -1, expected"),
        ('[plain]\nalgorithm = "LSPI"\nridge = "much"', "plain: ridge is 'much', expected"),
        ('[plain]\nalgorithm = "LSPI"\nencoder = "tile:3"', "plain: encoder is 'tile:3', expected one of"),
        ('[plain]\nalgorithm = "LSPI"\npasses = 0', "plain: passes is 0, expected"),
        ('[plain]\nalgorithm = "LSPI"\npasses = 3', "candidates['plain']: n_passes is 3, but LSPI solves"),
        ('[log]\nalgorithm = "LSPI"', "log: a candidate cannot have that name"),
    ],
)
def test_a_mistake_in_the_file_is_one_line_that_names_it(log, tmp_path, capsys, candidates, message):
    with pytest.raises(SystemExit, match="2"):
        select(log, tmp_path, candidates=candidates)
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out" / "decision.json").exists()


def test_a_file_that_is_missing_is_one_line(log, tmp_path, capsys):
    for options, message in (
        ([], "--candidates: no file is given"),
        (["--candidates", "no.toml"], "there is no no.toml"),
    ):
        with pytest.raises(SystemExit, match="2"):
            main(["select", str(log), *options, "--out", str(tmp_path / "out")])
        assert message in capsys.readouterr().err


def test_one_episode_is_one_line(tmp_path, capsys):
    sampled_log(MDP, np.full((S, A), 1 / A), n_rows=50, horizon=50, seed=3).to_parquet(tmp_path / "one.parquet")
    with pytest.raises(SystemExit, match="2"):
        select(tmp_path / "one.parquet", tmp_path)
    assert "split: the data are one episode, expected at least 2" in capsys.readouterr().err
