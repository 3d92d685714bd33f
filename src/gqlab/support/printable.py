"""Text that others wrote, such as names of files, columns and actions, as a terminal or a page can show it."""

from __future__ import annotations

import re

#: Characters that a terminal obeys or that turn the direction of what follows: they are written as escapes. Line breaks
#: and tabs are none of them.
OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


def printable(text: str) -> str:
    r"""The text, with escapes in place of characters that are not shown but obeyed.

    >>> printable("red \x1b[31m, or \u202eder")
    'red \\x1b[31m, or \\u202eder'
    """
    return OBEYED.sub(_escape, text)


def in_one_line(text: object) -> str:
    r"""The same in one line.

    >>> in_one_line("two\nlines")
    'two lines'
    """
    return printable(" ".join(str(text).split()))


def say(text: object) -> None:
    """Print what may hold names that others gave."""
    print(printable(str(text)))


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
