"""What the pages of ``gqlab train`` and ``gqlab fit`` are made of: each is one file that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from gqlab.studies.compare.report import STYLE

#: Of the page of the leaderboard, but for its tables of two columns.
MORE_STYLE = """
table.facts { width: auto; } table.facts td { text-align: left; white-space: normal; }
pre { background: var(--card); padding: .8rem 1rem; border-radius: 6px; overflow-x: auto; font-size: .85rem; }
pre code { background: none; padding: 0; }
.score { font-size: clamp(2rem, 6vw, 3rem); font-weight: 700; color: var(--ink); margin: .6rem 0 0; line-height: 1.1; }
.bad { border-left: 4px solid #d55e00; padding-left: .8rem; color: var(--ink); }
figure svg { min-width: 0; max-width: 860px; }
@media (max-width: 860px) {
  table.plain { display: table; } table.plain thead { display: table-header-group; }
  table.plain tbody { display: table-row-group; } table.plain tr { display: table-row; }
  table.plain td { display: table-cell; width: auto; padding: .35rem .25rem; border-bottom: 1px solid var(--line); }
  table.plain td::before { content: none !important; }
  table.facts td:first-child { color: var(--soft); font-weight: 400; padding-top: .5rem; }
  table.facts td::before { content: none !important; }
}
"""


def whole_page(title: str, body: str) -> str:
    """A page with its style inside."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n"
        f'<link rel="icon" href="data:,">\n<style>\n{STYLE.read_text(encoding="utf-8")}{MORE_STYLE}</style>\n</head>\n'
        f"<body><main>\n<h1>{escape(title)}</h1>\n{body}</main></body>\n</html>\n"
    )


def number(value: float) -> str:
    """One digit behind the point, and a minus sign that is one."""
    return f"{value:.1f}".replace("-", "−")


def written(encoder: Any) -> str:
    """An encoder with its parameters, defaults too."""
    given = {name: value for name, value in encoder.get_params(deep=False).items() if value is not None}
    return f"{type(encoder).__name__}({', '.join(f'{name}={value}' for name, value in given.items())})"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "\n".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table class=plain><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"


def facts_table(rows: Sequence[tuple[str, str]]) -> str:
    body = "\n".join(f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in rows)
    return f"<table class=facts><tbody>\n{body}\n</tbody></table>"
