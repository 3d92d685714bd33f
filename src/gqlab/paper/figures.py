"""Figures: panels drawn in one style, as PNG and SVG, with their data as CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from gqlab.checks import FloatArray
from gqlab.files import write_whole
from gqlab.paper.panels import Panel, Series

STYLE = Path(__file__).with_name("paper.mplstyle")

#: One colour for each algorithm everywhere; Okabe and Ito's palette, safe for colour-blind eyes.
COLOURS = {
    "Greedy-GQ": "#d55e00",
    "VR-Greedy-GQ": "#0072b2",
    "actor-critic": "#009e73",
    "policy gradient": "#cc79a7",
    "Q-learning": "#7f7f7f",
}

#: Width and height of a panel in inches, and its margins; direct labels stand in the right one.
PANEL = 4.5, 3.0
LEFT, RIGHT, BOTTOM, TOP = 0.82, 1.2, 0.48, 0.32


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def colour(label: str) -> str:
    """The colour of the algorithm that a label begins with."""
    for name in sorted(COLOURS, key=len, reverse=True):
        if label.startswith(name):
            return COLOURS[name]
    return "#57606a"


def write_figure(folder: Path, name: str, panels: Sequence[Panel]) -> None:
    """``name``.png, .svg and .csv in ``folder``."""
    with matplotlib.rc_context(fname=str(STYLE), rc={"svg.hashsalt": name}):
        figure = draw(panels)
        save(figure, folder / f"{name}.png")
        save(figure, folder / f"{name}.svg")
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["panel", "series", "x_axis", "y_axis", "x", "middle", "low", "high"])
    for number, panel in enumerate(panels, 1):
        for s in panel.series:
            for point in zip(s.x, s.middle, s.low, s.high, strict=True):
                title = panel.title or str(number)
                rows.writerow(
                    [title, s.label.replace("\n", " "), panel.x_label, panel.y_label, *(f"{v:.10g}" for v in point)]
                )
    write_whole(folder / f"{name}.csv", lambda file: file.write(text.getvalue().encode()))


def panel_svg(panel: Panel, salt: str) -> str:
    """One panel alone as SVG text, for the page."""
    with matplotlib.rc_context(fname=str(STYLE), rc={"svg.hashsalt": salt}):
        return svg_text(draw([panel]))


def svg_text(figure: Figure) -> str:
    """A figure as an SVG element that may stand inside a page."""
    out = io.BytesIO()
    figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    text = out.getvalue().decode()
    return text[text.index("<svg") :]


def save(figure: Figure, path: Path) -> None:
    """Write a figure whole; the same data give the same bytes."""
    metadata = {"Date": None} if path.suffix == ".svg" else {"Software": None}
    write_whole(path, lambda file: figure.savefig(file, format=path.suffix[1:], metadata=metadata))


def draw(panels: Sequence[Panel]) -> Figure:
    """A figure with the panels side by side, at most three in a row; fixed margins, so that all figures line up."""
    columns = 2 if len(panels) == 4 else min(3, len(panels))
    rows = -(-len(panels) // columns)
    width, height = PANEL
    figure = Figure(figsize=(width * columns, height * rows))
    FigureCanvasAgg(figure)
    for number, panel in enumerate(panels):
        row, column = divmod(number, columns)
        left, bottom = column * width + LEFT, (rows - 1 - row) * height + BOTTOM
        x, y = width * columns, height * rows
        box = left / x, bottom / y, (width - LEFT - RIGHT) / x, (height - BOTTOM - TOP) / y
        draw_panel(figure.add_axes(box), panel)
    return figure


def draw_panel(axes: Any, panel: Panel) -> None:
    """Lines with bands or points with bars, labels at their ends."""
    for series in panel.series:
        _draw_series(axes, series)
    axes.set(title=panel.title, xlabel=panel.x_label, ylabel=panel.y_label)
    if panel.log_y:
        axes.set_yscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(_short))
    if panel.log_y:
        _label_powers(axes)
    else:
        axes.yaxis.set_major_formatter(FuncFormatter(_short))
    axes.margins(x=0.02)
    if any(s.style == "points" for s in panel.series):
        axes.set_xticks(sorted({x for s in panel.series if s.style == "points" for x in s.x}))
        axes.margins(x=0.06)
    _label_ends(axes, panel)


def _draw_series(axes: Any, series: Series) -> None:
    tint = colour(series.label)
    if series.style == "points":
        bars = np.stack([series.middle - series.low, series.high - series.middle])
        axes.errorbar(series.x, series.middle, bars, fmt="o", color=tint, capsize=3, elinewidth=1.5)
        return
    if series.style == "fit":
        axes.plot(series.x, series.middle, color=COLOURS["VR-Greedy-GQ"], linewidth=1, linestyle=":")
        return
    dash = (0, (4, 2)) if series.style == "dashed" else "-"
    axes.fill_between(series.x, series.low, series.high, color=tint, alpha=0.16, linewidth=0)
    axes.plot(series.x, series.middle, color=tint, linestyle=dash)


def _label_ends(axes: Any, panel: Panel) -> None:
    """The name of each series on the right, at the height where it ends, moved apart where two would touch."""
    axes.viewLim  # noqa: B018 - settles the limits
    to_axes = (axes.transData + axes.transAxes.inverted()).transform
    ends = sorted(((float(to_axes((s.x[-1], s.middle[-1]))[1]), s) for s in panel.series), key=lambda end: end[0])
    lines = 1 + max(series.label.count("\n") for series in panel.series)
    heights = _apart(np.array([y for y, _ in ends]), gap=0.075 * lines + 0.01)
    for (_, series), y in zip(ends, heights, strict=True):
        axes.annotate(
            series.label, (1, y), xycoords="axes fraction", xytext=(6, 0), textcoords="offset points", va="center",
            color=COLOURS["VR-Greedy-GQ"] if series.style == "fit" else colour(series.label), fontsize=8.5,
            annotation_clip=False,
        )  # fmt: skip


def _label_powers(axes: Any) -> None:
    """Powers of ten in plain letters; where less than one and a half decades are seen, their multiples too."""
    low, high = axes.get_ylim()
    decades = math.log10(high / low)
    axes.yaxis.set_major_formatter(FuncFormatter(_power))
    axes.yaxis.set_minor_formatter(FuncFormatter(_power) if decades < 1.5 else NullFormatter())
    if decades < 1.5:
        axes.yaxis.set_minor_locator(LogLocator(subs=(2, 5) if decades > 0.6 else (2, 3, 4, 5, 6, 8)))


def _power(value: float, _position: int) -> str:
    """0.003 as 3·10⁻³."""
    exponent = math.floor(math.log10(value) + 1e-9)
    factor = round(value / 10.0**exponent)
    power = f"10{str(exponent).translate(_RAISED)}"
    return power if factor == 1 else f"{factor}·{power}"


def _apart(heights: FloatArray, gap: float) -> FloatArray:
    """Rising heights, at least ``gap`` from each other, moved as little as may be."""
    out = np.clip(heights, 0.02, 0.98)
    for _ in range(100):
        for k in range(1, len(out)):
            lack = gap - (out[k] - out[k - 1])
            if lack > 0:
                out[k - 1] -= lack / 2
                out[k] += lack / 2
    return out


def _short(value: float, _position: int) -> str:
    """12000 as 12k."""
    if abs(value) >= 1e6:
        return f"{value / 1e6:g}M"
    return f"{value / 1e3:g}k" if abs(value) >= 1000 else f"{value:g}"
