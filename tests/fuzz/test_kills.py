"""Commands that are killed, at any time and again and again, and then finished: every byte is that of one that was not.

``make chaos`` kills 200 times, and studies 20 times.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from helpers.study_files import everything

#: How often each command is killed.
KILLS = int(os.environ.get("GQLAB_CHAOS_KILLS", "2"))

#: Kills before a command may finish, and is compared.
IN_A_ROW = 4

TESTS = Path(__file__).parents[1]

#: How often, at least, studies are killed: they take longer.
KILLS_OF_STUDIES = 10

#: Studies in small, by the arguments of the command line.
STUDIES = {
    "reproduce --quick": ["reproduce", "--quick", "--experiment", "garnet-gradient", "garnet-mspbe", "garnet-variance"],
    "rates --quick": ["rates", "--quick"],
}

#: The paper's experiments, tiny; the second is the way of a user who saves and resumes; then studies in small.
COMMANDS = {
    "reproduce": """
import sys
from gqlab.cli import reproduce as commands
from studies.paper.conftest import Tiny
commands.Request = Tiny
from gqlab.cli.main import main
main(["reproduce", "--experiment", "baird", "--out", sys.argv[1]])
""",
    "resume": """
import os, sys
import gqlab as gq
mdp = gq.garnet(seed=0)
problem = gq.Problem(mdp, gq.random_features(mdp, dim=4))
path = os.path.join(sys.argv[1], "run.npz")
os.makedirs(sys.argv[1], exist_ok=True)
done = gq.RunResult.load(path) if os.path.exists(path) else None
first = 0 if done is None else int(done.updates[-1])
for n in range(first + 300, 30_001, 300):
    done = gq.run(problem, gq.VRGreedyGQ(batch_size=300), n, **({"n_runs": 4} if done is None else {"resume": done}))
    done.save(path)
""",
} | {
    name: f"import sys; from gqlab.cli.main import main; main([*{arguments!r}, '--out', sys.argv[1]])"
    for name, arguments in STUDIES.items()
}


def start(code: str, out: Path) -> subprocess.Popen[bytes]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "env": environment}
    return subprocess.Popen([sys.executable, "-c", code, str(out)], start_new_session=True, **quiet)


def finish(code: str, out: Path) -> float:
    """Run to the end; returns the seconds that it took."""
    begun = time.perf_counter()
    process = start(code, out)
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors.decode()
    assert b"damaged" not in errors, errors.decode()  # a kill leaves whole files
    return time.perf_counter() - begun


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] * (name != "reproduce")) for name in COMMANDS]
)
def test_a_command_that_was_killed_ends_as_if_it_had_not_been(tmp_path, name):
    code, rng = COMMANDS[name], np.random.default_rng()
    finish(code, tmp_path / "first")  # compiles
    seconds = finish(code, tmp_path / "whole")
    expected = everything(tmp_path / "whole")
    assert expected == everything(tmp_path / "first")
    assert len(expected) >= (1 if name == "resume" else 12)
    killed, most = 0, max(KILLS // 10, KILLS_OF_STUDIES) if name in STUDIES else KILLS
    for attempt in range(-(-most // IN_A_ROW)):
        out = tmp_path / f"killed-{attempt}"
        for _ in range(min(IN_A_ROW, most - killed)):
            process = start(code, out)
            try:
                process.communicate(timeout=float(rng.uniform(0, seconds)))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
            killed += 1
        finish(code, out)
        assert everything(out) == expected
    print(f"\n{name}: {killed} kills, every byte equal ({len(expected)} files)")
