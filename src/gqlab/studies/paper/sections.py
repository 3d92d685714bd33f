"""The part of the page with the figures: one section for each figure of the paper, one row of panels in each."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

from gqlab.studies.page import Table
from gqlab.studies.paper import words
from gqlab.studies.paper.claims import Judged
from gqlab.studies.paper.design import Contender, ExperimentPart, Request
from gqlab.studies.paper.figures import COLOURS, panel_svg
from gqlab.studies.paper.panels import panels
from gqlab.studies.paper.problems import POPULATION
from gqlab.studies.paper.results import Results
from gqlab.studies.paper.statistics import Verdict
from gqlab.studies.paper.strips import TONES
from gqlab.studies.paper.tuning import reading, table

if TYPE_CHECKING:
    from gqlab.studies.paper.report import About

#: The colours of the figures, as the page's style names them, so that they follow light and dark mode.
_VARIABLES = {
    COLOURS["Greedy-GQ"]: "--gq",
    COLOURS["VR-Greedy-GQ"]: "--vr",
    COLOURS["actor-critic"]: "--ac",
    COLOURS["policy gradient"]: "--pg",
    COLOURS["Q-learning"]: "--ql",
    "#24292f": "--ink",
    "#57606a": "--tick",
    "#8c959f": "--line",
    "#d8dee4": "--grid",
    "#fffffe": "--paper",
}

#: The paper's figures as composites: the file, its title, and the experiments whose first panels it has.
COMPOSITES = (
    ("figure-1", "Figure 1: Garnet", tuple(f"garnet-{k}" for k in ("gradient", "variance", "batch-size"))),
    ("figure-2", "Figure 2: Garnet", tuple(f"garnet-{k}" for k in ("mspbe", "reward", "reward-iterations"))),
    ("figure-3", "Figure 3: Frozen Lake", tuple(f"frozen-lake-{k}" for k in ("gradient", "variance", "batch-size"))),
    ("figure-4", "Figure 4: Frozen Lake", tuple(f"frozen-lake-{k}" for k in ("mspbe", "reward", "reward-iterations"))),
    ("appendix", "Appendix: evaluation on Frozen Lake",
     tuple(f"frozen-lake-evaluation-{k}" for k in ("gradient", "variance", "batch-size", "mspbe"))),
)  # fmt: skip


#: The learning curves of both families in one picture.
BASELINES = ("baselines", "Baselines", ("garnet-baselines", "frozen-lake-baselines"))


def composite_kinds(quick: bool) -> tuple[str, ...]:
    """The files of a composite; the fonts of a PDF take a second each, too long for a preview."""
    return ("png", "svg") if quick else ("png", "svg", "pdf")


def sections() -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """The sections of the page: id, title, experiments."""
    return (*COMPOSITES, BASELINES, ("introduction", "Baird's star", ("baird",)))


def chip(verdict: Verdict, quick: bool) -> str:
    """The outcome, in words and colour."""
    if quick:
        return '<span class="chip open">preview</span>'
    return f'<span class="chip {TONES[verdict.outcome]}">{escape(verdict.outcome)}</span>'


def figures(judged: tuple[Judged, ...], results: dict[str, Results], about: About) -> str:
    """All sections whose experiments are there, as far as they are."""
    out = []
    for name, title, experiments in sections():
        found = [results[key] for key in experiments if key in results]
        if found:
            whole = len(found) == len(experiments) and name != "introduction"
            out.append(_section(name, title, found, judged, about, whole))
    return "\n".join(out)


def _section(
    name: str, title: str, found: list[Results], judged: tuple[Judged, ...], about: About, composite: bool
) -> str:
    svgs = {results.experiment.name: _svgs(results, about.drawn) for results in found}
    if len(found) == 1 or name == "baselines":
        first = [svg for drawn in svgs.values() for svg in drawn]
        svgs = {key: [] for key in svgs}
    else:
        first = [drawn[0] for drawn in svgs.values()]
    files = f" {_files(name, (*composite_kinds(about.request.quick), 'csv'))}" if composite else ""
    text = "\n".join(_experiment(results, svgs[results.experiment.name][1:], judged, about) for results in found)
    return f"""<h2 id="{name}">{escape(title)}{files}</h2>
