"""Compiled code on disk: gqlab works without a place for it, and whatever is found there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import gqlab
from gqlab.engine import code_folder

PACKAGE = Path(gqlab.__file__).parent

#: Compiles one small function, and says whether the code came from the disk.
CODE = """
import numba, gqlab as gq
from gqlab.lab import check as steps
print(gq.check.batch_indices(gq.VRGreedyGQ(batch_size=3), 9).tolist())
if not numba.config.DISABLE_JIT:
    print("read" if sum(steps._indices.stats.cache_hits.values()) else "compiled")
"""


def run(code, environment, *options):
    """Run Python with warnings shown; returns stdout's and stderr's lines."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA")}
    command = [sys.executable, "-B", *options, "-c", code]
    done = subprocess.run(
        command, env=inherited | environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), done.stderr.splitlines()


@pytest.fixture
def nowhere(tmp_path):
    """An environment in which no folder can be written, not even by root: files stand where folders would be."""
    copy = tmp_path / "library" / "gqlab"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in (copy, *(path for path in copy.rglob("*") if path.is_dir())):
        (folder / "__pycache__").write_text("not a folder")
    (tmp_path / "home").write_text("not a folder")
    home = str(tmp_path / "home")
    return {"PYTHONPATH": str(copy.parent), "HOME": home, "XDG_CACHE_HOME": home, "MPLCONFIGDIR": str(tmp_path)}


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    [indices, made], printed = run(CODE, {"NUMBA_CACHE_DIR": str(tmp_path_factory.mktemp("cache"))})
    assert (made, printed) == ("compiled", [])
    return indices


def warned(lines):
    return [line for line in lines if "gqlab cannot keep compiled code on disk" in line]


def test_without_a_place_for_the_cache_everything_works_with_one_warning(nowhere, expected):
    twice = CODE + "print(gq.trajectory(gq.baird(), 5).s.shape)"
    [indices, made, shape], printed = run(twice, nowhere)
    assert (indices, made, shape) == (expected, "compiled", "(5,)")
    assert len(warned(printed)) == 1


def test_without_the_compiler_no_place_is_needed(nowhere, expected):
    [indices], printed = run(
        CODE, nowhere | {"NUMBA_DISABLE_JIT": "1"}, "-W", "ignore::RuntimeWarning:gqlab.samples.random"
    )
    assert indices == expected
    assert warned(printed) == []


COMMANDS = ["list", "--help", "reproduce --help", "theory --help", "rates --help", "theory nothing"]


def test_commands_that_compute_nothing_compile_nothing(nowhere):
    code = f"""
import sys
from numba.core import dispatcher
def refuse(*_):
    raise AssertionError("compiled")
dispatcher.Dispatcher.compile = refuse
from gqlab.cli import main as cli
for command in {COMMANDS}:
    try:
        cli.main(command.split())
    except SystemExit as end:
        print(end.code)
print("done")
"""
    out, printed = run(code, nowhere)
    assert out[-1] == "done"
    assert any(line.startswith("garnet-mspbe") for line in out)
    assert warned(printed) == []


def test_a_full_disk_is_one_warning(tmp_path, expected):
    # Files of more than 200 bytes cannot be written: what a write to a full disk raises is the same kind of error.
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))\n"
    [indices, made], printed = run(limit + CODE, {"NUMBA_CACHE_DIR": str(tmp_path)})
    assert (indices, made) == (expected, "compiled")
    assert len(warned(printed)) == 1


@pytest.fixture
def cache(tmp_path, expected):
    """A folder with the compiled function in it."""
    environment = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert run(CODE, environment)[0] == [expected, "compiled"]
    assert run(CODE, environment)[0] == [expected, "read"]
    return environment


def files(environment):
    found = sorted(Path(environment["NUMBA_CACHE_DIR"]).rglob("*_indices*.nbc"))
    assert found
    return found


def flipped(data):
    """One bit of the machine code, well inside."""
    k = len(data) // 2
    return data[:k] + bytes([data[k] ^ 4]) + data[k + 1 :]


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda data: data[: len(data) // 2], id="half", marks=pytest.mark.long),
        pytest.param(lambda data: b"", id="nothing", marks=pytest.mark.long),
        pytest.param(flipped, id="one bit"),
    ],
)
def test_damaged_files_are_compiled_anew_and_replaced(cache, expected, damage):
    for path in files(cache):
        path.write_bytes(damage(path.read_bytes()))
    assert run(CODE, cache) == ([expected, "compiled"], [])
    assert run(CODE, cache) == ([expected, "read"], [])


@pytest.mark.long
def test_code_under_the_key_of_another_function_is_not_run(cache, expected):
    code = CODE.replace(
        "gq.check.batch_indices(gq.VRGreedyGQ(batch_size=3), 9).tolist()", "gq.trajectory(gq.baird(), 3).s.tolist()"
    )
    run(code.replace("_indices", "_trajectory"), cache)
    [own], [other] = files(cache), sorted(Path(cache["NUMBA_CACHE_DIR"]).rglob("*_trajectory*.nbc"))
    own.write_bytes(other.read_bytes())
    assert run(CODE, cache) == ([expected, "compiled"], [])


