"""The document on the reproduction speaks of every claim and experiment that there is."""

from __future__ import annotations

from pathlib import Path

from gqlab.paper.claims import CLAIMS
from gqlab.paper.statistics import FAILS, HOLDS, IN_PART

DOCUMENT = Path(__file__).parents[2] / "docs" / "reproduction.md"


def test_the_table_has_every_claim_once_with_a_verdict():
    lines = DOCUMENT.read_text().splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "| **" in line]
    assert [row[0] for row in rows] == [claim.statement for claim in CLAIMS]
    assert [row[1] for row in rows] == [claim.figure for claim in CLAIMS]
    verdicts = [row[2].strip("*") for row in rows]
    assert set(verdicts) <= {HOLDS, IN_PART, FAILS}
    assert f"**{verdicts.count(HOLDS)} of {len(CLAIMS)} claims hold.**" in lines


def test_its_pictures_are_there():
    for line in DOCUMENT.read_text().splitlines():
        if line.startswith("!["):
            assert (DOCUMENT.parent / line.split("(")[1].rstrip(")")).is_file()
