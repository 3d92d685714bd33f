"""The framework of studies: keys, what is kept, engines, kills, and what a page is made of."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import gqlab as gq
from gqlab.studies.archive import Archive
from gqlab.studies.keys import Call, described
from gqlab.studies.study import How, Runner, make_call, run_study
from gqlab.tasks import Threads
from helpers import small_study
from helpers.small_study import Sums, partial_sums
from helpers.study_files import everything

TESTS = Path(__file__).parents[1]


# --- Keys -----------------------------------------------------------------------------------------------------------


def test_a_key_covers_function_arguments_and_code(monkeypatch):
    key = Call(partial_sums, (3, 2.0)).key
    assert key == Call(partial_sums, (3, 2.0), "another label", cost=9.0).key
    others = [Call(partial_sums, (4, 2.0)), Call(partial_sums, (3, 2.5)), Call(small_study.failing, (3, 2.0))]
    monkeypatch.setattr("gqlab.studies.keys.code_digest", lambda *_: "of other code")
    others.append(Call(partial_sums, (3, 2.0)))
    assert len({key, *(other.key for other in others)}) == 5


def test_arguments_are_described_without_loss(garnet_problem):
    kinds: set[object] = set()
    found = described("x", (gq.GreedyGQ(0.1), garnet_problem, {"a": np.arange(2)}, gq.Softmax, np.float64(1)), kinds)
    assert found[0]["class"] == "gqlab.algorithms.greedy_gq:GreedyGQ"
    assert found[0]["eta_theta"] == 0.1
    assert found[1] == {"problem": garnet_problem.fingerprint}
    assert found[3:] == ["gqlab.operators.softmax:Softmax", 1.0]
    assert {gq.GreedyGQ, gq.Softmax, gq.Problem} <= kinds
    assert described("x", [np.arange(2)], kinds) != described("x", [np.arange(2.0)], kinds)
    with pytest.raises(ValueError, match=r"x\[0\] is <.*>, which cannot be part of a key"):
        described("x", [threading.Lock()], kinds)


def test_the_code_of_an_algorithm_is_part_of_the_key():
    """Of one that the function's module does not import, too."""
    codes = [Call(partial_sums, (algorithm,)).settings["code"] for algorithm in (1, gq.GreedyGQ(), gq.SAGAGreedyGQ())]
    assert len(set(codes)) == 3


# --- What is kept ---------------------------------------------------------------------------------------------------


def test_what_was_finished_before_is_read_without_computing_and_force_still_computes(tmp_path, capsys):
    calls = Sums().calls()
    with Runner(tmp_path) as runner:
        assert runner.kept(calls) is None
        runner.results(calls[:2])
        assert runner.kept(calls) is None
        assert [result["n"] for result in runner.kept(calls[:2])] == [1, 2]
    with Runner(tmp_path, How(force=True)) as runner:
        assert runner.kept(calls[:2]) is not None
        runner.results(calls[:2])
        assert runner.n_computed == 2
    path = runner.archive.path(calls[0].key)
    path.write_bytes(path.read_bytes()[:-20])
    with Runner(tmp_path) as runner:
        assert runner.kept(calls[:1]) is None
        assert runner.kept(calls[:1]) is None
        runner.results(calls[:1])
        assert runner.kept(calls[:1]) is not None
    assert capsys.readouterr().err.count("is damaged") == 1


def test_what_is_kept_is_what_was_computed(tmp_path):
    with Runner(tmp_path) as runner:
        [result] = runner.results([Call(partial_sums, (3, 2.0))])
    assert result["sums"].tolist() == [2.0, 6.0, 12.0]
    assert result["nested"]["last"][0].tolist() == [12.0]
    assert result["nested"]["last"][1] == {"x": np.inf}
    assert (result["nested"]["none"], result["n"], result["text"]) == (None, 3, "ü")
    assert result["times"]["pause"] == 0.0
    assert result["times"]["seconds"] > 0


