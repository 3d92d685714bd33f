"""Calls in an old form: a renamed keyword, or an argument that went, is answered with the new form."""

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


def without(kind: type, reason: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A function that takes no argument of a kind any more, and answers one with a ``ValueError`` in one line.

    Examples
    --------
    >>> from gqlab.support.renamed import without
    >>> @without(dict, "a plan knows its settings, leave them out")
    ... def draw(plan, metric="cost"): ...
    >>> draw([1], {}, "cost")
    Traceback (most recent call last):
    ValueError: draw(): a plan knows its settings, leave them out
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def answering(*args: P.args, **kwargs: P.kwargs) -> R:
            if any(isinstance(value, kind) for value in (*args, *kwargs.values())):
                raise ValueError(f"{function.__name__}(): {reason}")
            return function(*args, **kwargs)

        return answering

    return decorate
