"""Numbers in sentences."""

from __future__ import annotations

from collections.abc import Iterable


def counted(n: int, noun: str) -> str:
    """So many of a thing.

    Examples
    --------
    >>> counted(1, "episode"), counted(2000, "episode")
    ('1 episode', '2,000 episodes')
    """
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def first_of(numbers: Iterable[int], most: int = 5) -> str:
    """The first of several numbers, in braces.

    Examples
    --------
    >>> first_of([1, 2]), first_of(range(9), most=2)
    ('{1, 2}', '{0, 1, …}')
    """
    every = list(numbers)
    return "{" + ", ".join(map(str, every[:most])) + (", …" if len(every) > most else "") + "}"
