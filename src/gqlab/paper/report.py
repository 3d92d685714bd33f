"""``report.html``: one self-contained page, verdicts first."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from gqlab.paper import words
from gqlab.paper.claims import Judged, summary
from gqlab.paper.design import Budget, Part, Scale, label
from gqlab.paper.experiments import BY_NAME
from gqlab.paper.figures import COLOURS, panel_svg
from gqlab.paper.panels import panels
from gqlab.paper.problems import BAIRD, FROZEN_LAKE, FROZEN_LAKE_EVALUATION, FURTHER, GARNET
from gqlab.paper.runner import Results
from gqlab.paper.statistics import FAILS, HOLDS, IN_PART
from gqlab.paper.strips import TONES, strip

STYLE = Path(__file__).with_name("report.css")

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
}


FAMILY_NAMES = {
    GARNET: "Garnet",
    FROZEN_LAKE: "Frozen Lake",
    FROZEN_LAKE_EVALUATION: "Frozen Lake, evaluation of a fixed policy",
    BAIRD: "Baird's counterexample",
}


@dataclass(frozen=True)
class About:
    """What a reader needs to repeat the run."""

    scale: Scale
    command: str
    versions: dict[str, str]


def page(judged: tuple[Judged, ...], results: dict[str, Results], about: About) -> str:
    """The whole page."""
    style = STYLE.read_text(encoding="utf-8")
    body = "\n".join([_head(judged, about), _claims(judged), _experiments(judged, results), _settings(about)])
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<title>Greedy-GQ with Variance Reduction, reproduced</title>\n"
        '<link rel="icon" href="data:,">\n'
        f"<style>\n{style}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _head(judged: tuple[Judged, ...], about: About) -> str:
    counts = {outcome: sum(j.verdict.outcome == outcome for j in judged) for outcome in (HOLDS, IN_PART, FAILS)}
    bar = "".join(f'<span class="{TONES[o]}" style="flex:{n}"></span>' for o, n in counts.items() if n)
    told = ", ".join(_count(n, outcome) for outcome, n in counts.items())
    notice = (
        '<p class="notice">A quick run: every experiment, but smaller, and on few further problems. '
        "Its verdicts are a preview; the full run decides.</p>"
        if about.scale.quick
        else ""
    )
    return f"""<h1>Greedy-GQ with Variance Reduction, reproduced</h1>
<p class="lead">Every experiment of <i>Greedy-GQ with Variance Reduction: Finite-time Analysis and Improved
Complexity</i> (ICLR 2021), run with an implementation that follows the paper, and a verdict on every claim, computed
from the data.</p>
<p class="summary">{escape(summary(judged))}</p>
<div class="tally" role="img" aria-label="{escape(told)}">{bar}</div>
<p>{_tally_words(counts)}</p>
{notice}"""


def _tally_words(counts: dict[str, int]) -> str:
    return " ".join(f'<span class="chip {TONES[o]}">{escape(_count(n, o))}</span>' for o, n in counts.items())


def _count(n: int, outcome: str) -> str:
    """ "1 holds", "2 hold"."""
    return f"{n} {outcome if n == 1 else outcome.replace('holds', 'hold').replace('does not', 'do not')}"


def _claims(judged: tuple[Judged, ...]) -> str:
    families = {BY_NAME[j.claim.experiment].family: FAMILY_NAMES[BY_NAME[j.claim.experiment].family] for j in judged}
    rows = "\n".join(
        f'<tr class="family"><th colspan="5">{escape(name)}</th></tr>\n'
        + "\n".join(_row(j) for j in judged if BY_NAME[j.claim.experiment].family == family)
        for family, name in families.items()
    )
    return f"""<h2 id="claims">The claims</h2>
