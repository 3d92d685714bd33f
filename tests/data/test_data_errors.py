"""What bad data gets: one message with the column, the row and the value."""

from __future__ import annotations

import json
import os
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gqlab as gq
from gqlab.data import parquet

GOOD = {
    "obs": [0.0, 1.0, 2.0],
    "action": [0, 1, 0],
    "reward": [0.0, 0.0, 1.0],
    "next_obs": [1.0, 2.0, 3.0],
    "terminated": [False, False, True],
    "truncated": [False, False, False],
}


def frame(**changes):
    columns = {**GOOD, **changes}
    return pd.DataFrame({name: value for name, value in columns.items() if value is not None})


ARRAYS = [
    ({"observations": [0, np.nan, 2]}, "observations[1, 0] is nan, expected a finite number"),
    ({"observations": [[0, 1], [1, 2], [2, np.inf]]}, "observations[2, 1] is inf, expected a finite number"),
    ({"observations": [[0, 1], [1], [2, 3]]}, "observations[1] has length 1, expected 2 as of observations[0]"),
    ({"observations": ["a", "b", "c"]}, "observations is not an array of numbers, but of <U1"),
    ({"observations": 3.0}, "observations is 3.0, expected an array with one entry for each row"),
    ({"observations": None}, "observations is None, expected an array"),
    ({"observations": [[0, 1], [1, 2], [2, 3]]}, "next_observations has rows of 1 numbers, and observations of 2"),
    ({"observations": [0, 1]}, "observations has 2 rows, expected 3 as of actions"),
    ({"rewards": [0, 1]}, "rewards has 2 rows, expected 3 as of actions"),
    ({"rewards": [0, 1, np.nan]}, "rewards[2] is nan, expected a finite number"),
    ({"rewards": [[0, 1], [0, 1], [0, 1]]}, "rewards holds int64 of shape (3, 2), expected one number in each row"),
    ({"actions": [0, -1, 0]}, "actions[1] is -1, expected a whole number from 0 to 65535; where actions are other numbers, action_labels=[...] lists them"),
    ({"actions": [0, 2, 0], "n_actions": 2}, "actions[1] is 2, expected a whole number from 0 to 1"),
    ({"actions": [0, 0.37, 0]}, "actions[1] is 0.37, expected a whole number: continuous actions are not supported; "
     "where these are a few fixed values, action_labels=[...] lists them"),
    ({"actions": [0, np.nan, 0]}, "actions[1] is nan, expected a whole number: continuous actions are not supported; "
     "where these are a few fixed values, action_labels=[...] lists them"),
    (
        {"actions": np.zeros((3, 2))},
        "actions has shape (3, 2): continuous actions, or several at once; expected one whole number in each row",
    ),
    ({"terminated": [0, 2, 0]}, "terminated[1] is 2, expected true or false"),
    (
        {"truncated": [0, 0, 1]},
        "terminated[2] is True, and truncated[2] too: an episode that terminated was not cut off; give truncated & "
        "~terminated, or, where the first only says that the episode ended, columns={'done': ...} for it",
    ),
    ({"probabilities": [0.5, 0.0, 1.0]}, "probabilities[1] is 0.0, expected a probability above 0 and at most 1: that of the action that was taken"),
    ({"probabilities": [0.5, 1.5, 1.0]}, "probabilities[1] is 1.5, expected a probability above 0 and at most 1: that of the action that was taken"),
    ({"n_actions": 0}, "n_actions is 0, expected at least 1 and below 65537"),
    ({"episodes": [[0], [1], [2]]}, "episodes has shape (3, 1), expected one entry for each row"),
    (
        {"next_observations": None, "terminated": None},
        "actions[2] is the last row of all, and neither terminated nor truncated: an episode without end; where the "
        "recording just stopped, ends='truncated' marks all such rows, or give the next observations",
    ),
    (
        {"next_observations": None, "episodes": [0, 1, 1]},
        "actions[0] is the last row of its episode, and neither terminated nor truncated: an episode without end; where the "
        "recording just stopped, ends='truncated' marks all such rows, or give the next observations",
    ),
    (
        {"next_observations": None, "terminated": None, "truncated": [1, 1, 1]},
        "observations has 3 rows, and no transition is left of them, expected at least one",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "message"), ARRAYS, ids=[message[:40] for _, message in ARRAYS])
