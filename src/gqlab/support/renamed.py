"""Renamed keywords: using the old one is answered with the new one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def renamed(**names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A function that answers an old keyword, old="new", with a ``TypeError`` in one line.

    Examples
    --------
    >>> from gqlab.support.renamed import renamed
    >>> @renamed(progress_bar="progress")
    ... def learn(steps, progress=None): ...
    >>> learn(3, progress_bar=True)
    Traceback (most recent call last):
    TypeError: learn(): progress_bar is called progress now
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def answering(*args: P.args, **kwargs: P.kwargs) -> R:
            old: Any = next((name for name in names if name in kwargs), None)
            if old is not None:
                raise TypeError(f"{function.__name__}(): {old} is called {names[old]} now")
            return function(*args, **kwargs)

        return answering

    return decorate