def test_finished_calls_are_not_made_again_unless_by_force(tmp_path, monkeypatch):
    done = run_study(Sums(), tmp_path)
    assert (done.text, done.n_calls, done.n_computed) == ("72", 6, 5)
    before = everything(tmp_path)
    assert set(before) == {"sums.json", *(f"data/{call.key}.npz" for call in Sums().calls())}
    times = json.loads((tmp_path / "times.json").read_text())
    assert [call["call"] for call in times["calls"]] == [f"n = {n}" for n in (1, 2, 3, 4, 5, 1)]
    assert run_study(Sums(), tmp_path).n_computed == 0
    assert run_study(Sums(most=6), tmp_path).n_computed == 1
    assert run_study(Sums(), tmp_path, How(force=True)).n_computed == 5
    run_study(Sums(), tmp_path)
    assert {name: everything(tmp_path)[name] for name in before} == before
    monkeypatch.setattr("gqlab.studies.keys.code_digest", lambda *_: "of other code")
    assert run_study(Sums(), tmp_path).n_computed == 5


def test_a_damaged_file_is_named_and_computed_again(tmp_path, capsys):
    run_study(Sums(), tmp_path)
    expected = everything(tmp_path)
    first, second = (Archive(tmp_path).path(call.key) for call in Sums().calls()[:2])
    whole = first.read_bytes()
    first.write_bytes(whole[:300] + bytes([whole[300] ^ 1]) + whole[301:])
    assert run_study(Sums(), tmp_path).n_computed == 1
    assert re.fullmatch(rf"gqlab: {first} is damaged and will be computed again \(.*\)\n", capsys.readouterr().err)
    first.write_bytes(second.read_bytes())  # whole, but of another call
    assert run_study(Sums(), tmp_path).n_computed == 1
    assert "it has the settings of another call" in capsys.readouterr().err
    for path in (tmp_path / "times").iterdir():
        path.write_text("{")  # decides nothing
    assert run_study(Sums(), tmp_path).n_computed == 0
    assert everything(tmp_path) == expected


def test_a_call_that_fails_takes_no_other_with_it(tmp_path):
    message = r"2 of 7 tasks failed, the first bad \d: ValueError: \d is too much; the others are kept in .*"
    with pytest.raises(ValueError, match=message):
        run_study(Sums(bad=(8, 9)), tmp_path)
    assert run_study(Sums(), tmp_path).n_computed == 0


def test_what_cannot_be_kept_is_refused_in_one_line(tmp_path):
    with pytest.raises(ValueError, match=r"x\['y'\] is .*object.*, which no file of a study keeps"):
        Archive(tmp_path).save("k", {}, {"x": {"y": object()}})


def test_a_folder_that_cannot_be_written_gets_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="cannot write to the folder"):
        run_study(Sums(), tmp_path / "file" / "inner")


# --- Engines --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["processes", pytest.param("ray", marks=pytest.mark.long)])
def test_every_engine_leaves_the_same_bytes(tmp_path, engine, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS), *sys.path]))  # Ray's workers find the helpers
    if engine == "ray" and importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed")
    run_study(Sums(), tmp_path / "threads")
    done = run_study(Sums(), tmp_path / engine, How(engine, workers=2))
    assert done.n_computed == 5
    assert everything(tmp_path / engine) == everything(tmp_path / "threads")


class Elsewhere(Threads):
    """Workers that do not see the driver's disk, but a folder of the same name."""

    def __init__(self, folder: Path) -> None:
        super().__init__(workers=2)
        self.folder = folder

    def prepare(self, shared, device="cpu"):
        super().prepare({**shared, "archive": dataclasses.replace(shared["archive"], folder=self.folder)}, device)


