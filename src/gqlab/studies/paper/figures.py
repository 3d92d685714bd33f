"""Figures: panels drawn in one style, as PNG and SVG with their data as CSV; the paper's figures as PDF, too."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from gqlab.plots.style import BLUE, GREEN, PURPLE, VERMILION, label_powers, short, styled
from gqlab.studies.paper.panels import Panel, Series
from gqlab.support.files import write_whole

#: What these figures set besides gqlab's own style.
SIZES = Path(__file__).with_name("paper.mplstyle")

#: One colour for each algorithm everywhere; Okabe and Ito's palette, safe for colour-blind eyes.
COLOURS = {
    "Greedy-GQ": VERMILION,
    "VR-Greedy-GQ": BLUE,
    "actor-critic": GREEN,
    "policy gradient": PURPLE,
    "Q-learning": "#7f7f7f",
}

#: Width and height of a panel in inches, three to the width of a two-column page, and its margins.
PANEL = 2.4, 2.05
LEFT, RIGHT, BOTTOM, TOP = 0.53, 0.13, 0.38, 0.24

#: Over more decades than this an axis has no small ticks.
MANY = 3

#: With more names than this a legend has two columns, and so much of the height above the curves.
FEW, HEADROOM = 3, 0.28


def in_style(salt: str) -> AbstractContextManager[None]:
    """The style of the reproduction's figures; the names inside an SVG depend on ``salt`` alone."""
    return styled(SIZES, **{"svg.hashsalt": salt})


def colour(label: str) -> str:
    """The colour of the algorithm that a label begins with."""
    for name in sorted(COLOURS, key=len, reverse=True):
        if label.startswith(name):
            return COLOURS[name]
    return "#57606a"


def write_figure(folder: Path, name: str, panels: Sequence[Panel], kinds: tuple[str, ...] = ("png", "svg")) -> None:
    """``name``.png (300 dots to the inch), .svg, where asked .pdf, and .csv in ``folder``."""
    with in_style(name):
        figure = draw(panels)
        for kind in kinds:
            save(figure, folder / f"{name}.{kind}")
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["panel", "series", "style", "x_axis", "y_axis", "x", "middle", "low", "high"])
    for panel in panels:
        for s in panel.series:
            for point in zip(s.x, s.middle, s.low, s.high, strict=True):
                rows.writerow(
                    [panel.title, s.label, s.style, panel.x_label, panel.y_label, *(f"{v:.10g}" for v in point)]
                )
    write_whole(folder / f"{name}.csv", lambda file: file.write(text.getvalue().encode()))


def panel_svg(panel: Panel, salt: str) -> str:
    """One panel alone as SVG text, for the page."""
    with in_style(salt):
        return svg_text(draw([panel]))


def svg_text(figure: Figure) -> str:
    """A figure as an SVG element for use inside a page."""
    out = io.BytesIO()
    figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    text = out.getvalue().decode()
    return text[text.index("<svg") :]


def save(figure: Figure, path: Path) -> None:
    """Write a figure whole; the same data give the same bytes."""
    metadata = {".svg": {"Date": None}, ".png": {"Software": None}, ".pdf": {"CreationDate": None}}[path.suffix]
    write_whole(path, lambda file: figure.savefig(file, format=path.suffix[1:], metadata=metadata))


def draw(panels: Sequence[Panel]) -> Figure:
    """A figure with the panels side by side; fixed margins, so that all figures line up."""
    width, height = PANEL
    figure = Figure(figsize=(width * len(panels), height))
    FigureCanvasAgg(figure)
    for column, panel in enumerate(panels):
        x = width * len(panels)
        box = (column * width + LEFT) / x, BOTTOM / height, (width - LEFT - RIGHT) / x, 1 - (BOTTOM + TOP) / height
        draw_panel(figure.add_axes(box), panel)
    return figure


def draw_panel(axes: Any, panel: Panel) -> None:
    """Lines with bands or points with bars, their names inside the axes where there is room."""
    for series in panel.series:
        _draw_series(axes, series)
    axes.set_title(panel.title, x=-LEFT / (PANEL[0] - LEFT - RIGHT) + 0.02)
    axes.set(xlabel=panel.x_label, ylabel=panel.y_label)
    if panel.log_y:
        axes.set_yscale("log")
    if panel.log_x:
        axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(short))
    axes.xaxis.set_major_locator(
        MaxNLocator(4, steps=[1, 2, 2.5, 3, 5, 10]) if not panel.log_x else LogLocator(subs=(1,))
    )  # fmt: skip
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_minor_locator(NullLocator())
    if panel.log_y:
        label_powers(axes, MANY)
    else:
        axes.yaxis.set_major_formatter(FuncFormatter(short))
    axes.margins(x=0.02 if not panel.log_x else 0.06)
    handles, labels = _named(axes)
    if len(labels) > FEW:  # two columns above the curves, where room is made for them
        low, high = axes.get_ylim()
        axes.set_ylim(low, high + HEADROOM * (high - low))
    axes.legend(handles, labels, loc="upper left" if len(labels) > FEW else "best", ncols=2 if len(labels) > FEW else 1)


def _named(axes: Any) -> tuple[list[Any], list[str]]:
    """What the legend lists: every name once."""
    handles, labels = axes.get_legend_handles_labels()
    first = {label: handle for handle, label in reversed(list(zip(handles, labels, strict=True)))}
    return [first[label] for label in dict.fromkeys(labels)], list(dict.fromkeys(labels))


def _draw_series(axes: Any, series: Series) -> None:
    tint = colour(series.label)
    tuned = series.label.endswith("tuned")
    if series.style == "points":
        bars = np.stack([series.middle - series.low, series.high - series.middle])
        bars = np.where(np.isfinite(bars), bars, 0.0)
        axes.errorbar(
            series.x, series.middle, bars, fmt="o", color=tint, capsize=2, elinewidth=1.2, label=series.label
        )  # fmt: skip
    elif series.style == "thin":
        axes.plot(series.x, series.middle, color=tint, linewidth=0.4, alpha=0.35)
    elif series.style == "fit":
        axes.plot(
            series.x, series.middle, color=COLOURS["VR-Greedy-GQ"], linewidth=1, linestyle=":", label=series.label
        )
    elif series.style == "dashed":
        axes.plot(series.x, series.middle, color=tint, linestyle=(0, (4, 2)), linewidth=0.9)
    else:
        if not tuned:  # a fifth band would hide the others
            shade = {"color": tint, "alpha": 0.16, "linewidth": 0}
            axes.fill_between(series.x, series.low, series.high, step="post" if series.steps else None, **shade)
        dash, kind = (0, (1.2, 1)) if tuned else "-", "steps-post" if series.steps else "default"
        label = "… tuned" if tuned else series.label
        width = 2.0 if series.label == "Greedy-GQ" else 1.1  # it shows beside one that lies on it
        axes.plot(series.x, series.middle, color=tint, ls=dash, lw=width, label=label, drawstyle=kind)
