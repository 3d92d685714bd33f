"""Studies that are killed, at any time and again and again, and then finished, on every engine: every byte is that of
one that nobody disturbed, but for measured times.

``make long`` kills each ten times, ``make chaos`` twenty times; test_kills.py has ``reproduce`` and ``rates``.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from helpers.study_files import everything

#: How often each study is killed.
KILLS = max(10, int(os.environ.get("GQLAB_CHAOS_KILLS", "0")) // 10)

#: Kills before a study may finish, and is compared.
IN_A_ROW = 5

TESTS = Path(__file__).parents[1]

#: The commands, with designs that take seconds: the folder and the engine are their arguments.
STUDIES = {
    "compare": """
from gqlab.cli import compare
from gqlab.studies.compare.design import Budget
compare.QUICK = Budget(n_problems=3, n_runs=4, robust_runs=2, n_samples=60_000, first_seed=1000)
run("compare", "--algorithm", "SAGAGreedyGQ", "AveragedGreedyGQ", "GreedyGQ")
""",
    "benchmark agents": """
from dataclasses import replace
from gqlab.studies.agents import design
full, quick = design.PROGRAMMES["agents"]
design.PROGRAMMES["agents"] = full, replace(
    quick, environments=("MountainCar-v0",), rows=("QRC(.5)", "Sarsa(.9)"), share=0.02, n_seeds=3, n_episodes=2
)
run("benchmark", "agents")
""",
    "benchmark logs": """
from functools import partial
from gqlab.studies.logs import study
study.LogStudy = partial(study.LogStudy, n_passes=4, n_episodes=1)
run("benchmark", "logs")
""",
}

START = """
import sys
from gqlab.cli.main import main

def run(*command):
    main([*command, "--quick", "--out", sys.argv[1], "--engine", sys.argv[2], "--workers", "2"])

if __name__ == "__main__":
"""


def start(name: str, out: Path, engine: str) -> subprocess.Popen[bytes]:
    code = START + "".join(f"    {line}\n" for line in STUDIES[name].splitlines())
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "env": environment}
    return subprocess.Popen([sys.executable, "-c", code, str(out), engine], start_new_session=True, **quiet)


def finish(name: str, out: Path, engine: str) -> float:
    """Run to the end; returns the seconds that it took."""
    begun = time.perf_counter()
    process = start(name, out, engine)
    _, errors = process.communicate(timeout=900)
    assert process.returncode == 0, errors.decode()
    assert b"damaged" not in errors, errors.decode()  # a kill leaves whole files
    return time.perf_counter() - begun


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What a study leaves on threads, with the seconds that it took when all was compiled; each is run once."""
    known: dict[str, tuple[dict[str, bytes], float]] = {}

    def of(name: str) -> tuple[dict[str, bytes], float]:
        if name not in known:
            folder = tmp_path_factory.mktemp("whole")
            finish(name, folder / "compiling", "threads")
            seconds = finish(name, folder / "whole", "threads")
            found = everything(folder / "whole")
            assert found == everything(folder / "compiling")
            assert sum(path.startswith("data") for path in found) >= 7
            known[name] = found, seconds
        return known[name]

    return of


@pytest.mark.long
@pytest.mark.parametrize("engine", ["processes", "ray"])
@pytest.mark.parametrize("name", STUDIES)
def test_a_study_leaves_the_same_bytes_on_every_engine(tmp_path, whole, name, engine):
    if engine == "ray" and importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed")
    finish(name, tmp_path, engine)
    assert everything(tmp_path) == whole(name)[0]


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("name", STUDIES)
def test_a_study_that_was_killed_ends_as_if_it_had_not_been(tmp_path, whole, name):
    expected, seconds = whole(name)
    rng = np.random.default_rng()
    killed = attempt = 0
    while killed < KILLS:
        out, engine = tmp_path / f"killed-{attempt}", ("threads", "processes")[attempt % 2]
        for _ in range(min(IN_A_ROW, KILLS - killed)):
            process = start(name, out, engine)
            try:
                process.communicate(timeout=float(rng.uniform(0, seconds)))
                break  # it came to its end
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                killed += 1
        finish(name, out, engine)
        assert everything(out) == expected
        attempt += 1
    print(f"\n{name}: {killed} kills, every byte equal ({len(expected)} files)")
