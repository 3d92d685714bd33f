"""Logs as people have them: the same transitions from CSV, Parquet, data frames and mixed rows, against a plain loop."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.helpers.messy_logs import (
    COLUMNS,
    as_arrow,
    as_categories,
    as_polars,
    expected,
    messy,
    tuples,
    write_csv,
    write_parquet,
)

import gqlab as gq
from gqlab.data import csv_files, parquet

LOG = messy([4, 1, 6, 2, 3], [True, False, True, True, False])
FRAMES = {"pandas": lambda df: df, "categories": as_categories, "polars": as_polars, "Arrow": as_arrow}


def message_of(read, *args, **options):
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the whole message is compared
        read(*args, **options)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("frame", FRAMES)
def test_data_frames_with_text_dates_and_truth_values(frame):
    data = gq.Transitions.from_dataframe(FRAMES[frame](LOG), COLUMNS)
    assert tuples(data.to_chunk()) == expected(LOG)
    assert data.action_labels == ('a "lot"', "none", "ten")
    assert data.observation_names == ("stock", "region=east", "region=north, far", "region=wäst", "open")
    assert data.n_actions == 3
    assert data.notes == (
        "Column 'region' holds text: it became 3 numbers, one for each of 'east', 'north, far', 'wäst'.",
        "Column 'open' holds true and false: 1 and 0.",
    )


@pytest.mark.parametrize("block", [200, 2**22])
@pytest.mark.parametrize("n_files", [1, 4])
def test_csv_files_give_the_rows_of_the_frame(tmp_path, monkeypatch, block, n_files):
    monkeypatch.setattr(csv_files, "BLOCK", block)
    for k, part in enumerate(np.array_split(np.arange(len(LOG)), n_files)):
        write_csv(LOG.iloc[part], tmp_path / f"part-{k}.csv")
    data = gq.Transitions.from_csv(tmp_path / "part-*.csv", COLUMNS)
    whole = gq.Transitions.from_dataframe(LOG, COLUMNS)
    assert tuples(data.to_chunk()) == expected(LOG)
    assert data.fingerprint == whole.fingerprint == gq.Transitions.from_csv(tmp_path, COLUMNS).load().fingerprint
    assert not data.in_memory
    assert (data.n_rows, data.n_left_out, data.action_labels) == (whole.n_rows, whole.n_left_out, whole.action_labels)
    assert block > 200 or len(list(data.chunks())) > 1


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_every_form_of_a_log_and_mixed_rows_that_are_sorted_are_the_same_transitions(data):
    lengths = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=5))
    ends = data.draw(st.lists(st.booleans(), min_size=len(lengths), max_size=len(lengths)))
    df = messy(lengths, ends, data.draw(st.integers(0, 100)))
    if not expected(df):
        return
    order = data.draw(st.permutations(range(len(df))))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(df)), max_size=2)))
    with tempfile.TemporaryDirectory() as folder:
        read = [gq.Transitions.from_dataframe(make(df), COLUMNS) for make in FRAMES.values()]
        read.append(gq.Transitions.from_csv(write_csv(df, Path(folder, "log.csv")), COLUMNS))
        read.append(gq.Transitions.from_parquet(write_parquet(df, Path(folder, "log.parquet")), COLUMNS))
        options = {"time": "day", "sort": True}
        parts = [df.iloc[list(part)] for part in np.split(np.array(order), cuts) if len(part)]
        csv = [write_csv(part, Path(folder, f"{k}.csv")) for k, part in enumerate(parts)]
        files = [write_parquet(part, Path(folder, f"{k}.parquet")) for k, part in enumerate(parts)]
        read.append(gq.Transitions.from_csv(csv, COLUMNS, **options))
        read.append(gq.Transitions.from_parquet(files, COLUMNS, **options))
        read.append(gq.Transitions.from_dataframe(df.iloc[order], COLUMNS, sort=["unit", "day"]))
        read[0].to_parquet(Path(folder, "written.parquet"))
        read.append(gq.Transitions.from_parquet(Path(folder, "written.parquet")))
        for one in read:
            assert tuples(one.to_chunk()) == expected(df)
            assert one.fingerprint == read[0].fingerprint
            assert one.schema == read[0].schema
    arrays = gq.Transitions.from_arrays(
        *_arrays(df.iloc[order]), episodes=df.unit.iloc[order], probabilities=df.share.iloc[order],
        times=df.day.iloc[order].to_numpy(), sort=True,
    )  # fmt: skip
    assert tuples(arrays.to_chunk()) == expected(df)
    assert arrays.fingerprint == read[0].fingerprint


def _arrays(df):
    regions = sorted(set(df.region))
    x = np.column_stack([df.stock, *(df.region == name for name in regions), df.open]).astype(float)
    return x, df.order.to_numpy(), df.profit, None, df.closed, df.lost


@pytest.mark.parametrize("read", ["csv", "parquet"])
def test_labels_do_not_depend_on_the_order_of_files(tmp_path, read):
    """Labels that only the first, or only the last, of the files has."""
    write = {"csv": write_csv, "parquet": write_parquet}[read]
    reader = getattr(gq.Transitions, f"from_{read}")
    parts = [messy([2], [True], seed).assign(unit=f"v{seed}", order=f"order {9 - seed}") for seed in range(6)]
    files = [write(part, tmp_path / f"{k}.{read}") for k, part in enumerate(parts)]
    labels = tuple(sorted(f"order {9 - seed}" for seed in range(6)))
    for chosen in (files, files[::-1]):
        data = reader(chosen, COLUMNS)
        assert data.action_labels == labels
        first = data.to_chunk().actions[0]
        assert labels[first] == ("order 9" if chosen is files else "order 4")


# --- CSV ------------------------------------------------------------------------------------------------------------


def text(path, content, encoding="utf8"):
    path.write_bytes(content.encode(encoding))
    return path


PLAIN = "obs,next_obs,action,reward\n"


def test_types_are_those_of_all_values_in_all_files(tmp_path):
    """Whole numbers in the first file, a fraction in the second, nothing of it depends on which comes first."""
    one = text(tmp_path / "1.csv", PLAIN + "1,2,0,1\n2,3,1,0\n")
    two = text(tmp_path / "2.csv", PLAIN + "1.5,2.5,0,1\n 7 ,3,1,0\n")
    for files, first in (([one, two], 1.0), ([two, one], 1.5)):
        assert gq.Transitions.from_csv(files).to_chunk().observations[0, 0] == first
    mixed = text(tmp_path / "3.csv", PLAIN + "1,2,yes,1\n")
    assert gq.Transitions.from_csv([one, mixed]).action_labels == ("0", "1", "yes")
    assert gq.Transitions.from_csv([mixed, one]).action_labels == ("0", "1", "yes")


@pytest.mark.parametrize(
    ("content", "options"),
    [
        (PLAIN.replace(",", ";") + "1,5;2;0;1\n", {"decimal": ","}),
        (PLAIN.replace(",", "\t") + "1.5\t2\t0\t1\n", {}),
        (PLAIN.replace(",", "|") + "1.5|2|0|1\n", {}),
        (PLAIN.replace(",", ":") + "1.5:2:0:1\n", {"delimiter": ":"}),
        (PLAIN + '"1.5",2,0,1\r\n', {}),
    ],
)
def test_other_separators_and_a_decimal_comma(tmp_path, content, options):
    chunk = gq.Transitions.from_csv(text(tmp_path / "log.csv", content), **options).to_chunk()
    assert (chunk.observations[0, 0], chunk.next_observations[0, 0], chunk.rewards[0]) == (1.5, 2, 1)


def test_names_with_commas_newlines_and_quotes_are_names(tmp_path):
    content = '"x, in\nm","next",action,reward\n1,2,"go, ""now""",1\n2,3,"stay\nhere",1\n'
    path = text(tmp_path / "log.csv", content)
    data = gq.Transitions.from_csv(path, {"observation": "x, in\nm", "next_observation": "next"})
    assert data.action_labels == ('go, "now"', "stay\nhere")
    assert data.to_chunk().observations[:, 0].tolist() == [1, 2]


