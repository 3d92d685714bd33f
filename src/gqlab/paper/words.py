"""Numbers as a reader wants them, and the table of verdicts as Markdown and JSON."""

from __future__ import annotations

import json
import math
from typing import Any

from gqlab.paper.claims import Judged, summary
from gqlab.paper.statistics import Effect


def number(value: float) -> str:
    """Three figures, or three decimals near 1; powers of ten where the number is very large or small."""
    if math.isnan(value):
        return "–"
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


def claims_json(judged: tuple[Judged, ...], about: dict[str, Any]) -> str:
    """``claims.json``."""
    return json.dumps({"summary": summary(judged), **about, "claims": [j.to_dict() for j in judged]}, indent=1) + "\n"


def claims_markdown(judged: tuple[Judged, ...], note: str = "") -> str:
    """``claims.md``: the table of verdicts."""
    lines = [f"**{summary(judged)}.**" + (f" {note}" if note else ""), ""]
    lines += [
        "| claim | figure | verdict | in the paper's setting [95 %] | claimed | further problems | there [95 %] |",
        "|---|---|---|---|---|---|---|",
    ]
    for j in judged:
        v = j.verdict
        lines.append(
            f"| {j.claim.statement} | {j.claim.figure} | **{v.outcome}** | {effect(v.paper)} | {j.claim.side.words} | "
            f"{v.n_hold} of {v.n_further} | {effect(v.further)} |"
        )
    return "\n".join(lines) + "\n"
