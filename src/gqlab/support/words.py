"""Numbers in sentences."""

from __future__ import annotations


def counted(n: int, noun: str) -> str:
    """So many of a thing.

    Examples
    --------
    >>> counted(1, "episode"), counted(2000, "episode")
    ('1 episode', '2,000 episodes')
    """
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