def test_a_worker_that_does_not_see_the_folder_hands_its_value_back(tmp_path):
    run_study(Sums(), tmp_path / "here")
    (tmp_path / "there").mkdir()
    assert run_study(Sums(), tmp_path / "far", How(Elsewhere(tmp_path / "there"))).n_computed == 5
    assert everything(tmp_path / "far") == everything(tmp_path / "here")
    assert list((tmp_path / "there").iterdir()) == []


def test_nothing_is_started_where_all_is_finished(tmp_path):
    class Never(Threads):
        def __enter__(self):
            raise AssertionError("nothing is missing")

    run_study(Sums(), tmp_path)
    assert run_study(Sums(), tmp_path, How(Never())).n_computed == 0


def test_studies_that_share_calls_make_each_once(tmp_path):
    with Runner(tmp_path, How(force=True)) as runner:
        runner.results(Sums(3).calls())
        runner.results(Sums(5).calls())
        assert runner.n_computed == 5


def test_a_call_that_another_command_finished_meanwhile_is_taken_from_it(tmp_path, monkeypatch):
    call = Sums().calls()[0]
    with Runner(tmp_path) as runner:
        begun = runner._begun

        def late() -> object:  # while the engine starts, the other one ends
            runner.archive.save(call.key, call.settings, partial_sums(*call.arguments))
            return begun()

        monkeypatch.setattr(runner, "_begun", late)
        assert runner.results([call])[0]["n"] == 1
        assert runner.n_computed == 0


def test_two_commands_in_one_folder_end_alike(tmp_path):
    run_study(Sums(most=12), tmp_path / "alone")
    code = [sys.executable, "-m", "helpers.small_study", str(tmp_path / "both"), "threads"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path]), "GQLAB_TEST_PAUSE": "0.02"}
    both = [subprocess.Popen(code, env=environment, stderr=subprocess.PIPE) for _ in range(2)]
    for process in both:
        errors = process.communicate(timeout=120)[1].decode()
        assert process.returncode == 0, errors
        assert "damaged" not in errors
    assert keyless(tmp_path / "both") == keyless(tmp_path / "alone")


def keyless(folder: Path) -> list[bytes]:
    """What was written, but for keys: run as a program, the module has another name."""
    return [content for name, content in everything(folder).items() if not name.startswith("data")]


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("engine", ["threads", "processes"])
def test_a_study_that_was_killed_goes_on_from_what_it_kept(tmp_path, engine):
    code = [sys.executable, "-c", "import runpy, sys; from helpers import small_study as s; from gqlab.studies.study "
            "import How, run_study; from pathlib import Path; print(run_study(s.Sums(most=12), Path(sys.argv[1]), "
            "How(engine=sys.argv[2], workers=2)).n_computed)", str(tmp_path / "killed"), engine]  # fmt: skip
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path]), "GQLAB_TEST_PAUSE": "0.3"}
    process = subprocess.Popen(code, env=environment, start_new_session=True, stdout=subprocess.PIPE)
    data, begun = tmp_path / "killed" / "data", time.monotonic()
    while len(list(data.glob("*.npz"))) < 3 and time.monotonic() - begun < 100:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    kept = len(list(data.glob("*.npz")))
    assert 3 <= kept < 12
    again = subprocess.run(code, env=environment | {"GQLAB_TEST_PAUSE": "0"}, capture_output=True, check=True)
    assert int(again.stdout) == 12 - kept
    assert again.stderr == b""
    run_study(Sums(most=12), tmp_path / "whole")
    assert everything(tmp_path / "killed") == everything(tmp_path / "whole")


def test_a_worker_measures_the_seconds_of_a_call(tmp_path, monkeypatch):
    clock = iter([10.0, 12.5])
    monkeypatch.setattr("gqlab.studies.study.time.perf_counter", lambda: next(clock))
    value = make_call({"archive": Archive(tmp_path)}, partial_sums, (1, 1.0), "key", {})
    assert value is not None
    assert value["times"] == {"seconds": 2.5, "pause": 0.0}
