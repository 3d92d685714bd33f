"""The verdicts in words, as Markdown and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from gqlab.studies import page
from gqlab.studies.page import Table
from gqlab.studies.paper.claims import Judged, alarms, counts, summary
from gqlab.studies.paper.departures import CHOICES, DEPARTURES, Departure
from gqlab.studies.paper.statistics import Band, Effect

#: Instead of a verdict, in a quick run.
PREVIEW = "preview: too few problems to judge"


def number(value: float) -> str:
    """Three decimals near 1, three figures elsewhere."""
    return page.number(value, decimals=3)


def effect(value: Effect) -> str:
    """A ratio with its 95 % interval."""
    return f"{number(value.ratio)} [{number(value.low)}, {number(value.high)}]"


def share(j: Judged) -> str:
    """On how many problems the claim is borne out by itself, and on how many it is reversed."""
    v = j.verdict
    if v.n_borne_out is None:
        return f"{v.n_problems} problems pooled"
    back = f"; {v.n_reversed} reversed" if v.n_reversed else ""
    return f"{v.n_borne_out} of {v.n_problems}{back}"


def headline(judged: tuple[Judged, ...], quick: bool) -> str:
    """The counts, or why there are none."""
    return PREVIEW if quick else summary(judged)


def verdict_list(judged: tuple[Judged, ...], quick: bool) -> str:
    """Of every claim its verdict, in one line, and the counts: for a terminal."""
    lines = [
        f"{j.claim.key:<4} {PREVIEW if quick else j.verdict.outcome:<20} {j.claim.place}: {j.claim.statement}"
        for j in judged
    ]
    return "\n".join([*lines, f"{headline(judged, quick)}. {alarms(judged)}."])


def claims_json(judged: tuple[Judged, ...], about: dict[str, Any]) -> str:
    """``claims.json``: no time of day, no folder, nothing that would differ in a second run."""
    quick = bool(about.get("quick"))
    claims = [j.to_dict() for j in judged]
    if quick:
        for claim in claims:
            claim["outcome"] = PREVIEW
    content = {
        "summary": headline(judged, quick), "counts": None if quick else counts(judged), "false_alarms": alarms(judged),
        **about, "claims": claims, "departures": [d._asdict() for d in DEPARTURES],
        "choices": [d._asdict() for d in CHOICES],
    }  # fmt: skip
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def claims_markdown(judged: tuple[Judged, ...], quick: bool = False, note: str = "") -> str:
    """``claims.md``: the table of verdicts, what one might have chosen instead, every departure and choice."""
    lines = [f"{headline(judged, quick)}. {alarms(judged)}.", ""]
    lines += [note, ""] if note else []
    verdicts = [
        [j.claim.key, f"{j.claim.place}: {j.claim.statement}", j.claim.figure, PREVIEW if quick else j.verdict.outcome,
         effect(j.verdict.pooled), j.claim.side.words, share(j)]
        for j in judged
    ]  # fmt: skip
    header = ["", "claim", "figure", "verdict", "pooled [95 %]", "claimed", "borne out alone"]
    lines += [Table(header, verdicts).markdown(), "", "### Measured otherwise", ""]
    otherwise = [
        [j.claim.key, words, PREVIEW if quick else v.outcome, effect(v.pooled)]
        for j in judged
        for words, v in ([(f"{j.claim.quantity} (**the register's**)", j.verdict), *j.beside] if j.beside else [])
    ]
    lines.append(Table(["", "statistic", "verdict by the same rule", "pooled [95 %]"], otherwise).markdown())
    for title, entries in (
        ("Departures from the letter of the paper", DEPARTURES),
        ("Choices where it is silent", CHOICES),
    ):
        lines += ["", f"### {title}", "", departure_table(entries).markdown()]
    return "\n".join(lines) + "\n"


def departure_table(entries: Sequence[Departure]) -> Table:
    """Departures or choices, with what the paper says and why."""
    return Table(["", "the paper", "here", "why"], [list(d) for d in entries])


def ends(side: Any) -> str:
    """τ of a claim, as the register writes it."""
    return f"holds if {side.words}" if isinstance(side, Band) else f"{side.tau:g}"
