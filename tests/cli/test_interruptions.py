"""Ctrl-C while modules load, streams that cannot say everything, and settings of Matplotlib: one line each."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

#: An interruption with the n-th module that is looked for after the command line has begun.
INTERRUPTED = """
import sys
import gqlab.cli.main as cli

class Interrupting:
    left = int(sys.argv[1])

    def find_spec(self, name, path=None, target=None):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupting())
cli.main(sys.argv[2:])
print("it ended before")
"""


def run(*arguments: str, code: str | None = None, **environment: str) -> subprocess.CompletedProcess[bytes]:
    command = ["-m", "gqlab"] if code is None else ["-c", code]
    return subprocess.run(
        [sys.executable, *command, *arguments],
        capture_output=True,
        timeout=300,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize("n", [1, 2, 5, 30, 200])
def test_ctrl_c_while_modules_load_is_one_line(n):
    done = run(str(n), "theory", "frozen-lake", code=INTERRUPTED)
    assert done.returncode == 130, done.stderr
    assert done.stderr == b"gqlab: interrupted; the same command goes on from what it kept\n"
    assert done.stdout == b""


def test_before_the_command_line_hears_ctrl_c_little_is_loaded():
    code = "import sys; before = {*sys.modules}; import gqlab.cli.main; print(*sorted({*sys.modules} - before))"
    loaded = {name.partition(".")[0] for name in run(code=code).stdout.decode().split()}
    assert loaded <= {"__future__", "gqlab", "importlib", "warnings"}


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_stream_that_cannot_write_everything_shows_question_marks(encoding):
    code = "from gqlab.cli import main, parsing; parsing.parse = lambda _: lambda: print('θ is 1'); main.main([])"
    done = run(code=code, PYTHONIOENCODING=encoding, PYTHONUTF8="0")
    assert (done.returncode, done.stderr, done.stdout) == (0, b"", b"? is 1\n")


def test_closed_streams_are_no_error():
    closed = "import os, sys; os.close(1); os.execv(sys.executable, [sys.executable, '-m', 'gqlab', 'list'])"
    done = run(code=closed)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_backend_that_matplotlib_does_not_know_is_named_in_one_line():
    code = "import gqlab as gq\ntry:\n    gq.compare_plot({'a': 1})\nexcept ValueError as error:\n    print(error)"
    done = run(code=code, MPLBACKEND="nonsense")
    assert done.stdout.decode().startswith("MPLBACKEND is 'nonsense': Matplotlib does not know it (")
    assert done.stdout.count(b"\n") == 1
