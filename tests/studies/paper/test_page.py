"""The report in a real browser, at the widths of a laptop and of a phone, in light and dark mode."""

from __future__ import annotations

import html
import re

import pytest

from gqlab.studies.paper import words
from gqlab.studies.paper.claims import CLAIMS, THEORY_CLAIMS, judge_all, summary
from gqlab.studies.paper.departures import CHOICES, DEPARTURES
from gqlab.studies.paper.experiments import EXPERIMENTS
from gqlab.studies.paper.report import About, page
from gqlab.studies.paper.statistics import OUTCOMES
from helpers.browser import CHROMIUM, visit
from paper.conftest import Tiny

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")


KEYS = [claim.key for claim in CLAIMS if claim not in THEORY_CLAIMS]


@pytest.fixture(scope="session")
def report(tiny_results, tmp_path_factory):
    judged = judge_all(tiny_results)
    text = page(judged, tiny_results, About(Tiny(), "gqlab reproduce", {"gqlab": "0"}, "T1 and T2 later."))
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(text)
    return path


def test_what_a_reader_finds(report, tiny_results):
    text = html.unescape(report.read_text())
    contents = re.search(r"<nav.*?</nav>", text, re.DOTALL)[0]
    assert len(re.findall('href="#', contents)) == 12
    five = re.search(r'<ul class="summary">.*?</ul>', text, re.DOTALL)[0]
    assert five.count("<li>") == 5
    assert summary(judge_all(tiny_results)) in five
    assert "Not judged yet: T1, T2. T1 and T2 later." in five
    for d in (*DEPARTURES, *CHOICES):
        assert d.reason in text
    for claim in CLAIMS:
        assert claim.quantity in text
    assert "false alarms are expected by chance alone" in text


def test_a_quick_page_judges_nothing(tiny_results):
    judged = judge_all(tiny_results)
    text = page(judged, tiny_results, About(Tiny(quick=True), "gqlab reproduce --quick", {"gqlab": "0"}))
    assert text.count(words.PREVIEW) >= 2
    for outcome in ("holds", "weaker than claimed", "undecided", "reversed"):
        assert f'">{outcome}</span>' not in text


def test_the_page_stands_alone(report):
    text = report.read_text()
    assert not re.search(r'(src|href)="(https?:)?//', text)
    assert "@import" not in text
    assert "<script" not in text
    ids = re.findall(r'\sid="([^"]+)"', re.sub(r"<svg.*?</svg>", "", text, flags=re.DOTALL))
    assert len(ids) == len(set(ids))
    assert not re.search(r"\bnan\b", text)


def test_clip_paths_of_different_figures_do_not_meet(report):
    """Two figures in one page must not refer to each other's definitions."""
    drawn = re.findall(r'<svg role="img" class="figure".*?</svg>', report.read_text(), re.DOTALL)
    clips = [set(re.findall(r'<clipPath id="([^"]+)"', svg)) for svg in drawn]
    assert all(clips)
    assert sum(map(len, clips)) == len(set().union(*clips))


@needs_chromium
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_in_a_browser(report, tiny_results, tmp_path, width, dark):
    seen = visit(report, tmp_path, width, dark)
    found = seen.found
    assert seen.console == []
    assert found["width"] == width
    assert found["scroll"] <= width
    assert found["widest"] <= width
    assert all(found["images"])
    n_views = sum(len(experiment.views) for experiment in EXPERIMENTS)
    assert len(found["figures"]) == n_views
    shown = [(w, h) for w, h, _ in found["figures"] if w]  # the others are folded away
    assert len(shown) >= 16 + 4 + 1
    assert all(w > 0.6 * min(width, 400) and h > 150 for w, h in shown)
    assert len(found["strips"]) == len(KEYS)
    assert [name for name, _, _ in found["claims"]] == KEYS
    assert all(height > 20 and any(o in text for o in OUTCOMES) for _, text, height in found["claims"])
    assert sorted(found["sections"]) == sorted(experiment.name for experiment in EXPERIMENTS)
    assert summary(judge_all(tiny_results)) in found["first"]
    assert found["links"]
    assert all(found["links"])
    bright = [sum(map(int, re.findall(r"\d+", found[name])[:3])) for name in ("background", "ink")]
    assert (bright[0] < bright[1]) == dark


@needs_chromium
def test_a_broken_page_is_noticed(tmp_path):
    """The checks above can fail: each of them does, on a page made to fail it."""
    broken = tmp_path / "broken.html"
    broken.write_text(
        '<!DOCTYPE html><html><head><title>x</title><link rel="icon" href="data:,"></head><body><main>'
        '<div style="width:2000px">wide</div><img src="missing.png"><a href="#nowhere">x</a>'
        '<svg class="figure" width="0" height="0"></svg><script>console.error("oh"); throw new Error("no");</script>'
        "</main></body></html>"
    )
    seen = visit(broken, tmp_path, 390)
    assert any("oh" in line for line in seen.console)
    assert any("Uncaught Error" in line for line in seen.console)
    assert seen.found["scroll"] > 390
    assert seen.found["widest"] > 390
    assert seen.found["images"] == [False]
    assert seen.found["figures"][0][:2] == [0, 0]
    assert seen.found["links"] == [False]
    assert seen.found["claims"] == []
