"""What the documents say of the reproduction is what the command wrote."""

from __future__ import annotations

from pathlib import Path

DOCUMENT = Path(__file__).parents[2] / "docs" / "reproduction.md"


def test_its_pictures_are_there():
    for line in DOCUMENT.read_text().splitlines():
        if line.startswith("!["):
            assert (DOCUMENT.parent / line.split("(")[1].rstrip(")")).is_file()
