"""The command line, as a user calls it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from gqlab.cli import main
from gqlab.paper import commands
from gqlab.paper.claims import CLAIMS
from gqlab.paper.experiments import EXPERIMENTS
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
    assert "say of every claim whether it holds" in printed


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
    assert "Unrecognized options: nothing" in one_line(capsys, command="nothing")
    assert "Expected one of {reproduce, list" in one_line(capsys, command="")


def test_the_whole_way_and_what_a_second_call_does(capsys, monkeypatch, out):
    """Two experiments, then a third: the report covers all that are finished, and nothing is done twice."""
    monkeypatch.setattr(commands, "Scale", Tiny)
    done: list[object] = []
    measure = commands.run_missing.__globals__["measure"]
    monkeypatch.setitem(commands.run_missing.__globals__, "measure", lambda job: done.append(job) or measure(job))
    main(["reproduce", "--experiment", "baird", "garnet-mspbe", "--out", str(out)])
    printed = capsys.readouterr()
    last = printed.out.splitlines()[-1]
    assert last.endswith(f"of 4 claims hold. Report: {out / 'report.html'}")
    assert "garnet-mspbe" in printed.err
    assert "left" in printed.err
    n = len(done)
    assert n == 3 * 3 + 2 * 3
    main(["reproduce", "--experiment", "garnet-gradient", "--out", str(out)])
    assert len(done) == n + 2 * 3  # the 10k part; the long one is shared with garnet-mspbe
    report = (out / "report.html").read_text()
    assert all(f'id="{name}"' in report for name in ("baird", "garnet-mspbe", "garnet-gradient"))
    assert 'id="frozen-lake-mspbe"' not in report
    claims = json.loads((out / "claims.json").read_text())
    expected = [c.name for c in CLAIMS if c.experiment in ("baird", "garnet-mspbe", "garnet-gradient")]
    assert [c["name"] for c in claims["claims"]] == expected
    names = {p.name for p in out.iterdir()}
    for stem in ("baird", "garnet-mspbe", "garnet-gradient", "claims"):
        assert {f"{stem}.png", f"{stem}.svg", f"{stem}.csv"} <= names
    assert {"claims.md", "report.html", "data"} <= names
    assert not any(name.startswith(".") for name in names)
    main(["reproduce", "--experiment", "baird", "--out", str(out), "--force"])
    assert len(done) == n + 2 * 3 + 3 * 3


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize(("signal_number", "status"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_ctrl_c_and_a_kill_lose_nothing_that_was_finished(out, signal_number, status):
    # A background job of a shell is born deaf to SIGINT, and so are its children.
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from gqlab.cli import main; main()"
    command = [sys.executable, "-c", code, "reproduce", "--quick", "--out", str(out)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path.cwd())
    data = out / "data"
    while process.poll() is None and not (data.exists() and len(list(data.glob("*.npz"))) >= 3):
        time.sleep(0.01)
    process.send_signal(signal_number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == status
    assert b"Traceback" not in errors
    if signal_number == signal.SIGINT:
        assert errors.decode().splitlines()[-1].startswith("gqlab: interrupted; what was finished is kept")
        assert not list(data.glob(".*"))
    finished = list(data.glob("*.npz"))
    assert len(finished) >= 3
    for path in finished:
        with np.load(path, allow_pickle=False) as file:
            assert "settings" in file
    assert not (out / "report.html").exists()