<div class="panels n{len(first)}">
{"".join(first)}
</div>
{text}"""


def _svgs(results: Results, drawn: dict[str, list[str]]) -> list[str]:
    """The panels of an experiment as SVG, drawn once."""
    name = results.experiment.name
    if name not in drawn:
        drawn[name] = [_inline(panel_svg(p, f"{name}-{k}"), p.title) for k, p in enumerate(panels(results))]
    return drawn[name]


def _files(name: str, kinds: tuple[str, ...]) -> str:
    return '<span class="files">' + " ".join(f'<a href="{name}.{k}">{k.upper()}</a>' for k in kinds) + "</span>"


def _experiment(results: Results, further: list[str], judged: tuple[Judged, ...], about: About) -> str:
    e, quick = results.experiment, about.request.quick
    verdicts = "".join(
        f'<li>{chip(j.verdict, quick)} <a href="#claim-{j.claim.key}">{j.claim.key}</a> {escape(j.claim.statement)}: '
        f"{words.effect(j.verdict.pooled)}, {escape(j.where)}.</li>"
        for j in judged
        if j.claim.experiment == e.name
    )
    more = (
        f'<details><summary>further panels</summary><div class="panels n{len(further)}">{"".join(further)}</div>'
        "</details>"
        if further
        else ""
    )
    tuned = _tuning(results) if e.name.endswith("-baselines") else ""
    settings = "<br>".join(_part_words(part, results.request) for part in e.parts)
    where = "" if e.figure in ("Introduction", "Baselines") else f"{escape(e.figure)} · "
    return f"""<section class="experiment" id="{e.name}">
<header><h3>{escape(e.title)}</h3>
<span class="soft">{where}<code>{e.name}</code> {_files(e.name, ("png", "svg", "csv"))}</span></header>
<p class="soft"><b>The paper:</b> {escape(e.says)}</p>
<ul class="verdicts">{verdicts}</ul>
<p class="soft">{escape(e.caption)}</p>
{tuned}{more}
<details><summary>settings</summary><p class="soft">{settings}<br>Problems: {escape(POPULATION[e.family])}.</p>
</details>
</section>"""


def _tuning(results: Results) -> str:
    """What tuning tried, and what is wrong with which setting."""
    rows = [[r.name, words.number(r.reward), r.note] for r in table(results)]
    tried = Table(["setting", "exact long-run reward at the end", ""], rows).html("plain")
    text = "".join(f"<li>{escape(line)}</li>" for line in reading(results))
    return f"<ul>{text}</ul><details><summary>what tuning tried</summary>{tried}</details>"


def _inline(svg: str, title: str) -> str:
    """A figure inside the page: colours by name, and as wide as there is room."""
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, f"var({variable})")
    svg = re.sub(r'(<svg [^>]*?)height="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg [^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    return svg.replace("<svg ", f'<svg role="img" class="figure" aria-label="{escape(title, quote=True)}" ', 1)


def _part_words(part: ExperimentPart, request: Request) -> str:
    runs = f"{request.n_runs} runs on each of {len(request.numbers(part))} problems"
    watched = f", {part.watch} watched at every update" if part.watch else ""
    return f"<b>{escape(part.name)}</b> ({runs}{watched}): " + "; ".join(escape(_entry_words(e)) for e in part.entries)


def _entry_words(entry: Contender) -> str:
    values = ", ".join(f"{k} = {v}" for k, v in entry.algorithm.to_dict().items() if k != "name")
    return f"{entry.label} ({values}), {entry.n_samples:,} samples, a record every {entry.record_every} updates"