def test_a_compressed_file_and_one_in_another_encoding(tmp_path):
    content = PLAIN + "1,2,grün,1\n2,3,blau,1\n"
    (tmp_path / "log.csv.gz").write_bytes(gzip.compress(content.encode()))
    packed = gq.Transitions.from_files(tmp_path / "log.csv.gz")
    latin = gq.Transitions.from_csv(text(tmp_path / "log.csv", content, "latin1"), encoding="latin1")
    assert packed.fingerprint == latin.fingerprint
    assert packed.action_labels == ("blau", "grün")
    marked = gq.Transitions.from_csv(text(tmp_path / "bom.csv", content, "utf-8-sig"))
    assert marked.fingerprint == packed.fingerprint


def test_NA_is_missing_among_numbers_and_a_label_among_texts(tmp_path):
    path = text(tmp_path / "log.csv", PLAIN + "1,2,NA,1\n2,3,EU,1\n")
    assert gq.Transitions.from_csv(path).action_labels == ("EU", "NA")
    path = text(tmp_path / "log.csv", PLAIN + "1,2,0,NA\n2,3,,1\n")
    assert message_of(gq.Transitions.from_csv, path) == (
        f"{path}: nulls: 1 in column 'action' (first: row 1), 1 in column 'reward' (first: row 0); fill them, or leave "
        "them out: drop_nulls='rows' or drop_nulls='episodes'"
    )


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("", {}, "path: {path} cannot be read as CSV: Empty CSV file"),
        (PLAIN, {}, "path: {path}: there is no transition, expected at least one"),
        (PLAIN + "1,2,0\n", {}, "path: {path} cannot be read as CSV: CSV parse error: Row #2: Expected 4 columns, got 3: 1,2,0"),
        ("obs;action\n1;2\n", {"delimiter": ","}, "path: {path}: columns: none is known to be the observation; there are "
         "'obs;action'; say which it is: columns={{'observation': ...}} (split at ',')"),
        ("obs,obs,action,reward\n1,1,1,1\n", {}, "path: {path}: columns: there are several of the name 'obs'"),
        (PLAIN.replace(",", ";") + "1,5;2;0;1\n", {}, "path: {path}: column 'obs' holds numbers with a decimal comma: decimal=','"),
        (PLAIN + "1,2,0,ä\n", {"encoding": "ascii"}, None),
        (PLAIN + "1,2,0,much\n", {}, "{path}: column 'reward' holds string, expected numbers"),
        (PLAIN + "1,2,0,1\n", {"delimiter": "::"}, "delimiter is '::', expected one character"),
        (PLAIN + "1,2,0,1\n", {"decimal": "·"}, "decimal is '·', expected one of '.', ','"),
        (PLAIN + "1,2,0,1\n", {"decimal": ","}, "decimal is ',', and so is the delimiter"),
        (PLAIN + "1,2,0,1\n", {"encoding": "klingon"}, "encoding is 'klingon', expected one such as 'utf8' or 'latin1'"),
        (PLAIN + "1,2,0,1\n", {"sort": "day"}, "path: {path}: sort: there is no column 'day'"),
    ],
)  # fmt: skip
def test_csv_that_cannot_be_read(tmp_path, content, options, message):
    path = text(tmp_path / "log.csv", content)
    found = message_of(gq.Transitions.from_csv, path, **options)
    if message is not None:
        assert found == message.format(path=path)