def test_arrays(changes, message):
    good = {
        "observations": [0, 1, 2], "actions": [0, 1, 0], "rewards": [0, 0, 1], "next_observations": [1, 2, 3],
        "terminated": [0, 0, 1],
    }  # fmt: skip
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the whole message is compared
        gq.Transitions.from_arrays(**{**good, **changes})
    assert str(error.value) == message


def test_no_rows():
    with pytest.raises(ValueError, match="observations has 0 rows, and no transition is left"):
        gq.Transitions.from_arrays([], [], [])


FRAMES = [
    (frame(obs=[0.0, np.nan, 2.0]), None, "df: nulls: 1 in column 'obs' (first: row 1); fill them, or leave them out: drop_nulls='rows' or drop_nulls='episodes'"),
    (frame(obs=[0.0, np.inf, 2.0]), None, "df: column 'obs', row 1, component 0 is inf, expected a finite number"),
    (pl.DataFrame({**GOOD, "obs": [0.0, float("nan"), 2.0]}), None, "df: column 'obs', row 1, component 0 is nan, expected a finite number"),
    (pa.table({**GOOD, "obs": [[0.0], [1.0, 2.0], [2.0]]}), None, "df: column 'obs', row 1 has length 2, expected 1"),
    (pa.table({**GOOD, "obs": [[0.0], [None], [2.0]]}), None, "df: nulls: 1 in column 'obs' (first: row 1); fill them, or leave them out: drop_nulls='rows' or drop_nulls='episodes'"),
    (pa.table({**GOOD, "obs": ["a", "b", "c"]}), None, "df: column 'next_obs' holds numbers, and column 'obs' text"),
    (frame(action=[0, 1, None]), None, "df: nulls: 1 in column 'action' (first: row 2); fill them, or leave them out: drop_nulls='rows' or drop_nulls='episodes'"),
    (frame(action=[0, 1, 0.5]), None, "df: column 'action', row 2 is 0.5, expected a whole number: continuous actions are not supported; "
     "where these are a few fixed values, action_labels=[...] lists them"),
    (frame(obs=None, obs_0=[0.0, 1, 2], obs_1=[0.0, 1, np.inf]), None, "df: column 'obs_1', row 2 is inf, expected a finite number"),
    (frame(obs=None, obs_0=[0.0, 1, 2], obs_2=[0.0, 1, 2]), None, "columns: the numbers of 'obs_0', 'obs_2' are not consecutive"),
    (
        frame(action=None, act=[0, 1, 0]), None,
        "columns: none is known to be the action; there are 'obs', 'reward', 'next_obs', 'terminated', 'truncated', 'act'; "
        "say which it is: columns={'action': ...}",
    ),
    (
        frame(), {"action": "lever"},
        "columns['action']: there is no column 'lever'; there are 'obs', 'action', 'reward', 'next_obs', 'terminated', 'truncated'",
    ),
    (frame(), {"lever": "action"}, "columns, a key is 'lever', expected one of 'observation', 'action', 'reward', "
     "'next_observation', 'terminated', 'truncated', 'done', 'last', 'episode', 'probability', 'time'"),
    (frame(), {"action": 3}, "columns['action'] is 3, expected the name of a column"),
    (frame(), {"action": ["obs", "reward"]}, "columns['action'] is ['obs', 'reward'], expected the name of a column"),
    (frame(), "action", "columns is 'action', expected a dictionary such as {'observation': 'x'}"),
    (frame(state=[0.0, 1, 2]), None, "columns: 'obs', 'state' may all be the observation; say which it is: columns={'observation': 'obs'}"),
    (
        frame(done=[0, 0, 1]), None,
        "columns: there are both 'done' and 'terminated', and libraries differ in what they mean; say which one is true where "
        "the environment ended the episode: columns={'terminated': ...}",
    ),
    (
        frame(truncated=[False, False, True]), None,
        "df: column 'terminated', row 2 is True, and df: column 'truncated', row 2 too: an episode that terminated was not cut "
        "off; give truncated & ~terminated, or, where the first only says that the episode ended, columns={'done': ...} for it",
    ),
    (frame().set_axis(["obs", "action", "action", "reward", "x", "y"], axis=1), None, "columns: there are several of the name 'action'"),
    (3.5, None, "df is 3.5, expected a data frame of pandas or polars, or an Arrow table"),
    (pl.DataFrame(GOOD).lazy(), None, "df is a LazyFrame, expected a DataFrame: df.collect() makes one"),
]  # fmt: skip


