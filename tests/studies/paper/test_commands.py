"""The command line, as a user calls it."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from gqlab.cli import reproduce as commands
from gqlab.cli.main import main
from gqlab.studies import study
from gqlab.studies.paper.experiments import EXPERIMENTS
from gqlab.studies.paper.theory_claims import SLOPES, judge_theory
from gqlab.studies.rates import rates
from gqlab.studies.rates.design import RateSettings
from gqlab.studies.rates.rates import _floor_slopes
from gqlab.support.files import read_arrays
from helpers.study_files import everything
from paper.conftest import Tiny

NAMES = [experiment.name for experiment in EXPERIMENTS]


def test_list_names_every_experiment(capsys):
    main(["list"])
    printed = capsys.readouterr().out
    assert [line.split()[0] for line in printed.splitlines()] == NAMES


def test_help_says_what_a_newcomer_needs(capsys):
    with pytest.raises(SystemExit) as end:
        main(["reproduce", "--help"])
    assert end.value.code == 0
    printed = " ".join(capsys.readouterr().out.replace("│", " ").split())
    for option in ("--experiment", "--quick", "--out", "--seed", "--device", "--no-slippery", "--force"):
        assert option in printed
    assert "judge every claim of the register" in printed


def one_line(capsys, *arguments: str, command: str = "reproduce") -> str:
    """The message of a call that must fail with status 2 and one line on stderr."""
    with pytest.raises(SystemExit) as end:
        main([*command.split(), *arguments])
    captured = capsys.readouterr()
    assert end.value.code == 2
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


def test_bad_input_gets_one_line_and_status_2(capsys, tmp_path):
    file = tmp_path / "file"
    file.write_text("not a folder")
    out = ("--out", str(tmp_path / "out"))
    message = one_line(capsys, "--experiment", "garnet-gradient", "nonsense", *out)
    assert message.startswith("gqlab: unknown experiment 'nonsense', expected one of garnet-gradient, ")
    assert "cannot write to the folder" in one_line(capsys, "--out", str(file / "deeper"))
    assert "cannot write to the folder" in one_line(capsys, "--out", str(file))
    assert "device is 'abacus', expected one of 'cpu', 'cuda'" in one_line(capsys, "--device", "abacus", *out)
    assert "seed is -1, expected at least 0" in one_line(capsys, "--seed", "-1", *out)
    assert not (tmp_path / "out").exists()
    assert "invalid literal for int() with base 10: 'abc'" in one_line(capsys, "--seed", "abc")
    assert "Unrecognized options: --nonsense" in one_line(capsys, "--nonsense")
    assert "there is no command 'nothing': expected one of train, fit" in one_line(capsys, command="nothing")
    assert "Expected one of {reproduce, list" in one_line(capsys, command="")


def test_the_whole_way_and_what_a_second_call_does(capsys, monkeypatch, out):
    """Two experiments, then a third: the report covers all that are finished, and nothing is done twice."""
    monkeypatch.setattr(commands, "Request", Tiny)
    done: list[object] = []
    make_call = study.make_call
    monkeypatch.setattr(study, "make_call", lambda *call: done.append(call) or make_call(*call))
    main(["reproduce", "--experiment", "baird", "garnet-mspbe", "--out", str(out)])
    printed = capsys.readouterr()
    last = printed.out.splitlines()[-1]
    assert last.startswith("Of 1 claims ")
    assert last.endswith(f"expected by chance alone. Report: {out / 'report.html'}")
    assert "garnet-mspbe" in printed.err
    assert "left" in printed.err
    n = len(done)
    assert n == 2 * 2 + 3
    main(["reproduce", "--experiment", "garnet-gradient", "--out", str(out)])
    assert len(done) == n + 2 * 2  # the watched part; the long one is shared with garnet-mspbe
    report = (out / "report.html").read_text()
    assert all(f'id="{name}"' in report for name in ("baird", "garnet-mspbe", "garnet-gradient"))
    assert 'id="frozen-lake-mspbe"' not in report
    claims = json.loads((out / "claims.json").read_text())
    assert [c["claim"] for c in claims["claims"]] == ["G1", "G2", "G5"]
    names = {p.name for p in out.iterdir()}
    for stem in ("baird", "garnet-mspbe", "garnet-gradient", "claims"):
        assert {f"{stem}.png", f"{stem}.svg", f"{stem}.csv"} <= names
    assert {"claims.md", "report.html", "data", "times.json"} <= names
    assert not any(name.startswith(".") for name in names)
    capsys.readouterr()
    main(["reproduce", "--experiment", "baird", "--out", str(out), "--force", "--json"])
    assert json.loads(capsys.readouterr().out) == json.loads((out / "claims.json").read_text())
    assert len(done) == n + 2 * 2 + 3


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize(
    ("signal_number", "status"),
    [(signal.SIGKILL, -signal.SIGKILL), pytest.param(signal.SIGINT, 130, marks=pytest.mark.long)],
)
def test_ctrl_c_and_a_kill_lose_nothing_that_was_finished(out, signal_number, status):
    # A background job of a shell is born deaf to SIGINT, and so are its children.
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from gqlab.cli.main import main; main()"
    command = [sys.executable, "-c", code, "reproduce", "--quick", "--seed", "1", "--out", str(out)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path.cwd())
    data = out / "data"
    while process.poll() is None and not (data.exists() and len(list(data.glob("*.npz"))) >= 3):
        time.sleep(0.01)
    process.send_signal(signal_number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == status
    assert b"Traceback" not in errors
    if signal_number == signal.SIGINT:
        assert errors.decode().splitlines()[-1].startswith("gqlab: interrupted; the same command goes on")
        assert not list(data.glob(".*"))
    finished = list(data.glob("*.npz"))
    assert len(finished) >= 3
    for path in finished:
        assert "measure" in json.loads(str(read_arrays(path)["header"]))["settings"]["function"]


#: A whole run of two experiments, tiny; the tests' folder is on the path.
TINY = """
import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)
from gqlab.cli import reproduce as commands
from paper.conftest import Tiny
commands.Request = Tiny
from gqlab.cli.main import main
main(["reproduce", "--experiment", "garnet-gradient", "garnet-batch-size", "--seed", "1", "--out", sys.argv[1]])
"""


def tiny_run(folder: Path) -> subprocess.Popen[bytes]:
    path = os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])
    return subprocess.Popen(
        [sys.executable, "-c", TINY, str(folder)], env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_claims_are_the_same_bytes_in_two_folders_and_after_kills(tmp_path):
    """One run to its end; one that is killed whenever another file has come, and begun anew, until it ends by itself."""
    straight, killed = tmp_path / "straight", tmp_path / "elsewhere" / "killed"
    _, errors = (process := tiny_run(straight)).communicate(timeout=300)
    assert process.returncode == 0, errors
    data, kills = killed / "data", 0
    for seen in range(2, 9, 3):
        process = tiny_run(killed)
        while process.poll() is None and len(list(data.glob("*.npz"))) < seen:
            time.sleep(0.005)
        process.kill()
        process.communicate(timeout=60)
        kills += process.returncode == -signal.SIGKILL
    assert kills >= 2
    _, errors = (process := tiny_run(killed)).communicate(timeout=300)
    assert process.returncode == 0, errors
    names = {path.name for path in straight.iterdir() if path.is_file()}
    assert names == {path.name for path in killed.iterdir() if path.is_file() and not path.name.startswith(".")}
    for name in sorted(names - {"times.json"}):
        assert (straight / name).read_bytes() == (killed / name).read_bytes(), name


@pytest.mark.long
@pytest.mark.parametrize("engine", ["processes", "ray"])
def test_every_engine_gives_the_bytes_of_threads(tmp_path, monkeypatch, engine):
    if engine == "ray":
        pytest.importorskip("ray")
    monkeypatch.setattr(commands, "Request", Tiny)
    names = ["--experiment", "garnet-gradient", "garnet-mspbe", "--seed", "1"]
    main(["reproduce", *names, "--out", str(tmp_path / "threads")])
    main(["reproduce", *names, "--out", str(tmp_path / engine), "--engine", engine, "--workers", "2"])
    expected = everything(tmp_path / "threads")
    assert everything(tmp_path / engine) == expected
    assert len([name for name in expected if name.startswith("data")]) == 8


def test_the_page_is_there_from_the_first_experiment_on(monkeypatch, out, capsys):
    monkeypatch.setattr(commands, "Request", Tiny)
    seen: list[list[str]] = []
    make_call = study.make_call

    def watched(*call):
        report = out / "report.html"
        text = report.read_text() if report.exists() else ""
        seen.append([name for name in NAMES if f'<section class="experiment" id="{name}"' in text])
        return make_call(*call)

    monkeypatch.setattr(study, "make_call", watched)
    names = ["garnet-variance", "garnet-batch-size", "baird"]
    main(["reproduce", "--experiment", *names, "--seed", "1", "--out", str(out)])
    assert [names for names, _ in itertools.groupby(seen)] == [[], names[:1], names[:2]]
    assert "3 of 19 experiments done" in (out / "report.html").read_text()


def rates_file(folder: Path, **changes: object) -> None:
    """What gqlab rates writes, as far as the claims read it."""
    slopes = [{"name": "VR-Greedy-GQ less Greedy-GQ, tuned, paired", "mean": -0.4, "low": -0.5, "high": -0.3, "n": 10}]
    floors = [{"name": "M = 300 … 10000, η_θ = 0.02", "mean": -0.6, "low": -0.7, "high": -0.5, "n": 10}]
    content = {
        "seed": 1, "quick": False, "settings": {"fractions": [0.562, 0.00316]},
        "families": [{"name": "Garnet", "slopes": slopes, "floor_slopes": floors}], **changes,
    }  # fmt: skip
    folder.mkdir(exist_ok=True)
    (folder / "rates.json").write_text(json.dumps(content))


def test_the_theory_s_claims_come_from_rates_where_it_was_run(tmp_path):
    missing, note = judge_theory(tmp_path, 1)
    assert missing == ()
    assert "gqlab rates --seed 1 --out" in note
    rates_file(tmp_path)
    (T1, T2), note = judge_theory(tmp_path, 1)
    assert note == ""
    assert (T1.claim.key, T1.verdict.outcome, T1.verdict.pooled.ratio) == ("T1", "holds", -0.4)
    assert (T2.claim.key, T2.verdict.outcome, T2.verdict.n_problems) == ("T2", "weaker than claimed", 10)
    for changes in ({"seed": 0}, {"quick": True}, {"settings": {"fractions": [0.5, 0.1]}}, {"families": []}):
        rates_file(tmp_path, **changes)
        assert judge_theory(tmp_path, 1)[0] == ()
    (tmp_path / "rates.json").write_text("{")
    assert "not a file that gqlab rates" in judge_theory(tmp_path, 1)[1]


def test_the_names_in_rates_json_are_those_that_rates_writes():
    settings = RateSettings()
    floors = np.exp(-np.log(np.tile([1.0, *settings.floor_batch_sizes], (3, len(settings.floor_etas), 1))))
    names = {s.name: s for s in _floor_slopes(floors, settings)}
    assert names[SLOPES["T2"][1]].mean == pytest.approx(-1.0)
    assert SLOPES["T1"][1] in Path(rates.__file__).read_text()
