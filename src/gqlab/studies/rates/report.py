"""What ``gqlab rates`` writes: the numbers, the tables in Markdown and on a page, the figure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gqlab.studies.page import Table, facts_table, fixed, number, whole_page
from gqlab.studies.page import figure as picture
from gqlab.studies.rates.design import SCHEDULES, RateSettings
from gqlab.studies.rates.rates import FamilyRates, MeasuredRates
from gqlab.studies.rates.statistics import FittedSlope
from gqlab.studies.study import write_texts
from gqlab.support.checks import FloatArray
from gqlab.support.words import counted

NAMES = {"GreedyGQ": "Greedy-GQ", "VRGreedyGQ": "VR-Greedy-GQ"} | {name: name for name in SCHEDULES}

QUICK = "A quick run, to try the command: these numbers say nothing."

LEAD = (
    "How many samples Greedy-GQ and VR-Greedy-GQ need to bring E‖∇J(θ_ξ)‖² to ε on random Garnets, with step sizes "
    "tuned for each ε on other runs, beside the theorems' own schedules, the family of estimators with its defaults, "
    "and gradient descent with the exact gradient."
)

FRACTION = "ε / ‖∇J(θ_0)‖²"


class Captioned(NamedTuple):
    """A table and the text above it."""

    caption: str
    table: Table


def write(rates: MeasuredRates, folder: Path) -> str:
    """``rates.json``, ``.md``, ``.html`` and ``.png``, or ``rates-quick.*`` of a quick run; returns the tables."""
    from gqlab.studies.rates.figure import write_figure

    name = "rates-quick" if rates.quick else "rates"
    text = markdown(rates)
    svg = write_figure(rates, folder / f"{name}.png")
    numbers = json.dumps(rates.to_dict(), indent=1, allow_nan=False, ensure_ascii=False)
    write_texts(folder, {f"{name}.json": numbers, f"{name}.md": f"{text}\n", f"{name}.html": page(rates, svg)})
    return text


def markdown(rates: MeasuredRates) -> str:
    """All tables, family by family."""
    lines = [QUICK, ""] if rates.quick else []
    for family in rates.families:
        lines.append(f"### {family.name}, {counted(family.n_problems, 'problem')}")
        for caption, table in tables(family, rates.settings):
            lines += ["", *([caption, ""] if caption else []), table.markdown()]
        lines.append("")
    return "\n".join(lines)


def page(rates: MeasuredRates, svg: str) -> str:
    """The figure and all tables as one page."""
    s = rates.settings
    facts = [
        ("command", " ".join(["gqlab rates", *(["--quick"] if rates.quick else []), f"--seed {rates.seed}"])),
        ("problems", ", ".join(f"{family.n_problems} of {family.name}" for family in s.families)),
        ("samples", f"at most {s.budget:,} a run; {s.tuning_runs} tuning runs and {s.test_runs} others, more if short"),
    ]
    parts = [f'<p class="lead">{escape(LEAD)}</p>', f'<p class="bad">{escape(QUICK)}</p>' if rates.quick else ""]
    parts += [picture(svg)]
    for family in rates.families:
        parts.append(f"<h2>{escape(family.name)}, {counted(family.n_problems, 'problem')}</h2>")
        for caption, table in tables(family, s):
            parts += [f"<p>{escape(caption)}</p>" if caption else "", table.html()]
    return whole_page("Samples for a small gradient", "\n".join([*parts, "<h2>Settings</h2>", facts_table(facts)]))


def tables(family: FamilyRates, settings: RateSettings) -> Iterator[Captioned]:
    """The tables of a family."""
    yield Captioned("", slope_table("slope of log samples against log 1/ε", family.slopes))
    yield Captioned(
        "Tuned: samples (geometric mean over the problems that reached ε; in brackets how many did), the paired\n"
        "ratio, and the local slope from this ε to the next:", sample_table(family, settings),
    )  # fmt: skip
    yield Captioned(
        "The theorems' schedules, their constants fitted at the largest ε: samples, and the local slope:",
        _beside(family, settings, SCHEDULES),
    )
    yield Captioned(
        "The family of estimators with its defaults, nothing tuned: samples, and the local slope:",
        _beside(family, settings, settings.members),
    )
    yield Captioned(
        "Gradient descent with the exact gradient, the best of its step sizes for each ε:",
        exact_table(family, settings),
    )
    yield Captioned(
        "Mean ‖∇J‖² that remains of runs from a stationary point (geometric mean over problems; in brackets Mη_θ):",
        floor_table(family, settings),
    )
    yield Captioned("", slope_table("slope of log remaining error against log M", family.floor_slopes))
    yield Captioned("Choices at an edge of the grid, in % of all (problem, ε):", edge_table(family))


def slope_table(title: str, slopes: Iterable[FittedSlope]) -> Table:
    """Slopes with their intervals, beside what the theorems say."""
    rows = [[_named(s.name), fixed(s.mean, 2), _between(s), str(s.n), s.theory] for s in slopes]
    return Table([title, "measured", "95 % interval", "problems", "theory"], rows)


def sample_table(family: FamilyRates, settings: RateSettings) -> Table:
    """Samples with tuned settings, their ratio, and the slopes from each ε to the next."""
    rows = []
    for k, fraction in enumerate(settings.fractions):
        r = family.ratios[k]
        cells = [_geometric(family.samples[name][:, k]) for name in ("GreedyGQ", "VRGreedyGQ")]
        cells.append(f"{number(r.mean)} {_between(r)}" if r.n else "–")
        cells += [_local(family.local[name], k) for name in ("GreedyGQ", "VRGreedyGQ")]
        rows.append([f"{fraction:.3g}", *cells])
    tuned = ["Greedy-GQ", "VR-Greedy-GQ"]
    return Table([FRACTION, *tuned, "first ÷ second", *(f"{name}, slope" for name in tuned)], rows)


def _beside(family: FamilyRates, settings: RateSettings, names: Iterable[str]) -> Table:
    """Samples and local slopes of several, side by side."""
    names = list(names)
    rows = [
        [f"{fraction:.3g}"]
        + [cell for n in names for cell in (_geometric(family.samples[n][:, k]), _local(family.local[n], k))]
        for k, fraction in enumerate(settings.fractions)
    ]
    return Table([FRACTION, *(cell for name in names for cell in (name, "local slope"))], rows)


def exact_table(family: FamilyRates, settings: RateSettings) -> Table:
    """Steps of gradient descent."""
    rows = [
        [f"{fraction:.3g}", _geometric(family.exact[:, k]), _local(family.local["exact"], k)]
        for k, fraction in enumerate(settings.exact_fractions)
    ]
    return Table([FRACTION, "steps", "local slope"], rows)


def floor_table(family: FamilyRates, settings: RateSettings) -> Table:
    """The error that remains."""
    sizes = settings.floor_batch_sizes
    rows = [
        [f"{eta:g}", number(row[0], 3)] + [f"{number(x, 3)} ({M * eta:g})" for M, x in zip(sizes, row[1:], strict=True)]
        for eta, row in zip(settings.floor_etas, np.exp(np.log(family.floors).mean(axis=0)), strict=True)
    ]
    return Table(["η_θ = 2η_ω", "Greedy-GQ", *(f"M = {M}" for M in sizes)], rows)


def edge_table(family: FamilyRates) -> Table:
    """How often a choice lies at the edge of its grid."""
    axes = ("η_θ", "η_ω/η_θ", "M", "any")
    rows = [
        [NAMES[name], str(family.n_tried[name]), *(fixed(100 * shares[a], 0) if a in shares else "–" for a in axes)]
        for name, shares in family.at_edge.items()
    ]
    return Table(["", "settings", *axes], rows)


def _named(name: str) -> str:
    """The name of a slope, with its algorithm as a reader knows it."""
    first, comma, rest = name.partition(",")
    return f"{NAMES.get(first, first)}{comma}{rest}"


def _between(s: FittedSlope) -> str:
    return f"[{fixed(s.low, 2)}, {fixed(s.high, 2)}]" if np.isfinite(s.low) else "–"


def _local(slopes: list[FittedSlope], k: int) -> str:
    return f"{fixed(slopes[k].mean, 2)} {_between(slopes[k])}" if k < len(slopes) and slopes[k].n else "–"


def _geometric(samples: FloatArray) -> str:
    reached = samples[np.isfinite(samples)]
    return f"{number(float(np.exp(np.log(reached).mean())), 3)} ({len(reached)})" if len(reached) else "not reached"