@pytest.mark.parametrize(("df", "columns", "message"), FRAMES, ids=[message[:45] for _, _, message in FRAMES])
def test_data_frames(df, columns, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the whole message is compared
        gq.Transitions.from_dataframe(df, columns)
    assert str(error.value) == message


def test_the_remedies_that_the_messages_name_work():
    both = frame(truncated=[False, False, True])
    chunk = gq.Transitions.from_dataframe(both, {"done": "terminated"}).to_chunk()
    assert chunk.truncated.tolist() == [False, False, True]
    assert not chunk.terminated.any()
    done = frame(done=[0, 0, 1])
    assert gq.Transitions.from_dataframe(done, {"terminated": "terminated"}).to_chunk().terminated.tolist() == [
        False,
        False,
        True,
    ]


# --- Files ----------------------------------------------------------------------------------------------------------


def write(path, **changes):
    pq.write_table(pa.Table.from_pandas(frame(**changes)), path)
    return path


def message_of(path, *args):
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the whole message is compared
        list(gq.Transitions.from_parquet(path, *args).chunks())
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_value_in_a_file_is_named_by_file_column_and_row(tmp_path):
    first = write(tmp_path / "a.parquet")
    second = write(tmp_path / "b.parquet", obs=[0.0, 1.0, np.inf])
    assert message_of([first, second]) == f"{second}: column 'obs', row 2, component 0 is inf, expected a finite number"
    third = write(tmp_path / "c.parquet", action=[0, 7, 1])
    assert (
        message_of([first, third], None, 3)
        == f"{third}: column 'action', row 1 is 7, expected a whole number from 0 to 2"
    )


def test_rows_are_counted_from_the_beginning_of_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "ROWS", 2)
    path = write(tmp_path / "a.parquet", obs=[0.0, 1.0, np.inf])
    assert message_of([write(tmp_path / "b.parquet"), path]).startswith(
        f"{path}: column 'obs', row 2, component 0 is inf"
    )


def test_an_episode_without_end_is_named_where_it_stops(tmp_path):
    rows = {"next_obs": None, "truncated": None}
    first = write(tmp_path / "a.parquet", **rows, terminated=[False] * 3, episode=[0, 0, 0])
    second = write(tmp_path / "b.parquet", **rows, episode=[1, 1, 1])
    message = message_of([first, second])
    assert message.startswith(f"{first}: column 'action', row 2 is the last row of its episode, and neither")
    assert message_of(first).startswith(f"{first}: column 'action', row 2 is the last row of all, and neither")


def test_the_first_damaged_file_of_many_is_named(tmp_path):
    paths = [write(tmp_path / f"part-{k}.parquet") for k in range(12)]
    paths[10].write_bytes(paths[10].read_bytes()[:-20])
    paths[3].write_text("not Parquet")
    assert message_of(tmp_path).startswith(f"path: {paths[3]} is not a Parquet file, or is damaged: ")
    write(paths[3])
    assert message_of(tmp_path / "part-*.parquet").startswith(
        f"path: {paths[10]} is not a Parquet file, or is damaged: "
    )


def test_a_file_damaged_inside_is_named(tmp_path):
    path = tmp_path / "log.parquet"
    x = np.random.default_rng(0).random(1000)
    gq.Transitions.from_arrays(x, np.arange(1000) % 2, x, x).to_parquet(path)
    content = bytearray(path.read_bytes())
    content[1000] ^= 1  # one bit of a number: only a checksum tells
    path.write_bytes(bytes(content))
    assert message_of(path).startswith(f"path: {path} is not a Parquet file, or is damaged: ")


