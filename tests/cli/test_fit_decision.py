"""``gqlab fit`` says whether its own model is better than what runs now, by a fit to half of the episodes."""

from __future__ import annotations

import json

import numpy as np
import pytest

import gqlab as gq
from gqlab.cli.main import main
from gqlab.cli.own_decision import judged
from gqlab.judge.simulated import sampled_log

S, A = 6, 3
MDP = gq.garnet(S, A, 2, discount=0.9, seed=5)
UNIFORM = np.full((S, A), 1 / A)


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("fit") / "log.parquet"
    sampled_log(MDP, UNIFORM, n_rows=4000, horizon=40, seed=3).to_parquet(path)
    return path


def fit(log, out, *options):
    main(["fit", str(log), "--encoder", f"onehot:{S}", "--algorithm", "LSPI", "--discount", "0.9",
          "--out", str(out), *options])  # fmt: skip


def test_the_page_begins_with_the_answer(log, tmp_path, capsys):
    fit(log, tmp_path / "out")
    printed, page = capsys.readouterr().out, (tmp_path / "out" / "report.html").read_text()
    data = gq.Transitions.from_parquet(log)
    half, judging = data.split(0.5, 0)
    model = gq.fit(half, gq.OneHot(S), gq.LSPI(), discount=0.9, progress=False)
    decision = gq.decide(judging, {"the model": model}, 0.9)
    assert decision.choice == "the model"
    assert printed.splitlines()[0] == decision.sentence
    assert f"a fit to half of the episodes ({half.n_rows:,} rows)" in printed.splitlines()[1]
    assert 0 < page.index(decision.sentence) < page.index("half of the episodes") < page.index("<svg")
    # The saved model is that of all rows.
    whole = gq.fit(data, gq.OneHot(S), gq.LSPI(), discount=0.9, progress=False)
    assert np.array_equal(gq.LinearQ.load(tmp_path / "out" / "model.npz").theta, whole.theta)
    assert not np.array_equal(whole.theta, model.theta)


def test_nobody_asks_with_no_decide(log, tmp_path, capsys):
    fit(log, tmp_path / "out", "--no-decide", "--json")
    found = json.loads(capsys.readouterr().out)
    assert (found["decision"], found["judged"]) == (None, [])
    assert "what runs now" not in (tmp_path / "out" / "report.html").read_text()
    fit(log, tmp_path / "out", "--json")
    assert json.loads(capsys.readouterr().out)["decision"]["choice"] == "the model"


def test_one_episode_is_one_line(tmp_path, capsys):
    sampled_log(MDP, UNIFORM, n_rows=200, horizon=200, seed=3).to_parquet(tmp_path / "one.parquet")
    fit(tmp_path / "one.parquet", tmp_path / "out")
    line = capsys.readouterr().out.splitlines()[0]
    assert line.startswith(
        "Whether the model is better than what runs now is not known: split: the data are one episode"
    )
    assert line in (tmp_path / "out" / "report.html").read_text()


def test_what_cannot_be_judged_is_one_line():
    data = sampled_log(MDP, UNIFORM, n_rows=200, horizon=20, seed=3)

    def too_large(half):
        raise MemoryError("Unable to allocate 3 TiB")

    def refused(half):
        raise ValueError("encoder has no bounds.")

    def diverged(half):
        encoder = gq.OneHot(S).fit([[0], [S - 1]])
        return gq.LinearQ(np.zeros((A, S)), encoder, discount=0.9, metadata={"diverged": True})

    for learn, why in (
        (too_large, "too large for the memory: Unable to allocate 3 TiB"),
        (refused, "encoder has no bounds"),
        (diverged, "the fit to half of the episodes diverged"),
    ):
        found = judged(data, learn, 0.9, 0)
        assert found.lines == [f"Whether the model is better than what runs now is not known: {why}."]
        assert found.decision is None


@pytest.mark.long
def test_workers_that_share_files_leave_it_open(log, tmp_path, capsys):
    fit(log, tmp_path / "out", "--algorithm", "LeastSquaresGreedyGQ", "--engine", "threads", "--workers", "1")
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("Whether the model is better than what runs now is not known: workers share files")
