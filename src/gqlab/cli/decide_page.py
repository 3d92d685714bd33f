"""The page of a decision: one sentence, the picture, the table, and what could be wrong."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from gqlab.plots.style import write_figure
from gqlab.studies.page import Table, facts_table, figure, whole_page
from gqlab.support.words import counted

#: What no estimator can see in a log.
UNSEEN = (
    (
        "Causes that were not recorded",
        "If whoever acted knew something that the log does not show, the actions and the rewards have a common cause, "
        "and every number here is off without a sign of it.",
    ),
    (
        "State that is hidden",
        "The observations are taken for all that decides what comes next. If more does, values of policies that act "
        "differently are off.",
    ),
    ("Drift", "The log is of the past. What has changed since then is not in it."),
    (
        "Rewards that never occurred",
        "A reward, or a cost, that the log never met counts as impossible; --reward-range widens the intervals by it.",
    ),
)


def page(decision: Any, folder: Path, lead: Sequence[str], facts: Sequence[tuple[str, str]] = ()) -> str:
    """Write the picture into the folder; the text of the whole page, which begins with the sentences ``lead``."""
    first, *more = lead
    opening = f"<p class=lead>{escape(first)}</p>\n" + "".join(f"<p>{escape(line)}</p>\n" for line in more)
    if decision is None:
        return whole_page("A decision from a log", f"{opening}<h2>What it was made of</h2>\n{facts_table(facts)}\n")
    svg = write_figure(lambda: decision.plot()[0].figure, folder, "gains")
    notes = [*decision.notes, *(f"{name}: {note}" for name, row in decision.items() for note in row.notes)]
    listed = f"<ul>{''.join(f'<li>{escape(note)}</li>' for note in notes)}</ul>"
    if not notes:
        listed = "<p>Nothing was found in the log itself.</p>"
    head, body = decision._cells()
    body = [[name, *(cell.replace("-", "−") for cell in cells)] for name, *cells in body]
    return whole_page(
        "A decision from a log",
        f"{opening}{figure(svg)}\n"
        f"<h2>In numbers</h2>\n{Table(head, body).html()}\n"
        "<p>Values are discounted returns from where episodes begin. Their intervals are two-sided; the bounds of "
        "gains are one-sided each. Effective rows: how many rows the answer rests on. Unsupported: the share of the "
        "value that comes from no row; above 5 % the log is thin. Misfit: above 3 the features leave something "
        "that can be predicted, and no verdict is given.</p>\n"
        f"<h2>What could be wrong</h2>\n{listed}\n"
        f"<p>And what no estimator can see:</p>\n{facts_table(UNSEEN)}\n"
        f"<h2>What it was made of</h2>\n{facts_table([*_facts(decision), *facts])}\n",
    )


def _facts(decision: Any) -> list[tuple[str, str]]:
    return [
        ("judged by", f"{counted(decision.n_rows, 'row')}, {counted(decision.n_episodes, 'episode')}"),
        ("discount", f"{decision.discount:g}"),
        ("confidence", f"{100 * decision.confidence:g} %"),
        ("gains are over", "what runs now" if decision.baseline == "log" else decision.baseline),
    ]
