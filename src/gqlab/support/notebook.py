"""What notebooks show of an object: a title, a few facts, and the whole text behind a fold."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any


def html_card(title: str, facts: Mapping[str, Any], text: str | None = None) -> str:
    """HTML for ``_repr_html_``.

    Examples
    --------
    >>> html_card("Model", {"actions": 2})
    '<div><strong>Model</strong><table><tbody><tr><td>actions</td><td>2</td></tr></tbody></table></div>'
    """
    rows = "".join(f"<tr><td>{escape(name)}</td><td>{escape(str(value))}</td></tr>" for name, value in facts.items())
    table = f"<table><tbody>{rows}</tbody></table>" if rows else ""
    fold = "" if text is None else f"<details><summary>all of it</summary><pre>{escape(text)}</pre></details>"
    return f"<div><strong>{escape(title)}</strong>{table}{fold}</div>"
