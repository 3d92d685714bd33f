"""What an agent keeps, in files: it goes on bit for bit, from one file or from segments, and refuses what is damaged."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gqlab as gq
from gqlab.support.files import read_arrays, write_arrays
from helpers.agent_loops import Walk, coder

SAGA = gq.SAGAQLearning(0.2)
WINDOW = gq.Replay(updates=2, n_step=3, size=120, average=0.05)
GROWING = gq.Replay(updates=2, n_step=3, average=0.05)


def agent_of(replay: Any = WINDOW, algorithm: Any = SAGA, **settings: Any) -> gq.Agent:
    return gq.Agent(Walk(limit=12), coder(), algorithm, replay=replay, seed=3, epsilon=0.2, **settings)


def bytes_of(agent: gq.Agent, path: Path) -> bytes:
    agent.save(path)
    return path.read_bytes()


@pytest.mark.parametrize("replay", [WINDOW, GROWING], ids=["window", "growing"])
@pytest.mark.parametrize("how", ["save", "checkpoint"])
def test_an_agent_that_replays_goes_on_bit_for_bit(tmp_path, how, replay):
    whole = bytes_of(agent_of(replay).learn(700), tmp_path / "whole.npz")
    part = agent_of(replay)
    for stop in (0, 1, 37, 150, 151, 400, 700):
        part.learn(stop - part.num_timesteps)
        getattr(part, how)(tmp_path / "agent.npz")
        part = gq.Agent.load(tmp_path / "agent.npz", env=Walk(limit=12))
    assert bytes_of(part, tmp_path / "again.npz") == whole
    assert part.replay == replay


def test_a_checkpoint_writes_what_is_new(tmp_path):
    agent = agent_of(GROWING)
    sizes = []
    for k in range(4):
        agent.learn(2000).checkpoint(tmp_path / "agent.npz")
        sizes.append((tmp_path / "agent.npz").stat().st_size)
        assert len(list((tmp_path / "segments").iterdir())) == k + 1
    before = {path.name: path.read_bytes() for path in (tmp_path / "segments").iterdir()}
    agent = gq.Agent.load(tmp_path / "agent.npz", env=Walk(limit=12))
    agent.learn(10).checkpoint(tmp_path / "agent.npz")
    after = {path.name: path.read_bytes() for path in (tmp_path / "segments").iterdir()}
    assert after.items() > before.items()
    assert len(after) == 5
    # One coefficient of SAGA for each transition, and three numbers for each episode, grow in the agent's own file.
    assert (sizes[3] - sizes[1]) / 4000 < 8 + 24 / 9
    assert sizes[3] < sum(map(len, before.values()))


def test_segments_that_a_window_has_left_are_no_longer_needed(tmp_path):
    agent = agent_of(WINDOW)
    for _ in range(5):
        agent.learn(100).checkpoint(tmp_path / "agent.npz")
    listed = json.loads(str(read_arrays(tmp_path / "agent.npz")["header"]))["segments"]
    assert 2 <= len(listed) <= 3
    names = {entry[0] for entry in listed}
    for path in (tmp_path / "segments").iterdir():
        if path.name not in names:
            path.unlink()
    again = gq.Agent.load(tmp_path / "agent.npz", env=Walk(limit=12))
    assert bytes_of(again, tmp_path / "a.npz") == bytes_of(agent, tmp_path / "b.npz")


def test_a_missing_or_damaged_segment_is_told(tmp_path):
    agent_of(GROWING).learn(200).checkpoint(tmp_path / "agent.npz")
    [segment] = (tmp_path / "segments").iterdir()
    content = segment.read_bytes()
    for damaged in (content[:-200], content[:500] + b"?" + content[501:]):
        segment.write_bytes(damaged)
        with pytest.raises(ValueError, match=rf"the segment {segment.name} is damaged"):
            gq.Agent.load(tmp_path / "agent.npz", env=Walk(limit=12))
    other = dict(read_arrays_of(content, tmp_path))
    other["taken"] = 1 - other["taken"].clip(0, 1)
    write_arrays(segment, other)
    with pytest.raises(ValueError, match="holds something else than what was written"):
        gq.Agent.load(tmp_path / "agent.npz", env=Walk(limit=12))
    segment.unlink()
    with pytest.raises(ValueError, match=rf"the segment {segment.name} is missing"):
        gq.Agent.load(tmp_path / "agent.npz", env=Walk(limit=12))


def read_arrays_of(content: bytes, folder: Path) -> dict[str, Any]:
    (folder / "copy.npz").write_bytes(content)
    return read_arrays(folder / "copy.npz")


def crafted(path: Path, name: str, change: Any) -> None:
    """The same file with another array, sealed as if it had been written so."""
    arrays = read_arrays(path)
    arrays[name] = change(arrays[name].copy())
    write_arrays(path, arrays)


def put(value: int, place: Any = 0) -> Any:
    def change(array: np.ndarray) -> np.ndarray:
        array[place] = value
        return array

    return change


CRAFTED = {
    "a feature": ("kept.places", put(10**6), "places"),
    "a negative feature": ("kept.places", put(-1), "places"),
    "an action": ("kept.taken", put(7), "taken"),
    "a row": ("kept.samples.row", put(2**31), "row"),
    "a negative row": ("kept.samples.row", put(-5), "row"),
    "a row far away": ("kept.samples.next_row", put(2**40), "next_row"),
    "a next observation": ("kept.stream.after", put(10**7), "after"),
    "an end": ("kept.stream.end", put(200), "end"),
    "a place": ("live.here", put(10**9), "here"),
    "a window": ("live.stream.waiting", put(10**6), "waiting"),
    "a trajectory": ("kept.stream.trajectory", put(9), "trajectory"),
    "marks": ("live.stream.marks", put(10**5), "marks"),
    "negative marks": ("live.stream.marks", put(-1), "marks"),
    "marks in disorder": ("live.stream.marks", put(10**4, 1), "marks"),
    "a parameter": ("live.stream.n_step", put(10**6), "n_step"),
    "a count": ("live.counts", put(2**60), "counts"),
    "too few rows": ("kept.taken", lambda array: array[:-1], "the file holds"),
    "another type": ("kept.stream.raw", lambda array: array.astype(np.float32), "raw"),
    "no marks": ("live.stream.marks", lambda array: array[:2], "marks"),
}


@pytest.mark.parametrize("name", CRAFTED)
def test_a_crafted_file_is_refused_in_one_line(tmp_path, name):
    array, change, word = CRAFTED[name]
    agent_of(GROWING).learn(60).save(tmp_path / "agent.npz")
    crafted(tmp_path / "agent.npz", array, change)
    with pytest.raises(ValueError, match=word) as told:
        gq.Agent.load(tmp_path / "agent.npz", env=Walk(limit=12))
    assert "\n" not in str(told.value)


def test_a_file_of_another_encoder_is_refused(tmp_path):
    agent_of(GROWING).learn(60).save(tmp_path / "agent.npz")
    other = gq.TileCoder(n_tilings=5, bins=3).for_space(Walk.observation_space)
    with pytest.raises(ValueError, match="the file holds"):
        gq.Agent.load(tmp_path / "agent.npz", env=Walk(limit=12), encoder=other)


KILLED = """
import os, sys
from pathlib import Path
import gqlab as gq
folder, n = Path(sys.argv[1]), int(sys.argv[2])
path = folder / "agent.npz"
replay = gq.Replay(updates=4, n_step=3, size=900)
how = {"replay": replay, "initial_value": -20.0, "seed": 3}
if path.exists():
    agent = gq.Agent.load(path)
