"""The figure of ``gqlab rates``: samples, local slopes and the error that remains, one row for each family."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from gqlab.plots.style import BLUE, BROWN, GREEN, GREY, INK, ORANGE, PURPLE, SKY, VERMILION, styled
from gqlab.studies.rates.design import MEMBERS, RateSettings
from gqlab.studies.rates.rates import FamilyRates, MeasuredRates
from gqlab.support.checks import FloatArray
from gqlab.support.files import write_whole
from gqlab.support.words import counted

COLORS = {
    "GreedyGQ": VERMILION, "VRGreedyGQ": BLUE, "Greedy-GQ, Theorem 4": VERMILION, "VR-Greedy-GQ, the paper": PURPLE,
    "VR-Greedy-GQ, Corollary 2": BLUE, "exact": INK, "averaged Greedy-GQ": ORANGE, "SAGA": GREEN,
    "streaming SVRG": SKY, "ROOT": GREY, "least squares": BROWN,
}  # fmt: skip
#: Of the step sizes, from the smallest on.
SHADES = ("#9ecae1", "#4292c6", "#0072b2", "#08306b")
#: With fewer problems the intervals of local slopes are wider than the panel.
LEAST_FOR_BANDS = 5
LABELS = {"GreedyGQ": "Greedy-GQ, tuned", "VRGreedyGQ": "VR-Greedy-GQ, tuned", "exact": "exact gradient, steps"}


def write_figure(rates: MeasuredRates, path: Path) -> str:
    """One thin line a problem, a thick one their geometric mean, where all have a value: as PNG, and as SVG text."""
    import matplotlib.figure

    n = len(rates.families)
    out = io.BytesIO()
    with styled(**{"svg.hashsalt": "rates"}):
        page = matplotlib.figure.Figure(figsize=(13, 3.6 * n + 0.9), layout="constrained")
        axes = page.subplots(n, 3, squeeze=False)
        for row, family in zip(axes, rates.families, strict=True):
            _samples(row[0], family, rates.settings)
            _local(row[1], family, rates.settings)
            _floors(row[2], family, rates.settings)
        for column, side, columns in ((0, "left", 4), (2, "right", 2)):
            names = _named(axes[:, column])
            place: Any = f"outside lower {side}"
            page.legend(list(names.values()), list(names), loc=place, ncols=columns)
        write_whole(path, lambda file: page.savefig(file, format="png", dpi=130, metadata={"Software": None}))
        page.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue().decode()


def _named(column: Any) -> dict[str, Any]:
    """The lines of all panels of a column by their names."""
    found: dict[str, Any] = {}
    for axes in column:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    return found


def _samples(axes: Any, family: FamilyRates, settings: RateSettings) -> None:
    inverse = 1 / np.array(settings.fractions)
    for name, samples in family.samples.items():
        style = "-" if name in LABELS else ":" if name in MEMBERS else "--"
        _lines(axes, inverse, samples, COLORS[name], LABELS.get(name, name), style, each=name in LABELS)
    _lines(axes, 1 / np.array(settings.exact_fractions), family.exact, COLORS["exact"], LABELS["exact"], "-.", False)
    axes.set(
        xlabel=r"$\|\nabla J(\theta_0)\|^2/\epsilon$",
        ylabel=r"samples until $E\|\nabla J(\theta_\xi)\|^2 \leq \epsilon$",
        xscale="log",
        yscale="log",
    )
    axes.set_title(f"{family.name}, {counted(family.n_problems, 'problem')}")


def _local(axes: Any, family: FamilyRates, settings: RateSettings) -> None:
    for name, slopes in family.local.items():
        fractions = np.array(settings.exact_fractions if name == "exact" else settings.fractions)
        middle = 1 / np.sqrt(fractions[1:] * fractions[:-1])
        mean, low, high = (np.array([getattr(s, part) for s in slopes]) for part in ("mean", "low", "high"))
        tuned = name in LABELS
        style = "-." if name == "exact" else "-" if tuned else ":" if name in MEMBERS else "--"
        axes.plot(middle, mean, style, color=COLORS[name], lw=2 if tuned else 1.2, marker="o" if tuned else "", ms=3)
        if name in ("GreedyGQ", "VRGreedyGQ") and family.n_problems >= LEAST_FOR_BANDS:
            axes.fill_between(middle, low, high, color=COLORS[name], alpha=0.15, lw=0)
    for level, text in ((1, "1"), (5 / 3, "5/3"), (2, "2"), (3, "3")):
        axes.axhline(level, color="0.75", lw=0.8, zorder=0)
        axes.annotate(text, (1.0, level), xycoords=("axes fraction", "data"), xytext=(3, 0),
                      textcoords="offset points", va="center", fontsize=8, color="0.4")  # fmt: skip
    axes.set(
        xlabel=r"$\|\nabla J(\theta_0)\|^2/\epsilon$", ylabel="local slope of log samples", xscale="log", ylim=(0, 4)
    )
    band = " (band: 95 %)" if family.n_problems >= LEAST_FOR_BANDS else ""
    axes.set_title(r"slope from each $\epsilon$ to the next" + band)


def _floors(axes: Any, family: FamilyRates, settings: RateSettings) -> None:
    M = np.array(settings.floor_batch_sizes, dtype=float)
    for j, eta in enumerate(settings.floor_etas):
        color = SHADES[j % len(SHADES)]
        _lines(axes, M, family.floors[:, j, 1:], color, rf"VR-Greedy-GQ, $\eta_\theta$ = {eta:g}", "-", True)
        mean = np.exp(np.log(family.floors[:, j, 1:]).mean(axis=0))
        solved = M * eta >= 100
        axes.plot(M[solved], mean[solved], "o", color=color, ms=7, mfc="white", mew=1.6, zorder=5)
        greedy = np.exp(np.log(family.floors[:, j, 0]).mean())
        axes.axhline(
            greedy, color=VERMILION, lw=1, ls=":", label=r"Greedy-GQ, the same $\eta_\theta$" if j == 0 else None
        )
    last = np.exp(np.log(family.floors[:, -1, -1]).mean())
    axes.plot(M, last * M[-1] / M, ":", color="0.4", lw=1, label="slope −1")
    low, high = np.nanmin(family.floors), np.nanmax(family.floors)
    axes.set(
        xlabel="batch size M",
        ylabel=r"remaining $E\|\nabla J\|^2$",
        xscale="log",
        yscale="log",
        ylim=(low / 2, 2 * high),
    )
    axes.set_title(r"what remains; open circles: $M\eta_\theta \geq 100$")


def _lines(axes: Any, x: FloatArray, rows: FloatArray, color: str, label: str, style: str, each: bool) -> None:
    if each:
        for row in rows:
            axes.plot(x, row, color=color, lw=0.5, alpha=0.3)
    seen = np.isfinite(rows).all(axis=0)  # a mean over those that got there alone would bend
    if seen.any():
        mean = np.exp(np.log(rows[:, seen]).mean(axis=0))
        axes.plot(
            x[seen], mean, style, color=color, lw=2 if each else 1.3, marker="o" if each else "", ms=3, label=label
        )
