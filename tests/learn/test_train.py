"""``gqlab train`` and ``gqlab benchmark``: their files, going on after a kill, their arguments, the table."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from html.parser import HTMLParser

import gymnasium
import numpy as np
import pytest

import gqlab as gq
from gqlab.cli.main import main
from gqlab.learn.agent.train import running_mean
from gqlab.studies.agents import report, runs
from gqlab.studies.agents.benchmark import AgentBenchmark, entries_of
from gqlab.studies.agents.design import (
    ALGORITHMS,
    ENVIRONMENTS,
    FULL,
    GOALS,
    LANDER,
    PRESET,
    PROGRAMMES,
    QUICK,
    STEP_SIZES,
    Programme,
)
from gqlab.studies.logs import runs as log_runs
from gqlab.studies.study import How, run_study

#: The features that other tests have compiled code for.
TINY = [
    "--encoder",
    "tiles:4,bins=4",
    "--steps",
    "3000",
    "--every",
    "1000",
    "--episodes",
    "5",
    "--seed",
    "3",
    "--quiet",
]
FILES = ["model.npz", "agent.npz", "progress.csv", "evaluations.json", "settings.json", "curve.svg", "report.html"]
ALGORITHM = ["--algorithm", "Sarsa", "--eta", "0.3"]


def train(folder, *more: str, env: str = "MountainCar-v0") -> None:
    main(["train", env, "--out", str(folder), *TINY, *ALGORITHM, *more])


def test_train_leaves_a_model_a_log_a_curve_and_a_page(tmp_path, capsys):
    train(tmp_path / "a")
    out = capsys.readouterr().out
    assert out.startswith("MountainCar-v0: mean return -")
    agent = gq.Agent.load(tmp_path / "a" / "agent.npz")
    model = gq.LinearQ.load(tmp_path / "a" / "model.npz")
    assert (agent.num_timesteps, agent.seed) == (3000, 3)
    assert agent.algorithm == gq.Sarsa(0.3, trace=0.9)
    assert np.array_equal(agent.theta, model.theta)
    history = json.loads((tmp_path / "a" / "evaluations.json").read_text())
    assert [row["steps"] for row in history] == [1000, 2000, 3000]
    assert (tmp_path / "a" / "curve.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "a" / "report.html").read_text()
    HTMLParser().feed(page)
    assert "<h1>Sarsa on MountainCar-v0</h1>" in page
    assert not re.search(r'(?:src|href)="(?!data:|#)', page)  # nothing from outside
    assert f"<td>{report._score(history[-1]['mean'])}.0</td>" in page or "−" in page


def test_train_that_was_killed_goes_on_and_leaves_the_same_files(tmp_path):
    train(tmp_path / "whole")
    command = ["train", "MountainCar-v0", "--out", str(tmp_path / "killed"), *TINY, *ALGORITHM]
    with subprocess.Popen([sys.executable, "-c", f"from gqlab.cli.main import main; main({command!r})"]) as process:
        deadline = time.monotonic() + 300
        while not (tmp_path / "killed" / "agent.npz").exists():
            assert time.monotonic() < deadline
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.wait()
    train(tmp_path / "killed")
    for name in FILES:
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name


def test_train_goes_further_and_refuses_a_folder_of_another_run(tmp_path, capsys):
    train(tmp_path, "--steps", "1000")
    capsys.readouterr()
    train(tmp_path, "--steps", "2000", "--json")
    found = json.loads(capsys.readouterr().out)
    assert (found["env"], found["steps"], len(found["evaluation"]["returns"])) == ("MountainCar-v0", 2000, 5)
    assert [row["steps"] for row in found["history"]] == [1000, 2000]
    assert gq.Agent.load(tmp_path / "agent.npz").num_timesteps == 2000
    with pytest.raises(SystemExit):
        train(tmp_path, "--seed", "4")
    assert (
        "holds a run with seed 3, not 4: start over with --force, or take another folder with --out"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("evaluations.json", lambda text: text.replace(b'"mean": -2', b'"mean": -1', 1), "not what was written"),
        ("evaluations.json", lambda text: b"[3]", "not what was written"),
        ("evaluations.json", lambda text: text[:-9], "evaluations.json is damaged"),
        ("settings.json", lambda text: None, "settings.json is missing: take another folder"),
        ("settings.json", lambda text: b"[]", "settings.json is damaged: it holds []"),
        ("settings.json", lambda text: b"[" * 100_000, "settings.json is damaged: nested too deeply"),
    ],
)
def test_train_goes_on_from_nothing_but_what_was_written(name, change, message, tmp_path, capsys):
    train(tmp_path, "--steps", "1000")
    text = change((tmp_path / name).read_bytes())
    (tmp_path / name).unlink()
    if text is not None:
        (tmp_path / name).write_bytes(text)
    capsys.readouterr()
    with pytest.raises(SystemExit) as end:
        train(tmp_path, "--steps", "2000")
    assert end.value.code == 2
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1
    assert message in printed


BAD = [
    (["train", "NoSuch-v0"], "env is 'NoSuch-v0'"),
    (["train", "LunarLanderContinuous-v9"], "env is"),
    (["train", "Pendulum-v1"], "continuous actions are not supported"),
    (["train", "MountainCar-v0", "--algorithm", "DQN"], "algorithm is 'DQN', expected one of"),
    (
        ["train", "MountainCar-v0", "--algorithm", "VRGreedyGQ", "--trace", "0.5"],
        "trace is 0.5, which VRGreedyGQ does not",
    ),
    (["train", "MountainCar-v0", "--algorithm", "Sarsa", "--batch-size", "9"], "batch_size is 9, which Sarsa does not"),
    (["train", "MountainCar-v0", "--encoder", "nothing"], "encoder is 'nothing'"),
    (["train", "MountainCar-v0", "--steps", "0"], "steps is 0"),
    (["train", "MountainCar-v0", "--epsilon", "3"], "epsilon is 3"),
    (["benchmark", "agents", "--workers", "0"], "workers is 0"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=[" ".join(a) for a, _ in BAD])
def test_bad_arguments_get_one_line_and_leave_nothing(arguments, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1
    assert message in printed
    assert list(tmp_path.iterdir()) == []


def test_running_mean_by_hand():
    assert running_mean([1.0, 3.0, 5.0, 7.0], 2).tolist() == [1.0, 2.0, 4.0, 6.0]


# --- The benchmark ------------------------------------------------------------------------------------------------


def test_the_design_is_what_it_says():
    assert STEP_SIZES[-1] / STEP_SIZES[0] == 16
    cells = runs.learners_of(FULL)
    assert len(cells) == len(set(cells)) == 10 * 3 * (9 * 5 + 1)
    for name, make in ALGORITHMS.items():
        assert make(0.5).eta_theta == 0.5, name
    assert len(runs.learners_of(LANDER)) == 10 * (6 * 2 + 1)
    assert {goal.environment for goal in GOALS} <= set(ENVIRONMENTS)
    for full, quick in PROGRAMMES.values():
        assert set(full.rows) <= set(ALGORITHMS)
        assert set(quick.rows) <= set(full.rows)
        assert len(runs.learners_of(quick)) < len(runs.learners_of(full))
    assert all(row in (PRESET, *ALGORITHMS) for goal in GOALS for row in goal.rows)


def made_up(programme: Programme) -> dict:
    """Results whose medians are known: η·100 + seed, less 1000 for Q-learning; Greedy-GQ diverges once."""
    found = {}
    for cell in runs.learners_of(programme):
        mean = 100 * (cell.step_size or 5.0) + cell.seed - (1000 if cell.row == "Q-learning" else 0)
        found[cell] = {"mean": mean, "diverged": cell.row == "QRC" and cell.seed == 0}
    return found


def test_the_table_has_the_median_of_the_best_step_size():
    programme = replace(FULL, n_seeds=5)
    table = entries_of(made_up(programme), programme)
    entry = table["Q-learning"]["CartPole-v1"]
    assert entry.medians.tolist() == [100 * eta + 2 - 1000 for eta in STEP_SIZES]
    assert entry.best == 4
    assert table["QRC"]["CartPole-v1"].diverged == 5
    assert table["QRC"]["MountainCar-v0"].n_solve == 5
    assert table["QRC"]["CartPole-v1"].n_solve == 0
    assert table[PRESET]["CartPole-v1"].n_solve == 1
    text = report.markdown(table, FULL)
    assert "| Q-learning | −898 (−900 … −896, η = 1) | 0 of 5 |" in text
    assert "* CartPole-v1 ≥ 475 within 50k steps, the preset: met (502)" in text
    assert "* Acrobot-v1 ≥ −100 within 100k steps, the preset: met (502)" in text
    assert json.loads(report.numbers(table))["rows"]["Q-learning"]["CartPole-v1"]["medians"] == entry.medians.tolist()
    page = report.page(table, FULL)
    assert "−898 (−900 … −896, η = 1)" in page
    assert "the preset: met (502)" in page


def test_only_the_goals_of_its_own_environments_are_judged():
    table = entries_of(made_up(LANDER), LANDER)
    assert list(table) == [PRESET, *LANDER.rows]
    assert report.verdicts(table, LANDER) == ["stretch: LunarLander-v3 ≥ 100 within 300k steps, the preset: met (504)"]
    assert "LunarLander-v3, 300k steps" in report.markdown(table, LANDER)


def test_an_environment_whose_packages_are_missing_is_named_before_anything_is_run(tmp_path, capsys, monkeypatch):
    def missing(name):
        raise gymnasium.error.DependencyNotInstalled("Box2D is not installed, run `pip install gymnasium[box2d]`")

    monkeypatch.setattr(gymnasium, "make", missing)
    with pytest.raises(SystemExit) as ended:
        main(["benchmark", "lander", "--out", str(tmp_path / "out")])
    assert ended.value.code == 2
    message = capsys.readouterr().err
    assert "env is 'LunarLander-v3': Box2D is not installed" in message
    assert message.count("\n") == 1
    assert not list(tmp_path.rglob("*.json"))


def tiny_measure(learner: runs.Learner) -> dict:
    return made_up(QUICK)[learner] | {"times": {"cpu_seconds": 1.0}}


def tiny_rows(seed: int, row: str, n_passes: int, n_episodes: int) -> dict:
    assert (n_passes, n_episodes) == (log_runs.PASSES, log_runs.EPISODES)
    return {"0.1": [9.0, float(seed)]} if row == "QRC" else {}


def test_the_benchmarks_print_json(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("gqlab.studies.agents.benchmark.measure", tiny_measure)
    main(["benchmark", "agents", "--quick", "--json", "--engine", "threads", "--out", str(tmp_path / "a")])
    assert json.loads(capsys.readouterr().out) == json.loads((tmp_path / "a" / "agents.json").read_text())
    assert {path.name for path in (tmp_path / "a").iterdir()} == {
        "agents.html", "agents.json", "agents.md", "data", "times", "times.json",
    }  # fmt: skip
    monkeypatch.setattr("gqlab.studies.logs.study.measure", tiny_rows)
    main(["benchmark", "logs", "--quick", "--json", "--engine", "threads", "--out", str(tmp_path / "l")])
    assert json.loads(capsys.readouterr().out) == {"QRC|0.1": [[9.0, seed] for seed in log_runs.QUICK_SEEDS]}


def test_the_logs_table_judges_a_whole_study_alone():
    from gqlab.studies.logs.study import LogStudy, table, verdicts

    found = {f"VR-Greedy-GQ|{eta:g}": [[480.0, 10.0]] * 17 + [[9.0, 12.0]] * 3 for eta in log_runs.STEP_SIZES}
    found["Q-learning|0.1"] = [[480.0, 400.0]] * 13 + [[9.0, 900.0]] * 7
    assert table(found).rows[0] == ["Q-learning", "0.1", "13/20", "480.0", "400"]
    assert [line.rpartition(": ")[2] for line in verdicts(found)] == ["met", "met", "met", "missed"]
    assert verdicts({name: values[:5] for name, values in found.items()}) == []
    calls = LogStudy(log_runs.SEEDS).calls()
    assert len({call.key for call in calls}) == 20 * 7


TRIED = Programme(("MountainCar-v0",), (1 / 4,), n_seeds=1, n_episodes=1, share=0.003, rows=("Sarsa(.9)",))


def test_finished_agents_are_kept_and_repeat_themselves(tmp_path):
    first = run_study(AgentBenchmark(TRIED), tmp_path)
    assert first.n_computed == 2
    learner = runs.learners_of(TRIED)[1]
    agent = gq.Agent("MountainCar-v0", seed=0, **learner.arguments()).learn(300)
    alone = agent.evaluate(n_episodes=1, seed=runs.EVALUATION)
    assert runs.measure(learner)["returns"].tolist() == alone.returns.tolist()
    assert first.gathered["Sarsa(.9)"]["MountainCar-v0"].means.tolist() == [[alone.mean]]
    again = run_study(AgentBenchmark(TRIED), tmp_path)
    assert (again.n_computed, again.text) == (0, first.text)
    forced = run_study(AgentBenchmark(TRIED), tmp_path, How(force=True))
    assert (forced.n_computed, forced.text) == (2, first.text)
