"""The tables and the numbers of ``gqlab rates``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from gqlab.studies.rates.design import SCHEDULES, RateSettings
from gqlab.studies.rates.rates import FamilyRates, MeasuredRates
from gqlab.studies.rates.statistics import FittedSlope
from gqlab.support.checks import FloatArray
from gqlab.support.files import write_whole

NAMES = {"GreedyGQ": "Greedy-GQ", "VRGreedyGQ": "VR-Greedy-GQ"} | {name: name for name in SCHEDULES}


def write(rates: MeasuredRates, out: Path) -> str:
    """Write ``rates.json``, ``.md`` and ``.png``, or ``rates-quick.*`` of a quick run; returns the tables."""
    from gqlab.studies.rates.figure import figure

    name = "rates-quick" if rates.quick else "rates"
    text = "\n".join(tables(rates))
    numbers = json.dumps(rates.to_dict(), indent=1, allow_nan=False, ensure_ascii=False)
    write_whole(out / f"{name}.json", lambda file: file.write(numbers.encode()))
    write_whole(out / f"{name}.md", lambda file: file.write((text + "\n").encode()))
    figure(rates, out / f"{name}.png")
    return text


def tables(rates: MeasuredRates) -> Iterator[str]:
    """The tables in Markdown, family by family."""
    if rates.quick:
        yield "A quick run, to try the command: these numbers say nothing."
        yield ""
    for family in rates.families:
        yield f"### {family.name}, {family.n_problems} problems"
        for part in (slope_table, sample_table, schedule_table, member_table, exact_table, floor_table, edge_table):
            yield ""
            yield from part(family, rates.settings)
        yield ""


def slope_table(family: FamilyRates, settings: RateSettings) -> Iterator[str]:
    """Overall slopes."""
    yield "| slope of log samples against log 1/ε | measured | 95 % interval | problems | theory |"
    yield "|---|---|---|---|---|"
    for s in family.slopes:
        name = s.name
        for short, long in NAMES.items():
            name = name.replace(f"{short},", f"{long},") if name.startswith(f"{short},") else name
        yield f"| {name} | {_signed(s.mean)} | {_between(s)} | {s.n} | {s.theory} |"


def sample_table(family: FamilyRates, settings: RateSettings) -> Iterator[str]:
    """Samples with tuned settings, their ratio, and the slopes from each ε to the next."""
    yield "Tuned: samples (geometric mean over the problems that reached ε; in brackets how many did), the paired"
    yield "ratio, and the local slope from this ε to the next:"
    yield ""
    yield "| ε / ‖∇J(θ_0)‖² | Greedy-GQ | VR-Greedy-GQ | first ÷ second | Greedy-GQ, slope | VR-Greedy-GQ, slope |"
    yield "|---|---|---|---|---|---|"
    for k, fraction in enumerate(settings.fractions):
        r = family.ratios[k]
        ratio = f"{r.mean:.2f} {_between(r)}" if r.n else "–"
        cells = [_geometric(family.samples[name][:, k]) for name in ("GreedyGQ", "VRGreedyGQ")]
        cells += [ratio, *(_local(family.local[name], k) for name in ("GreedyGQ", "VRGreedyGQ"))]
        yield f"| {fraction:.3g} | " + " | ".join(cells) + " |"


def schedule_table(family: FamilyRates, settings: RateSettings) -> Iterator[str]:
    """Samples with the theorems' own schedules."""
    yield "The theorems' schedules, their constants fitted at the largest ε: samples, and the local slope:"
    yield from _beside(family, settings, SCHEDULES)


def member_table(family: FamilyRates, settings: RateSettings) -> Iterator[str]:
    """Samples that the family of estimators needs."""
    yield "The family of estimators with its defaults, nothing tuned: samples, and the local slope:"
    yield from _beside(family, settings, settings.members)


def _beside(family: FamilyRates, settings: RateSettings, names: Iterable[str]) -> Iterator[str]:
    """Samples and local slopes of several, side by side."""
    names = list(names)
    yield ""
    yield "| ε / ‖∇J(θ_0)‖² | " + " | ".join(f"{name} | local slope" for name in names) + " |"
    yield "|---" * (2 * len(names) + 1) + "|"
    for k, fraction in enumerate(settings.fractions):
        cells = [f"{_geometric(family.samples[name][:, k])} | {_local(family.local[name], k)}" for name in names]
        yield f"| {fraction:.3g} | " + " | ".join(cells) + " |"


def exact_table(family: FamilyRates, settings: RateSettings) -> Iterator[str]:
    """Steps of gradient descent."""
    yield "Gradient descent with the exact gradient, the best of its step sizes for each ε:"
    yield ""
    yield "| ε / ‖∇J(θ_0)‖² | steps | local slope |"
    yield "|---|---|---|"
    for k, fraction in enumerate(settings.exact_fractions):
        yield f"| {fraction:.3g} | {_geometric(family.exact[:, k])} | {_local(family.local['exact'], k)} |"


def floor_table(family: FamilyRates, settings: RateSettings) -> Iterator[str]:
    """The error that remains."""
    yield "Mean ‖∇J‖² that remains of runs from a stationary point (geometric mean over problems; in brackets Mη_θ):"
    yield ""
    yield "| η_θ = 2η_ω | Greedy-GQ | " + " | ".join(f"M = {M}" for M in settings.floor_batch_sizes) + " |"
    yield "|---" * (len(settings.floor_batch_sizes) + 2) + "|"
    for eta, row in zip(settings.floor_etas, np.exp(np.log(family.floors).mean(axis=0)), strict=True):
        cells = [f"{x:.2e} ({M * eta:g})" for M, x in zip(settings.floor_batch_sizes, row[1:], strict=True)]
        yield f"| {eta:g} | {row[0]:.2e} | " + " | ".join(cells) + " |"
    yield ""
    yield "| slope of log remaining error against log M | measured | 95 % interval | problems | theory |"
    yield "|---|---|---|---|---|"
    for s in family.floor_slopes:
        yield f"| {s.name} | {_signed(s.mean)} | {_between(s)} | {s.n} | {s.theory} |"


def edge_table(family: FamilyRates, settings: RateSettings) -> Iterator[str]:
    """How often a choice lies at the edge of its grid."""
    yield "Choices at an edge of the grid, in % of all (problem, ε):"
    yield ""
    yield "| | settings | η_θ | η_ω/η_θ | M | any |"
    yield "|---|---|---|---|---|---|"
    for name, shares in family.at_edge.items():
        cells = [f"{100 * shares[axis]:.0f}" if axis in shares else "–" for axis in ("η_θ", "η_ω/η_θ", "M", "any")]
        yield f"| {NAMES[name]} | {family.n_tried[name]} | " + " | ".join(cells) + " |"


def _signed(x: float) -> str:
    return f"{x:.2f}".replace("-", "−")


def _between(s: FittedSlope) -> str:
    return f"[{_signed(s.low)}, {_signed(s.high)}]" if np.isfinite(s.low) else "–"


def _local(slopes: list[FittedSlope], k: int) -> str:
    return f"{_signed(slopes[k].mean)} {_between(slopes[k])}" if k < len(slopes) and slopes[k].n else "–"


def _geometric(samples: FloatArray) -> str:
    reached = samples[np.isfinite(samples)]
    return f"{np.exp(np.log(reached).mean()):.3g} ({len(reached)})" if len(reached) else "not reached"
