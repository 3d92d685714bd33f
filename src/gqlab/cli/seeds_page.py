"""The report of ``gqlab train --seeds``: the curve of all seeds, a table of them, and what was learned."""

from __future__ import annotations

import csv
import io
from html import escape
from pathlib import Path
from typing import Any

from gqlab.cli.pages import score
from gqlab.learn.agent.many import Seeds
from gqlab.plots.style import write_figure
from gqlab.studies.page import Table, facts_table, figure, whole_page
from gqlab.support.files import write_whole
from gqlab.support.words import counted


def page(found: Seeds, plan: Any, folder: Path) -> str:
    """Write the curve and the table into the folder; the text of the page."""
    svg = write_figure(lambda: draw(found), folder, "curve")
    write_whole(folder / "seeds.csv", lambda file: file.write(_csv(found).encode()))
    low, high = found.interval
    rows = [
        [str(seed), score(returns.mean()), score(returns.min()), score(returns.max())]
        for seed, returns in zip(found.seeds, found.returns, strict=True)
    ]
    facts = [
        ("algorithm", repr(plan.algorithm)),
        ("encoder", "chosen by the agent" if plan.encoder is None else " ".join(repr(plan.encoder).split())),
        ("discount", f"{plan.discount:g}"),
        ("steps of each", f"{int(found.steps[-1]):,}"),
    ]
    lead = (
        f"The interquartile mean of the greedy policy's return over {counted(len(found.seeds), 'seed')}: the mean of "
        f"the middle half, with a 95 % bootstrap interval from {score(low)} to {score(high)}."
    )
    return whole_page(
        f"{type(plan.algorithm).__name__} on {found.env}, {counted(len(found.seeds), 'seed')}",
        f"<p class=score>{score(found.iqm)}</p>\n<p class=lead>{escape(lead)}</p>\n{figure(svg)}\n"
        f"<h2>Each seed</h2>\n<p>{counted(found.returns.shape[1], 'episode')} at the end.</p>\n"
        f"{Table(('seed', 'mean return', 'least', 'largest'), rows).html('plain')}\n"
        f"<h2>How it was learned</h2>\n{facts_table(facts)}\n",
    )


def draw(found: Seeds) -> Any:
    """The curve as a figure of its own."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(7.2, 4.4), layout="constrained")
    found.plot(drawn.subplots())
    return drawn


def _csv(found: Seeds) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["seed", "steps", "mean return"])
    for seed, curve in zip(found.seeds.tolist(), found.curves.tolist(), strict=True):
        writer.writerows([seed, steps, mean] for steps, mean in zip(found.steps.tolist(), curve, strict=True))
    return text.getvalue()
