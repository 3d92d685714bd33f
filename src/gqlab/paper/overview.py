"""One picture of all verdicts: for every claim its ratio on every problem, right for the claim and left against it."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from gqlab.files import write_whole
from gqlab.paper.claims import Judged, summary
from gqlab.paper.figures import STYLE, save
from gqlab.paper.statistics import FAILS, HOLDS, IN_PART
from gqlab.paper.strips import needed, toward

TINTS = {HOLDS: "#1a7f37", IN_PART: "#9a6700", FAILS: "#b3261e"}

#: log₁₀ of the factors at the ends of the axis; beyond them a claim is drawn at the edge.
LEFT_END, RIGHT_END = -1.0, 3.0

#: Inches: the picture, the statements on its left, the plot; what remains is for the verdicts.
WIDTH, TEXT, PLOT = 11.4, 6.15, 4.0


def write_overview(folder: Path, judged: tuple[Judged, ...]) -> None:
    """``claims``.png, .svg and .csv in ``folder``."""
    with matplotlib.rc_context(fname=str(STYLE), rc={"svg.hashsalt": "claims"}):
        figure = draw(judged)
        save(figure, folder / "claims.png")
        save(figure, folder / "claims.svg")
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["claim", "verdict", "problem", "ratio", "low", "high"])
    for j in judged:
        for number, e in enumerate(j.verdict.problems):
            rows.writerow([j.claim.name, j.verdict.outcome, number, *(f"{v:.10g}" for v in (e.ratio, e.low, e.high))])
    write_whole(folder / "claims.csv", lambda file: file.write(text.getvalue().encode()))


def draw(judged: tuple[Judged, ...]) -> Figure:
    """Claims from top to bottom, in the paper's order."""
    height = 0.34 * len(judged) + 1.4
    figure = Figure(figsize=(WIDTH, height))
    FigureCanvasAgg(figure)
    axes = figure.add_axes((TEXT / WIDTH, 0.75 / height, PLOT / WIDTH, 1 - 1.35 / height))
    for y, j in enumerate(judged):
        _row(axes, y, j)
    axes.set_ylim(len(judged) - 0.4, -0.6)
    axes.set_xlim(LEFT_END - 0.12, RIGHT_END + 0.12)
    axes.set_yticks([])
    ticks = [math.log10(v) for v in (0.1, 0.5, 1, 2, 10, 100, 1000)]
    axes.set_xticks(ticks, ["10×", "2×", "1", "2×", "10×", "100×", "1000×"])
    axes.axvline(0, color="#57606a", linewidth=1)
    axes.set_xlabel("← against the claim        factor        for the claim →")
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)
    told = "Large dots: the paper's setting, with its interval; small ones: further problems"
    axes.set_title(f"{summary(judged)}.  {told}", x=-TEXT / PLOT + 0.03)
    return figure


def _row(axes: Any, y: int, j: Judged) -> None:
    tint, side = TINTS[j.verdict.outcome], j.claim.side
    x = np.array([toward(effect, side)[0] for effect in j.verdict.problems[1:]])
    up_down = (np.arange(len(x)) * 5 % 13 - 6) / 6 * 0.26
    axes.scatter(np.clip(x, LEFT_END, RIGHT_END), y + up_down, s=9, color=tint, alpha=0.4, linewidths=0)
    middle, low, high = np.clip(toward(j.verdict.paper, side), LEFT_END, RIGHT_END)
    axes.plot([low, high], [y, y], color=tint, linewidth=2)
    axes.scatter([middle], [y], s=46, color=tint, edgecolors="white", linewidths=0.8, zorder=3)
    if side.factor != 1:
        axes.plot([needed(side)] * 2, [y - 0.4, y + 0.4], color="#57606a", linewidth=1, linestyle=":")
    axes.annotate(
        j.claim.statement, (-TEXT / PLOT + 0.03, y), xycoords=("axes fraction", "data"), va="center", fontsize=9,
        annotation_clip=False,
    )  # fmt: skip
    axes.annotate(
        j.verdict.outcome, (1, y), xycoords=("axes fraction", "data"), xytext=(8, 0), textcoords="offset points",
        va="center", color=tint, fontsize=8.5, fontweight="bold", annotation_clip=False,
    )  # fmt: skip