def test_text_that_is_not_utf8_gets_a_hint(tmp_path):
    path = text(tmp_path / "log.csv", PLAIN + "1,2,grün,1\n", "latin1")
    assert message_of(gq.Transitions.from_csv, path).endswith("invalid UTF8 data; it may be encoding='latin1'")


def test_files_of_two_kinds_and_files_that_do_not_fit(tmp_path):
    one = text(tmp_path / "1.csv", PLAIN + "1,2,0,1\n")
    other = text(tmp_path / "2.csv", "obs,action,reward,done\n1,0,1,1\n")
    assert message_of(gq.Transitions.from_csv, [one, other]).startswith(f"path: {other} has other columns than {one}: ")
    gq.Transitions.from_csv(one).to_parquet(tmp_path / "3.parquet")
    found = message_of(gq.Transitions.from_files, [one, tmp_path / "3.parquet"])
    assert found == f"path: {one} is CSV and {tmp_path / '3.parquet'} is not, expected one kind"
    read = gq.Transitions.from_files(one)
    assert read.fingerprint == gq.Transitions.from_files(tmp_path / "3.parquet", decimal=".").fingerprint
    assert message_of(gq.Transitions.from_parquet, one).startswith(f"path: {one} is not a Parquet file")


def test_reading_csv_needs_memory_for_a_block_only(tmp_path):
    """60 MB of numbers: in memory they would be 100."""
    n = 300_000
    line = ",".join(["0.123456789"] * 17) + ",1\n"
    names = ",".join([*(f"obs_{j}" for j in range(8)), *(f"next_obs_{j}" for j in range(8)), "reward", "action"])
    (tmp_path / "log.csv").write_text(f"{names}\n" + line * n)
    code = (
        "import resource, sys, pyarrow.csv; from gqlab.data import Transitions\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "n = sum(len(chunk) for chunk in Transitions.from_csv(sys.argv[1]).chunks())\n"
        "print(n, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "log.csv")], capture_output=True, text=True, check=True
    )
    rows, more = done.stdout.split()
    assert int(rows) == n
    assert float(more) < 60


