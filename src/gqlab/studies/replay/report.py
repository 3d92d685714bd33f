"""What the study of replay writes: tables as text, Markdown and JSON, and a page with its figure."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from gqlab.studies.decisions.statistics import CriterionVerdict
from gqlab.studies.page import Table, figure, fixed, whole_page
from gqlab.studies.replay.design import ENVIRONMENTS, FULL, N_EPISODES, ROWS, ReplayPart
from gqlab.studies.replay.statistics import ReplayEntries, RowRuns, judge_all, n_solve
from gqlab.studies.study import write_texts

TITLE = "Learning again from what was seen"


def write_report(entries: ReplayEntries, design: Mapping[str, ReplayPart], folder: Path) -> str:
    """All files; the text for a terminal."""
    from gqlab.studies.replay.figure import write_figure

    judged = judge_all(entries, design) if design == FULL else []  # a smaller design says nothing about them
    named = tables(entries, design)
    svg = write_figure(entries, folder / "replay.png")
    texts = {
        "replay.md": markdown(named, judged),
        "replay.json": numbers(entries, judged),
        "replay.html": page(named, judged, svg),
    }
    write_texts(folder, texts)
    parts = [f"{title}\n{table.text(numbers=False)}" for title, table in named.items()]
    return "\n\n".join([*parts, *_goals(judged)])


def steps_text(value: float) -> str:
    """Steps, or that there are none."""
    return "–" if math.isnan(value) else "∞" if math.isinf(value) else f"{value:,.0f}"


def solved_text(runs: RowRuns) -> str:
    """The median of steps to threshold, and the worst."""
    return f"{steps_text(runs.median)} ({steps_text(runs.worst)})" + (", diverged" if runs.diverged else "")


def tables(entries: ReplayEntries, design: Mapping[str, ReplayPart]) -> dict[str, Table]:
    """Title ↦ table, of what the design has."""
    made: dict[str, Table] = {}
    for name in ("main", "again", "lander", "discrete"):
        if name in design:
            made[_title(name, design[name])] = _steps_table(entries, name, design[name])
    if "step sizes" in design:
        made[_title("step sizes", design["step sizes"])] = _scan_table(entries, design["step sizes"])
    if "main" in design:
        made[_title("kept values", design["main"])] = _kept_values_table(entries, design["main"])
    if "values" in design:
        made[_title("values", design["values"])] = _values_table(entries, design["values"])
    return made


def _title(name: str, part: ReplayPart) -> str:
    n = len(part.seeds)
    what = {
        "main": "Steps to threshold",
        "again": "Steps to threshold, Acrobot, with the preset as it became after that, fresh seeds",
        "lander": "Steps to threshold, LunarLander",
        "discrete": "Steps until every episode of a check is as good as can be",
        "step sizes": f"How many of {len(part.factors)} step sizes solve within the bound; steps at the preset's",
        "kept values": "max |Q| in units of r_max/(1 − γ), from the presets' initial values",
        "values": "max |Q| in units of r_max/(1 − γ), CartPole, from 0",
    }[name]
    each = "median of seeds (largest)" if "values" in name else "median over seeds (worst)"
    return f"{what}: {each}, {n} seed{'s' if n > 1 else ''}"


def _steps_table(entries: ReplayEntries, name: str, part: ReplayPart) -> Table:
    header = ["", *(f"{env}{_threshold(env)}" for env in part.environments)]
    names = dict.fromkeys((*part.rows, *(row for of, _, row, *_ in entries if of == name)))  # another library's last
    found = {row: [entries.get((name, env, row, None, 1.0)) for env in part.environments] for row in names}
    rows = [[row, *("–" if one is None else solved_text(one) for one in each)] for row, each in found.items()]
    return Table(header, rows)


def _threshold(environment: str) -> str:
    wanted = ENVIRONMENTS[environment].threshold
    return "" if wanted is None else f" ≥ {fixed(wanted, 0)}"


def _scan_table(entries: ReplayEntries, part: ReplayPart) -> Table:
    header = [""]
    for env in part.environments:
        header += [f"{env}, within {ENVIRONMENTS[env].bound:,}", "steps"]
    rows = []
    for row in part.rows:
        cells = [row]
        for env in part.environments:
            at_own = entries.get(("step sizes", env, row, None, 1.0))
            cells.append(f"{n_solve(entries, env, row, part):.0f} of {len(part.factors)}")
            cells.append("–" if at_own is None else solved_text(at_own))
        rows.append(cells)
    return Table(header, rows)


def _kept_values_table(entries: ReplayEntries, part: ReplayPart) -> Table:
    """Of the rows that keep something."""
    rows = [row for row in part.rows if ROWS[row].kind == "replay"]
    return Table(
        ["", *part.environments],
        [[row, *(_value_text(entries["main", env, row, None, 1.0]) for env in part.environments)] for row in rows],
    )


def _value_text(runs: RowRuns) -> str:
    return f"{fixed(runs.median_value, 2)} ({fixed(runs.largest_value, 2)})"


def _values_table(entries: ReplayEntries, part: ReplayPart) -> Table:
    header = ["", *(f"γ = {gamma:g}" for gamma in part.discounts)]
    rows = []
    for row in part.rows:
        found = [entries["values", part.environments[0], row, gamma, 1.0] for gamma in part.discounts]
        rows.append([row, *map(_value_text, found)])
    return Table(header, rows)


def verdicts(judged: list[CriterionVerdict]) -> list[str]:
    """A line for each criterion that was measured."""
    out = []
    for one in judged:
        limit = one.criterion
        asked = f"at least {_limit(limit.least)}" if limit.least is not None else f"at most {_limit(limit.most)}"
        out.append(f"{limit.text}: {asked} asked, {_limit(one.value)} found: {'met' if one.holds else 'missed'}")
    return out


def _limit(value: float | None) -> str:
    if value is None:
        return "–"
    if math.isinf(value):
        return "∞"
    return f"{value:,.0f}" if value == round(value) else fixed(value, 2)


def note() -> str:
    """What a number is."""
    return (
        f"A check is the mean return of the greedy policy over {N_EPISODES} fresh episodes. Steps to threshold are "
        "those of the first check that reaches it, if the next two do too; ∞: not within three times the bound (of "
        "LunarLander: within it; of those that learn without replay: within what they are given; they end where it is "
        "decided, and their curves where the first seed does)."
    )


def markdown(named: Mapping[str, Table], judged: list[CriterionVerdict]) -> str:
    """The tables, and what they were to show."""
    parts = [f"**{title}**\n\n{table.markdown()}" for title, table in named.items()]
    return "\n\n".join([*parts, note(), *_goals(judged)]) + "\n"


def _goals(judged: list[CriterionVerdict]) -> list[str]:
    """The verdicts as one paragraph, none where nothing is judged."""
    return ["\n".join(f"* {line}" for line in verdicts(judged))] if judged else []


def page(named: Mapping[str, Table], judged: list[CriterionVerdict], svg: str) -> str:
    """One page that needs nothing else."""
    parts = [f"<h2>{escape(title)}</h2>\n{table.html()}" for title, table in named.items()]
    lines = "".join(f"<li>{escape(line)}</li>" for line in verdicts(judged))
    goals = [f"<h2>What it was to show</h2>\n<ul>{lines}</ul>"] if judged else []
    body = "\n".join([f"<p class=lead>{escape(note())}</p>", figure(svg), *parts, *goals])
    return whole_page(TITLE, body)


def numbers(entries: ReplayEntries, judged: list[CriterionVerdict]) -> str:
    """Everything as JSON; ∞ and what was not measured as null."""

    def plain(value: Any) -> Any:
        return value if math.isfinite(value) else None

    runs = [
        {
            **dict(zip(("part", "environment", "row", "discount", "factor"), key, strict=True)),
            "steps_to_threshold": [plain(float(x)) for x in one.to_threshold],
            "steps": [each.tolist() for each in one.steps],
            "means": [each.tolist() for each in one.means],
            "max_q": [[plain(float(x)) for x in each] for each in one.max_q],
            "q_bound": one.q_bound,
            "diverged": one.diverged,
        }
        for key, one in entries.items()
    ]
    criteria = [
        {"name": one.criterion.name, "text": one.criterion.text, "value": plain(one.value), "holds": one.holds}
        for one in judged
    ]
    return json.dumps({"criteria": criteria, "runs": runs}, ensure_ascii=False, indent=1, allow_nan=False)
