"""``gqlab decide``, and how commands read logs."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

import gqlab as gq
from gqlab.cli.main import main
from gqlab.judge.simulated import sampled_log

COLUMNS = ["--column", "episode=unit", "observation=place", "action=lever", "reward=gain"]
READ = [*COLUMNS, "--time", "day", "--sort", "--ends", "truncated"]


@pytest.fixture(scope="module")
def mdp():
    return gq.garnet(6, 3, 2, discount=0.9, seed=5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, mdp):
    """A log in CSV whose units are mixed in time order, and two models: optimal actions, and the worst."""
    out = tmp_path_factory.mktemp("decide")
    log = sampled_log(mdp, np.full((6, 3), 1 / 3), n_rows=4000, horizon=40, seed=3).to_chunk()
    unit = np.cumsum(np.append(False, np.diff(log.episode) != 0))
    day = np.arange(len(unit)) - np.flatnonzero(np.append(True, np.diff(unit) > 0))[unit]
    with (out / "log.csv").open("w", newline="") as file:
        rows = zip(
            day,
            unit,
            log.observations[:, 0].astype(int),
            np.array(["a", "b", "c"])[log.actions],
            log.rewards,
            strict=True,
        )
        csv.writer(file).writerows([["day", "unit", "place", "lever", "gain"], *sorted(rows, key=lambda row: row[:2])])
    q = mdp.expected_reward + 0.9 * mdp.transition @ gq.Problem(mdp, gq.tabular_features(mdp)).exact.optimal_value
    encoder = gq.OneHot(6).fit([[0], [5]])
    about = {"action_labels": ["a", "b", "c"]}
    gq.LinearQ(q.T, encoder, discount=0.9, metadata=about).save(out / "good.npz")
    (out / "bad").mkdir()
    gq.LinearQ(-q.T, encoder, discount=0.9, metadata=about).save(out / "bad" / "model.npz")
    return out


def decide(folder, out, *options):
    main(["decide", str(folder / "log.csv"), "--models", str(folder / "good.npz"), str(folder / "bad" / "model.npz"),
          "--out", str(out), *READ, *options])  # fmt: skip


def test_a_log_in_csv_leads_to_a_decision(folder, tmp_path, capsys):
    decide(folder, tmp_path / "out", "--features", "tabular")
    printed = capsys.readouterr().out
    assert printed.startswith("Take good: it is better than what runs now with 95 % confidence")
    record = json.loads((tmp_path / "out" / "decision.json").read_text())
    assert record["choice"] == "good"
    assert {name: row["verdict"] for name, row in record["policies"].items()} == {"good": "better", "bad": "worse"}
    page = (tmp_path / "out" / "report.html").read_text()
    assert page.index("Take good") < page.index("<svg") < page.index("In numbers") < page.index("What could be wrong")
    for word in ("not recorded", "hidden", "Drift", "never occurred"):
        assert word in page
    assert (tmp_path / "out" / "gains.png").stat().st_size > 1000


def test_a_decision_is_not_overwritten_but_by_force(folder, tmp_path, capsys):
    (tmp_path / "decision.json").write_text("{}")
    with pytest.raises(SystemExit, match="2"):
        decide(folder, tmp_path, "--features", "tabular")
    assert "holds a decision already" in capsys.readouterr().err
    assert (tmp_path / "decision.json").read_text() == "{}"
    decide(folder, tmp_path, "--features", "tabular", "--force", "--json")
    assert json.loads(capsys.readouterr().out)["choice"] == "good"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--models: none is given"),
        (["--models", "good.npz", "good.npz"], "two are called 'good'"),
        (["--models", "log.csv"], "log.csv"),
        (["--models", "good.npz", "--column", "lever"], "--column is 'lever', expected ROLE=NAME"),
        (["--models", "good.npz", "--baseline", "x"], "baseline is 'x'"),
        (["--models", "good.npz", "--time", "day"], "--sort"),
    ],
)
def test_bad_input_is_one_line_that_names_the_option(folder, tmp_path, monkeypatch, capsys, options, message):
    monkeypatch.chdir(folder)
    more = [] if "--column" in options else COLUMNS
    with pytest.raises(SystemExit, match="2"):
        main(
            [
                "decide",
                "log.csv",
                "--out",
                str(tmp_path),
                *more,
                *options,
                *([] if "--time" in options else ["--sort", "--time", "day", "--ends", "truncated"]),
            ]
        )
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_models_with_different_discounts_need_one(folder, tmp_path, capsys):
    gq.LinearQ(np.zeros((3, 6)), gq.OneHot(6).fit([[0], [5]]), discount=0.5).save(folder / "other.npz")
    with pytest.raises(SystemExit, match="2"):
        main(
            ["decide", str(folder / "log.csv"), "--models", str(folder / "good.npz"), str(folder / "other.npz"), *READ]
        )
    assert "--discount is needed: the models were fitted with different ones, 0.5, 0.9" in capsys.readouterr().err


def test_a_transformer_that_no_file_brings_back_is_one_line(folder, tmp_path, capsys):
    from sklearn.preprocessing import PolynomialFeatures

    made = PolynomialFeatures(1).fit([[0.0], [1.0]])
    gq.LinearQ(np.zeros((3, 2)), made, discount=0.9).save(tmp_path / "foreign.npz")
    with pytest.raises(SystemExit, match="2"):
        main(["decide", str(folder / "log.csv"), "--models", str(tmp_path / "foreign.npz"), *READ])
    assert "a transformer that no file can bring back" in capsys.readouterr().err


def test_workers_share_files_and_change_no_digit(folder, tmp_path, capsys):
    log = tmp_path / "log.parquet"
    gq.Transitions.from_csv(
        folder / "log.csv", {"episode": "unit", "observation": "place", "action": "lever", "reward": "gain"},
        time="day", sort=True, ends="truncated",
    ).to_parquet(log)  # fmt: skip
    line = ["decide", str(log), "--models", str(folder / "good.npz"), "--features", "tabular", "--json", "--out"]
    found = []
    for name, options in (("alone", []), ("shared", ["--engine", "threads", "--workers", "2"])):
        main([*line, str(tmp_path / name), *options])
        found.append({**json.loads(capsys.readouterr().out), "out": ""})
    assert found[0] == found[1]
    with pytest.raises(SystemExit, match="2"):
        main([*line, str(tmp_path / "other"), "--workers", "2"])
    assert "workers is 2, but there is no engine" in capsys.readouterr().err


def refused(capsys, *line):
    """The one line that a command ends with."""
    with pytest.raises(SystemExit, match="2"):
        main(list(line))
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error


def test_models_and_logs_that_do_not_fit_are_one_line(folder, tmp_path, capsys):
    encoder, two = gq.OneHot(6).fit([[0], [5]]), gq.Fourier(1).fit([[0.0, 0.0], [1.0, 1.0]])
    gq.LinearQ(np.zeros((2, 6)), encoder, discount=0.9).save(tmp_path / "fewer.npz")
    gq.LinearQ(np.zeros((3, 4)), two, discount=0.9).save(tmp_path / "wider.npz")
    labels = {"action_labels": ["a", "b", "d"]}
    gq.LinearQ(np.zeros((3, 6)), encoder, discount=0.9, metadata=labels).save(tmp_path / "other.npz")
    line = ["decide", str(folder / "log.csv"), *READ, "--out", str(tmp_path / "out"), "--models"]
    assert "policy of 2 actions, expected 3" in refused(capsys, *line, str(tmp_path / "fewer.npz"))
    assert "2 numbers, expected 1" in refused(capsys, *line, str(tmp_path / "wider.npz"))
    assert "has the actions 'a', 'b', 'd', and the log has 'a', 'b', 'c'" in refused(
        capsys, *line, str(tmp_path / "other.npz")
    )
    endless = refused(capsys, *line, str(folder / "good.npz"), "--discount", "1")
    assert "discount is 1, but no episode of the log ends" in endless
    assert not (tmp_path / "out" / "decision.json").exists()


def test_a_log_without_any_ends_is_one_line_or_a_note(folder, tmp_path, capsys):
    line = ["decide", str(folder / "log.csv"), *COLUMNS, "--time", "day", "--sort", "--features", "tabular"]
    line += ["--models", str(folder / "good.npz"), "--out", str(tmp_path)]
    assert "--ends" in refused(capsys, *line)
    main([*line, "--ends", "truncated"])
    assert "taken as truncated" in capsys.readouterr().out


def test_a_page_of_another_command_is_not_overwritten_either(folder, tmp_path, capsys):
    (tmp_path / "report.html").write_text("of gqlab fit")
    line = ["decide", str(folder / "log.csv"), *READ, "--models", str(folder / "good.npz"), "--out", str(tmp_path)]
    assert "holds report.html already: name another folder with --out" in refused(capsys, *line)
    assert (tmp_path / "report.html").read_text() == "of gqlab fit"
