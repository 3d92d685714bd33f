"""What the documents say of the reproduction is what the command wrote, and the same in all of them."""

from __future__ import annotations

import re
from pathlib import Path

from gqlab.studies.paper.claims import CLAIMS
from gqlab.studies.paper.statistics import HOLDS, OUTCOMES, REVERSED, UNDECIDED, WEAKER, Band, Side

ROOT = Path(__file__).parents[3]
DOCUMENT = ROOT / "docs" / "reproduction.md"
TEXT = DOCUMENT.read_text()
FOUND = TEXT[TEXT.index("## What was found") : TEXT.index("## Claim by claim")]


def table() -> list[list[str]]:
    lines = [line for line in FOUND.splitlines() if re.match(r"\| [GFET]\d", line)]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def numbers(text: str) -> list[float]:
    """Of "0.3 [0.2, 0.4]"."""
    raised = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
    plain = re.sub(r"·10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)", lambda m: "e" + m[1].translate(raised), text).replace("−", "-")
    return [float(number) for number in re.findall(r"-?\d[\d.]*(?:e-?\d+)?", plain)]


def test_the_table_has_every_claim_once_and_in_order():
    rows = table()
    assert [row[0] for row in rows] == [claim.key for claim in CLAIMS]
    assert [row[1] for row in rows] == [f"{claim.place}: {claim.statement}" for claim in CLAIMS]
    assert [row[2] for row in rows] == [claim.figure for claim in CLAIMS]
    assert [row[5] for row in rows] == [claim.side.words for claim in CLAIMS]
    assert {row[3] for row in rows} <= set(OUTCOMES)


def test_the_verdicts_follow_from_the_intervals_beside_them():
    """As far as three digits tell: no interval here ends at an edge."""
    for claim, row in zip(CLAIMS, table(), strict=True):
        _, low, high = numbers(row[4])
        if isinstance(claim.side, Side):
            import math

            low, high = math.log(low), math.log(high)
        assert isinstance(claim.side, Side | Band)
        assert claim.side.outcome(low, high) == row[3], claim.key


def test_the_counts_are_those_of_the_table_in_every_document():
    outcomes = [row[3] for row in table()]
    n = {outcome: outcomes.count(outcome) for outcome in OUTCOMES}
    counted = (
        f"Of {len(CLAIMS)} claims {n[HOLDS]} hold, {n[WEAKER]} weaker than claimed, {n[UNDECIDED]} undecided, "
        f"{n[REVERSED]} reversed"
    )
    assert counted in FOUND
    for name in ("README.md", "docs/index.md"):
        words = " ".join((ROOT / name).read_text().split())
        sentence = f"of its {len(CLAIMS)} claims {n[HOLDS]} hold, {n[WEAKER]} is weaker than claimed, "
        assert sentence + f"{n[UNDECIDED]} are undecided and {n[REVERSED]} are reversed" in words, name
        assert "**" + str(n[HOLDS]) not in words


def test_its_pictures_are_there():
    for line in TEXT.splitlines():
        if line.startswith("!["):
            assert (DOCUMENT.parent / line.split("(")[1].rstrip(")")).is_file()
