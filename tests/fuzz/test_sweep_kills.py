"""Sweeps whose workers and driver are killed, at any time, and then finished: every cell is there, byte for byte that of
a grid that nobody disturbed.

``make chaos`` runs the full form: 2,000 cells, 20 kills of workers and 5 of the driver, on processes and on Ray.
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

import gqlab as gq
from gqlab.lab.results import PLAIN_FIELDS

FULL = bool(os.environ.get("GQLAB_CHAOS_SWEEPS"))

#: Cells, kills of workers and of the driver; samples of a run; seconds between two kills.
CELLS, WORKERS, DRIVERS = (2000, 20, 5) if FULL else (60, 2, 1)
N_SAMPLES, N_RUNS, PAUSE = (50_000, 20, (1.0, 4.0)) if FULL else (20_000, 20, (0.2, 0.6))

DRIVER = """
import sys
from fuzz.test_sweep_kills import run
run(engine=sys.argv[1], store=sys.argv[2])
"""


def run(**where: object) -> gq.GridResult:
    mdps = [gq.garnet(seed=k) for k in range(2)]
    problems = [gq.Problem(mdp, gq.random_features(mdp, dim=4)) for mdp in mdps]
    algorithms = gq.vary(gq.GreedyGQ, eta_theta=[0.01 * k for k in range(1, 11)])
    seeds = range(CELLS // 20)
    return gq.grid(
        problems,
        algorithms,
        N_SAMPLES,
        n_runs=N_RUNS,
        seeds=seeds,
        record_every=5000,
        threads=2,
        progress=False,
        **where,
    )


def start(engine: str, store: Path) -> subprocess.Popen[bytes]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])}
    command = [sys.executable, "-c", DRIVER, engine, str(store)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment)


def workers(driver: int) -> list[int]:
    """The processes below the driver that make tasks."""
    parents, titles = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                titles[int(entry.name)] = (entry / "cmdline").read_bytes()
            except (OSError, ValueError, IndexError):  # it has just ended
                continue

    def below(process: int) -> bool:
        while process in parents and process != driver:
            process = parents[process]
        return process == driver

    names = (b"spawn_main", b"ray::_work", b"ray::IDLE")
    return [process for process, title in titles.items() if any(name in title for name in names) and below(process)]


def disturb(engine: str, store: Path, kills: int, rng: np.random.Generator) -> tuple[int, bool]:
    """Start a driver, kill so many of its workers and then itself; how many, and whether it was still at work."""
    driver, killed = start(engine, store), 0
    begun = time.monotonic()
    while driver.poll() is None and killed < kills and time.monotonic() - begun < 600:
        time.sleep(float(rng.uniform(*PAUSE)))
        there = workers(driver.pid)
        if there:
            os.kill(int(rng.choice(there)), signal.SIGKILL)
            killed += 1
    time.sleep(float(rng.uniform(*PAUSE)))
    at_work = driver.poll() is None
    driver.kill()
    driver.communicate()
    return killed, at_work


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.parametrize("engine", ["processes", pytest.param("ray", marks=pytest.mark.long)])
def test_a_sweep_that_was_killed_ends_as_if_it_had_not_been(tmp_path, engine):
    if engine == "ray" and importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed")
    expected = run()  # compiles, too
    rng, store = np.random.default_rng(), tmp_path / "store"
    killed = drivers = 0
    for attempt in range(DRIVERS):
        more, at_work = disturb(engine, store, (WORKERS - killed) // (DRIVERS - attempt), rng)
        killed, drivers = killed + more, drivers + at_work
    driver = start(engine, store)
    errors = driver.communicate(timeout=1800)[1].decode()
    assert driver.returncode == 0, errors
    assert "damaged" not in errors, errors  # a kill leaves whole files
    found = gq.open_grid(store)
    assert len(found) == len(expected) == CELLS
    for (label, result), (expected_label, whole) in zip(found, expected, strict=True):
        assert label == pytest.approx(expected_label, nan_ok=True)
        assert result.metadata == whole.metadata
        for name in PLAIN_FIELDS:
            ours, theirs = getattr(result, name), getattr(whole, name)
            assert (ours.dtype, ours.shape, ours.tobytes()) == (theirs.dtype, theirs.shape, theirs.tobytes()), name
    files = len(list(store.glob("cells/*/*.npz")))
    print(
        f"\n{engine}: {killed} workers and {drivers} drivers killed, {len(found):,} cells in {files} files, every byte equal"
    )
