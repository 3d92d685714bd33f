"""The study of replay: its design, its runs, its statistics, and what it writes."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import gqlab as gq
from gqlab.learn.agent.presets import REPLAYING_PRESETS
from gqlab.studies.replay import report
from gqlab.studies.replay.beside import read_beside
from gqlab.studies.replay.design import (
    BASE,
    CLASSIC,
    CORRECTED,
    CRITERIA,
    ENVIRONMENTS,
    FACTORS,
    FIRST,
    FULL,
    PLAIN,
    QUICK,
    ROWS,
    SCANNED,
    WORST,
    ReplayPart,
)
from gqlab.studies.replay.runs import ReplayRun, best_mean, best_policy, learner, learners_of, measure
from gqlab.studies.replay.statistics import criteria_values, entries_of, judge_all, n_solve
from gqlab.studies.replay.study import ReplayStudy
from gqlab.studies.study import How, run_study
from helpers.study_files import everything

#: A design that needs little compiled code: no features but one-hot ones.
ONLINE = "Q-learning, the same features"
TINY = {"discrete": ReplayPart(("CliffWalking-v1",), (BASE, ONLINE), range(2095, 2097), share=0.05)}


# --- The design -----------------------------------------------------------------------------------------------------


def test_the_design_has_ten_fresh_seeds_where_something_must_be_shown():
    spent = [*range(100), *range(1000, 1011), *range(2000, 2100), *range(9100, 9200)]
    for name, part in FULL.items():
        assert not set(part.seeds) & set(spent), name
        assert set(part.seeds) <= set(range(210, 220) if name == "again" else range(200, 210)), name
        assert len(part.seeds) == (3 if name == "step sizes" else 10), name
    assert all(set(part.seeds) <= set(range(2000, 2100)) for part in QUICK.values())
    assert FACTORS[-1] / FACTORS[0] == 16
    assert {"1 update", "4 updates", "16 updates", "64 updates", "one step", PLAIN, "VR-Greedy-GQ"} <= set(SCANNED)


def test_every_run_of_the_design_is_there_once():
    places = [place for place, _ in learners_of(FULL)]
    assert len(set(places)) == len(places)
    calls = ReplayStudy(FULL).calls()
    assert len(calls) == len(places)
    assert len({call.key for call in calls}) < len(calls)  # rows that come to the same are one call


def test_a_row_changes_what_it_says_and_nothing_else():
    part = FULL["step sizes"]
    for name in CLASSIC:
        base = learner(name, BASE, part, 1.0, None, 200)
        preset = FIRST.get(name, REPLAYING_PRESETS[name]).arguments()
        assert base.arguments() == preset
        assert replace(base, updates=64.0) == learner(name, "64 updates", part, 1.0, None, 200)
        assert replace(base, n_step=1) == learner(name, "one step", part, 1.0, None, 200)
        assert replace(base, reduction="none") == learner(name, PLAIN, part, 1.0, None, 200)
        kinds = {
            "with the correction": gq.SAGAGreedyGQ,
            "with the correction, without variance reduction": gq.GreedyGQ,
            "without the correction": gq.SAGAQLearning,
            "without the correction and variance reduction": gq.QLearning,
            "VR-Greedy-GQ": gq.VRGreedyGQ,
        }
        for row, kind in kinds.items():
            made = learner(name, row, part, 2.0, None, 200).arguments()
            assert type(made["algorithm"]) is kind
            first, given = made["algorithm"].eta_theta, preset["algorithm"].eta_theta
            falls = isinstance(given, gq.Decay)
            assert first == (replace(given, eta=2 * given.eta) if falls else 2 * given)
            assert made["replay"] == preset["replay"]


def test_agents_without_replay_have_the_same_features_and_more_steps():
    part = FULL["main"]
    for name in CLASSIC:
        sarsa = learner(name, "Sarsa(.9), the same features", part, 1.0, None, 200)
        preset = FIRST.get(name, REPLAYING_PRESETS[name])
        wanted = preset.arguments() | {"algorithm": gq.Sarsa(0.25, trace=0.9), "replay": None}
        assert sarsa.arguments() == wanted
        assert sarsa.budget >= WORST * ENVIRONMENTS[name].bound == learner(name, BASE, part, 1.0, None, 200).budget
        present = learner(name, "preset without replay", part, 1.0, None, 200)
        without = gq.Agent.preset(name, replay=False).algorithm
        assert gq.Agent(name, **present.arguments()).algorithm == without


def test_again_runs_the_preset_as_it_is():
    for seed in (210, 219):
        one = learner("Acrobot-v1", BASE, FULL["again"], 1.0, None, seed)
        assert one.arguments() == REPLAYING_PRESETS["Acrobot-v1"].arguments()
        assert one.arguments() != learner("Acrobot-v1", BASE, FULL["main"], 1.0, None, seed).arguments()


def test_where_values_are_judged_they_begin_at_0():
    for gamma in (0.95, 0.99):
        one = learner("CartPole-v1", CORRECTED[0], FULL["values"], 1.0, gamma, 200).arguments()
        assert (one["discount"], one["initial_value"]) == (gamma, 0)
    main = learner("CartPole-v1", BASE, FULL["main"], 1.0, None, 200).arguments()
    assert main["initial_value"] == REPLAYING_PRESETS["CartPole-v1"].initial_value != 0


# --- RowRuns -----------------------------------------------------------------------------------------------------------


def test_the_best_policy_walks_along_the_cliff():
    assert best_mean("CliffWalking-v1", seed=5) == -13
    assert best_policy("CliffWalking-v1").shape == (48, 4)


def small(**changes: Any) -> ReplayRun:
    one = learner("CliffWalking-v1", BASE, TINY["discrete"], 1.0, None, 2095)
    return replace(one, **{"budget": 2000, **changes})


def test_a_run_is_checked_on_the_way_and_ends_when_it_is_decided():
    found, stopped = measure(small()), measure(small(stops=True))
    assert found["steps"].tolist() == list(range(250, 2501, 250))
    assert np.isfinite(found["to_threshold"])
    n = int(found["to_threshold"]) // 250 + 2
    assert len(stopped["steps"]) == n
    for name in ("steps", "means", "max_q"):
        np.testing.assert_array_equal(stopped[name], found[name][:n])
    assert stopped["to_threshold"] == found["to_threshold"]
    assert (found["max_q"] > 0).all()


@pytest.mark.long
def test_max_q_is_the_largest_value_of_the_model_over_the_buffer():
    for encoder in (gq.TileCoder(n_tilings=4, bins=4), gq.Fourier(2)):
        replay = gq.Replay(updates=2, n_step=3)
        agent = gq.Agent("MountainCar-v0", encoder, gq.SAGAQLearning(0.1), replay=replay, initial_value=-5.0)
        agent.learn(450)
        rows = agent.buffer.to_chunk()
        q = agent.model.q(np.vstack([rows.observations, rows.next_observations]))
        assert agent.max_q == pytest.approx(np.abs(q).max(), rel=1e-12)
    with pytest.raises(ValueError, match="max_q: this agent keeps no transitions"):
        _ = gq.Agent("MountainCar-v0", gq.TileCoder(n_tilings=4, bins=4), gq.Sarsa(0.1)).max_q


# --- Statistics -----------------------------------------------------------------------------------------------------


def invented(to_threshold: float, largest: float = 10.0) -> dict[str, Any]:
    steps = np.arange(500, 3001, 500)
    means, values = np.linspace(-200, 0, 6), np.full(6, largest)
    return {"steps": steps, "means": means, "max_q": values, "to_threshold": to_threshold, "diverged": False}


def test_not_solved_counts_as_infinite():
    seeds = range(200, 204)
    for each, median, worst in (
        ((500, 1000, 1500, math.inf), 1250, math.inf),
        ((500, 1000, math.inf, math.inf), math.inf, math.inf),
        ((500, 700, 900, 1100), 800, 1100),
    ):
        found = {("main", "CartPole-v1", BASE, None, 1.0, s): invented(x) for s, x in zip(seeds, each, strict=True)}
        [runs] = entries_of(found).values()
        assert (runs.median, runs.worst) == (median, worst)


def whole(base: float, plain: float, largest: float) -> dict[Any, Any]:
    """Results of the whole design: all runs alike, but those of the base, of the plain row and with the correction."""
    found = {}
    for place, _ in learners_of(FULL):
        row = place[2]
        steps = {BASE: base, PLAIN: plain}.get(row, 100_000.0)
        found[place] = invented(steps, largest if row in CORRECTED else 1e6)
    return found


def test_every_criterion_is_judged_and_can_be_missed():
    assert len({criterion.name for criterion in CRITERIA}) == len(CRITERIA) == 16
    good, bad = entries_of(whole(1000, math.inf, 25.0)), entries_of(whole(math.inf, 1000, 2000.0))
    assert set(criteria_values(good, FULL)) == {criterion.name for criterion in CRITERIA}
    assert {one.holds for one in judge_all(good, FULL)} == {True}
    assert {one.holds for one in judge_all(bad, FULL)} == {False}
    assert n_solve(good, "CartPole-v1", BASE, FULL["step sizes"]) == 5
    assert n_solve(good, "CartPole-v1", PLAIN, FULL["step sizes"]) == 0
    assert criteria_values(good, FULL)["values 0.95"] == pytest.approx(25 / 20)


def test_what_is_written_has_the_tables_and_is_one_page(tmp_path):
    text = report.write_report(entries_of(whole(1000, math.inf, 25.0)), FULL, tmp_path)
    assert "CartPole-v1: median steps to threshold: at most 2,000 asked, 1,000 found: met" in text
    assert "5 of 5" in text
    for row in ROWS:
        assert row in text
    page = (tmp_path / "replay.html").read_text()
    HTMLParser().feed(page)
    assert "<svg" in page
    assert 'src="http' not in page
    assert (tmp_path / "replay.png").read_bytes().startswith(b"\x89PNG")
    found = json.loads((tmp_path / "replay.json").read_text())
    assert len(found["criteria"]) == len(CRITERIA)
    assert "| replay | 1,000 (1,000) |" in (tmp_path / "replay.md").read_text()


def curves_of(seeds: dict[str, Any]) -> str:
    return json.dumps({"name": "Another library's", "curves": {"CartPole-v1": seeds}})


def test_curves_of_another_library_stand_beside_and_decide_nothing(tmp_path):
    path, steps = tmp_path / "curves.json", [500, 1000, 1500, 2000]
    seeds = {"0": {"steps": steps, "means": [0, 480, 490, 500]}, "1": {"steps": steps, "means": [0, 0, 0, 500]}}
    path.write_text(curves_of(seeds))
    [(place, runs)] = read_beside(path).items()
    assert place == ("main", "CartPole-v1", "Another library's, 2 seeds", None, 1.0)
    assert runs.to_threshold.tolist() == [1000, math.inf]
    ours = entries_of(whole(1000, math.inf, 25.0))
    both = ours | {place: runs}
    assert judge_all(both, FULL) == judge_all(ours, FULL)
    report.write_report(both, FULL, tmp_path)
    assert "| Another library's, 2 seeds | ∞ (∞) | – | – |" in (tmp_path / "replay.md").read_text()
    assert "Another library" in (tmp_path / "replay.html").read_text()


@pytest.mark.parametrize(
    "content",
    ["", "[]", '{"name": "x"}', curves_of({"0": {"steps": [1, 2], "means": [1]}}), curves_of({"0": {"steps": [1]}}),
     curves_of({"0": {"steps": [1], "means": [math.nan]}}), '{"name": "x", "curves": {"Pong-v0": {"0": {}}}}'],
)  # fmt: skip
def test_a_file_without_curves_is_told_in_one_line(tmp_path, content):
    (tmp_path / "curves.json").write_text(content)
    with pytest.raises(ValueError, match=r"curves.json holds no curves of agents") as told:
        read_beside(tmp_path / "curves.json")
    assert "\n" not in str(told.value)


# --- The whole ------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_study_goes_on_from_what_is_finished_and_every_engine_leaves_the_same_bytes(tmp_path):
    done = run_study(ReplayStudy(TINY), tmp_path / "threads", How(progress=False))
    assert (done.n_calls, done.n_computed) == (4, 4)
    expected = everything(tmp_path / "threads")
    assert {"replay.json", "replay.md", "replay.html", "replay.png"} <= set(expected)
    sorted((tmp_path / "threads" / "data").iterdir())[0].unlink()
    assert run_study(ReplayStudy(TINY), tmp_path / "threads", How(progress=False)).n_computed == 1
    assert "asked" not in done.text  # a smaller design says nothing about the criteria
    assert everything(tmp_path / "threads") == expected
    run_study(ReplayStudy(TINY), tmp_path / "processes", How("processes", workers=1, progress=False))
    assert everything(tmp_path / "processes") == expected