<p>A claim is about a ratio, mostly VR-Greedy-GQ ÷ Greedy-GQ. On one problem it is borne out when the 95 % interval of
the mean log-ratio over paired runs lies on the claimed side. It <b>holds</b> when that is so in the paper's setting and
on at least 80 % of the further problems; it <b>does not hold</b> when it is not so in the paper's setting and on at
most 20 % of them; otherwise it <b>holds in part</b>. “Much” means at least twice.</p>
<p class="soft">In the strips the large dot is the paper's setting with its interval, the small ones are the further
problems. Right of the line is for the claim, left of it against; the ends stand for 100 times and more, a dashed line
for twice, where the claim says “much”.</p>
<table class="claims"><thead><tr><th>claim</th><th>verdict</th><th>against ← → for</th><th>paper's setting</th>
<th>further problems</th></tr></thead>
<tbody>
{rows}
</tbody></table>"""


def _row(j: Judged) -> str:
    v, claim = j.verdict, j.claim
    beside = "".join(
        f"<li>{escape(s.words)}: {words.effect(b.paper)}; further problems {words.effect(b.further)}, "
        f"borne out on {b.n_hold} of {b.n_further} <b>({escape(b.outcome)})</b></li>"
        for s, b in j.beside
    )
    more = f"<details><summary>measured otherwise</summary><ul>{beside}</ul></details>" if beside else ""
    return (
        f'<tr id="claim-{claim.name}" class="claim" data-claim="{claim.name}">'
        f'<td>{escape(_short(j))}<br><small><a href="#{claim.experiment}">{escape(claim.figure)}</a> · '
        f"{escape(claim.statistic.words)}, claimed {escape(claim.side.words)}</small>{more}</td>"
        f'<td><span class="chip {TONES[v.outcome]}">{escape(v.outcome)}</span></td>'
        f"<td>{strip(j)}</td>"
        f'<td class="number" data-label="paper\'s setting">{words.number(v.paper.ratio)}<br>'
        f"<small>[{words.number(v.paper.low)}, {words.number(v.paper.high)}]</small></td>"
        f'<td class="number" data-label="further problems">{v.n_hold} of {v.n_further}<br>'
        f"<small>{words.effect(v.further)}</small></td></tr>"
    )


def _short(j: Judged) -> str:
    """The statement without the place, under a heading that names it."""
    text = j.claim.statement.split(": ", 1)[-1]
    return text[0].upper() + text[1:]


def _experiments(judged: tuple[Judged, ...], results: dict[str, Results]) -> str:
    sections = [
        _experiment(found, [j for j in judged if j.claim.experiment == name]) for name, found in results.items()
    ]
    return '<h2 id="experiments">The experiments</h2>\n' + "\n".join(sections)


def _experiment(results: Results, judged: Sequence[Judged]) -> str:
    e = results.experiment
    verdicts = "".join(
        f'<li><span class="chip {TONES[j.verdict.outcome]}">{escape(j.verdict.outcome)}</span> '
        f"{escape(_short(j))}: {escape(j.where)}.</li>"
        for j in judged
    )
    drawn = "\n".join(_inline(panel_svg(p, f"{e.name}-{k}"), p.title or e.title) for k, p in enumerate(panels(results)))
    files = " · ".join(f'<a href="{e.name}.{kind}">{kind.upper()}</a>' for kind in ("png", "svg", "csv"))
    settings = "<br>".join(_part_words(part, results.scale) for part in e.parts)
    return f"""<section class="experiment" id="{e.name}">
<header><h3>{escape(e.title)}</h3>
<span class="soft">{escape(e.figure)} · <code>{e.name}</code> · {files}</span></header>
<blockquote><b>The paper:</b> {escape(e.says)}</blockquote>
<ul class="verdicts">{verdicts}</ul>
<figure><div class="panels">
{drawn}
</div>
<figcaption>{escape(e.caption)}</figcaption></figure>
<details><summary>settings</summary><p class="soft">{settings}<br>Further problems: {results.scale.n_problems - 1}
{escape(FURTHER[e.family])}.</p></details>
</section>"""


def _inline(svg: str, title: str) -> str:
    """A figure inside the page: colours by name, and as wide as there is room."""
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, f"var({variable})")
    svg = re.sub(r'(<svg [^>]*?)height="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg [^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    return svg.replace("<svg ", f'<svg role="img" class="figure" aria-label="{escape(title, quote=True)}" ', 1)


def _part_words(part: Part, scale: Scale) -> str:
    names = "; ".join(f"{label(a)} {_parameters(a.to_dict())}" for a in part.algorithms)

    def told(budget: Budget) -> str:
        return f"{budget.n_runs} runs of {budget.n:,} {part.unit}, a record every {budget.record_every} updates"

    paper, further = scale.budget(part, 0), scale.budget(part, 1)
    rest = "" if further == paper else f"; further problems: {told(further)}"
    return escape(f"{names}. {told(paper)}{rest}.")


def _parameters(values: dict[str, object]) -> str:
    return "(" + ", ".join(f"{k} = {v}" for k, v in values.items() if k != "name") + ")"


def _settings(about: About) -> str:
    scale = about.scale
    rows = {
        "command": f"<code>{escape(about.command)}</code>",
        "seed": str(scale.seed),
        "Garnet": "G(5, 3, 2, 4): 5 states, 3 actions, 2 successors of each pair, d = 4 features uniform on [0, 1] "
        "with unit rows; rewards uniform on [0, 1]; γ = 0.95; uniform behaviour",
        "Frozen Lake": f"Gymnasium's FrozenLake-v1, 4×4, {'slippery' if scale.slippery else 'not slippery'}; holes and "
        "goal end an episode, which begins anew at the start; d = 8 Gaussian features with unit rows; γ = 0.95; "
        "uniform behaviour",
        "target policy": "softmax with inverse temperature σ = 1; for the evaluation a fixed random policy, for "
        "Baird's star the greedy one",
        "start and ball": "θ₀ ~ N(0, I), the same for all algorithms; ω₀ = 0; R = 100 (Baird's star: no ball)",
        "gradient computations": "evaluations of (G_x, H_x) as Algorithm 1 is written: 1 for a Greedy-GQ step, 3M for "
        "an epoch of VR-Greedy-GQ",
        "device": escape(scale.device),
        "versions": escape(", ".join(f"{name} {version}" for name, version in about.versions.items())),
    }
    told = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in rows.items())
    return f'<h2 id="settings">Settings</h2>\n<dl class="settings">{told}</dl>'
