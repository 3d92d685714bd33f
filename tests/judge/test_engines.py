"""decide() over files that workers share: the same digits whoever makes the sums, and memory for a few rows only."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import gqlab as gq
from gqlab.judge.simulated import sampled_log
from gqlab.tasks import Processes, Ray, Threads

pq = pytest.importorskip("pyarrow.parquet")

S, A = 6, 3
GARNET = gq.garnet(S, A, 3, discount=0.9, seed=33)
BEHAVIOR = np.random.default_rng(0).dirichlet(np.full(A, 5.0), size=S) * [1, 1, 0.02]
BEHAVIOR /= BEHAVIOR.sum(axis=1, keepdims=True)


class Leaning:
    """A policy that another process can be sent."""

    def __init__(self, action):
        self.action = action

    def __call__(self, rows):
        out = np.full((len(rows), A), 0.1)
        out[:, self.action] = 0.8
        return out


#: The third action is rare: what leans to it is thin, and solved for twice more.
POLICIES = {"first": Leaning(0), "third": Leaning(2), "table": np.full((S, A), 1 / A)}


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Twelve parts, whose ends fall into episodes."""
    monkeypatch.setattr("gqlab.data.parts.PIECE_ROWS", 100)
    path = tmp_path / "log.parquet"
    sampled_log(GARNET, BEHAVIOR, 1200, 35, seed=2).to_parquet(path)
    pq.write_table(pq.read_table(path), path, row_group_size=100)
    return gq.Transitions.from_parquet(path)


def decided(files, engine=None, **how):
    return gq.decide(files, POLICIES, 0.9, methods=("solve", "wpdis"), engine=engine, **how).to_dict()


@pytest.mark.parametrize("how", [{"features": "tabular"}, {"baseline": "table"}], ids=["tabular", "trees"])
def test_threads_change_no_digit(files, how):
    alone = decided(files, **how)
    assert alone["policies"]["third"]["low"] < alone["policies"]["third"]["high"]
    assert any("comes from no row" in note for note in alone["policies"]["third"]["notes"])
    for engine in ("threads", Threads(1), Threads(3)):
        assert decided(files, engine, **how) == alone


def test_more_rows_than_are_learned_from_change_no_digit(files, monkeypatch):
    for room in ("rows", "estimator"):
        monkeypatch.setattr(f"gqlab.judge.{room}.MOST_LEARNED", 500)
    assert decided(files, Threads(2)) == decided(files)


@pytest.mark.long
def test_processes_change_no_digit(files):
    alone = decided(files)
    for workers in (1, 2):
        assert decided(files, Processes(workers)) == alone


@pytest.mark.long
def test_ray_changes_no_digit(files, monkeypatch):
    pytest.importorskip("ray")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    tables = {
        "first": np.eye(A)[[0] * S],
        "third": np.eye(A)[[2] * S],
    }  # a function of this file is not Ray's to import
    shared = gq.decide(files, tables, 0.9, engine=Ray(workers=2))
    assert shared.to_dict() == gq.decide(files, tables, 0.9).to_dict()


def test_what_workers_cannot_share_is_refused_in_one_line(files):
    for data, what in ((files.load(), "in memory"), (files.split()[0], "CSV, a split, or read with gap")):
        with pytest.raises(ValueError, match=f"engine: workers share Parquet files as they stand, and data is {what}"):
            decided(data, "threads")
    with pytest.raises(ValueError, match="engine is 'cluster', expected one of"):
        decided(files, "cluster")


def test_what_a_worker_finds_wrong_is_said_in_one_line(files):
    def half(rows):
        return np.full((len(rows), A), 0.5)

    with pytest.raises(ValueError, match=r"sums to 1\.5, expected 1") as caught:
        gq.decide(files, {"half": half}, 0.9, engine=Threads(2))
    assert "\n" not in str(caught.value)


@pytest.mark.long
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_does_not_grow_with_the_file(tmp_path):
    """Trees, one policy; three times the rows, far more than are learned from."""
    code = (
        "import re, sys, numpy as np, gqlab as gq\n"
        "data = gq.Transitions.from_parquet(sys.argv[1])\n"
        "gq.decide(data, {'uniform': lambda rows: np.full((len(rows), 3), 1 / 3)}, 0.9)\n"
        "peak = re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]\n"  # ru_maxrss has the parent's
        "print(data.n_rows, int(peak) / 1024)"
    )
    peaks = []
    for n in (400_000, 1_200_000):
        path = tmp_path / f"{n}.parquet"
        sampled_log(GARNET, np.full((S, A), 1 / A), n, 50, seed=1).to_parquet(path)
        done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
        rows, peak = done.stdout.split()
        assert int(rows) == n
        peaks.append(float(peak))
    # The rows alone would be 800,000 of 50 bytes; what an episode leaves is a few numbers of 16,000 more episodes.
    assert peaks[1] - peaks[0] < 30
