"""The leaderboard as text, Markdown, JSON and one self-contained page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from html import escape
from typing import Any

import numpy as np

from gqlab.studies.compare.design import FACTORS, NEAR, ROBUST_WITHIN
from gqlab.studies.compare.leaderboard import ZERO, Comparison, Rival, Row
from gqlab.studies.page import Table, count, figure, number, whole_page
from gqlab.support.checks import FloatArray
from gqlab.support.plain_json import plain
from gqlab.support.words import counted

TITLE = "Estimators against the statistical floor"

#: Of this page alone: the names beside the curves are small.
STYLE = "figure svg { min-width: 640px; }\n"


def spread(values: FloatArray) -> str:
    """Median [least, largest]."""
    return f"{number(float(np.median(values)))} [{number(float(values.min()))}, {number(float(values.max()))}]"


#: The columns of the efficiency bounds.
BOUNDS = ("÷ tr Σ/n", "÷ tr Σ_b/n")


def robust(row: Row) -> str:
    """k of n step sizes."""
    return "–" if row.robust is None else f"{round(row.robust * len(row.factors))} of {len(row.factors)}"


def memory(row: Row) -> str:
    return f"{row.bytes} B" if row.bytes < 10_000 else f"{row.bytes / 1000:.0f} kB"


def cost(row: Row, times: bool) -> list[str]:
    """Evaluations and, with ``times``, nanoseconds a sample; memory, robustness."""
    measured = [number(row.nanoseconds) if np.isnan(row.nanoseconds) else f"{row.nanoseconds:.0f}"] if times else []
    return [f"{row.evaluations:.1f}", *measured, memory(row), robust(row)]


def heading(c: Comparison) -> str:
    if len(c.seeds) == 1:
        return f"{c.title}: one problem, {c.budget.n_runs} runs, seed {c.seeds[0]}"
    return f"{c.title}: {len(c.seeds)} problems, {c.budget.n_runs} runs each, seeds {c.seeds[0]} to {c.seeds[-1]}"


def explanation(times: bool) -> list[str]:
    """What the columns are."""
    costs = "evaluations and ns (of one core): a sample" if times else "evaluations: of (G_x, H_x), a sample"
    return [
        "‖∇J‖² as a multiple of the statistical floor of the same samples: mean over runs ÷ mean of their floors; the "
        "median over problems.",
        "÷ tr Σ/n, ÷ tr Σ_b/n: at the last column, as a multiple of what the best estimator has in the limit that does "
        "not know, and that knows, the behaviour policy (gq.efficiency); a dash where a target is not smooth.",
        f"near: the share of problems within {NEAR:g} times the floor at the last column. {costs}. memory: of one run.",
        f"robust: of the step sizes × {FACTORS[0]:g} … × {FACTORS[-1]:g}, those that end within {ROBUST_WITHIN:g} "
        "times the best of them, in the median.",
    ]


def floors(c: Comparison, between: str) -> str:
    """The floor itself at every moment."""
    medians = np.median(c.floor, axis=0)
    return between.join(f"{count(n)} {x:.2g}" for n, x in zip(c.moments, medians, strict=True))


def text(c: Comparison) -> str:
    """The table for a terminal, the only one with measured times."""
    last = count(c.moments[-1])
    more = f"range at {last}", *BOUNDS, "near", "evals", "ns", "memory", "robust"
    header = ["algorithm", *map(count, c.moments), *more]
    rows = []
    for row in c.rows:
        medians = [number(float(x)) for x in np.median(row.multiple, axis=0)]
        end = row.multiple[:, -1]
        between = f"{number(float(end.min()))} – {number(float(end.max()))}"
        limits = of_bounds(c, row)
        rows.append([row.name, *medians, between, *limits, f"{row.near[-1]:.0%}", *cost(row, times=True)])
    parts = [heading(c), f"the floor itself, median: {floors(c, '  ')}", "", Table(header, rows).text(), ""]
    return "\n".join([*parts, *explanation(times=True), "", rival_table(c).text(numbers=False)])


def rival_table(c: Comparison) -> Table:
    """Methods for E[δφ] = 0, where J* is zero and where it is not."""
    solvable = c.J_star <= ZERO
    header = [f"on the same {count(c.moments[-1])} samples"]
    groups = [("where J* = 0", solvable), ("where J* > 0", ~solvable)]
    groups = [(name, mask) for name, mask in groups if mask.any()]
    for name, mask in groups:
        header += [f"multiple of the floor {name} ({counted(int(mask.sum()), 'problem')})", "J", "value"]
    header.append("converged")
    rows = []
    for rival in c.rivals:
        cells = [rival.name]
        for _, mask in groups:
            cells += _rival_cells(rival, mask)
        rows.append([*cells, f"{rival.converged:.0%}"])
    return Table(header, rows)


def _rival_cells(rival: Rival, mask: Any) -> list[str]:
    median = [float(np.median(column[mask])) for column in (rival.mspbe, rival.value)]
    return [spread(rival.multiple[mask]), f"{median[0]:.1e}", f"{median[1]:.2f}"]


def full_table(c: Comparison) -> Table:
    """Everything but measured times, with the range at every moment."""
    near = f"near, {count(c.moments[-1])}"
    header = ["algorithm", *map(count, c.moments), *BOUNDS, near, "evaluations", "memory", "robust"]
    rows = []
    for row in c.rows:
        multiples = [spread(column) for column in row.multiple.T]
        rows.append([row.name, *multiples, *of_bounds(c, row), f"{row.near[-1]:.0%}", *cost(row, times=False)])
    return Table(header, rows)


def of_bounds(c: Comparison, row: Row) -> list[str]:
    """The medians of the multiples of both efficiency bounds; a dash where there are none."""
    return [number(float(np.median(column))) for column in c.of_bounds(row).T]


def markdown(c: Comparison) -> str:
    """The tables for a document."""
    tables = [full_table(c).markdown(), "", f"The floor itself, median: {floors(c, ', ')}.", ""]
    return "\n".join([f"**{heading(c)}**", "", *tables, rival_table(c).markdown()]) + "\n"


def numbers(c: Comparison) -> str:
    """Everything but measured times as JSON; infinities are null."""
    rows: Sequence[Any] = [
        plain(row) | {"near": plain(row.near), "robust": row.robust, "of_bounds": plain(c.of_bounds(row))}
        for row in c.rows
    ]
    for row in rows:
        del row["nanoseconds"]
    content = plain(asdict(c)) | {"rows": rows, "moments": list(c.moments), "factors": list(FACTORS)}
    return json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False)


def page(c: Comparison, svg: str, command: str) -> str:
    """One page that needs nothing else."""
    best, worst = c.rows[0], c.rows[-1]
    lead = (
        f"{escape(best.name)} ends at {number(float(np.median(best.multiple[:, -1])))} times the floor, "
        f"{escape(worst.name)} at {number(float(np.median(worst.multiple[:, -1])))} times (medians at "
        f"{count(c.moments[-1])} samples)."
    )
    words = "".join(f"<p>{escape(line)}</p>" for line in explanation(times=False))
    body = (
        f"<p class=lead>{escape(heading(c))}.</p>\n<p class=lead>{lead}</p>\n{figure(svg)}\n{words}\n"
        f"{full_table(c).html()}\n<h2>What solves E[δφ] = 0 instead</h2>\n"
        "<p>LSPI and Q-learning look for a zero of E[δφ]. Where J has one they are as good; where J* > 0 there is none "
        "nearby, and they end elsewhere. value: of the learned policy, as a part of the best.</p>\n"
        f"{rival_table(c).html()}\n<p class=soft><code>{escape(command)}</code></p>"
    )
    return whole_page(TITLE, body, STYLE)