def test_copies_with_the_same_sources_share_their_code_and_others_do_not(tmp_path, expected):
    copies = [tmp_path / name / "gqlab" for name in ("one", "two")]
    for copy in copies:
        shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "caches"), "MPLCONFIGDIR": str(tmp_path)}
    for copy, made in zip(copies, ("compiled", "read"), strict=True):
        assert run(CODE, home | {"PYTHONPATH": str(copy.parent)})[0] == [expected, made]
    with (copies[1] / "rules" / "numbers.py").open("a") as file:
        file.write("# an edit\n")
    assert run(CODE, home | {"PYTHONPATH": str(copies[1].parent)})[0] == [expected, "compiled"]
    assert len(list((tmp_path / "caches" / "gqlab").iterdir())) == 2
    assert not list(tmp_path.glob("*/gqlab/**/__pycache__"))
    checked = home | {"PYTHONPATH": str(copies[0].parent), "NUMBA_BOUNDSCHECK": "1"}
    assert run(CODE, checked)[0] == [expected, "compiled"]  # that is other code


def test_the_least_recently_used_folders_are_removed_where_all_are_too_large(tmp_path, monkeypatch):
    tmp_path.chmod(0o700)
    for k in range(12):
        (tmp_path / f"code-{k:02}").mkdir()
        (tmp_path / f"code-{k:02}" / "f.nbc").write_bytes(b"x" * 1000)
        (tmp_path / f"code-{k:02}" / code_folder.MARKER).touch()
        os.utime(tmp_path / f"code-{k:02}", (k, k))
    (tmp_path / "another-one-s").mkdir()
    monkeypatch.setattr(code_folder, "places", lambda: [tmp_path])
    monkeypatch.setattr(code_folder, "MOST_BYTES", 7500)
    folder = code_folder.code_folder.__wrapped__()
    assert folder == tmp_path / code_folder.state()
    kept = {f"code-{k:02}" for k in range(5, 12)}
    assert {path.name for path in tmp_path.iterdir()} == {folder.name, "another-one-s", *kept}


@pytest.mark.parametrize("mode", [0o777, 0o720, 0o702])
@pytest.mark.parametrize("which", ["gqlab", "state"])
def test_a_folder_that_others_can_write_to_is_not_read(tmp_path, expected, mode, which):
    environment = {"NUMBA_CACHE_DIR": str(tmp_path)}
    folder = tmp_path / "gqlab" / (code_folder.state() if which == "state" else "")
    folder.mkdir(parents=True)
    (tmp_path / "gqlab").chmod(0o700)
    folder.chmod(mode)
    [indices, made], printed = run(CODE, environment)
    assert (indices, made) == (expected, "compiled")
    assert len(warned(printed)) == 1
    assert f"others can write to {folder}" in warned(printed)[0]
    assert not list(tmp_path.rglob("*.nbc"))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_not_read(tmp_path, expected):
    folder = tmp_path / "gqlab"
    folder.mkdir(mode=0o755)
    os.chown(folder, 12345, 12345)
    [indices, made], printed = run(CODE, {"NUMBA_CACHE_DIR": str(tmp_path)})
    assert (indices, made) == (expected, "compiled")
    assert f"{folder} belongs to another user" in warned(printed)[0]


def test_the_folder_is_private_whatever_the_umask(tmp_path, expected):
    run("import os; os.umask(0)\n" + CODE, {"NUMBA_CACHE_DIR": str(tmp_path)})
    made = [tmp_path / "gqlab", *(path for path in (tmp_path / "gqlab").iterdir() if path.is_dir())]
    assert len(made) == 2
    assert [path.stat().st_mode & 0o777 for path in made] == [0o700, 0o700]


def test_doctor_removes_compiled_code_and_nothing_else(tmp_path):
    own, other = tmp_path / "gqlab" / "code-1", tmp_path / "gqlab" / "code-of-others"
    for folder in (own, other):
        folder.mkdir(parents=True)
        (folder / "file").write_text("x")
    (own / code_folder.MARKER).touch()
    out, _ = run("from gqlab.cli.main import main; main(['doctor', '--clean'])", {"NUMBA_CACHE_DIR": str(tmp_path)})
    assert out[0].startswith("removed 0 MiB")
    assert (own.exists(), other.exists()) == (False, True)


def test_folders_without_the_marker_are_never_removed(tmp_path):
    theirs = [tmp_path / part / f"code-project{k}" for k in range(12) for part in (".", "gqlab")]
    for k, folder in enumerate(theirs):
        folder.mkdir(parents=True)
        (folder / "work.txt").write_text("mine")
        os.utime(folder, (k, k))
    run("import gqlab as gq; gq.garnet(); gq.run; print([[], []])", {"NUMBA_CACHE_DIR": str(tmp_path)})
    assert all((folder / "work.txt").read_text() == "mine" for folder in theirs)
    [made] = tmp_path.glob(f"gqlab/*/{code_folder.MARKER}")
    assert made.parent.name == code_folder.state()


def test_a_child_that_is_forked_while_a_thread_compiles_can_compile(tmp_path, expected):
    code = """
import os, threading, time
import gqlab as gq
problem = gq.baird()
thread = threading.Thread(target=lambda: gq.trajectory(problem, 5))
thread.start()
from numba.core.compiler_lock import global_compiler_lock
while global_compiler_lock._lock.acquire(blocking=False):  # until the thread is inside the compiler
    global_compiler_lock._lock.release()
    time.sleep(0.001)
child = os.fork()
if child == 0:
    print(gq.check.batch_indices(gq.VRGreedyGQ(batch_size=3), 9).tolist(), flush=True)
    os._exit(0)
thread.join()
os.waitpid(child, 0)
"""
    assert run(code, {"NUMBA_CACHE_DIR": str(tmp_path)}, "-W", "ignore::DeprecationWarning")[0] == [expected]
