"""Transitions: the same rows from arrays, data frames and files, against a plain loop."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gqlab as gq
from gqlab.data import parquet
from gqlab.data.assemble import ARRAYS, Assembler
from gqlab.data.columns import resolve
from gqlab.data.rows import RowPlace, Rows
from gqlab.data.transitions import Chunk


def episodes_of(lengths, ends, dim=2, seed=0, dtype=np.float64):
    """Rows of episodes by role: ``ends`` says of each whether it terminated."""
    random = np.random.default_rng(seed)
    n = sum(lengths)
    last = np.cumsum(lengths) - 1
    terminated, truncated = np.zeros((2, n), bool)
    terminated[last], truncated[last] = ends, ~np.array(ends)
    return {
        "observation": random.random((n, dim)).astype(dtype),
        "action": random.integers(3, size=n),
        "reward": random.normal(size=n),
        "next_observation": random.random((n, dim)).astype(dtype),
        "terminated": terminated,
        "truncated": truncated,
        "episode": np.repeat(np.arange(len(lengths)), lengths),
        "probability": random.uniform(0.1, 1, n),
    }


def plain_loop(rows):
    """The transitions of consecutive rows, one at a time: (s, a, r, s', terminated, truncated, probability)."""
    out = []
    n = len(rows["action"])
    for t in range(n):
        if rows["truncated"][t]:
            continue  # the next observation is unknown
        ended = rows["terminated"][t]
        after = rows["observation"][t if ended else t + 1]
        cut = not ended and bool(rows["truncated"][t + 1])
        out.append(
            (
                tuple(rows["observation"][t]),
                int(rows["action"][t]),
                rows["reward"][t],
                tuple(after),
                ended,
                cut,
                rows["episode"][t],
            )
        )
    return out


def as_tuples(chunk):
    return [
        (tuple(s), int(a), r, tuple(following), terminated, truncated, e)
        for s, a, r, following, terminated, truncated, e in zip(
            chunk.observations, chunk.actions, chunk.rewards, chunk.next_observations, chunk.terminated, chunk.truncated, chunk.episode, strict=True
        )
    ]  # fmt: skip


def same(one: Chunk, other: Chunk) -> None:
    for name in ARRAYS:
        a, b = getattr(one, name), getattr(other, name)
        assert (a is None) == (b is None), name
        if a is not None:
            assert a.dtype == b.dtype, name
            np.testing.assert_array_equal(a, b, err_msg=name)


def of_arrays(rows):
    names = {"observation": "observations", "action": "actions", "reward": "rewards", "next_observation": "next_observations",
             "episode": "episodes", "probability": "probabilities"}  # fmt: skip
    return gq.Transitions.from_arrays(**{names.get(role, role): value for role, value in rows.items()})


def wide(rows):
    """obs_0, obs_1, … instead of lists."""
    out = {}
    for role, value in rows.items():
        if value.ndim == 2:
            out |= {f"{role}_{j}": value[:, j].copy() for j in range(value.shape[1])}
        else:
            out[role] = value
    return out


def listed(rows):
    return {role: list(value) if value.ndim == 2 else value for role, value in rows.items()}


def fixed(rows):
    return pa.table(
        {
            role: pa.FixedSizeListArray.from_arrays(pa.array(value.reshape(-1)), value.shape[1])
            if value.ndim == 2
            else value
            for role, value in rows.items()
        }
    )


FRAMES = {
    "pandas, lists": lambda rows: pd.DataFrame(listed(rows)),
    "pandas, columns": lambda rows: pd.DataFrame(wide(rows)),
    "polars, lists": lambda rows: pl.DataFrame({role: v.tolist() if v.ndim == 2 else v for role, v in rows.items()}),
    "polars, arrays": lambda rows: pl.DataFrame(rows),
    "polars, columns": lambda rows: pl.DataFrame(wide(rows)),
    "Arrow, lists": lambda rows: pa.table({role: v.tolist() if v.ndim == 2 else v for role, v in rows.items()}),
    "Arrow, fixed": fixed,
    "Arrow, columns": lambda rows: pa.table(wide(rows)),
    "Arrow, batch": lambda rows: pa.RecordBatch.from_pydict(wide(rows)),
}
ROWS = episodes_of([5, 1, 7, 3, 4], [True, True, False, True, False])
KINDS = {
    "consecutive": {role: value for role, value in ROWS.items() if role != "next_observation"},
    "explicit": ROWS,
    "explicit, no ends": {r: v for r, v in ROWS.items() if r not in ("terminated", "truncated", "probability")},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("frame", FRAMES)
def test_frames_give_the_rows_of_the_arrays(frame, kind):
    rows = KINDS[kind]
    data = gq.Transitions.from_dataframe(FRAMES[frame](rows))
    same(data.to_chunk(), of_arrays(rows).to_chunk())
    assert data.fingerprint == of_arrays(rows).fingerprint
    assert (data.n_rows, data.n_actions, data.observation_size) == (len(data.to_chunk()), 3, 2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("frame", ["Arrow, fixed", "Arrow, columns", "Arrow, lists"])
@pytest.mark.parametrize("n_files", [1, 10])
@pytest.mark.parametrize("at_a_time", [1, 3, 2**17])
def test_files_give_the_rows_of_the_arrays(tmp_path, monkeypatch, kind, frame, n_files, at_a_time):
    monkeypatch.setattr(parquet, "ROWS", at_a_time)
    rows = KINDS[kind]
    for k, part in enumerate(np.array_split(np.arange(20), n_files)):  # files end in the middle of episodes
        table = FRAMES[frame]({role: value[part] for role, value in rows.items()})
        pq.write_table(table, tmp_path / f"part-{k}.parquet", row_group_size=3)
    data, expected = gq.Transitions.from_parquet(tmp_path / "part-*.parquet"), of_arrays(rows)
    same(data.to_chunk(), expected.to_chunk())
    assert data.fingerprint == expected.fingerprint
    assert (data.n_rows, data.n_left_out) == (expected.n_rows, expected.n_left_out)
    firsts = [chunk.first_row for chunk in data.chunks()]
    assert firsts == list(np.cumsum([0, *(len(chunk) for chunk in data.chunks())])[:-1])


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_cut_into_blocks_gives_the_transitions_of_a_plain_loop(data):
    lengths = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=6))
    ends = data.draw(st.lists(st.booleans(), min_size=len(lengths), max_size=len(lengths)))
    rows = episodes_of(lengths, ends)
    cuts = sorted(data.draw(st.lists(st.integers(0, sum(lengths)), max_size=5)))
    with_ids = data.draw(st.booleans())
    assembler, found = Assembler(), []
    place = RowPlace({"action": ("action",)})
    for part in np.split(np.arange(sum(lengths)), cuts):
        own = {role: value[part] for role, value in rows.items()}
        block = Rows(own["observation"], own["action"], own["reward"], own["terminated"], own["truncated"],
                     episodes=own["episode"] if with_ids else None, place=place)  # fmt: skip
        found.append(assembler.add(block))
    found.append(assembler.finish())
    expected = plain_loop(rows)
    got = [row for chunk in found if chunk is not None for row in as_tuples(chunk)]
    assert [row[:6] for row in got] == [row[:6] for row in expected]
    kept = [row[6] for row in expected]
    assert [row[6] for row in got] == [sorted(set(kept)).index(e) for e in kept]  # from 0, without gaps
    assert assembler.left_out == ends.count(False)
    assert assembler.n_rows == len(expected)


def test_explicit_next_observations_are_kept_and_episodes_counted_by_ends_and_names():
    data = gq.Transitions.from_arrays(
        [0, 1, 2, 3, 4], [0] * 5, [0] * 5, [10, 11, 12, 13, 14], [0, 1, 0, 0, 0], episodes=["a", "a", "b", "c", "c"]
    )
    chunk = data.to_chunk()
    assert chunk.next_observations[:, 0].tolist() == [10, 11, 12, 13, 14]
    assert chunk.episode.tolist() == [0, 0, 1, 2, 2]


def test_rlds_last_rows_only_lend_their_observation():
    """Two episodes, s0 s1 s2 (terminal) and s3 s4 (cut off); action and reward of last rows mean nothing."""
    df = pd.DataFrame(
        {
            "observation": [[0.0], [1.0], [2.0], [3.0], [4.0]],
            "action": [0, 1, 99, 1, -5],
            "reward": [0.5, 1.0, np.nan, 2.0, np.nan],
            "is_first": [True, False, False, True, False],
            "is_last": [False, False, True, False, True],
            "is_terminal": [False, False, True, False, False],
        }
    ).fillna({"reward": np.inf})
    chunk = gq.Transitions.from_dataframe(df).to_chunk()
    assert chunk.next_observations[:, 0].tolist() == [1, 2, 4]
    assert chunk.actions.tolist() == [0, 1, 1]
    assert chunk.rewards.tolist() == [0.5, 1, 2]
    assert chunk.terminated.tolist() == [False, True, False]
    assert chunk.truncated.tolist() == [False, False, True]
    assert chunk.episode.tolist() == [0, 0, 1]


NAMES = {
    "D4RL": ["observations", "actions", "rewards", "terminals", "timeouts"],
    "Minari": ["observations", "actions", "rewards", "terminations", "truncations"],
    "Gymnasium": ["obs", "action", "reward", "terminated", "truncated"],
    "SCOPE-RL": ["state", "action", "reward", "done", "pscore"],
    "LeRobot": ["observation.state", "action", "next.reward", "next.done", "episode_index"],
    "RLDS": ["observation", "action", "reward", "is_first", "is_last", "is_terminal"],
}


@pytest.mark.parametrize("library", NAMES)
def test_the_names_of_other_libraries_are_known(library):
    plan = resolve([*NAMES[library], "index", "timestamp"], None)
    used = {name for names in plan.values() for name in names}
    assert used == set(NAMES[library]) - {"is_first"}


def test_dotted_names_are_read_from_files(tmp_path):
    table = pa.table(
        {"observation.state": [[0.0, 1.0], [2.0, 3.0]], "action": [0, 1], "next.reward": [0.0, 1.0],
         "next.done": [False, True], "episode_index": [0, 0]}
    )  # fmt: skip
    pq.write_table(table, tmp_path / "log.parquet")
    chunk = gq.Transitions.from_parquet(tmp_path / "log.parquet").to_chunk()
    assert chunk.next_observations.tolist() == [[2, 3], [2, 3]]
    assert chunk.terminated.tolist() == [False, True]


def test_done_beside_a_time_limit_terminates_where_there_is_no_limit():
    df = pd.DataFrame({"obs": [0.0, 1, 2], "next_obs": [1.0, 2, 3], "action": [0, 1, 0], "reward": [0, 0, 0.0],
                       "done": [False, True, True], "timeout": [False, False, True]})  # fmt: skip
    chunk = gq.Transitions.from_dataframe(df).to_chunk()
    assert chunk.terminated.tolist() == [False, True, False]
    assert chunk.truncated.tolist() == [False, False, True]


def test_done_beside_terminated_is_a_time_limit_where_both_are_mapped():
    df = pd.DataFrame({"obs": [0.0, 1, 2], "next_obs": [1.0, 2, 3], "action": [0, 1, 0], "reward": [0, 0, 0.0],
                       "done": [False, True, True], "terminal": [False, False, True]})  # fmt: skip
    chunk = gq.Transitions.from_dataframe(df, {"done": "done", "terminated": "terminal"}).to_chunk()
    assert chunk.terminated.tolist() == [False, False, True]
    assert chunk.truncated.tolist() == [False, True, False]


def test_observations_keep_single_precision_and_whole_ones_become_double():
    single = np.zeros((2, 3), np.float32)
    assert gq.Transitions.from_arrays(single, [0, 1], [0, 0], single).to_chunk().observations.dtype == np.float32
    assert gq.Transitions.from_arrays([1, 2], [0, 1], [0, 0], [2, 3]).to_chunk().observations.dtype == np.float64


def test_arrays_are_copied_and_closed():
    observations = np.zeros((2, 1))
    data = gq.Transitions.from_arrays(observations, [0, 1], [0, 0], observations)
    observations[0] = 7
    assert data.to_chunk().observations[0] == 0
    with pytest.raises(ValueError, match="read-only"):
        data.to_chunk().observations[0] = 1


def test_actions_of_one_column_and_n_actions():
    data = gq.Transitions.from_arrays([0, 1], [[0.0], [1.0]], [0, 0], [1, 2], n_actions=5)
    assert data.n_actions == 5
    assert data.to_chunk().actions.tolist() == [0, 1]


def test_a_written_file_holds_the_same_transitions(tmp_path):
    for rows in KINDS.values():
        data = of_arrays(rows)
        data.to_parquet(tmp_path / "log.parquet")
        again = gq.Transitions.from_parquet(tmp_path / "log.parquet")
        same(again.to_chunk(), data.to_chunk())
        assert again.fingerprint == data.fingerprint
    more = gq.Transitions.from_arrays([0, 1], [0, 1], [0, 0], [1, 2], n_actions=5)
    more.to_parquet(tmp_path / "log.parquet")
    assert gq.Transitions.from_parquet(tmp_path / "log.parquet").n_actions == 5


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    data = of_arrays(ROWS)
    data.to_parquet(tmp_path / "log.parquet")
    before = (tmp_path / "log.parquet").read_bytes()

    chunk = data.to_chunk()

    def chunks():
        yield chunk
        raise KeyboardInterrupt

    monkeypatch.setattr(data, "chunks", chunks)
    with pytest.raises(KeyboardInterrupt):
        data.to_parquet(tmp_path / "log.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["log.parquet"]
    assert (tmp_path / "log.parquet").read_bytes() == before


def test_floats_are_written_without_a_dictionary(tmp_path):
    of_arrays(ROWS).to_parquet(tmp_path / "log.parquet")
    group = pq.ParquetFile(tmp_path / "log.parquet").metadata.row_group(0)
    for k in range(group.num_columns):
        assert not any("DICTIONARY" in encoding for encoding in group.column(k).encodings)


def test_files_follow_by_number_lists_by_order_and_folders_are_read(tmp_path):
    for k in (2, 10, 1):
        gq.Transitions.from_arrays([k], [0], [0.0], [k], [True]).to_parquet(tmp_path / f"part-{k}.parquet")
    order = [tmp_path / f"part-{k}.parquet" for k in (10, 1)]
    assert gq.Transitions.from_parquet(tmp_path / "*.parquet").to_chunk().observations[:, 0].tolist() == [1, 2, 10]
    assert gq.Transitions.from_parquet(tmp_path).to_chunk().observations[:, 0].tolist() == [1, 2, 10]
    assert gq.Transitions.from_parquet(order).to_chunk().observations[:, 0].tolist() == [10, 1]


def test_files_can_be_sent_to_another_process(tmp_path):
    of_arrays(ROWS).to_parquet(tmp_path / "log.parquet")
    data = gq.Transitions.from_parquet(tmp_path / "log.parquet")
    same(pickle.loads(pickle.dumps(data)).to_chunk(), data.to_chunk())  # noqa: S301


def test_the_fingerprint_knows_every_array():
    data = of_arrays(ROWS)
    prints = {data.fingerprint}
    for role, value in ROWS.items():
        other = value.copy()
        other[3] = ~other[3] if value.dtype == bool else value[3] / 2 if value.dtype.kind == "f" else value[3] + 1
        if role == "episode":
            other[4:] = value[4:] + 1  # rows of one episode stand together
        if role in ("terminated", "truncated"):
            other[4] = False  # then the episode of row 4 goes on
        prints.add(of_arrays({**ROWS, role: other}).fingerprint)
    prints.add(gq.Transitions.from_arrays([0], [0], [0], [0], n_actions=2).fingerprint)
    prints.add(gq.Transitions.from_arrays([0], [0], [0], [0], n_actions=3).fingerprint)
    assert len(prints) == len(ROWS) + 3


def test_importing_gqlab_imports_no_package_for_data():
    code = (
        "import sys, json, gqlab; print(json.dumps([m for m in ('pyarrow', 'pandas', 'polars', 'minari', 'gymnasium',"
        " 'sklearn') if m in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


#: The largest memory so far, in MB. What ``resource`` says of a process that was started by a larger one is the latter's.
PEAK = """
import pathlib, re, resource
def peak():
    status = pathlib.Path("/proc/self/status")
    if not status.is_file():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return int(re.search(r"VmHWM:\\s+(\\d+)", status.read_text())[1]) / 1024
"""


def grown(path, patch=""):
    """(rows, MB): how much memory reading a file takes beyond that of the packages."""
    code = (
        f"import sys; from gqlab.data import parquet, Transitions; {patch}\n"
        f"{PEAK}\n"
        "Transitions.from_arrays([0.0], [0], [0.0], [0.0], [True]).to_parquet(sys.argv[2])\n"
        "list(Transitions.from_parquet(sys.argv[2]).chunks())\n"
        "before = peak()\n"
        "n = sum(len(chunk) for chunk in Transitions.from_parquet(sys.argv[1]).chunks())\n"
        "print(n, peak() - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path), f"{path}.tiny"], capture_output=True, text=True, check=True
    )
    n, more = done.stdout.split()
    return int(n), float(more)


def test_reading_a_file_needs_memory_for_a_few_rows_only(tmp_path):
    """One row group of 300,000 rows and 64 columns, 150 MB: loosely, far from all of it is held at once."""
    random = np.random.default_rng(0)
    n = 300_000
    columns = {f"{name}_{j}": random.random(n) for j in range(32) for name in ("obs", "next_obs")}
    table = pa.table({**columns, "action": np.zeros(n, int), "reward": np.zeros(n)})
    pq.write_table(table, tmp_path / "log.parquet", row_group_size=n, use_dictionary=False, compression="none")
    rows, more = grown(tmp_path / "log.parquet")
    assert rows == n
    assert more < 200
    assert grown(tmp_path / "log.parquet", "parquet.ROWS = 5000")[1] < 100


@pytest.mark.parametrize("kind", ["lists", "columns"])
def test_memory_is_bounded_in_width(tmp_path, kind):
    """50,000 rows of 1,000 + 1,000 numbers, which are all the same: 0.8 GB of a file that is tiny."""
    n, width = 50_000, 1000
    zeros = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(n * width)), width)
    wide = {"obs": zeros, "next_obs": zeros}
    if kind == "columns":
        column = pa.array(np.zeros(n))
        wide = {f"{name}_{j}": column for j in range(width) for name in ("obs", "next_obs")}
    pq.write_table(pa.table({**wide, "action": np.zeros(n, int), "reward": np.zeros(n)}), tmp_path / "log.parquet")
    assert (tmp_path / "log.parquet").stat().st_size < 2 * 2**20
    rows, more = grown(tmp_path / "log.parquet")
    assert rows == n
    assert more < 300


def test_short_numbers_take_less_of_what_is_read_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "BATCH_BYTES", 8000)
    found = []
    for kind in (np.float32, np.float64):
        columns = {f"obs_{j}": np.random.default_rng(j).random(2000).astype(kind) for j in range(8)}
        table = pa.table({**columns, "action": np.zeros(2000, int), "reward": np.zeros(2000)})
        pq.write_table(table, tmp_path / "log.parquet", use_dictionary=False, compression="none")
        about = pq.ParquetFile(tmp_path / "log.parquet").metadata
        found.append(parquet.rows_at_a_time(about, table.column_names))
    assert found[0] == pytest.approx(8000 / 48, rel=0.02)
    assert found[1] == pytest.approx(8000 / 80, rel=0.02)


def test_what_is_read_at_a_time_is_what_the_module_says_now(tmp_path, monkeypatch):
    data = of_arrays(KINDS["explicit"])
    data.to_parquet(tmp_path / "log.parquet")
    monkeypatch.setattr(parquet, "ROWS", 3)
    assert max(len(chunk) for chunk in gq.Transitions.from_parquet(tmp_path / "log.parquet").chunks()) == 3
    monkeypatch.setattr(parquet, "ROWS", 2**17)
    monkeypatch.setattr(parquet, "BATCH_BYTES", 200)
    few = [len(chunk) for chunk in gq.Transitions.from_parquet(tmp_path / "log.parquet").chunks()]
    assert max(few) < 5
    data.to_parquet(tmp_path / "log.parquet")
    assert pq.ParquetFile(tmp_path / "log.parquet").metadata.row_group(0).num_rows < 5
