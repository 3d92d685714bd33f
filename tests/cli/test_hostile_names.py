"""Names that others gave, of columns, actions and files: shown as they are, and obeyed by neither terminal nor page."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import gqlab as gq
from gqlab.cli.main import main
from gqlab.studies.page import whole_page
from gqlab.support.printable import OBEYED, printable
from helpers.browser import CHROMIUM, visit

SCRIPT = "<script>document.querySelector('main').remove()</script>"
NAMES = (
    f'{SCRIPT}"',
    "two\nlines; 'quoted' & \\escaped",
    "red \x1b[31m \u202eder\u2066",
    "$\\frac{ $x$ % {0} %s",
    "</svg></style>&amp;",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A log whose columns and actions have such names, and two models under such names."""
    out = tmp_path_factory.mktemp("names")
    random = np.random.default_rng(0)
    columns = [f"{name} {k}" for k, name in enumerate(NAMES)]
    with (out / "log.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(columns)
        for k in range(600):
            action = random.integers(3)
            rows.writerow([k // 20, NAMES[1 + action], k % 4, (action == 1) + random.normal(), int(k % 20 == 19)])
    encoder = gq.OneHot(4).fit([[0], [3]])
    about = {"action_labels": sorted(NAMES[1:4])}
    for k, name in enumerate(NAMES[2:4]):
        theta = np.roll(np.eye(3, 4), k, axis=0)
        gq.LinearQ(theta, encoder, discount=0.9, metadata=about).save(out / f"{name}.npz")
    return out


def mapping():
    roles = ("episode", "action", "observation", "reward", "truncated")
    return ["--column", *(f"{role}={name} {k}" for k, (role, name) in enumerate(zip(roles, NAMES, strict=True)))]


def looked_at(page, tmp_path):
    """A page says nothing on its console, and what it is made of still stands there."""
    text = page.read_text()
    assert SCRIPT not in text
    assert not OBEYED.search(text)
    if CHROMIUM is not None:
        seen = visit(page, tmp_path, 800)
        assert seen.console == []
        assert len(seen.found["first"]) > 100
        assert all(seen.found["images"])
    return text


def test_a_decision_shows_hostile_names_and_obeys_none(folder, tmp_path, capsys):
    models = sorted(map(str, folder.glob("*.npz")))
    main(
        [
            "decide",
            str(folder / "log.csv"),
            "--models",
            *models,
            "--features",
            "tabular",
            "--out",
            str(tmp_path / "out"),
            *mapping(),
        ]
    )
    printed = capsys.readouterr().out
    assert not OBEYED.search(printed)
    assert "red \\x1b[31m" in printed
    page = looked_at(tmp_path / "out" / "report.html", tmp_path)
    assert "$\\frac{ $x$ % {0} %s" in page


def test_health_shows_hostile_names_and_obeys_none(folder, capsys):
    main(["health", str(folder / "log.csv"), *mapping()])
    assert not OBEYED.search(capsys.readouterr().out)


@pytest.mark.parametrize("name", NAMES)
def test_a_message_is_one_line_whatever_it_names(tmp_path, name, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["health", str(tmp_path / f"{name}.csv".replace("/", "_"))])
    told = capsys.readouterr().err
    assert told.startswith("gqlab: ")
    assert (told.count("\n"), OBEYED.search(told[:-1])) == (1, None)


def test_pages_write_what_is_obeyed_as_escapes():
    assert "<h1>a \\u202eb</h1>" in whole_page("a \u202eb", "")
    assert printable("θ ≤ 1, 日本, é\n\t") == "θ ≤ 1, 日本, é\n\t"
