"""The strip beside a claim: its ratio on every problem, turned so that right is for the claim and left against it."""

from __future__ import annotations

import math

from gqlab.studies.paper.claims import Judged
from gqlab.studies.paper.statistics import HOLDS, REVERSED, UNDECIDED, WEAKER, Effect, Side

TONES = {HOLDS: "good", WEAKER: "part", UNDECIDED: "open", REVERSED: "bad"}

#: Factors beyond this one are drawn at the edge.
EDGE = 100.0
WIDTH, HEIGHT, PAD = 220, 30, 8


def toward(effect: Effect, side: Side) -> tuple[float, float, float]:
    """log₁₀ of the factor in the claimed direction, and its interval."""
    sign = -1 if side.direction == "below" else 1
    ratio, low, high = (sign * math.log10(max(v, 1e-300)) for v in (effect.ratio, effect.low, effect.high))
    return ratio, min(low, high), max(low, high)


def strip(judged: Judged, tone: str) -> str:
    """An SVG: small dots are problems, the large one with its interval is the pooled ratio; nothing for a slope."""
    side, verdict = judged.claim.side, judged.verdict
    if not isinstance(side, Side):
        return ""
    middle = HEIGHT / 2
    marks = [f'<line class="axis" x1="{PAD}" x2="{WIDTH - PAD}" y1="{middle}" y2="{middle}"/>']
    marks.append(_rule(0.0, "one"))
    if side.tau != 1:
        marks.append(_rule(math.log10(side.tau), "mark"))
    for k, effect in enumerate(verdict.problems):  # a little up and down, so that equal ones can be counted
        y = middle + (k * 5 % 13 - 6) * 1.6
        marks.append(f'<circle cx="{_x(toward(effect, side)[0]):.1f}" cy="{y:.1f}" r="2.6"/>')
    ratio, low, high = toward(verdict.pooled, side)
    width = max(_x(high) - _x(low), 0.1)
    marks.append(
        f'<rect class="{tone}" x="{_x(low):.1f}" y="{middle - 1.25}" width="{width:.1f}" height="2.5"/>'
        f'<circle class="pooled {tone}" style="fill-opacity:1" cx="{_x(ratio):.1f}" cy="{middle}" r="5"/>'
    )
    words = f"{judged.claim.key}: {judged.where}"
    return (
        f'<svg class="strip" role="img" aria-label="{words}" viewBox="0 0 {WIDTH} {HEIGHT}">'
        f"<title>{words}</title>{''.join(marks)}</svg>"
    )


def _x(log_factor: float) -> float:
    limit = math.log10(EDGE)
    inside = max(-limit, min(limit, log_factor)) if math.isfinite(log_factor) else 0.0
    return PAD + (inside + limit) / (2 * limit) * (WIDTH - 2 * PAD)


def _rule(log_factor: float, kind: str) -> str:
    x = _x(log_factor)
    return f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="3" y2="{HEIGHT - 3}"/>'
