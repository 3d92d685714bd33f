"""``report.html``: one self-contained page, the verdicts first; :mod:`gqlab.studies.paper.sections` has its figures."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from gqlab.studies.page import Table, facts_table, whole_page
from gqlab.studies.paper import words
from gqlab.studies.paper.claims import CLAIMS, Judged, alarms, counts
from gqlab.studies.paper.departures import CHOICES, DEPARTURES
from gqlab.studies.paper.design import Request
from gqlab.studies.paper.experiments import EXPERIMENTS
from gqlab.studies.paper.results import Results
from gqlab.studies.paper.sections import chip, figures, sections
from gqlab.studies.paper.statistics import HOLDS, REVERSED, UNDECIDED, WEAKER
from gqlab.studies.paper.strips import TONES, strip

TITLE = "Greedy-GQ with Variance Reduction, reproduced"

#: What this page has besides the style of all pages.
STYLE = Path(__file__).with_name("report.css")

#: When the register was fixed, and for which seed.
REGISTERED, REGISTERED_SEED = "2026-11-15", 2026


@dataclass(frozen=True)
class About:
    """What a reader needs to repeat the run; ``note`` says what is missing."""

    request: Request
    command: str
    versions: dict[str, str]
    note: str = ""
    drawn: dict[str, list[str]] = field(default_factory=dict)  # the panels that were drawn already


def page(judged: tuple[Judged, ...], results: dict[str, Results], about: About) -> str:
    """The whole page."""
    parts = [
        _head(judged, results, about), _verdicts(judged, about), _register(), figures(judged, results, about),
        _departures(), _settings(about),
    ]  # fmt: skip
    return whole_page(TITLE, "\n".join(parts), STYLE.read_text(encoding="utf-8"))


def _head(judged: tuple[Judged, ...], results: dict[str, Results], about: About) -> str:
    shown = [(name, title) for name, title, keys in sections() if any(key in results for key in keys)]
    contents = [("summary", "Summary"), ("verdicts", "Verdicts"), ("register", "The register"), *shown]
    contents += [("departures", "Departures and choices"), ("settings", "Settings")]
    links = " · ".join(f'<a href="#{name}">{escape(title)}</a>' for name, title in contents)
    return f"""<p class="lead">The experiments of <i>Greedy-GQ with Variance Reduction: Finite-time Analysis and
Improved Complexity</i> (ICLR 2021), run with an implementation that follows the paper. The claims, their axes and the
rule were registered on {REGISTERED}, before the run; the verdicts are computed from the data.</p>
<nav aria-label="contents">{links}</nav>
<h2 id="summary">Summary</h2>
{_tally(judged, about)}
<ul class="summary">
{"".join(f"<li>{line}</li>" for line in _summary(judged, results, about))}
</ul>"""


def _tally(judged: tuple[Judged, ...], about: About) -> str:
    if about.request.quick:
        return (
            f'<p class="notice">{escape(words.PREVIEW)}. A quick run has every experiment and every budget, but '
            f"{about.request.n_problems} problems in place of 24 and {about.request.n_runs} runs in place of 10.</p>"
        )
    n = counts(judged)
    bar = "".join(f'<span class="{TONES[o]}" style="flex:{k}"></span>' for o, k in n.items() if k)
    text = ", ".join(f"{k} {o}" for o, k in n.items())
    chips = " ".join(f'<span class="chip {TONES[o]}">{k} {escape(o)}</span>' for o, k in n.items())
    return f'<div class="tally" role="img" aria-label="{escape(text)}">{bar}</div>\n<p>{chips}</p>'


def _keys(judged: tuple[Judged, ...], outcome: str) -> str:
    keys = [f'<a href="#claim-{j.claim.key}">{j.claim.key}</a>' for j in judged if j.verdict.outcome == outcome]
    return ", ".join(keys) or "none"


def _summary(judged: tuple[Judged, ...], results: dict[str, Results], about: About) -> list[str]:
    """Five lines."""
    request, n = about.request, len(results)
    fresh = "" if request.seed == REGISTERED_SEED else f"; the registered run has seed {REGISTERED_SEED}"
    done = f"All {n} experiments are done" if n == len(EXPERIMENTS) else f"{n} of {len(EXPERIMENTS)} experiments done"
    missing = [c.key for c in CLAIMS if c.key not in {j.claim.key for j in judged}]
    note = re.sub(r"`(.*?)`", r"<code>\1</code>", escape(about.note))
    left = f" Not judged yet: {', '.join(missing)}. {note}" if missing else ""
    population = (
        f"{request.n_problems} Garnets, {request.n_problems} feature draws on Frozen Lake for control and as many "
    )
    population += f"for evaluation, {request.n_runs} paired runs on each, seed {request.seed}{fresh}."
    if request.quick:
        return [escape(words.PREVIEW) + ".", population, f"{done}.{left}"]
    return [
        f"{escape(words.headline(judged, False))}. {alarms(judged)}.",
        f"<b>Holds</b>: {_keys(judged, HOLDS)}. <b>Weaker than claimed</b>: {_keys(judged, WEAKER)}.",
        f"<b>Undecided</b>: {_keys(judged, UNDECIDED)}. <b>Reversed</b>: {_keys(judged, REVERSED)}.",
        population,
        f"{done}.{left}",
    ]


def _verdicts(judged: tuple[Judged, ...], about: About) -> str:
    places = dict.fromkeys(j.claim.place for j in judged)
    rows = "\n".join(
        f'<tr class="family"><th colspan="5">{escape(place)}</th></tr>\n'
        + "\n".join(_row(j, about.request.quick) for j in judged if j.claim.place == place)
        for place in places
    )
    return f"""<h2 id="verdicts">Verdicts</h2>
