"""Rows that are not in order, gaps in time, ends that nobody recorded, and values that are missing."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.helpers.messy_logs import COLUMNS, expected, messy, tuples, write_csv, write_parquet

import gqlab as gq
from gqlab.data import csv_files, parquet
from gqlab.data.assemble import Assembler
from gqlab.data.order import Order, cut
from gqlab.data.reading import Reading
from gqlab.data.rows import RowPlace, Rows

LOG = messy([4, 3, 6, 2, 3], [True, False, True, True, False])
MIXED = LOG.sort_values(["day", "unit"], kind="stable").reset_index(drop=True)
REMEDY = "sort by episode and time, or pass sort=True"


def message_of(read, *args, **options):
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the whole message is compared
        read(*args, **options)
    assert "\n" not in str(error.value)
    return str(error.value)


# --- Mixed rows -----------------------------------------------------------------------------------------------------


def test_mixed_rows_are_recognised_wherever_they_stand(tmp_path, monkeypatch):
    """Without next observations an end is missing in row 0: that is not what is wrong."""
    assert message_of(gq.Transitions.from_dataframe, MIXED, COLUMNS) == (
        f"df: column 'unit', row 5: episode 'u000' returns, whose rows above have no end: {REMEDY}"
    )
    path = write_csv(MIXED, tmp_path / "log.csv")
    said = f"column 'unit', row 5: episode 'u000' returns, whose rows above have no end: {REMEDY}"
    for block in (150, 2**22):
        monkeypatch.setattr(csv_files, "BLOCK", block)
        assert message_of(gq.Transitions.from_csv, path, COLUMNS) == f"{path}: {said}"
    path = write_parquet(MIXED, tmp_path / "log.parquet")
    for rows in (1, 2, 4, 2**17):
        monkeypatch.setattr(parquet, "ROWS", rows)
        assert message_of(gq.Transitions.from_parquet, path, COLUMNS) == f"{path}: {said}"


def test_mixed_rows_with_next_observations_are_not_cut_apart():
    """Five episodes of ten rows, one row of each after the other: 50 episodes of one row each, they once became."""
    random = np.random.default_rng(0)
    n, units = 50, 5
    time, unit = np.divmod(np.arange(n), units)
    x = random.random((units, 11))
    rows = {
        "observations": x[unit, time], "next_observations": x[unit, time + 1], "actions": random.integers(2, size=n),
        "rewards": random.random(n), "probabilities": np.full(n, 0.5), "terminated": time == 9,
    }  # fmt: skip
    found = message_of(gq.Transitions.from_arrays, **rows, episodes=unit)
    assert found == f"episodes[5]: episode 0 returns, whose rows above have no end: {REMEDY}"
    order = np.lexsort((time, unit))
    right = gq.Transitions.from_arrays(**{k: v[order] for k, v in rows.items()}, episodes=unit[order])
    for more in ({}, {"times": time}):
        data = gq.Transitions.from_arrays(**rows, episodes=unit, sort=True, **more)
        assert data.fingerprint == right.fingerprint
        assert gq.health(data)["episodes"].value == 5
    estimates = [
        gq.importance_sampling(one, lambda s: np.full((len(s), 2), 0.5), discount=0.9) for one in (data, right)
    ]
    assert estimates[0] == estimates[1]


def test_rows_as_they_stand_are_taken_where_a_user_says_so():
    data = gq.Transitions.from_arrays(
        [0, 1, 2, 3], [0, 1, 0, 1], [0, 0, 1, 1], [1, 2, 3, 4], episodes=[0, 1, 0, 1], sort=False
    )
    assert data.to_chunk().episode.tolist() == [0, 1, 2, 3]
    assert data.notes == ("Rows were taken as they stand: a stretch of rows of one name is an episode.",)
    assert gq.health(data)["how rows were read"].level == "note"


def test_a_name_that_comes_again_after_an_end_is_another_episode(tmp_path):
    """Workers that number their episodes from 0, each in a file of its own."""
    files = [write_parquet(messy([2, 3], [True, False], seed), tmp_path / f"{seed}.parquet") for seed in range(3)]
    data = gq.Transitions.from_parquet(files, COLUMNS)
    assert int(data.to_chunk().episode[-1]) + 1 == 6


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_a_return_is_found_whatever_the_blocks(data):
    """Against a plain loop: the first row whose episode was left without an end."""
    n = data.draw(st.integers(1, 14))
    names = np.array(data.draw(st.lists(st.sampled_from([3, 1, 2, 9]), min_size=n, max_size=n)))
    ended = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    if data.draw(st.booleans()):
        names = names.astype(str)
    opened, returns = set(), None
    for t in range(1, n):
        if names[t] != names[t - 1]:
            if not ended[t - 1]:
                opened.add(names[t - 1])
            if names[t] in opened:
                returns = t
                break
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=4)))
    order, found = Order(), None
    place = RowPlace({"episode": ("episodes",)})
    for part in np.split(np.arange(n), cuts):
        if not len(part):
            continue
        zeros = np.zeros(len(part))
        rows = Rows(zeros[:, None], zeros.astype(int), zeros, ended[part], np.zeros(len(part), bool), episodes=names[part],
                    place=RowPlace(place.names, "", int(part[0])))  # fmt: skip
        try:
            order.add(rows)
        except ValueError as error:
            found = int(str(error).partition("[")[2].partition("]")[0])
            break
    assert found == returns


@pytest.mark.parametrize(
    ("sort", "message"),
    [
        ("day", "df: column 'unit', row 5: episode 'u000' returns, whose rows above have no end: sorted by 'day': sort by episode, then by time"),
        ("hour", "sort: there is no column 'hour'"),
        (["unit", 3], "sort is ['unit', 3], expected True, False, or names of columns"),
        ([], "sort is [], expected True, False, or names of columns"),
        (3, "sort is 3, expected True, False, or names of columns"),
    ],
)  # fmt: skip
def test_orders_that_do_not_help(sort, message):
    assert message_of(gq.Transitions.from_dataframe, MIXED, COLUMNS, sort=sort) == message


def test_what_cannot_be_sorted():
    df = pd.DataFrame({"obs": [0.0], "next_obs": [1.0], "action": [0], "reward": [0.0], "x": [[1, 2]], "y": [None]})
    assert message_of(gq.Transitions.from_dataframe, df, sort=True) == (
        "sort is True, and no column is the episode or the time: columns={'episode': ...}, time=..."
    )
    assert message_of(gq.Transitions.from_dataframe, df, sort="x").startswith(
        "sort: rows cannot be put in the order of 'x' ("
    )
    assert (
        message_of(gq.Transitions.from_dataframe, df, sort="y")
        == "sort: column 'y' has 1 nulls, expected a value in each row"
    )
    rows = {"observations": [0, 1], "actions": [0, 1], "rewards": [0, 1], "next_observations": [1, 2]}
    assert message_of(gq.Transitions.from_arrays, **rows, sort=True).startswith("sort is True, and there are neither")
    assert message_of(gq.Transitions.from_arrays, **rows, sort="x").startswith("sort is 'x', expected True or False")
    mixed = np.array([1, "a"], dtype=object)
    assert "which have no order" in message_of(gq.Transitions.from_arrays, **rows, episodes=mixed, sort=True)
    things = np.array([[1], [2]], dtype=object)[:, 0]
    things[:] = [[1], [2]]
    assert "is no name of an episode" in message_of(gq.Transitions.from_arrays, **rows, episodes=things)


# --- Time and gaps --------------------------------------------------------------------------------------------------


def timed(days, gap=None, **options):
    """A unit at these days, with its next observations."""
    n = len(days)
    times = np.array(days) if np.array(days).dtype.kind in "iufM" else pd.to_datetime(days).to_numpy()
    return gq.Transitions.from_arrays(
        np.arange(n), np.arange(n) % 2, np.zeros(n), np.arange(n) + 1, times=times, gap=gap, **options
    )


@pytest.mark.parametrize(
    ("days", "gap"),
    [
        ([0, 1, 2.5, 9, 10], 3),
        ([0, 3, 6, 9.5, 12.5], 3),  # a gap is more than that
        (["2024-02-27", "2024-02-28", "2024-02-29", "2024-03-09", "2024-03-10"], "P3D"),
        (["2024-02-27", "2024-02-28", "2024-02-29", "2024-03-09", "2024-03-10"], datetime.timedelta(days=3)),
        (["2024-02-27", "2024-02-28", "2024-02-29", "2024-03-09", "2024-03-10"], np.timedelta64(3, "D")),
        (["2024-02-27", "2024-02-28", "2024-02-29", "2024-03-09", "2024-03-10"], pd.Timedelta("72h")),
        (["2024-02-27", "2024-02-28", "2024-02-29", "2024-03-09", "2024-03-10"], "P1W"),
        (["2024-02-27", "2024-02-28", "2024-02-29", "2024-03-09", "2024-03-10"], "72h"),
        (["2024-02-27", "2024-02-28", "2024-02-29", "2024-03-09", "2024-03-10"], "P1DT23H60M"),
    ],
)
def test_gaps_cut_episodes_off(days, gap):
    data = timed(days, gap)
    chunk = data.to_chunk()
    assert chunk.truncated.tolist() == [False, False, True, False, True]  # the end of the log is a gap, too
    assert chunk.episode.tolist() == [0, 0, 0, 1, 1]
    assert data.notes[0].startswith("Episodes were cut off where more than")


def test_a_row_before_a_gap_has_no_next_observation(tmp_path, monkeypatch):
    """Without next observations it is left out, and the row above it is the one that was cut off."""
    df = pd.DataFrame(
        {
            "unit": [1] * 6 + [2] * 2,
            "t": [0, 1, 2, 9, 10, 11, 0, 1],
            "obs": range(8),
            "action": [0, 1] * 4,
            "reward": 0.0,
        }
    )
    options = {"columns": {"episode": "unit"}, "time": "t", "gap": 2}
    data = gq.Transitions.from_dataframe(df, **options)
    chunk = data.to_chunk()
    assert chunk.observations[:, 0].tolist() == [0, 1, 3, 4, 6]
    assert chunk.next_observations[:, 0].tolist() == [1, 2, 4, 5, 7]
    assert chunk.truncated.tolist() == [False, True, False, True, True]
    assert chunk.episode.tolist() == [0, 0, 1, 1, 2]
    assert data.n_left_out == 3
    path = write_parquet(df, tmp_path / "log.parquet")
    for rows in (1, 2, 3, 8):
        monkeypatch.setattr(parquet, "ROWS", rows)
        files = gq.Transitions.from_parquet(path, **options)
        assert files.fingerprint == data.fingerprint
        assert (files.n_rows, files.n_left_out) == (5, 3)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_cuts_do_not_depend_on_blocks(data):
    """Gaps, rows left out and ends, with and without next observations, against one block."""
    n = data.draw(st.integers(1, 12))
    draw = lambda values: np.array(data.draw(st.lists(st.sampled_from(values), min_size=n, max_size=n)))  # noqa: E731
    x = np.arange(float(n))[:, None]
    ended = draw([False, False, True])
    explicit = data.draw(st.booleans())
    names = np.cumsum(draw([0, 0, 1]))
    rows = Rows(x, np.zeros(n, int), np.zeros(n), ended, np.zeros(n, bool), next_observations=x + 1 if explicit else None,
                episodes=names, times=np.cumsum(draw([1.0, 1.0, 5.0])), begins=draw([False, False, True]),
                place=RowPlace({"action": ("action",)}))  # fmt: skip
    reading = Reading(gap=data.draw(st.sampled_from([None, 3.0])), ends=data.draw(st.sampled_from(["truncated", "terminated"])),
                      drop_nulls="rows")  # fmt: skip
    dropped = data.draw(st.booleans())

    def transitions(blocks):
        assembler = Assembler()
        chunks = [assembler.add(block) for block in cut(blocks, reading, lambda: dropped)] + [assembler.finish()]
        return [row for c in chunks if c is not None
                for row in zip(c.observations[:, 0], c.next_observations[:, 0], c.terminated, c.truncated, c.episode, strict=True)]  # fmt: skip

    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=4)))
    parts = [rows.each(lambda a, part=part: a[part], rows.place) for part in np.split(np.arange(n), cuts)]
    assert transitions(parts) == transitions([rows])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gap": 3}, "gap is 3, and no column is the time: time=... names it"),
        ({"gap": 3, "time": "day"}, "gap is 3, and the time 'day' holds dates or times: pass a timedelta, or text such as '36h'"),
        ({"gap": "P3D", "time": "hour"}, "gap is 259200 s, and the time 'hour' holds numbers: pass a number"),
        ({"gap": "soon", "time": "day"}, "gap is 'soon', expected a number, a timedelta, or text such as '36h' or 'P1D'"),
        ({"gap": "P", "time": "day"}, "gap is 'P', expected a number, a timedelta, or text such as '36h' or 'P1D'"),
        ({"gap": "P0D", "time": "day"}, "gap is datetime.timedelta(0), expected a length of time above 0"),
        ({"gap": f"P{'9' * 20}D", "time": "day"}, None),
        ({"gap": np.timedelta64("NaT"), "time": "day"}, "gap is None, expected a number, a timedelta, or text such as '36h' or 'P1D'"),
        ({"gap": -1, "time": "hour"}, "gap is -1, expected a finite number above 0"),
        ({"time": "unit"}, "df: column 'unit' holds large_string, expected numbers or dates such as 2024-02-29"),
        ({"time": "minute"}, "columns['time']: there is no column 'minute'; there are 'unit', 'day', 'obs', 'next_obs', 'action', 'reward', 'hour'"),
        ({"time": 3}, "time is 3, expected the name of a column"),
        ({"time": "day", "columns": {"time": "hour"}}, "time is 'day', and columns['time'] 'hour'"),
        ({"time": "hour"}, "df: column 'hour', row 1 is before that of the row above, in the same episode: " + REMEDY),
        ({"ends": "stopped"}, "ends is 'stopped', expected one of 'terminated', 'truncated'"),
        ({"drop_nulls": True}, "drop_nulls is True, expected one of 'rows', 'episodes'"),
    ],
)  # fmt: skip
def test_times_and_gaps_that_cannot_be(changes, message):
    df = pd.DataFrame({"unit": pd.Series(["a", "a"], dtype="str"), "day": pd.to_datetime(["2024-01-01", "2024-01-02"]), "obs": [0, 1],
                       "next_obs": [1, 2], "action": [0, 1], "reward": 0.0, "hour": [2, 1]})  # fmt: skip
    if changes.get("gap") == "P3D" or changes == {"gap": -1, "time": "hour"}:
        df["hour"] = [1, 2]
    found = message_of(gq.Transitions.from_dataframe, df, **changes)
    if message is not None:
        assert found.replace("holds string", "holds large_string") == message


def test_time_may_begin_anew_with_each_episode_and_not_stand_still_backwards():
    rows = {
        "observations": [0, 1, 2, 3],
        "actions": [0, 1, 0, 1],
        "rewards": [0] * 4,
        "next_observations": [1, 2, 3, 4],
    }
    assert gq.Transitions.from_arrays(**rows, times=[5, 6, 1, 1], episodes=[0, 0, 1, 1]).n_rows == 4
    assert gq.Transitions.from_arrays(**rows, times=[5, 6, 1, 1], terminated=[0, 1, 0, 0]).n_rows == 4
    assert message_of(gq.Transitions.from_arrays, **rows, times=[5, 6, 1, 1]).startswith(
        "times[2] is before that of the row above"
    )
    assert message_of(gq.Transitions.from_arrays, **rows, times=[5, np.nan, 1, 1]).startswith(
        "times[1] is nan, expected"
    )
    nat = np.array(["2024", "NaT", "2025", "2026"], "M8[D]")
    assert message_of(gq.Transitions.from_arrays, **rows, times=nat).startswith("times[1] is nan, expected")
    assert message_of(gq.Transitions.from_arrays, **rows, times=["a", "b", "c", "d"]).startswith(
        "times is not an array of numbers"
    )


@pytest.mark.parametrize("ends", ["truncated", "terminated"])
def test_ends_that_nobody_recorded(ends):
    rows = {
        "observations": [0, 1, 2, 3, 4],
        "actions": [0, 1, 0, 1, 0],
        "rewards": [0] * 5,
        "episodes": [7, 7, 7, 8, 8],
    }
    chunk = gq.Transitions.from_arrays(**rows, ends=ends).to_chunk()
    if ends == "terminated":
        assert chunk.terminated.tolist() == [False, False, True, False, True]
    else:
        assert chunk.observations[:, 0].tolist() == [0, 1, 3]
        assert chunk.truncated.tolist() == [False, True, True]
    explicit = gq.Transitions.from_arrays(**rows, next_observations=[1, 2, 3, 4, 5], ends=ends).to_chunk()
    assert getattr(explicit, ends).tolist() == [False, False, True, False, True]


# --- Nulls ----------------------------------------------------------------------------------------------------------


def holes(df, *cells):
    df = df.copy().astype({"open": object, "closed": object})
    for row, name in cells:
        df.loc[row, name] = None
    return df


HOLES = holes(LOG, (1, "stock"), (2, "stock"), (9, "order"), (9, "profit"), (15, "region"))


def readers(df, tmp_path):
    yield gq.Transitions.from_dataframe, df
    yield gq.Transitions.from_csv, write_csv(df, tmp_path / "log.csv")
    yield gq.Transitions.from_parquet, write_parquet(df, tmp_path / "log.parquet")


def test_all_nulls_are_counted_at_once(tmp_path):
    for read, source in readers(HOLES, tmp_path):
        name = "df" if read == gq.Transitions.from_dataframe else source
        assert message_of(read, source, COLUMNS) == (
            f"{name}: nulls: 2 in column 'stock' (first: row 1), 1 in column 'region' (first: row 15), 1 in column 'order' "
            "(first: row 9), 1 in column 'profit' (first: row 9); fill them, or leave them out: drop_nulls='rows' or "
            "drop_nulls='episodes'"
        )


def test_nulls_of_several_files_name_the_file(tmp_path):
    files = [write_csv(LOG[:7], tmp_path / "1.csv"), write_csv(HOLES[7:], tmp_path / "2.csv")]
    assert f"1 in column 'order' (first: of {files[1]}, row 2)" in message_of(gq.Transitions.from_csv, files, COLUMNS)


@pytest.mark.parametrize("at_a_time", [1, 3, 2**17])
def test_episodes_with_nulls_are_left_out(tmp_path, monkeypatch, at_a_time):
    monkeypatch.setattr(parquet, "ROWS", at_a_time)
    monkeypatch.setattr(csv_files, "BLOCK", 2**22 if at_a_time > 3 else 200)
    whole = LOG[~LOG.unit.isin(["u000", "u002", "u004"])]
    assert (whole.region.nunique(), whole.order.nunique()) == (3, 3)
    for read, source in readers(HOLES, tmp_path):
        data = read(source, COLUMNS, drop_nulls="episodes")
        assert tuples(data.to_chunk()) == expected(whole)
        assert data.notes[-1] == (
            "Episodes with nulls in 'stock', 'region', 'order', 'profit' were left out: 3 of them, 13 rows."
        )
        assert gq.health(data).worst != "ok"


@pytest.mark.parametrize("at_a_time", [1, 2, 5, 2**17])
def test_rows_with_nulls_are_left_out_and_episodes_cut_before_them(tmp_path, monkeypatch, at_a_time):
    """As if the recording had stopped before each of them, and begun anew behind it."""
    monkeypatch.setattr(parquet, "ROWS", at_a_time)
    monkeypatch.setattr(csv_files, "BLOCK", 2**22 if at_a_time > 5 else 200)
    missing = HOLES[list(LOG.columns)].isna().any(axis=1).to_numpy()
    cut = LOG.assign(lost=LOG.lost | (np.append(missing[1:], False) & ~LOG.closed))[~missing]
    for read, source in readers(HOLES, tmp_path):
        data = read(source, COLUMNS, drop_nulls="rows")
        assert tuples(data.to_chunk()) == expected(cut)
        assert data.notes[-1].endswith(" left out, and episodes cut off before them: 4 rows.")
        assert data.n_rows == len(expected(cut))


def test_the_last_rows_may_be_those_with_nulls(tmp_path):
    df = LOG[:4].assign(stock=[1.0, 2.0, None, None])  # u000, which terminates in the last row
    for read, source in readers(df, tmp_path):
        chunk = read(source, COLUMNS, drop_nulls="rows").to_chunk()
        assert (len(chunk), chunk.truncated.tolist()) == (1, [True])


def test_nulls_that_leave_nothing_or_hide_the_episode():
    nothing = LOG.assign(stock=None)
    assert message_of(gq.Transitions.from_dataframe, nothing, COLUMNS, drop_nulls="rows") == (
        "df: there is no transition, expected at least one"
    )
    hidden = holes(LOG, (3, "unit"))
    assert message_of(gq.Transitions.from_dataframe, hidden, COLUMNS, drop_nulls="episodes") == (
        "column 'unit' has nulls: which episodes these rows belong to is unknown; drop_nulls='rows'"
    )
    assert gq.Transitions.from_dataframe(hidden, COLUMNS, drop_nulls="rows").n_rows > 0


def test_numbers_that_are_none_count_as_nulls_where_these_are_left_out(tmp_path):
    table = pa.table(
        {"obs": [0.0, float("nan"), 2.0], "next_obs": [1.0, 2.0, 3.0], "action": [0, 1, 0], "reward": [0.0, 0.0, 1.0]}
    )
    pq.write_table(table, tmp_path / "log.parquet")
    assert gq.Transitions.from_parquet(tmp_path / "log.parquet", drop_nulls="rows").n_rows == 2
    lists = pa.table({**dict(zip(table.column_names, table.columns, strict=True)), "obs": [[0.0, 1], [None, 1], [2, 2]],
                      "next_obs": [[0.0, 1], [0, 1], None]})  # fmt: skip
    pq.write_table(lists, tmp_path / "log.parquet")
    assert "nulls: 1 in column 'obs' (first: row 1), 1 in column 'next_obs' (first: row 2)" in message_of(
        gq.Transitions.from_parquet, tmp_path / "log.parquet"
    )
    data = gq.Transitions.from_parquet(tmp_path / "log.parquet", drop_nulls="rows")
    assert data.to_chunk().observations.tolist() == [[0, 1]]
    assert data.to_chunk().truncated.tolist() == [True]


def test_a_last_row_of_rlds_needs_no_action():
    df = pd.DataFrame({"observation": [[0.0], [1.0], [2.0]], "action": ["go", "stay", None], "reward": [0.5, 1.0, None],
                       "is_last": [False, False, True], "is_terminal": [False, False, True]})  # fmt: skip
    data = gq.Transitions.from_dataframe(df)
    assert data.action_labels == ("go", "stay")
    assert data.to_chunk().rewards.tolist() == [0.5, 1]
    assert data.to_chunk().terminated.tolist() == [False, True]
    other = gq.Transitions.from_dataframe(df.assign(action=["go", "stay", "nothing"]))
    assert other.fingerprint == data.fingerprint
    assert "1 in column 'action' (first: row 1)" in message_of(
        gq.Transitions.from_dataframe, df.assign(action=["go", None, None])
    )
