"""The table, the numbers and the figure of ``gqlab rates``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gqlab.results import write_whole
from gqlab.theory.rates import Rates

NAMES = {"GreedyGQ": "Greedy-GQ", "VRGreedyGQ": "VR-Greedy-GQ"}
COLORS = {"GreedyGQ": "#c44e52", "VRGreedyGQ": "#4c72b0"}


def write(rates: Rates, out: Path) -> str:
    """Write ``rates.json``, ``rates.md`` and ``rates.png``; returns the table."""
    out.mkdir(parents=True, exist_ok=True)
    text = "\n".join(table(rates))
    numbers = json.dumps(rates.to_dict(), indent=1, allow_nan=False)
    write_whole(out / "rates.json", lambda file: file.write(numbers.encode()))
    write_whole(out / "rates.md", lambda file: file.write((text + "\n").encode()))
    figure(rates, out / "rates.png")
    return text


def table(rates: Rates) -> Iterator[str]:
    """The tables in Markdown."""
    s = rates.settings
    yield "| slope | measured | 95 % interval | Garnets | theory |"
    yield "|---|---|---|---|---|"
    for slope in rates.slopes:
        yield f"| {slope.name} | {slope.mean:.2f} | [{slope.low:.2f}, {slope.high:.2f}] | {slope.n} | {slope.theory} |"
    yield ""
    yield "Samples (geometric mean over the Garnets that reached ε; in brackets how many did):"
    yield ""
    yield "| ε / ‖∇J(θ_0)‖² | " + " | ".join(NAMES[name] for name in rates.samples) + " | ratio |"
    yield "|---" * (len(rates.samples) + 2) + "|"
    for k, fraction in enumerate(s.fractions):
        cells = [_geometric(samples[:, k]) for samples in rates.samples.values()]
        greedy, vr = rates.samples["GreedyGQ"][:, k], rates.samples["VRGreedyGQ"][:, k]
        both = np.isfinite(greedy) & np.isfinite(vr)
        ratio = f"{np.exp(np.mean(np.log(greedy[both] / vr[both]))):.2f}" if both.any() else "–"
        yield f"| {fraction:.3g} | " + " | ".join(cells) + f" | {ratio} |"
    yield ""
    yield "Mean ‖∇J‖² that remains (geometric mean over Garnets):"
    yield ""
    yield f"| M, with η_θ = {s.floor_eta:g} | " + " | ".join(f"{M}" for M in s.floor_batch_sizes) + " |"
    yield "|---" * (len(s.floor_batch_sizes) + 1) + "|"
    yield "| VR-Greedy-GQ | " + " | ".join(f"{x:.2e}" for x in np.exp(np.log(rates.floor_M).mean(axis=0))) + " |"
    yield ""
    yield "| η_θ = 2η_ω | " + " | ".join(f"{eta:g}" for eta in s.floor_eta_theta) + " |"
    yield "|---" * (len(s.floor_eta_theta) + 1) + "|"
    for name, floor in rates.floor_eta.items():
        label = NAMES[name] + (f", M = {s.floor_batch}" if name == "VRGreedyGQ" else "")
        yield f"| {label} | " + " | ".join(f"{x:.2e}" for x in np.exp(np.log(floor).mean(axis=0))) + " |"


def _geometric(samples: Any) -> str:
    reached = samples[np.isfinite(samples)]
    return f"{np.exp(np.log(reached).mean()):.3g} ({len(reached)})" if len(reached) else "not reached"


def figure(rates: Rates, path: Path) -> None:
    """Samples against 1/ε, and the remaining error against M and η: one thin line a Garnet, a thick one their mean."""
    import matplotlib.figure

    s = rates.settings
    page = matplotlib.figure.Figure(figsize=(11, 3.6), layout="constrained")
    left, middle, right = page.subplots(1, 3)
    inverse = 1 / np.array(s.fractions)
    for name, samples in rates.samples.items():
        _lines(left, inverse, samples, COLORS[name], NAMES[name])
    first = rates.samples["GreedyGQ"][:, 0]
    start = np.exp(np.log(first[np.isfinite(first)]).mean()) if np.isfinite(first).any() else 1.0
    for power, style in ((2, ":"), (3, "--")):
        guide = start * (inverse / inverse[0]) ** power
        left.plot(inverse, guide, style, color="0.4", lw=1, label=f"slope {power}")
    left.set(xlabel="‖∇J(θ₀)‖² / ε", ylabel="samples until E‖∇J(θ_ξ)‖² ≤ ε", xscale="log", yscale="log")
    left.set_ylim(top=3 * s.greedy_samples)
    left.legend(fontsize=8)
    M = np.array(s.floor_batch_sizes, dtype=float)
    _lines(middle, M, rates.floor_M, COLORS["VRGreedyGQ"], "VR-Greedy-GQ")
    last = np.exp(np.log(rates.floor_M[:, -1]).mean())
    middle.plot(M, last * M[-1] / M, ":", color="0.4", lw=1, label="slope −1")
    middle.set(xlabel="batch size M", ylabel="remaining E‖∇J‖²", xscale="log", yscale="log")
    middle.legend(fontsize=8)
    for name, floor in rates.floor_eta.items():
        _lines(right, np.array(s.floor_eta_theta), floor, COLORS[name], NAMES[name])
    right.set(xlabel="η_θ = 2η_ω", ylabel="remaining E‖∇J‖²", xscale="log", yscale="log")
    right.legend(fontsize=8)
    write_whole(path, lambda file: page.savefig(file, format="png", dpi=150))


def _lines(axes: Any, x: Any, rows: Any, color: str, label: str) -> None:
    for row in rows:
        axes.plot(x, row, color=color, lw=0.6, alpha=0.35)
    seen = np.isfinite(rows).all(axis=0)  # a mean over those that got there alone would bend
    if seen.any():
        axes.plot(x[seen], np.exp(np.log(rows[:, seen]).mean(axis=0)), color=color, lw=2, marker="o", ms=3, label=label)
