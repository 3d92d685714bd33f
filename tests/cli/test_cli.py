"""The command line as a whole: the version, the doctor, completion, JSON and exit statuses."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

import gqlab
from gqlab.cli import doctor
from gqlab.cli import main as cli
from gqlab.cli.commands import COMMANDS
from gqlab.cli.main import main
from gqlab.studies.rates.design import QUICK

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "cli.md").read_text()


def ended(capsys, *arguments: str) -> tuple[int, str, str]:
    """The exit status of a command, and what it printed."""
    code = 0
    try:
        main(arguments)
    except SystemExit as end:
        code = int(end.code or 0)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_the_version_is_printed_by_the_module_too(capsys):
    assert ended(capsys, "--version") == (0, f"gqlab {gqlab.__version__}\n", "")
    done = subprocess.run([sys.executable, "-m", "gqlab", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"gqlab {gqlab.__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_json_and_a_row_in_the_page(name, capsys):
    code, out, _ = ended(capsys, name, "--help")
    assert code == 0
    assert "--json" in out
    assert f"| `gqlab {name}" in PAGE


def test_the_page_names_no_command_that_is_gone_and_every_status():
    assert set(re.findall(r"^\| `gqlab (\w+)", PAGE, flags=re.M)) == set(COMMANDS)
    statuses = {int(status) for status in re.findall(r"^\| (\d+) \|", PAGE, flags=re.M)}
    assert statuses == {0, 1, cli.BAD_INPUT, cli.INTERRUPTED, cli.BROKEN_PIPE}


@pytest.mark.parametrize("shell", re.findall(r"^\| (\w+)[^|]* \| `.*--tyro-print-completion", PAGE, flags=re.M))
def test_completion_knows_every_command(shell, capsys):
    if shell == "fish" and doctor._numbers(importlib.metadata.version("tyro")) < (1, 0, 14):
        pytest.skip("tyro knows fish since 1.0.14")
    code, out, err = ended(capsys, "--tyro-print-completion", shell)
    assert (code, err) == (0, "")
    assert set(COMMANDS) <= set(re.findall(r"\w+", out))


def test_bad_input_and_a_missing_package_end_with_2(capsys, monkeypatch):
    def missing(**_: object) -> None:
        raise ImportError("reading files needs pyarrow: pip install pyarrow")

    code, out, err = ended(capsys, "list", "--nothing")
    assert (code, out, err.count("\n")) == (2, "", 1)
    monkeypatch.setitem(COMMANDS, "list", missing)
    assert ended(capsys, "list") == (2, "", "gqlab: reading files needs pyarrow: pip install pyarrow\n")


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
def test_a_reader_that_goes_away_is_no_error():
    command = f"{sys.executable} -c 'from gqlab.cli.main import main; main([\"list\"])' | true"
    done = subprocess.run(["bash", "-c", f"{command}; exit ${{PIPESTATUS[0]}}"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (cli.BROKEN_PIPE, "", "")


# --- JSON: one document, and nothing else. The slow commands' own tests parse theirs. ---------------------------------


def test_list_prints_json(capsys):
    code, out, err = ended(capsys, "list", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)[0] == {
        "name": "garnet-gradient",
        "figure": "Figure 1, left",
        "title": "Garnet: the gradient norm",
    }


def test_rates_prints_json(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("gqlab.cli.rates.QUICK", replace(QUICK, families=()))
    monkeypatch.setattr("gqlab.studies.rates.report.write", lambda measured, out: "table")
    found = json.loads(ended(capsys, "rates", "--json", "--quick", "--seed", "3", "--out", str(tmp_path))[1])
    assert (found["seed"], found["quick"], found["families"]) == (3, True, [])
    assert found["settings"]["fractions"] == list(QUICK.fractions)


# --- The doctor -------------------------------------------------------------------------------------------------------


def test_the_doctor_finds_that_the_core_works(capsys):
    code, out, err = ended(capsys, "doctor", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["core_works"]
    assert (found["gqlab"], found["python"]) == (gqlab.__version__, sys.version.split()[0])
    assert found["cores"] >= found["cores_usable"] >= 1
    assert Path(found["cache_folder"]).is_dir() == found["cache_writable"]
    features = {feature["name"]: feature for feature in found["features"]}
    assert all(features[name]["works"] for name in (doctor.CORE, "command line", "environments"))


REQUIRED = [
    "numpy>=2.0",
    "scipy>=1.15",
    "numba>=0.61",
    "gymnasium>=1.1",
    "pyarrow>=16; extra == 'learn'",
    "numpy<2.5; extra == 'cuda'",
]


def installed(monkeypatch, **versions: str) -> None:
    """Pretend that no packages but these are installed."""

    def version(name: str) -> str:
        if name not in versions:
            raise importlib.metadata.PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(doctor, "version", version)
    monkeypatch.setattr(doctor, "requires", lambda _: REQUIRED)


def test_the_doctor_says_what_brings_what_is_missing(capsys, monkeypatch):
    installed(monkeypatch, numpy="2.9", scipy="1.15.0rc1", numba="0.100", gymnasium="0.29.1")
    code, out, _ = ended(capsys, "doctor")
    assert code == 0
    lines = out.splitlines()
    assert lines[-1] == "The core works."
    [row] = [line for line in lines if "environments" in line]
    assert row.endswith("gymnasium 0.29.1 is too old: pip install 'gymnasium>=1.1'")
    [row] = [line for line in lines if "Parquet" in line]
    assert row.endswith("pyarrow is missing: pip install 'pyarrow>=16'")


def test_the_doctor_ends_with_1_where_the_core_does_not_work(capsys, monkeypatch):
    installed(monkeypatch, scipy="1.15", numba="0.100")
    code, out, _ = ended(capsys, "doctor")
    assert (code, out.splitlines()[-1]) == (1, "The core does not work.")
    assert "numpy is missing: pip install 'numpy>=2.0'\n" in out
    monkeypatch.undo()
    monkeypatch.setattr(doctor, "numba", SimpleNamespace(njit=lambda _: lambda x: 0))
    code, out, _ = ended(capsys, "doctor", "--json")
    assert (code, json.loads(out)["features"][0]["problem"]) == (1, "Numba compiles wrong code")


def test_the_doctor_says_where_compiled_code_cannot_be_kept(capsys, monkeypatch):
    monkeypatch.setattr(doctor.cpu.advance_block, "_cache", None, raising=False)
    assert "compiled code is not kept" in ended(capsys, "doctor")[1]


def test_the_doctor_knows_every_package_that_a_user_may_need():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for_users = [extra for name, extra in project["optional-dependencies"].items() if name not in ("dev", "docs")]
    asked = {re.split(r"[^\w.-]", text)[0] for text in sum(for_users, project["dependencies"])}
    known = {package for packages in doctor.FEATURES.values() for package in packages}
    assert asked <= known


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_command_needs_neither_stdout_nor_stderr(closed):
    done = subprocess.run(f"{sys.executable} -m gqlab list {closed}", shell=True, capture_output=True, check=False)  # noqa: S602
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_terminal_without_greek_letters_shows_question_marks():
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "gqlab", "theory", "garnet"], env=environment, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"?" in done.stdout


@pytest.mark.parametrize("module", ["numpy", "scipy", "numba", "tyro", "matplotlib"])
def test_ctrl_c_while_modules_are_loaded_is_one_line(module):
    code = f"""
import sys
class Interrupt:
    def find_spec(self, name, *_):
        if name == {module!r}:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupt())
from gqlab.cli.main import main
main(["list"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (130, "", 1)


def test_a_backend_that_does_not_exist_is_one_line():
    environment = os.environ | {"MPLBACKEND": "nonsense"}
    done = subprocess.run(
        [sys.executable, "-m", "gqlab", "list"], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "'nonsense' is not a valid value for backend" in done.stderr