<p>The pooled ratio is VR-Greedy-GQ ÷ the other, a geometric mean over problems with a 95 % interval across problems.
A claim <b>holds</b> when the interval lies beyond τ on the claimed side, is <b>weaker than claimed</b> when it lies
beyond 1 but not beyond τ, <b>reversed</b> when it lies beyond 1 on the other side, and <b>undecided</b> otherwise.
{escape(alarms(judged))}.</p>
<p class="soft">In the strips small dots are problems, the large one with its interval is the pooled ratio. Right of the
line is for the claim, left of it against; the ends stand for 100 times and more, a dashed line for τ = 2.</p>
<table class="claims"><thead><tr><th>claim</th><th>verdict</th><th>against ← → for</th><th>pooled [95 %]</th>
<th>borne out alone</th></tr></thead>
<tbody>
{rows}
</tbody></table>"""


def _row(j: Judged, quick: bool) -> str:
    v, claim = j.verdict, j.claim
    beside = "".join(
        f"<li>{chip(b, quick)} {words.effect(b.pooled)}: {escape(what)}; "
        f"alone on {b.n_borne_out} of {b.n_problems}</li>"
        for what, b in j.beside
    )
    more = f"<details><summary>measured otherwise ({len(j.beside)})</summary><ul>{beside}</ul></details>"
    shown = claim.experiment if claim.experiment != "rates" else "register"
    return (
        f'<tr id="claim-{claim.key}" class="claim" data-claim="{claim.key}">'
        f'<td><b>{claim.key}</b> {escape(claim.statement)}<br><small><a href="#{shown}">{escape(claim.figure)}</a> · '
        f"{escape(claim.quantity)}, claimed {escape(claim.side.words)}</small>{more if beside else ''}</td>"
        f"<td>{chip(v, quick)}</td>"
        f"<td>{strip(j, 'open' if quick else TONES[v.outcome])}</td>"
        f'<td class="number" data-label="pooled">{words.number(v.pooled.ratio)}<br>'
        f"<small>[{words.number(v.pooled.low)}, {words.number(v.pooled.high)}]</small></td>"
        f'<td class="number" data-label="borne out alone">{escape(words.share(j))}</td></tr>'
    )


def _register() -> str:
    rows = [[c.key, c.statement, c.quantity, words.ends(c.side)] for c in CLAIMS]
    table = Table(["", "claim", "quantity, axis and budget", "τ"], rows).html("words")
    return f"""<h2 id="register">The register</h2>
<p>Fixed on {REGISTERED}, before any problem of seed {REGISTERED_SEED} was drawn; development used seed 1.
<b>Population</b>: 24 Garnets, 24 feature draws on Frozen Lake (control), 24 feature-and-policy draws there
(evaluation), all alike; 10 runs each, paired. One log-ratio a problem: the mean of its runs' log-ratios.
<b>τ</b> = 1, or 2 where the paper says “much” or “significantly”. Minima and maxima are taken at every update, means
over at least 500 evenly spaced ones. Baird's star is a demonstration, and no claim.</p>
<details><summary>all {len(CLAIMS)} claims: quantity, axis and budget, τ</summary>
{table}</details>"""


def _departures() -> str:
    departures, choices = (words.departure_table(rows).html("words") for rows in (DEPARTURES, CHOICES))
    return f"""<h2 id="departures">Departures and choices</h2>
<h3>Departures from the letter of the paper</h3>
{departures}
<h3>Choices where the paper is silent</h3>
{choices}"""


def _settings(about: About) -> str:
    request = about.request
    rows = [
        ("command", about.command),
        ("seed", str(request.seed)),
        ("Garnet", "G(5, 3, 2, 4), d = 4 features uniform on [0, 1] with unit rows; γ = 0.95; uniform behaviour; "
         "η_θ = 0.02, η_ω = 0.01, M = 3000"),
        ("Frozen Lake", f"4×4, {'slippery' if request.slippery else 'not slippery'}; d = 8 Gaussian features with unit "
         "rows; γ = 0.95; uniform behaviour; η_θ = 0.2, η_ω = 0.1, M = 3000"),
        ("device", request.device),
        ("versions", ", ".join(f"{name} {version}" for name, version in about.versions.items())),
    ]  # fmt: skip
    return f'<h2 id="settings">Settings</h2>\n{facts_table(rows)}'
