"""The built documentation: links, headings, what it loads, and every page in a real browser at two widths.

``make docs-check`` builds the site and names its folder in GQLAB_SITE; without that there is nothing to look at.
"""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from helpers.browser import CHROMIUM, FLAGS

SITE = Path(os.environ.get("GQLAB_SITE", "no-such-site")).resolve()
PAGES = sorted(
    str(path.relative_to(SITE)) for path in SITE.rglob("*.html") if not {"_modules", "_static"} & set(path.parts)
)
pytestmark = pytest.mark.skipif(not PAGES, reason="GQLAB_SITE names no built site: make docs-check")

WIDTHS = (390, 1280)

#: Tells the page around it how wide the page is, what looks wrong, and how many results a search has found, when it has settled.
PROBE = """<script>
function faults() {
  const all = (selector, wrong, what) =>
    [...document.querySelectorAll(selector)].filter(wrong).map(e => what + ": " + e.textContent.trim().slice(0, 60) + (e.alt || ""));
  const box = e => e.getBoundingClientRect(), style = e => getComputedStyle(e);
  const text = document.querySelector(".bd-article");
  return [
    ...all(".bd-article table", e => box(e).width > e.parentElement.clientWidth + 1 && style(e.parentElement).overflowX !== "auto",
      "a table without a box that scrolls"),
    ...all("table.stacked", e => innerWidth < 600 && box(e).width > e.parentElement.clientWidth + 1, "a stacked table that is cut"),
    ...all(".cards li", e => ["Top", "Right", "Bottom", "Left"].some(side => parseFloat(style(e)["padding" + side]) < 12),
      "text at a border"),
    ...all(".bd-sidebar-primary p", e => box(e).width && e.scrollWidth > e.clientWidth, "a title wider than the sidebar"),
    ...all(".bd-article :is(p, li) > code", e => !e.closest("table") && box(e).right > box(text).right + 1, "code wider than the text"),
    ...all(".bd-article img", e => Math.abs(box(e).width / box(e).height * e.naturalHeight / e.naturalWidth - 1) > 0.02,
      "a picture that is stretched"),
  ];
}
addEventListener("load", () => setTimeout(() => parent.postMessage(JSON.stringify({
  width: innerWidth,
  scroll: document.documentElement.scrollWidth,
  images: [...document.images].filter(e => !e.complete || e.naturalWidth === 0).map(e => e.src),
  faults: faults(),
  found: document.querySelectorAll("#search-results li").length,
}), "*"), 2000));
</script>"""

FRAME = """<!DOCTYPE html><html><head><title>frame</title><link rel="icon" href="data:,"></head><body><pre id="probe"></pre>
<script>addEventListener("message", e => document.querySelector("#probe").textContent += e.data + "\\n");</script>
{frames}</body></html>"""


class Page(HTMLParser):
    """What a page links to, loads, and calls its parts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.ids: set[str] = set()
        self.headings: list[int] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.ids |= {values[name] for name in ("id", "name") if name in values}
        if re.fullmatch(r"h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag in ("script", "img", "iframe", "source") and "src" in values:
            self.loaded.append(values["src"])
        elif tag == "link" and values.get("rel") in ("stylesheet", "preload", "icon", "modulepreload"):
            self.loaded.append(values["href"])


@cache
def read(path: Path) -> Page:
    return Page(path.read_text())


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere_and_headings_are_in_order(name):
    page = read(SITE / name)
    for link in page.links:
        target, _, anchor = unquote(html.unescape(link)).partition("#")
        if re.match(r"[a-z]+:", target):
            continue  # of other sites
        path = (SITE / name).parent / target.partition("?")[0] if target else SITE / name
        assert path.exists(), link
        if anchor and path.suffix == ".html":
            assert anchor in read(path.resolve()).ids, link
    steps = [after - before for before, after in zip(page.headings, page.headings[1:], strict=False)]
    assert page.headings.count(1) == 1 or name in ("genindex.html", "search.html", "py-modindex.html")
    assert max(steps, default=0) <= 1, page.headings


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_loaded_from_a_network(name):
    assert [source for source in read(SITE / name).loaded if re.match(r"(https?:)?//", source)] == []


def test_no_style_loads_from_a_network():
    for path in SITE.rglob("*.css"):
        assert not re.search(r"url\(\s*['\"]?(https?:)?//", path.read_text()), path


def visit(name: str, folder: Path, query: str = "") -> tuple[list[str], list[dict[str, object]]]:
    """What the console says, and what the probe found at each width."""
    page = SITE / name
    copy, frame = page.with_name(f"probe-{page.name}"), page.with_name(f"frame-{page.name}")
    copy.write_text(page.read_text().replace("</body>", f"{PROBE}</body>"))
    frames = [f'<iframe src="{copy.name}{query}" style="width:{w}px;height:900px;border:0"></iframe>' for w in WIDTHS]
    frame.write_text(FRAME.replace("{frames}", "\n".join(frames)))
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder}", "--window-size=1500,1000", "--virtual-time-budget=8000"]
    try:
        done = subprocess.run(
            [*command, "--dump-dom", frame.as_uri()], capture_output=True, text=True, timeout=120, check=True
        )
    finally:
        copy.unlink()
        frame.unlink()
    text = re.search(r'<pre id="probe"[^>]*>(.*?)</pre>', done.stdout, re.DOTALL)
    assert text, done.stderr[-2000:]
    console = [line for line in done.stderr.splitlines() if ":CONSOLE" in line and "[PST]" not in line]  # the theme's
    return console, [json.loads(line) for line in html.unescape(text[1]).splitlines() if line]


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
@pytest.mark.parametrize("name", PAGES)
def test_no_page_is_wider_than_its_screen_and_nothing_is_cut_or_stretched(name, tmp_path):
    console, found = visit(name, tmp_path)
    assert sorted(int(page["width"]) for page in found) == list(WIDTHS)
    for page in found:
        assert page["scroll"] <= page["width"], page
        assert page["images"] == []
        assert page["faults"] == []
    assert console == []


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
def test_the_search_works_from_a_file(tmp_path):
    _, found = visit("search.html", tmp_path, "?q=softmax")
    assert min(int(page["found"]) for page in found) > 0
