"""A table that prints each row as soon as it is measured, and clocks for its figures."""

from __future__ import annotations

import time
from collections.abc import Callable


class Table:
    """Rows ``what | figure | unit | compared with``; figures are kept by name for later ratios."""

    def __init__(self) -> None:
        self.figures: dict[str, float] = {}

    def section(self, title: str) -> None:
        print(f"\n{title}\n{'-' * len(title)}")

    def row(self, what: str, figure: float, unit: str, note: str = "") -> None:
        self.figures[what] = figure
        shown = f"{figure:,.4g}" if figure < 1e5 else f"{figure:.3e}"
        print(f"{what:<58} {shown:>11} {unit:<18} {note}".rstrip(), flush=True)

    def ratio(self, what: str, to: str) -> str:
        """«1.03 x of ...»: how many times the figure of another row this one is."""
        return f"{self.figures[what] / self.figures[to]:.3g} x «{to}»"

    def note(self, text: str) -> None:
        print(text, flush=True)


def best_of(function: Callable[[], object], repeats: int = 3) -> float:
    """The shortest of several times, in seconds: on a shared machine the one with the least disturbance."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return min(times)
