"""The leaderboard as text, Markdown, JSON and one self-contained page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from gqlab.studies.compare.design import FACTORS, NEAR, ROBUST_WITHIN
from gqlab.studies.compare.measure import ZERO, Comparison, Rival, Row
from gqlab.support.checks import FloatArray

STYLE = Path(__file__).with_name("compare.css")


def number(x: float) -> str:
    """Three digits or so: 0.98, 12.3, 345, 1.2e+05."""
    if not np.isfinite(x):
        return "∞"
    return f"{x:.2f}" if x < 9.995 else f"{x:.1f}" if x < 99.95 else f"{x:.0f}" if x < 99_999.5 else f"{x:.1e}"


def samples(n: int) -> str:
    """3k, 300k, 3M."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if n >= size and n % size == 0:
            return f"{n // size}{unit}"
    return str(n)


def spread(values: FloatArray) -> str:
    """Median [least, largest]."""
    return f"{number(float(np.median(values)))} [{number(float(values.min()))}, {number(float(values.max()))}]"


def robust(row: Row) -> str:
    """k of n step sizes."""
    return "–" if row.robust is None else f"{round(row.robust * len(row.factors))} of {len(row.factors)}"


def memory(row: Row) -> str:
    return f"{row.bytes} B" if row.bytes < 10_000 else f"{row.bytes / 1000:.0f} kB"


def cost(row: Row) -> list[str]:
    """Evaluations and nanoseconds a sample, memory, robustness."""
    return [f"{row.evaluations:.1f}", f"{row.nanoseconds:.0f}", memory(row), robust(row)]


def heading(c: Comparison) -> str:
    if len(c.seeds) == 1:
        return f"{c.title}: one problem, {c.scale.n_runs} runs, seed {c.seeds[0]}"
    return f"{c.title}: {len(c.seeds)} problems, {c.scale.n_runs} runs each, seeds {c.seeds[0]} to {c.seeds[-1]}"


def explanation(c: Comparison) -> list[str]:
    """What the columns are."""
    return [
        "‖∇J‖² as a multiple of the statistical floor of the same samples: mean over runs ÷ mean of their floors; the "
        "median over problems.",
        f"near: the share of problems within {NEAR:g} times the floor at the last column. evaluations and ns (of one "
        "core): a sample. memory: of one run.",
        f"robust: of the step sizes × {FACTORS[0]:g} … × {FACTORS[-1]:g}, those that end within {ROBUST_WITHIN:g} "
        "times the best of them, in the median.",
    ]


def text(c: Comparison) -> str:
    """The table for a terminal."""
    last = samples(c.moments[-1])
    header = [
        "algorithm",
        *(samples(n) for n in c.moments),
        f"range at {last}",
        "near",
        "evals",
        "ns",
        "memory",
        "robust",
    ]
    rows = [header]
    for row in c.rows:
        medians = [number(float(x)) for x in np.median(row.multiple, axis=0)]
        end = row.multiple[:, -1]
        between = f"{number(float(end.min()))} – {number(float(end.max()))}"
        rows.append([row.name, *medians, between, f"{row.near[-1]:.0%}", *cost(row)])
    widths = [max(len(r[k]) for r in rows) for k in range(len(header))]
    lines = [
        "  ".join(cell.ljust(w) if k == 0 else cell.rjust(w) for k, (cell, w) in enumerate(zip(r, widths, strict=True)))
        for r in rows
    ]
    floor = "  ".join(f"{samples(n)} {x:.2g}" for n, x in zip(c.moments, np.median(c.floor, axis=0), strict=True))
    return "\n".join(
        [heading(c), f"the floor itself, median: {floor}", "", *lines, "", *explanation(c), "", rival_text(c)]
    )


def rival_text(c: Comparison) -> str:
    return "\n".join(line.replace("|", " ").strip() for line in _markdown_table(*rival_table(c), pad=True))


def rival_table(c: Comparison) -> tuple[list[str], list[list[str]]]:
    """Methods for E[δφ] = 0, where J* is zero and where it is not."""
    solvable = c.J_star <= ZERO
    header = [f"on the same {samples(c.moments[-1])} samples"]
    groups = [(f"J* = 0 ({solvable.sum()})", solvable), (f"J* > 0 ({(~solvable).sum()})", ~solvable)]
    groups = [(name, mask) for name, mask in groups if mask.any()]
    for name, _ in groups:
        header += [f"multiple, {name}", "J", "value"]
    header.append("converged")
    rows = []
    for rival in c.rivals:
        cells = [rival.name]
        for _, mask in groups:
            cells += _rival_cells(rival, mask)
        rows.append([*cells, f"{rival.converged:.0%}"])
    return header, rows