# --- Labels of actions ----------------------------------------------------------------------------------------------

ROWS = {"observations": [0, 1, 2], "rewards": [0, 0, 1], "next_observations": [1, 2, 3]}


@pytest.mark.parametrize(
    "actions",
    [
        ["b", "a", "b"],
        np.array(["b", "a", "b"]),
        np.array(["b", "a", "b"], dtype=object),
        pd.Series(["b", "a", "b"]),
        pd.Series(["b", "a", "b"], dtype="category"),
        pd.Categorical(["b", "a", "b"], ["b", "a"]),
        pa.array(["b", "a", "b"]),
        pa.array(["b", "a", "b"]).dictionary_encode(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_labels_of_arrays(actions):
    data = gq.Transitions.from_arrays(actions=actions, **ROWS)
    assert data.action_labels == ("a", "b")
    assert data.to_chunk().actions.tolist() == [1, 0, 1]


def test_labels_that_are_given():
    data = gq.Transitions.from_arrays(actions=["b", "a", "b"], **ROWS, action_labels=["c", "b", "a"])
    assert (data.n_actions, data.action_labels) == (3, ("c", "b", "a"))
    assert data.to_chunk().actions.tolist() == [1, 2, 1]
    doses = gq.Transitions.from_arrays(actions=[2.5, 10, 5], **ROWS, action_labels=[10, 5, 2.5])
    assert doses.to_chunk().actions.tolist() == [2, 0, 1]
    df = pd.DataFrame({"obs": [0, 1, 2], "next_obs": [1, 2, 3], "reward": [0, 0, 1], "action": [2.5, 10, 5]})
    assert gq.Transitions.from_dataframe(df, action_labels=(10, 5, 2.5)).fingerprint == doses.fingerprint


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"actions": ["b", 1, "b"]}, "actions[1] is 1, expected text as in the rows before"),
        ({"actions": np.array(["b", 1.5, "b"], dtype=object)}, "actions[1] is 1.5, expected text as in the rows before"),
        ({"actions": ["b", "d", "b"], "action_labels": ["a", "b"]}, "actions[1] is 'd', expected one of 'a', 'b'"),
        ({"actions": [5, 7, 5], "action_labels": [5, 6]}, "actions[1] is 7, expected one of 5, 6"),
        ({"actions": [0, 1, 0], "action_labels": ["a", "b"]}, "actions holds int64 of shape (3,), expected one of 'a', 'b'"),
        ({"actions": ["a", "b", "a"], "n_actions": 3}, "n_actions is 3, and there are 2 labels of actions: 'a', 'b'"),
        ({"actions": [["a"], ["b"], ["a"]]}, "actions has shape (3, 1), expected one label in each row"),
        ({"actions": ["a"] * 3, "action_labels": "ab"}, "action_labels is 'ab', expected a list of texts, or of numbers"),
        ({"actions": ["a"] * 3, "action_labels": ["a", 1]}, "action_labels is ['a', 1], expected a list of texts, or of numbers"),
        ({"actions": ["a"] * 3, "action_labels": ["a", "a"]}, "action_labels is ['a', 'a'], expected each once, and at most 65536"),
        ({"actions": ["a"] * 3, "action_labels": []}, "action_labels is empty"),
        ({"actions": [0, 1, 0], "action_labels": [0, float("nan")]}, "action_labels is [0, nan], expected a list of texts, or of numbers"),
    ],
)  # fmt: skip
def test_bad_labels(changes, message):
    assert message_of(gq.Transitions.from_arrays, **{**ROWS, **changes}) == message


def test_labels_are_part_of_the_content_and_are_written(tmp_path):
    one = gq.Transitions.from_arrays(actions=["b", "a", "b"], **ROWS)
    other = gq.Transitions.from_arrays(actions=["c", "a", "c"], **ROWS)
    plain = gq.Transitions.from_arrays(actions=[1, 0, 1], **ROWS)
    assert len({one.fingerprint, other.fingerprint, plain.fingerprint}) == 3
    one.to_parquet(tmp_path / "log.parquet")
    again = gq.Transitions.from_parquet(tmp_path / "log.parquet")
    assert (again.action_labels, again.fingerprint) == (("a", "b"), one.fingerprint)
    assert one.load().action_labels == ("a", "b")
    assert message_of(gq.Transitions.from_parquet, tmp_path / "log.parquet", action_labels=["a", "c"]).endswith(
        "the actions are 'a', 'b', expected 'a', 'c'"
    )


