"""Numbers as a reader wants them; the verdicts as Markdown and JSON."""

from __future__ import annotations

import json
import math
from typing import Any

from gqlab.studies.paper.claims import Judged, alarms, counts, summary
from gqlab.studies.paper.departures import CHOICES, DEPARTURES
from gqlab.studies.paper.statistics import Band, Effect

#: Instead of a verdict, in a quick run.
PREVIEW = "preview: too few problems to judge"


def number(value: float) -> str:
    """Three figures, or three decimals near 1; powers of ten where the number is very large or small."""
    if math.isnan(value):
        return "–"
    if value < 0:
        return f"−{number(-value)}"
    if 0.1 <= value < 10:
        return f"{value:.3f}"
    if 1e-4 <= value < 1e4:
        digits = f"{value:.3g}"
        return digits if "e" not in digits else f"{value:.0f}"
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa}·10{str(int(exponent)).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"


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
    """``claims.json``: no time of day, no folder, nothing that a second run would have otherwise."""
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
    lines += [
        "| | claim | figure | verdict | pooled [95 %] | claimed | borne out alone |",
        "|---|---|---|---|---|---|---|",
    ]
    for j in judged:
        c, v = j.claim, j.verdict
        lines.append(
            f"| {c.key} | {c.place}: {c.statement} | {c.figure} | {PREVIEW if quick else v.outcome} | "
            f"{effect(v.pooled)} | {c.side.words} | {share(j)} |"
        )
    lines += ["", "### Measured otherwise", "", "| | statistic | verdict by the same rule | pooled [95 %] |"]
    lines.append("|---|---|---|---|")
    for j in judged:
        rows = [(f"{j.claim.quantity} (**the register's**)", j.verdict), *j.beside]
        for words, v in rows if j.beside else []:
            lines.append(f"| {j.claim.key} | {words} | {PREVIEW if quick else v.outcome} | {effect(v.pooled)} |")
    for title, entries in (
        ("Departures from the letter of the paper", DEPARTURES),
        ("Choices where it is silent", CHOICES),
    ):
        lines += ["", f"### {title}", "", "| | the paper | here | why |", "|---|---|---|---|"]
        lines += [f"| {d.point} | {d.paper} | {d.here} | {d.reason} |" for d in entries]
    return "\n".join(lines) + "\n"


def ends(side: Any) -> str:
    """τ of a claim, as the register writes it."""
    return f"holds if {side.words}" if isinstance(side, Band) else f"{side.tau:g}"
