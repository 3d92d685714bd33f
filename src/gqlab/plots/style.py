"""The style of all figures, and what their axes share. Global settings are left as they were."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gqlab.support import checks
from gqlab.support.files import write_whole

try:
    import matplotlib
except ValueError as error:  # of a variable that some shells and notebooks set
    raise ValueError(f"MPLBACKEND is {os.environ.get('MPLBACKEND')!r}: Matplotlib does not know it ({error})") from None

STYLE = Path(__file__).with_name("gqlab.mplstyle")

#: Okabe and Ito's colours, which colour-blind readers can tell apart.
BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, GREY, BROWN = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#57606a", "#a6761d"
)  # fmt: skip
PALETTE = BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, GREY, BROWN
INK, SOFT = "#24292f", "#8c959f"

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@contextmanager
def styled(*more: Path, **settings: Any) -> Iterator[None]:
    """gqlab's style, further style files and settings, until the end of the block."""
    now: Any = matplotlib.rcParams
    with matplotlib.rc_context():
        for file in (STYLE, *more):
            now.update(matplotlib.rc_params_from_file(file, use_default_template=False))
        now.update(settings)
        yield


def write_figure(draw: Callable[[], Any], folder: Path, name: str, **settings: Any) -> str:
    """``name.png`` and ``name.svg`` of what ``draw`` makes in the style; returns the text of the second."""
    with styled(**{"svg.hashsalt": name, **settings}):
        drawn = draw()
        write_whole(folder / f"{name}.png", lambda file: drawn.savefig(file, format="png"))
        text = io.StringIO()
        drawn.savefig(text, format="svg", metadata={"Date": None})
    svg = text.getvalue()
    write_whole(folder / f"{name}.svg", lambda file: file.write(svg.encode()))
    return svg


def axes_of(ax: Any, size: tuple[float, float] | None = None) -> Any:
    """The axes that are given, or those of a new figure, whose ticks keep the style beyond its block."""
    from matplotlib.axes import Axes

    if ax is not None:
        checks.instance("ax", ax, Axes, "Axes of Matplotlib")
        return ax
    import matplotlib.pyplot as plt

    new: Any = plt.subplots(figsize=size, layout="constrained")[1]
    now: Any = matplotlib.rcParams
    for axis in ("x", "y"):  # ticks are created when they are drawn, after the style has ended
        for which in ("major", "minor"):
            new.tick_params(
                axis=axis,
                which=which,
                length=now[f"{axis}tick.{which}.size"],
                width=now[f"{axis}tick.{which}.width"],
                color=now[f"{axis}tick.color"],
                labelcolor=now[f"{axis}tick.color"],
                labelsize=now[f"{axis}tick.labelsize"],
                grid_color=now["grid.color"],
                grid_linewidth=now["grid.linewidth"],
            )
    return new


def power(value: float, _position: float = 0) -> str:
    """0.003 as 3·10⁻³."""
    exponent = math.floor(math.log10(value) + 1e-9)
    factor = round(value / 10.0**exponent)
    raised = f"10{str(exponent).translate(_RAISED)}"
    return raised if factor == 1 else f"{factor}·{raised}"


def short(value: float, _position: float = 0) -> str:
    """12000 as 12k."""
    if abs(value) >= 1e6:
        return f"{value / 1e6:g}M"
    return f"{value / 1e3:g}k" if abs(value) >= 1000 else f"{value:g}"


def label_powers(axes: Any, many: float = 3) -> None:
    """Label powers of ten in plain text; where fewer than one and a half decades are visible, also their multiples."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    low, high = axes.get_ylim()
    decades = math.log10(high / low)
    axes.yaxis.set_major_formatter(FuncFormatter(power))
    axes.yaxis.set_minor_formatter(FuncFormatter(power) if decades < 1.5 else NullFormatter())
    if decades < 1.5:
        axes.yaxis.set_minor_locator(LogLocator(subs=(2, 5) if decades > 0.6 else (2, 3, 4, 5, 6, 8)))
    elif decades > many:  # omit ticks that are too dense to read: each takes time to draw
        axes.yaxis.set_minor_locator(NullLocator())
