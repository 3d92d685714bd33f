"""A page in Debian's chromium, without a window: its console, and what a script finds in it."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--enable-logging=stderr", "--log-level=0",
    "--host-resolver-rules=MAP * ~NOTFOUND",
)  # fmt: skip

#: Measures the page once it has loaded and writes what it found into it.
PROBE = """<script>
addEventListener("load", () => {
  const size = e => { const b = e.getBoundingClientRect(); return [b.width, b.height, b.right]; };
  const found = {
    width: innerWidth,
    scroll: document.documentElement.scrollWidth,
    widest: Math.max(...[...document.querySelectorAll("main *")].map(e => e.getBoundingClientRect().right)),
    images: [...document.images].map(e => e.complete && e.naturalWidth > 0),
    figures: [...document.querySelectorAll("svg.figure")].map(size),
    strips: [...document.querySelectorAll("svg.strip")].map(size),
    claims: [...document.querySelectorAll("tr.claim")].map(e => [e.dataset.claim, e.innerText, e.offsetHeight]),
    sections: [...document.querySelectorAll("section.experiment")].map(e => e.id),
    first: document.querySelector("main").innerText.slice(0, 2000),
    background: getComputedStyle(document.body).backgroundColor,
    ink: getComputedStyle(document.body).color,
    links: [...document.querySelectorAll("a[href^='#']")].map(e => !!document.querySelector(e.getAttribute("href"))),
  };
  parent.postMessage(JSON.stringify(found), "*");
});
</script>"""

#: Holds the page at a width of its own (a window of the browser is at least 500 pixels wide) and keeps what it says.
FRAME = """<!DOCTYPE html><html><head><title>frame</title><link rel="icon" href="data:,">
<meta name="color-scheme" content="light dark"></head>
<body><pre id="probe"></pre>
<script>addEventListener("message", e => document.querySelector("#probe").textContent = e.data);</script>
<iframe src="{name}" style="width:{width}px;height:900px;border:0"></iframe></body></html>
"""


@dataclass(frozen=True)
class Visit:
    """What the browser said on its console, and what the probe found."""

    console: list[str]
    found: dict[str, Any]


def visit(page: Path, folder: Path, width: int, dark: bool = False) -> Visit:
    """Open a copy of ``page`` with the probe in it; ``folder`` is for the copy and the browser's own files."""
    assert CHROMIUM is not None
    copy, frame = (page.with_name(f"{name}-{width}-{dark}.html") for name in ("probe", "frame"))
    copy.write_text(page.read_text().replace("</body>", f"{PROBE}</body>"))
    frame.write_text(FRAME.replace("{name}", copy.name).replace("{width}", str(width)))
    mode = ("--blink-settings=preferredColorScheme=0",) if dark else ("--blink-settings=preferredColorScheme=1",)
    try:
        done = subprocess.run(
            [
                CHROMIUM, *FLAGS, *mode, f"--user-data-dir={folder / f'profile-{width}-{dark}'}",
                f"--window-size={width + 200},1000", "--virtual-time-budget=5000", "--dump-dom", frame.as_uri(),
            ],
            capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip
    finally:
        copy.unlink()
        frame.unlink()
    found = re.search(r'<pre id="probe"[^>]*>(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stderr[-2000:]
    console = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    return Visit(console, json.loads(html.unescape(found[1])))
