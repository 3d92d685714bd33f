"""The table of all names at the top of the API page, made from what the page documents."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

LINE = re.compile(
    r"^## (?P<section>.+)$|^\.\. (?P<kind>currentmodule|autoclass|autofunction):: (?P<name>\S+)$", flags=re.M
)


def documented(page: str) -> dict[str, list[str]]:
    """The full names that a page documents, by section."""
    found: dict[str, list[str]] = {}
    module, section = "gqlab", ""
    for match in LINE.finditer(page):
        name = match["name"]
        if match["section"]:
            section = match["section"]
        elif match["kind"] == "currentmodule":
            module = name
        else:
            found.setdefault(section, []).append(name if name.startswith("gqlab.") else f"{module}.{name}")
    return found


class Names(SphinxDirective):
    """``{names}``: one row for each section of this page, with a link to each name in it."""

    def run(self) -> list[nodes.Node]:
        """The table."""
        lines = ["| | |", "|---|---|"]
        for section, names in documented(Path(self.env.doc2path(self.env.docname)).read_text()).items():
            links = ", ".join(f"{{py:obj}}`~{name}`" for name in names)
            lines.append(f"| **{section}** | {links} |")
        parent = nodes.container(classes=["names"])
        self.state.nested_parse(StringList(lines, source=self.env.docname), 0, parent)
        return [parent]


def setup(app: Any) -> None:
    """Make the directive known."""
    app.add_directive("names", Names)
