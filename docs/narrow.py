"""What a narrow screen needs and only the builder sees: how long the texts of a table are, how large a picture is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import imagesize
from docutils import nodes

#: A cell with at most so many characters keeps them on one line; one with more has room for a few words in a line.
SHORT = 22
#: Two columns go one under the other where a text of the first is longer than this.
BESIDE = 16
#: A first column up to this long stays in sight while the others scroll.
NAME = 40
#: A table with so many columns has smaller letters.
MANY = 6
#: A picture with more pixels across than this has several panels: on a narrow screen it scrolls.
PANELS = 1400


def _rows(table: nodes.table) -> list[list[nodes.entry]]:
    return [list(row.findall(nodes.entry)) for body in table.findall(nodes.tbody) for row in body]


def mark_tables(app: Any, doctree: nodes.document) -> None:
    """Classes for the style sheet: ``short`` and ``words`` of cells, ``stacked``, ``named`` and ``many`` of tables."""
    for table in doctree.findall(nodes.table):
        rows = _rows(table)
        for entry in (entry for row in rows for entry in row):
            entry["classes"].append("short" if len(entry.astext()) <= SHORT else "words")
        first, columns = max((len(row[0].astext()) for row in rows), default=0), max(map(len, rows), default=0)
        if columns == 2 and first > BESIDE:
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
