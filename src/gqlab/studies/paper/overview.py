"""One picture of all verdicts: for every claim its ratio on every problem, right for the claim and left against it."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from gqlab.studies.paper.claims import Judged
from gqlab.studies.paper.figures import in_style, save
from gqlab.studies.paper.statistics import HOLDS, REVERSED, UNDECIDED, WEAKER, Side
from gqlab.studies.paper.strips import toward
from gqlab.studies.paper.words import PREVIEW, headline, number
from gqlab.support.files import write_whole

TINTS = {HOLDS: "#1a7f37", WEAKER: "#9a6700", UNDECIDED: "#57606a", REVERSED: "#b3261e"}

#: log₁₀ of the factors at the ends of the axis; beyond them a claim is drawn at the edge.
LEFT_END, RIGHT_END = -1.0, 2.0

#: Inches: the picture, the statements on its left, the plot; what remains is for the verdicts.
WIDTH, TEXT, PLOT = 9.4, 5.15, 2.9


def write_overview(folder: Path, judged: tuple[Judged, ...], quick: bool = False) -> None:
    """``claims``.png, .svg and .csv in ``folder``."""
    with in_style("claims"):
        figure = draw(judged, quick)
        save(figure, folder / "claims.png")
        save(figure, folder / "claims.svg")
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["claim", "outcome", "problem", "ratio", "low", "high"])
    for j in judged:
        outcome = PREVIEW if quick else j.verdict.outcome
        for which, e in (("pooled", j.verdict.pooled), *enumerate(j.verdict.problems)):
            rows.writerow([j.claim.key, outcome, which, *(f"{v:.10g}" for v in (e.ratio, e.low, e.high))])
    write_whole(folder / "claims.csv", lambda file: file.write(text.getvalue().encode()))


def draw(judged: tuple[Judged, ...], quick: bool = False) -> Figure:
    """Claims from top to bottom, in the paper's order."""
    height = 0.235 * len(judged) + 0.95
    figure = Figure(figsize=(WIDTH, height))
    FigureCanvasAgg(figure)
    axes = figure.add_axes((TEXT / WIDTH, 0.45 / height, PLOT / WIDTH, 1 - 0.9 / height))
    for y, j in enumerate(judged):
        _row(axes, y, j, quick)
    axes.set_ylim(max(len(judged), 1) - 0.4, -0.6)
    axes.set_xlim(LEFT_END - 0.1, RIGHT_END + 0.1)
    axes.set_yticks([])
    ticks = [math.log10(v) for v in (0.1, 0.5, 1, 2, 10, 100)]
    axes.set_xticks(ticks, ["10×", "2×", "1", "2×", "10×", "100×"])
    axes.axvline(0, color="#57606a", linewidth=0.8)
    axes.set_xlabel("← against the claim        factor        for the claim →")
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)
    label = "Small dots: problems; large ones: pooled, with the interval; dotted: τ = 2"
    figure.text(0.006, 1 - 0.17 / height, f"{headline(judged, quick)}.", fontsize=8, fontweight="bold", va="center")
    figure.text(0.006, 1 - 0.34 / height, label, fontsize=7, va="center", color="#57606a")
    return figure


def _row(axes: Any, y: int, j: Judged, quick: bool) -> None:
    outcome = UNDECIDED if quick else j.verdict.outcome
    tint, side = TINTS[outcome], j.claim.side
    if isinstance(side, Side):
        x = np.array([toward(effect, side)[0] for effect in j.verdict.problems])
        up_down = (np.arange(len(x)) * 5 % 13 - 6) / 6 * 0.26
        axes.scatter(np.clip(x, LEFT_END, RIGHT_END), y + up_down, s=4, color=tint, alpha=0.4, linewidths=0)
        middle, low, high = np.clip(np.nan_to_num(toward(j.verdict.pooled, side)), LEFT_END, RIGHT_END)
        axes.plot([low, high], [y, y], color=tint, linewidth=1.4)
        axes.scatter([middle], [y], s=20, color=tint, edgecolors="white", linewidths=0.6, zorder=3)
        if side.tau != 1:
            axes.plot([math.log10(side.tau)] * 2, [y - 0.4, y + 0.4], color="#57606a", linewidth=0.8, linestyle=":")
    else:
        e = j.verdict.pooled
        words = f"slope {number(e.ratio)} [{number(e.low)}, {number(e.high)}], claimed {side.words}"
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1}
        where = axes.get_yaxis_transform()
        axes.text(0.5, y, words, transform=where, ha="center", va="center", color=tint, fontsize=6, bbox=box)
    common = {"xycoords": ("axes fraction", "data"), "va": "center", "annotation_clip": False}
    left = -TEXT / PLOT + 0.02
    axes.annotate(j.claim.key, (left, y), fontsize=7, fontweight="bold", **common)
    axes.annotate(f"{j.claim.place}: {j.claim.statement}", (left + 0.11, y), fontsize=7, **common)
    label = "preview" if quick else outcome
    axes.annotate(
        label, (1, y), xytext=(6, 0), textcoords="offset points", color=tint, fontsize=7, fontweight="bold", **common
    )  # fmt: skip