def test_a_column_of_labels_that_are_not_few(tmp_path):
    n = 1200
    df = pd.DataFrame(
        {"obs": range(n), "next_obs": range(n), "reward": 0.0, "action": [f"order {k}" for k in range(n)]}
    )
    assert message_of(gq.Transitions.from_dataframe, df) == (
        "df: column 'action' holds more than 1000 different texts, such as 'order 0', 'order 1', 'order 10': names, or "
        "numbers or dates written in another way? Make numbers of it, or leave it out: columns={'action': ...}"
    )


# --- Observations that are no numbers -------------------------------------------------------------------------------


def observed(values, **options):
    n = len(values)
    df = pd.DataFrame({"obs": values, "action": np.arange(n) % 2, "reward": 0.0, "done": np.arange(n) == n - 1})
    return gq.Transitions.from_dataframe(df, **options)


def test_dates_and_times_become_days():
    days = (
        observed(pd.to_datetime(["1970-01-02 00:00", "1970-01-03 12:00", "2000-01-01 00:00"]))
        .to_chunk()
        .observations[:, 0]
    )
    assert days.tolist() == [1, 2.5, 10957]
    zoned = pd.to_datetime(["1970-01-02 01:00", "1970-01-03 00:00"]).tz_localize("Europe/Paris")
    assert observed(zoned).to_chunk().observations[:, 0].tolist() == [1.0, 2 - 1 / 24]
    lengths = pd.to_timedelta(["1D", "36h"])
    assert observed(lengths).to_chunk().observations[:, 0].tolist() == [1, 1.5]
    table = pa.table(
        {"obs": pa.array([0, 43_200], pa.time32("s")), "action": [0, 1], "reward": [0.0, 1.0], "done": [False, True]}
    )
    assert gq.Transitions.from_dataframe(table).to_chunk().observations[:, 0].tolist() == [0, 0.5]
    dates = pa.table(
        {"obs": pa.array([1, 365], pa.date32()), "action": [0, 1], "reward": [0.0, 1.0], "done": [False, True]}
    )
    read = gq.Transitions.from_dataframe(dates)
    assert read.to_chunk().observations[:, 0].tolist() == [1, 365]
    assert read.notes == ("Column 'obs' holds dates or times: days since 1970-01-01, or lengths in days.",)


def test_decimals_and_dictionaries_of_numbers_are_numbers():
    from decimal import Decimal

    table = pa.table({"obs": [Decimal("1.5"), Decimal("2.25")], "action": pa.array([1, 0]).dictionary_encode(),
                      "reward": [0.0, 1.0], "done": [False, True]})  # fmt: skip
    chunk = gq.Transitions.from_dataframe(table).to_chunk()
    assert chunk.observations[:, 0].tolist() == [1.5, 2.25]
    assert chunk.actions.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([b"a", b"b"], "df: column 'obs' holds 'binary': make numbers, dates or text of it, or leave it out: columns={'observation': ...}"),
        ([{"x": 1}, {"x": 2}], "df: column 'obs' holds 'struct<x: int64>': make numbers, dates or text of it, or leave it out: "
         "columns={'observation': ...}"),
        ([["a"], ["b"]], None),
        ([f"{k}" for k in range(150)] + ["-"], "df: column 'obs' holds more than 100 different texts, such as '-', '0', '1': "
         "numbers, but for '-'? Make numbers of it, or leave it out: columns={'observation': ...}"),
    ],
)  # fmt: skip
def test_observations_that_are_refused_by_name(values, message):
    found = message_of(observed, values)
    assert found.startswith("df: column 'obs' holds") if message is None else found == message


def test_next_observations_share_the_labels(tmp_path):
    df = pd.DataFrame({"obs_0": ["a", "b"], "obs_1": [0, 1], "next_obs_0": ["b", "c"], "next_obs_1": [1.0, 2.0],
                       "action": [0, 1], "reward": [0, 1]})  # fmt: skip
    chunk = gq.Transitions.from_dataframe(df).to_chunk()
    assert chunk.observations.tolist() == [[1, 0, 0, 0], [0, 1, 0, 1]]
    assert chunk.next_observations.tolist() == [[0, 1, 0, 1], [0, 0, 1, 2]]
    assert chunk.observations.dtype == np.float64
    bad = df.assign(next_obs_0=[1, 2])
    assert (
        message_of(gq.Transitions.from_dataframe, bad)
        == "df: column 'next_obs_0' holds numbers, and column 'obs_0' text"
    )
    bad = df.assign(next_obs_1=[1.0, np.inf])
    assert (
        message_of(gq.Transitions.from_dataframe, bad)
        == "df: column 'next_obs_1', row 1 is inf, expected a finite number"
    )