def test_a_file_that_is_damaged_anywhere_is_read_or_gets_one_line(tmp_path):
    path = tmp_path / "log.parquet"
    random = np.random.default_rng(0)
    gq.Transitions.from_arrays(
        random.random((200, 2)), np.arange(200) % 2, np.ones(200), random.random((200, 2))
    ).to_parquet(path)
    whole = path.read_bytes()
    refused = 0
    for case in range(150):
        a, b = sorted(random.integers(len(whole), size=2))
        kinds = [
            whole[:a],
            whole[:a] + whole[b:],
            whole[:a] + random.bytes(b - a) + whole[b:],
            whole[:a] + bytes([whole[a] ^ 1 << random.integers(8)]) + whole[a + 1 :],
        ]
        path.write_bytes(kinds[case % 4])
        try:
            data = gq.Transitions.from_parquet(path)
            assert sum(len(chunk) for chunk in data.chunks()) == data.n_rows
        except ValueError as error:
            refused += 1
            assert "\n" not in str(error)  # noqa: PT017 - some damage is in what nobody reads
            assert str(path) in str(error)  # noqa: PT017
    assert refused > 100


def test_files_that_do_not_fit_together(tmp_path):
    first = write(tmp_path / "a.parquet")
    second = write(tmp_path / "b.parquet", truncated=None)
    assert message_of([first, second]).startswith(f"path: {second} has other columns than {first}: ")
    lists = tmp_path / "c.parquet"
    pq.write_table(pa.table({**GOOD, "obs": [[0.0, 1]] * 3, "next_obs": [[0.0, 1]] * 3}), lists)
    assert message_of([first, lists]) == f"{lists}: column 'obs', row 0 has 2 numbers, and the rows before have 1"
    third = write(tmp_path / "d.parquet", action=None, act=[0, 1, 0])
    assert message_of(third).startswith(f"path: {third}: columns: none is known to be the action; there are 'obs', ")


@pytest.mark.parametrize("path", ["no/such.parquet", "no/*.parquet", [], 3])
def test_files_that_are_not_there(path):
    with pytest.raises(ValueError, match=r"^path"):
        gq.Transitions.from_parquet(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_a_pipe_in_place_of_a_file_does_not_block(tmp_path):
    os.mkfifo(tmp_path / "log.parquet")
    said = f"path: {tmp_path / 'log.parquet'} is a pipe or a device, expected a file"
    assert message_of(tmp_path / "log.parquet") == said
    assert message_of(tmp_path) == said


@pytest.mark.parametrize("n_actions", [0, -1, 65537, 2147483647, "3", None, 1.5])
def test_a_file_that_claims_an_impossible_number_of_actions(tmp_path, n_actions):
    path = tmp_path / "log.parquet"
    table = pa.Table.from_pandas(frame()).replace_schema_metadata(
        {parquet.METADATA: json.dumps({"n_actions": n_actions})}
    )
    pq.write_table(table, path)
    assert message_of(path) == f"path: {path} is said to have {n_actions!r} actions, expected 1 to 65536"


@pytest.mark.parametrize("role", ["action", "obs", "reward"])
def test_a_period_is_no_number(role):
    periods = pd.period_range("2024-01", periods=3, freq="M")
    with pytest.raises(ValueError, match=f"df: column '{role}' holds '.*period.*'(, expected numbers|: make numbers)"):
        gq.Transitions.from_dataframe(frame(**{role: periods}))
    arrays = {"observations": [0, 1, 2], "actions": [0, 1, 0], "rewards": [0, 1, 2], "next_observations": [1, 2, 3]}
    argument = {"action": "actions", "obs": "observations", "reward": "rewards"}[role]
    with pytest.raises(ValueError, match=f"^{argument} is not an array of numbers"):
        gq.Transitions.from_arrays(**{**arrays, argument: periods})


def test_a_file_without_rows(tmp_path):
    pq.write_table(pa.Table.from_pandas(frame()).slice(0, 0), tmp_path / "log.parquet")
    assert (
        message_of(tmp_path / "log.parquet")
        == f"path: {tmp_path / 'log.parquet'}: there is no transition, expected at least one"
    )


def test_a_missing_package_is_named_with_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"reading a data frame needs pyarrow: pip install 'gqlab\[learn\]'"):
        gq.Transitions.from_dataframe(frame())
    monkeypatch.setitem(sys.modules, "minari", None)
    with pytest.raises(ImportError, match="reading a Minari data set needs minari: pip install minari"):
        gq.Transitions.from_minari("D4RL/door/human-v2")
