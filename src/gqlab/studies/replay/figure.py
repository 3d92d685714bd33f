"""The figure of the study: learning curves beside each other, and max |Q| against its bound."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from gqlab.plots.style import BLUE, GREEN, GREY, INK, ORANGE, SKY, VERMILION, short, styled
from gqlab.studies.replay.design import BASE, CORRECTED, ENVIRONMENTS, PLAIN, UNCORRECTED
from gqlab.studies.replay.statistics import ReplayEntries
from gqlab.support.files import write_whole

COLORS = {
    BASE: BLUE,
    PLAIN: SKY,
    "preset without replay": VERMILION,
    "Sarsa(.9), the same features": ORANGE,
    "Q-learning, the same features": GREEN,
    CORRECTED[0]: BLUE,
    CORRECTED[1]: GREEN,
    UNCORRECTED[0]: VERMILION,
    UNCORRECTED[1]: ORANGE,
}

#: The parts whose curves are drawn.
CURVES = ("main", "again", "lander", "discrete")

#: Panels beside each other.
COLUMNS = 3


def write_figure(entries: ReplayEntries, path: Path) -> str:
    """As PNG, and as SVG text."""
    import matplotlib.figure

    curves = list(dict.fromkeys((part, env) for part, env, *_ in entries if part in CURVES))
    discounts = list(dict.fromkeys(gamma for part, _, _, gamma, _ in entries if part == "values"))
    n_rows = -(-(len(curves) + len(discounts)) // COLUMNS)
    out = io.BytesIO()
    with styled(**{"svg.hashsalt": "replay"}):
        page = matplotlib.figure.Figure(figsize=(13, 3.6 * n_rows + 0.8), layout="constrained")
        panels = list(page.subplots(n_rows, COLUMNS, squeeze=False).flat)
        for axes, (part, env) in zip(panels, curves, strict=False):
            _curves(axes, entries, part, env)
        for axes, gamma in zip(panels[len(curves) :], discounts, strict=False):
            _values(axes, entries, gamma)
        for axes in panels[len(curves) + len(discounts) :]:
            axes.set_visible(False)
        names: dict[str, Any] = {}
        for axes in panels:
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
                names.setdefault(label, handle)
        page.legend(list(names.values()), list(names), loc="outside lower center", ncols=4)
        write_whole(path, lambda file: page.savefig(file, format="png", dpi=130, metadata={"Software": None}))
        page.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue().decode()


def _curves(axes: Any, entries: ReplayEntries, part: str, env: str) -> None:
    """The greedy policy on the way: the median of the seeds, and their range."""
    for (one, name, row, _, _), runs in entries.items():
        if (one, name) == (part, env):
            steps, least, median, most = runs.curve()
            color = COLORS.get(row, GREY)
            axes.fill_between(steps, least, most, color=color, alpha=0.12, linewidth=0)
            axes.plot(steps, median, color=color, label=row, zorder=3 if row == BASE else 2)
    about = ENVIRONMENTS[env]
    if about.threshold is not None:
        axes.axhline(about.threshold, color=INK, linewidth=0.8, linestyle=":")
    else:
        axes.set_ylim(bottom=-200)
    axes.set_xscale("log")
    axes.set_xlim(left=about.every)
    axes.xaxis.set_major_formatter(short)
    axes.xaxis.set_minor_formatter("")
    axes.set(xlabel="steps", ylabel="mean return of a check")
    axes.set_title(f"{env}, again" if part == "again" else env)


def _values(axes: Any, entries: ReplayEntries, gamma: float | None) -> None:
    """max |Q| at the checks, one line a seed; the bound as dots."""
    for (part, _, row, discount, _), runs in entries.items():
        if part == "values" and discount == gamma:
            for k, (steps, largest) in enumerate(zip(runs.steps, runs.max_q, strict=True)):
                label = row if k == 0 else None
                axes.plot(steps, largest / runs.q_bound, color=COLORS[row], alpha=0.6, linewidth=0.9, label=label)
    axes.axhline(1.0, color=INK, linewidth=0.8, linestyle=":")
    axes.xaxis.set_major_formatter(short)
    axes.set(xlabel="steps", ylabel="max |Q| / bound")
    axes.set_title(f"CartPole-v1, γ = {gamma:g}")
