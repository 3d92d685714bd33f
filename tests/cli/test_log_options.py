"""Logs on the command line: CSV and Parquet, every option of reading, and messages that name these options."""

from __future__ import annotations

import json

import pytest
from tests.helpers.messy_logs import messy, write_csv, write_parquet

import gqlab as gq
from gqlab.cli.main import main

LOG = messy([9, 8, 7, 9, 6], [True, False, True, True, False])
MIXED = LOG.sort_values(["day", "unit"], kind="stable").rename(columns={"stock": "stock, in t"})
OPTIONS = ["--column", "observation:=stock, in t", "observation=region,open", "action=order", "reward=profit", "episode=unit",
           "terminated=closed", "truncated=lost", "probability=share"]  # fmt: skip


def findings(capsys, *line):
    main(["health", *map(str, line), "--json"])
    return {finding["name"]: finding for finding in json.loads(capsys.readouterr().out)["findings"]}


def refused(capsys, *line):
    with pytest.raises(SystemExit) as end:
        main([*map(str, line)])
    assert end.value.code == 2
    text = capsys.readouterr().err
    assert text.count("\n") == 1
    return text.strip()


@pytest.mark.parametrize("write", [write_csv, write_parquet])
def test_health_reads_a_messy_log(tmp_path, capsys, write):
    path = write(MIXED, tmp_path / ("log.csv" if write is write_csv else "log.parquet"))
    found = findings(capsys, path, *OPTIONS, "--sort", "--time", "day")
    assert found["episodes"]["value"] == 5
    assert list(found["actions"]["value"]) == ['a "lot"', "none", "ten"]
    assert sum(found["actions"]["value"].values()) == len(LOG) - 2
    named = findings(capsys, path, *OPTIONS, "--sort", "unit", "day", "--action-labels", "ten", "none", 'a "lot"')
    assert list(named["actions"]["value"]) == ["ten", "none", 'a "lot"']
    main(["health", str(path), *OPTIONS, "--sort", "--time", "day", "--gap", "2d"])
    text = capsys.readouterr().out
    assert "how rows were read: 1" in text
    assert "Column 'region' holds text: it became 3 numbers, one for each of 'east', 'north, far', 'wäst'." in text


def test_csv_as_other_programs_write_it(tmp_path, capsys):
    path = tmp_path / "log.csv"
    path.write_bytes("obs:action:reward:done\n1,5:grün:2:0\n2,5:blau::1\n7:rot:1:1\n".encode("latin1"))
    options = [
        "--delimiter",
        ":",
        "--decimal",
        ",",
        "--encoding",
        "latin1",
        "--drop-nulls",
        "rows",
        "--ends",
        "terminated",
    ]
    found = findings(capsys, path, *options)
    assert found["rows"]["value"] == 1  # the row before the null has no next observation
    assert found["rows left out"]["value"] == 1
    doses = tmp_path / "doses.csv"
    doses.write_text("obs,next_obs,action,reward\n1,2,2.5,0\n2,3,10,1\n")
    assert findings(capsys, doses, "--action-labels", "2.5", "5", "10")["actions"]["value"] == {
        "2.5": 1,
        "5.0": 0,
        "10.0": 1,
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "columns: none is known to be the observation; there are 'unit', 'day', 'stock, in t', 'region', 'open', 'order', "
             "'profit', 'closed', 'lost', 'share'; say which it is: --column observation=NAME"),
        ([*OPTIONS[:3], "action=lever"], "--column action: there is no column 'lever'; there are"),
        (OPTIONS, "episode 'u000' returns, whose rows above have no end: sort by episode and time, or pass --sort"),
        ([*OPTIONS, "--sort", "hour"], "--sort: there is no column 'hour'"),
        ([*OPTIONS, "--sort", "--gap", "3"], "--gap is 3, and no column is the time: --time ... names it"),
        ([*OPTIONS, "--sort", "--time", "day", "--gap", "soon"], "--gap is 'soon', expected a number, a timedelta, or text such as '36h'"),
        ([*OPTIONS[:-2], "--sort"], "where the recording just stopped, --ends truncated marks all such rows"),
        ([*OPTIONS, "--delimiter", "::"], "--delimiter is '::', expected one character"),
        ([*OPTIONS, "--encoding", "klingon"], "--encoding is 'klingon', expected one such as"),
        ([*OPTIONS, "--action-labels", "a", "a"], "--action-labels is ['a', 'a'], expected each once"),
        (["--column", "observation"], "--column is 'observation', expected ROLE=NAME, as in action=lever"),
    ],
)  # fmt: skip
def test_messages_name_the_options_of_the_command_line(tmp_path, capsys, options, message):
    path = write_csv(MIXED, tmp_path / "log.csv")
    assert message in refused(capsys, "health", path, *options)


def test_nulls_name_the_option_too(tmp_path, capsys):
    path = write_csv(LOG.assign(stock=None), tmp_path / "log.csv")
    options = [*OPTIONS[:1], "observation=stock", *OPTIONS[3:]]
    assert "leave them out: --drop-nulls rows or --drop-nulls episodes" in refused(capsys, "health", path, *options)


def test_fit_reads_csv_and_keeps_the_labels(tmp_path, capsys):
    path = write_csv(MIXED, tmp_path / "log.csv")
    line = ["fit", str(path), *OPTIONS, "--sort", "--time", "day", "--algorithm", "FittedQ", "--encoder", "identity"]
    main([*line, "--out", str(tmp_path / "out")])
    model = gq.LinearQ.load(tmp_path / "out" / "model.npz")
    assert model.action_labels == ('a "lot"', "none", "ten")
    assert model.schema.columns[0].name == "stock, in t"
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf8")
    assert "a &quot;lot&quot;, none, ten" in page
    assert "Rows were sorted by &#x27;unit&#x27;, &#x27;day&#x27;." in page