def _rival_cells(rival: Rival, mask: Any) -> list[str]:
    median = [float(np.median(column[mask])) for column in (rival.mspbe, rival.value)]
    return [spread(rival.multiple[mask]), f"{median[0]:.1e}", f"{median[1]:.2f}"]


def _markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]], pad: bool = False) -> list[str]:
    if not pad:
        lines = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
        return lines + ["| " + " | ".join(row) + " |" for row in rows]
    widths = [max(len(r[k]) for r in [header, *rows]) for k in range(len(header))]
    return ["| " + " | ".join(cell.ljust(w) for cell, w in zip(r, widths, strict=True)) + " |" for r in [header, *rows]]


def full_table(c: Comparison) -> tuple[list[str], list[list[str]]]:
    """Everything, with the range at every moment."""
    header = ["algorithm", *(samples(n) for n in c.moments), *(f"near, {samples(n)}" for n in c.moments[-1:])]
    header += ["evaluations", "ns", "memory", "robust"]
    rows = [
        [row.name, *(spread(column) for column in row.multiple.T), f"{row.near[-1]:.0%}", *cost(row)] for row in c.rows
    ]
    return header, rows


def markdown(c: Comparison) -> str:
    """The tables for a document."""
    floor = [f"{x:.2g}" for x in np.median(c.floor, axis=0)]
    parts = [
        f"**{heading(c)}**",
        "",
        *_markdown_table(*full_table(c)),
        "",
        "The floor itself, median: "
        + ", ".join(f"{samples(n)} {x}" for n, x in zip(c.moments, floor, strict=True))
        + ".",
        "",
        *_markdown_table(*rival_table(c)),
    ]
    return "\n".join(parts) + "\n"


def numbers(c: Comparison) -> str:
    """Everything as JSON; infinities are null."""

    def plain(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return plain(value.tolist())
        if isinstance(value, dict):
            return {key: plain(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [plain(inner) for inner in value]
        return None if isinstance(value, float) and not np.isfinite(value) else value

    rows = [plain(asdict(row)) | {"near": plain(row.near), "robust": row.robust} for row in c.rows]
    content = plain(asdict(c)) | {"rows": rows, "moments": list(c.moments), "factors": list(FACTORS)}
    return json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False)


def page(c: Comparison, svg: str, command: str) -> str:
    """One page that needs nothing else."""
    picture = svg[svg.index("<svg") :]
    best, worst = c.rows[0], c.rows[-1]
    lead = (
        f"{escape(best.name)} ends at {number(float(np.median(best.multiple[:, -1])))} times the floor, "
        f"{escape(worst.name)} at {number(float(np.median(worst.multiple[:, -1])))} times (medians at "
        f"{samples(c.moments[-1])} samples)."
    )
    words = "".join(f"<p>{escape(line)}</p>" for line in explanation(c))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Estimators against the statistical floor</title>\n"
        f'<link rel="icon" href="data:,">\n<style>\n{STYLE.read_text(encoding="utf-8")}</style>\n</head>\n'
        "<body><main>\n"
        f"<h1>Estimators against the statistical floor</h1>\n<p class=lead>{escape(heading(c))}.</p>\n"
        f"<p class=lead>{lead}</p>\n<figure>{picture}</figure>\n{words}\n"
        f"{_html_table(*full_table(c))}\n<h2>What solves E[δφ] = 0 instead</h2>\n"
        "<p>LSPI and Q-learning look for a zero of E[δφ]. Where J has one they are as good; where J* > 0 there is none "
        "nearby, and they end elsewhere. value: of the learned policy, as a part of the best.</p>\n"
        f"{_html_table(*rival_table(c))}\n<p class=soft><code>{escape(command)}</code>, "
        f"{c.seconds:.0f} seconds</p>\n</main></body>\n</html>\n"
    )


def _html_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "\n".join(
        "<tr>"
        + "".join(f'<td data-label="{escape(h)}">{_cell(cell)}</td>' for h, cell in zip(header, row, strict=True))
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"


def _cell(cell: str) -> str:
    """A range in brackets is small print."""
    first, bracket, rest = cell.partition(" [")
    return escape(first) + (f" <small>[{escape(rest)}</small>" if bracket else "")