else:
    agent = gq.Agent("MountainCar-v0", gq.TileCoder(n_tilings=4, bins=4), gq.SAGAQLearning(0.1), **how)
while agent.num_timesteps < n:
    agent.learn(20).checkpoint(path)
agent.save(folder / "whole.npz")
"""


@pytest.mark.long
def test_killed_fifty_times_it_ends_with_the_bytes_of_an_agent_that_was_not(tmp_path):
    def start(folder: Path) -> Any:
        folder.mkdir(exist_ok=True)
        return subprocess.Popen([sys.executable, "-c", KILLED, str(folder), "30000"])

    random, kills, written = np.random.default_rng(0), 0, tmp_path / "killed" / "agent.npz"
    while kills < 50:
        with start(tmp_path / "killed") as process:
            before = written.stat().st_mtime_ns if written.exists() else 0
            while process.poll() is None and not (written.exists() and written.stat().st_mtime_ns > before):
                time.sleep(0.01)  # it has begun to write
            time.sleep(random.uniform(0, 0.3))
            assert process.poll() is None  # else it was done before it could be killed
            process.kill()
            kills += 1
    for name in ("killed", "not killed"):
        with start(tmp_path / name) as process:
            assert process.wait() == 0
    one, two = ((tmp_path / name / "whole.npz").read_bytes() for name in ("killed", "not killed"))
    assert one == two
    assert not list(tmp_path.rglob("*.part"))
