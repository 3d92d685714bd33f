"""What a narrow screen needs and only the builder sees: how long the texts of a table are, how large a picture is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import imagesize
from docutils import nodes

#: A cell with at most so many characters keeps them on one line, one with more has room for a few words in a line.
SHORT = 22
#: And one with more than this has room for a sentence.
LONG = 90
#: Two columns of words go one under the other where a text of the first is longer than this.
BESIDE = 16
#: A first column up to this long stays in sight while the others scroll.
NAME = 40
#: A table with so many columns has smaller letters.
MANY = 6
#: A picture with more pixels across than this has several panels: on a narrow screen it scrolls.
PANELS = 1400
#: A lower and an upper end.
INTERVAL = re.compile(r"\[([^\s\],]+), ([^\s\],]+)\]")


def _rows(table: nodes.table) -> list[list[nodes.entry]]:
    return [list(row.findall(nodes.entry)) for body in table.findall(nodes.tbody) for row in body]


def mark_tables(app: Any, doctree: nodes.document) -> None:
    """Classes for the style sheet: short, words and long of cells; stacked, named and many of tables."""
    for table in doctree.findall(nodes.table):
        rows = _rows(table)
        for entry in (entry for row in rows for entry in row):
            for text in list(entry.findall(nodes.Text)):  # an interval stays on one line
                text.parent.replace(text, nodes.Text(INTERVAL.sub("[\\1,\N{NO-BREAK SPACE}\\2]", text.astext())))
            n = len(entry.astext())
            entry["classes"].append("short" if n <= SHORT else "words" if n <= LONG else "long")
        columns = max(map(len, rows), default=0)
        first, last = (max((len(row[k].astext()) for row in rows), default=0) for k in (0, -1))
        if columns == 2 and first > BESIDE and last > SHORT:
            table["classes"].append("stacked")
        elif columns > 2 and first <= NAME:
            table["classes"].append("named")
        if columns >= MANY:
            table["classes"].append("many")


def mark_pictures(app: Any, doctree: nodes.document) -> None:
    """Every picture links to its file, in its own size; one with several panels is marked."""
    for image in doctree.findall(nodes.image):
        image["scale"] = 100  # what makes Sphinx link to the file
        if imagesize.get(Path(app.srcdir) / image["uri"])[0] > PANELS:
            image["classes"].append("panels")
