"""What the study says: its criteria first, then the tables behind them, as text, Markdown, JSON and a page."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from gqlab.studies.decisions.design import DISCOUNTS, SELECTION_ROWS, DecisionDesign
from gqlab.studies.decisions.problems import SHIFTS
from gqlab.studies.decisions.statistics import CriterionVerdict
from gqlab.studies.intervals import student
from gqlab.studies.page import Table, fixed, whole_page
from gqlab.studies.study import write_texts
from gqlab.support.plain_json import plain

TITLE = "Decisions from logs, against exact values"

#: The columns of the table of estimators: what its cells show of a cell of the study.
ESTIMATORS = {
    "the solve": ("rmse", "coverage", "width"),
    "fitted Q evaluation, V(s₀) alone": ("fqe rmse", "fqe coverage", "fqe width"),
    "weighted per-decision IS": ("wpdis rmse", "wpdis coverage", "wpdis width"),
}


def write_report(found: dict[str, Any], design: DecisionDesign, folder: Path) -> str:
    """``decisions.json``, ``decisions.md`` and ``decisions.html``; the text for a terminal."""
    tables = all_tables(found)
    parts = [f"## {title}\n\n{table.markdown()}\n" for title, table in tables.items()]
    body = "\n".join(f"<h2>{escape(title)}</h2>\n{table.html('plain')}" for title, table in tables.items())
    texts = {
        "decisions.md": f"# {TITLE}\n\n" + "\n".join(parts),
        "decisions.html": whole_page(TITLE, f"<p>{escape(summary(found))}</p>\n{body}"),
        "decisions.json": json.dumps(plain(as_json(found, design)), ensure_ascii=False, indent=1) + "\n",
    }
    write_texts(folder, texts)
    shown = (f"{title}\n{table.text()}" for title, table in tables.items() if title != "Problems")
    return "\n\n".join([*shown, summary(found)])


def summary(found: dict[str, Any]) -> str:
    """How many criteria hold, in a sentence."""
    held = [one.holds for one in found["criteria"]]
    apart = sorted({found["problems"][k] for rare in found["rare"].values() for k in np.flatnonzero(rare)})
    left_out = f"; set apart in cells where their reward is rare: {', '.join(apart)}" if apart else ""
    return f"{sum(held)} of {len(held)} criteria hold{left_out}."


def all_tables(found: dict[str, Any]) -> dict[str, Table]:
    """Every table by its title, the verdicts first."""
    return {
        "Criteria": criteria_table(found["criteria"]),
        "RMSE ÷ efficiency bound (median) / coverage of nominal 95 % (mean) / width ÷ efficient (median)": (
            estimator_table(found)
        ),
        "The solve in each cell": cell_table(found),
        "Mean relative error of the value, in percent": evaluation_table(found),
        "Verdicts on policies that were fitted with wrong features": verdict_table(found),
        "Choosing among candidates; 0: what runs now, 1: optimal": selection_table(found),
        "Gains of fits to logs that explore little or much": pessimism_table(found),
        "Problems": problem_table(found),
    }


def criteria_table(criteria: list[CriterionVerdict]) -> Table:
    rows = []
    for one in criteria:
        wanted = [f"≥ {one.criterion.least:g}"] if one.criterion.least is not None else []
        wanted += [f"≤ {one.criterion.most:g}"] if one.criterion.most is not None else []
        found = fixed(one.value, 4 if abs(one.value) < 0.1 else 3)
        rows.append([one.criterion.text, " and ".join(wanted).replace("-", "−"), found, "yes" if one.holds else "NO"])
    return Table(["criterion", "wanted", "found", "holds"], rows)


def estimator_table(found: dict[str, Any]) -> Table:
    cells = found["cells"]
    rows = []
    for name, (rmse, coverage, width) in ESTIMATORS.items():
        texts = []
        for key, cell in cells.items():
            usual = ~found["rare"][key]
            typical = (float(np.nanmedian(cell[ratio][usual])) for ratio in (rmse, width))
            error, wide = (fixed(value, 2 if value < 10 else 0) for value in typical)
            texts.append(f"{error} / {fixed(float(cell[coverage][usual].mean()), 2)} / {wide}")
        rows.append([name, *texts])
    return Table(["estimator", *(f"{n:,} {shift}" for n, shift in cells)], rows)


def cell_table(found: dict[str, Any]) -> Table:
    rows = []
    for (n, shift), cell in found["cells"].items():
        usual = ~found["rare"][n, shift]
        worst = int(np.argmin(np.where(usual, cell["coverage"], np.inf)))
        rows.append(
            [
                f"{n:,} rows, {shift} shift", fixed(float(cell["coverage"][usual].mean()), 3),
                f"{fixed(float(cell['coverage'][worst]), 3)} ({found['problems'][worst]})",
                fixed(float(np.nanmedian(cell["rmse"][usual])), 2),
                fixed(float(np.nanmedian(cell["width"][usual])), 2),
                fixed(float(cell["gain coverage"][usual].mean()), 3),
                fixed(float(np.nanmedian(cell["gain rmse"][usual])), 2), fixed(float(cell["thin"][usual].mean()), 2),
                str(int(usual.sum())), fixed(float(cell["coverage"].mean()), 3),
            ]
        )  # fmt: skip
    header = [
        "cell", "coverage", "least", "RMSE ÷ bound", "width ÷ efficient", "coverage of the gain (90 %)",
        "RMSE of the gain ÷ bound", "thin", "problems", "coverage, those apart too",
    ]  # fmt: skip
    return Table(header, rows)


def evaluation_table(found: dict[str, Any]) -> Table:
    usual = ~found["rare"][max(found["rare"], key=lambda key: key[0])[0], "small"]
    rows = []
    for gamma in DISCOUNTS:
        errors, noise = 100 * found["evaluation"][gamma], 100 * found["evaluation errors"][gamma]
        worst = int(np.argmax(np.where(usual, np.abs(errors), -np.inf)))
        rows.append(
            [
                f"γ = {gamma:g}", fixed(float(errors[usual].mean()), 3),
                f"{fixed(float(errors[worst]), 3)} ± {fixed(float(noise[worst]), 3)} ({found['problems'][worst]})",
                f"{int((np.abs(errors[usual]) <= 1).sum())} of {int(usual.sum())}",
            ]
        )  # fmt: skip
    return Table(["discount", "mean over problems", "largest, with its standard error", "problems within 1 %"], rows)


def verdict_table(found: dict[str, Any]) -> Table:
    rows = [
        [
            name, f"{shares['n']:.0f}", fixed(shares["wrong"], 3), fixed(shares["right"], 3),
            fixed(shares["cannot say"], 3), f"{shares['clear']:.0f}", fixed(shares["decided"], 3),
        ]
        for name, shares in (
            ("with propensities", found["verdicts"]["known"]), ("without", found["verdicts"]["unknown"])
        )
    ]  # fmt: skip
    return Table(["log", "verdicts", "wrong", "right", "cannot say", "clear gains", "decided of these"], rows)


def selection_table(found: dict[str, Any]) -> Table:
    rows = []
    for n in SELECTION_ROWS:
        gain = found["selection"][n]
        mean = student(gain)
        rows.append(
            [
                f"{n:,} rows", str(len(gain)), f"{fixed(mean.mean, 3)} [{fixed(mean.low, 3)}, {fixed(mean.high, 3)}]",
                fixed(float(np.mean(gain < -1e-9)), 4), fixed(float(np.mean(gain == 0)), 3),
            ]
        )  # fmt: skip
    return Table(["size", "logs", "gain", "worse than now", "kept"], rows)


def pessimism_table(found: dict[str, Any]) -> Table:
    rows = []
    for share, one in found["pessimism"].items():
        each = [f"{fixed(g, 3)} ({fixed(w, 3)})" for g, w in zip(one["gain"], one["worse"], strict=True)]
        added = [
            f"{fixed(more.mean, 3)} [{fixed(more.low, 3)}, {fixed(more.high, 3)}]"
            for more in (one["added"], one["added to usual"])
        ]
        rows.append([f"{100 * share:g} %", str(one["n"]), *each, *added])
    header = [
        "explored", "logs", "plain (worse than now)", "pessimism 1", "FittedQ()", "pessimism 1 above plain",
        "and above FittedQ()",
    ]  # fmt: skip
    return Table(header, rows)


def problem_table(found: dict[str, Any]) -> Table:
    """Coverage of every problem in every cell; in brackets where it is set apart."""
    cells = found["cells"]
    rows = []
    for k, name in enumerate(found["problems"]):
        texts = [
            f"({fixed(float(cell['coverage'][k]), 3)})"
            if found["rare"][key][k]
            else fixed(float(cell["coverage"][k]), 3)
            for key, cell in cells.items()
        ]
        rows.append([name, *texts])
    return Table(["problem", *(f"{n:,} {shift}" for n, shift in cells)], rows)


def as_json(found: dict[str, Any], design: DecisionDesign) -> dict[str, Any]:
    """All numbers."""
    added = "added", "added to usual"
    return {
        "quick": design.quick,
        "criteria": [
            {"name": one.criterion.name, "text": one.criterion.text, "least": one.criterion.least,
             "most": one.criterion.most, "found": one.value, "holds": one.holds}
            for one in found["criteria"]
        ],
        "problems": found["problems"],
        "cells": {f"{n} {shift}": cell for (n, shift), cell in found["cells"].items()},
        "rare": {f"{n} {shift}": rare for (n, shift), rare in found["rare"].items()},
        "evaluation": {f"{gamma:g}": found["evaluation"][gamma] for gamma in DISCOUNTS},
        "verdicts": found["verdicts"],
        "null": {name: found["null"].count(name) for name in ("better", "worse", "cannot say")},
        "selection": {str(n): found["selection"][n] for n in SELECTION_ROWS},
        "pessimism": {
            f"{share:g}": one | {name: [one[name].mean, one[name].low, one[name].high] for name in added}
            for share, one in found["pessimism"].items()
        },
        "shifts": SHIFTS,
    }  # fmt: skip