def test_another_file_is_read_like_the_first(tmp_path):
    data = gq.Transitions.from_dataframe(LOG, COLUMNS)
    few = LOG[LOG.unit == "u000"].assign(region="east", order="ten")
    alike = gq.Transitions.from_csv(write_csv(few, tmp_path / "few.csv"), COLUMNS, like=data)
    assert (alike.action_labels, alike.observation_size) == (data.action_labels, data.observation_size)
    assert alike.to_chunk().actions.tolist() == [2] * 4
    assert gq.Transitions.from_dataframe(few, COLUMNS).observation_size == 3
    strange = write_csv(few.assign(region="south"), tmp_path / "strange.csv")
    assert message_of(gq.Transitions.from_csv, strange, COLUMNS, like=data) == (
        f"{strange}: column 'region', row 0 is 'south', expected one of 'east', 'north, far', 'wäst'"
    )
    digits = write_csv(few.assign(region=7), tmp_path / "digits.csv")  # text in the data, digits alone in this file
    assert "is '7', expected one of 'east'" in message_of(gq.Transitions.from_csv, digits, COLUMNS, like=data)
    number = few.assign(region=7)
    assert message_of(gq.Transitions.from_dataframe, number, COLUMNS, like=data) == (
        "df: column 'region' holds 'int64', expected text"
    )
    other = {**COLUMNS, "observation": ["region", "stock", "open"]}
    assert message_of(gq.Transitions.from_dataframe, few, other, like=data) == (
        "df: the observation is 'region', 'stock', 'open', and that of like 'stock', 'region', 'open'"
    )
    assert message_of(gq.Transitions.from_dataframe, few, COLUMNS, like=3) == (
        "like is 3, expected Transitions, or a model that was fitted to them"
    )
    plain = gq.Transitions.from_arrays(actions=[0, 1, 0], **ROWS, n_actions=4)
    df = pd.DataFrame({"obs": [0], "next_obs": [1], "action": [1], "reward": [0]})
    assert gq.Transitions.from_dataframe(df, like=plain).n_actions == 4
    assert message_of(gq.Transitions.from_dataframe, df.assign(action="a"), like=plain) == (
        "df: column 'action' holds text, and the actions of like are numbers"
    )
    data.to_parquet(tmp_path / "log.parquet")
    assert gq.Transitions.from_parquet(tmp_path / "log.parquet", like=data).schema == data.schema
    assert "or their labels differ" in message_of(
        gq.Transitions.from_parquet,
        tmp_path / "log.parquet",
        like=gq.Transitions.from_dataframe(few, COLUMNS, action_labels=data.action_labels),
    )


@pytest.mark.parametrize(
    "about",
    [
        {"action_labels": ["a"]}, {"action_labels": "ab"}, {"action_labels": [[], {}]}, {"observation_columns": 3},
        {"observation_columns": [3]}, {"observation_columns": [{"name": "x", "kind": "tile"}]},
        {"observation_columns": [{"name": "x", "kind": "category"}]},
        {"observation_columns": [{"name": "x", "kind": "category", "labels": ["a", "a"]}]},
        {"observation_columns": [{"name": 1, "kind": "number"}]},
    ],
)  # fmt: skip
def test_files_whose_description_is_crafted(tmp_path, about):
    import json

    path = tmp_path / "log.parquet"
    table = pa.table({"obs": [0.0, 1], "next_obs": [1.0, 2], "action": [0, 1], "reward": [0, 1]})
    pq.write_table(table.replace_schema_metadata({parquet.METADATA: json.dumps({"n_actions": 2, **about})}), path)
    assert str(path) in message_of(gq.Transitions.from_parquet, path)


def test_files_with_columns_of_two_kinds(tmp_path):
    one = write_parquet(LOG, tmp_path / "1.parquet")
    other = write_parquet(LOG.assign(region=3), tmp_path / "2.parquet")
    found = message_of(gq.Transitions.from_parquet, [one, other], COLUMNS)
    assert re.fullmatch(rf"path: {other}: column 'region' holds 'int64', and in {one} '(large_)?string'", found)
