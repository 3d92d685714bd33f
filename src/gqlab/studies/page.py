"""What studies write for readers: tables as text, Markdown and HTML, numbers, and pages of one style.

A page is one file that needs nothing else: no script, no font, no network.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from gqlab.support.printable import printable

STYLE = Path(__file__).with_name("page.css")

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float, decimals: int = 2) -> str:
    """About three figures: ``decimals`` decimals from 0.1 to 10, as many figures below; powers of ten at the ends.

    Examples
    --------
    >>> [number(x) for x in (0.984, 12.34, 345.6, -2.5e6, 0.00001, float("inf"), float("nan"))]
    ['0.98', '12.3', '346', '−2.5·10⁶', '1.0·10⁻⁵', '∞', '–']
    >>> [number(x, decimals=3) for x in (0.984, 0.03424, 123456.0)]
    ['0.984', '0.0342', '1.23·10⁵']
    """
    if math.isnan(value):
        return "–"
    if value < 0:
        return f"−{number(-value, decimals)}"
    if math.isinf(value):
        return "∞"
    if value != 0 and (value < 1e-4 or value >= 99_999.5):
        mantissa, exponent = f"{value:.{decimals - 1}e}".split("e")
        return f"{mantissa}·10{str(int(exponent)).translate(_RAISED)}"
    if 0 < value < 0.1:
        return f"{value:.{decimals}g}"
    if value < 9.995:
        return f"{value:.{decimals}f}"
    return f"{value:.1f}" if value < 99.95 else f"{value:.0f}"


def fixed(value: float, decimals: int) -> str:
    """A fixed number of decimals, and a true minus sign: for returns, slopes and other numbers around 0.

    Examples
    --------
    >>> fixed(-110.04, 1)
    '−110.0'
    """
    return f"{value:.{decimals}f}".replace("-", "−")


def count(n: int) -> str:
    """A round number in short: 3k, 300k, 3M.

    Examples
    --------
    >>> [count(n) for n in (3000, 2_000_000, 3210)]
    ['3k', '2M', '3210']
    """
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if n >= size and n % size == 0:
            return f"{n // size}{unit}"
    return str(n)


@dataclass(frozen=True)
class Table:
    """A table of text.

    Examples
    --------
    >>> table = Table(["algorithm", "multiple"], [["SAGA", "1.02"], ["Greedy-GQ", "12.3 [4.1, 20]"]])
    >>> print(table.text())
    algorithm        multiple
    SAGA                 1.02
    Greedy-GQ  12.3 [4.1, 20]
    >>> print(table.markdown())
    | algorithm | multiple |
    |---|---|
    | SAGA | 1.02 |
    | Greedy-GQ | 12.3 [4.1, 20] |
    >>> print(table.html())
    <table class=cells><thead><tr><th>algorithm</th><th>multiple</th></tr></thead>
    <tbody>
    <tr><td data-label="algorithm">SAGA</td><td data-label="multiple">1.02</td></tr>
    <tr><td data-label="algorithm">Greedy-GQ</td><td data-label="multiple">12.3 <small>[4.1, 20]</small></td></tr>
    </tbody></table>
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    def text(self, numbers: bool = True) -> str:
        """For a terminal; with ``numbers`` all columns but the first end at their right."""
        lines = [list(self.header), *map(list, self.rows)]
        widths = [max(len(line[k]) for line in lines) for k in range(len(self.header))]
        return "\n".join(
            "  ".join(
                cell.rjust(w) if numbers and k else cell.ljust(w)
                for k, (cell, w) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        )

    def markdown(self) -> str:
        """For a document."""
        lines = ["".join(f"| {cell} " if cell else "| " for cell in line) + "|" for line in (self.header, *self.rows)]
        return "\n".join([lines[0], "|---" * len(self.header) + "|", *lines[1:]])

    def html(self, kind: str = "cells") -> str:
        """For a page: on a narrow screen a table of ``cells`` or of ``words`` becomes a list, a ``plain`` one stays."""
        head = "".join(f"<th>{escape(cell)}</th>" for cell in self.header)
        labels = [f' data-label="{escape(h)}"' if kind != "plain" else "" for h in self.header]
        body = "\n".join(
            f"<tr>{''.join(f'<td{label}>{_cell(cell)}</td>' for label, cell in zip(labels, row, strict=True))}</tr>"
            for row in self.rows
        )
        return f"<table class={kind}><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"


def _cell(cell: str) -> str:
    """A range in brackets is small print."""
    first, bracket, rest = cell.partition(" [")
    return escape(first) + (f" <small>[{escape(rest)}</small>" if bracket else "")


def facts_table(rows: Sequence[tuple[str, str]]) -> str:
    """Names and what they stand for, as HTML."""
    body = "\n".join(f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in rows)
    return f"<table class=facts><tbody>\n{body}\n</tbody></table>"


def figure(svg: str) -> str:
    """A picture in a page."""
    return f"<figure>{svg[svg.index('<svg') :]}</figure>"


def whole_page(title: str, body: str, style: str = "") -> str:
    """A page with its style inside: that of all pages, and what one of them has besides."""
    return printable(
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n"
        f'<link rel="icon" href="data:,">\n<style>\n{STYLE.read_text(encoding="utf-8")}{style}</style>\n</head>\n'
        f"<body><main>\n<h1>{escape(title)}</h1>\n{body}\n</main></body>\n</html>\n"
    )
