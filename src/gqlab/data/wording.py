"""How a message names an option: ``sort=True`` to whoever calls a function, ``--sort`` to whoever types a command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_TYPED: ContextVar[bool] = ContextVar("typed", default=False)


@contextmanager
def command_line() -> Iterator[None]:
    """Messages made here name the options of the command line."""
    before = _TYPED.set(True)
    try:
        yield
    finally:
        _TYPED.reset(before)


def named(name: str) -> str:
    """An option by itself: ``drop_nulls``, or ``--drop-nulls``."""
    return f"--{name.replace('_', '-')}" if _TYPED.get() else name


def option(name: str, value: str) -> str:
    """An option with a value.

    >>> option("drop_nulls", "'rows'"), option("sort", "True")
    ("drop_nulls='rows'", 'sort=True')
    >>> with command_line():
    ...     option("drop_nulls", "'rows'"), option("sort", "True"), option("action_labels", "[...]")
    ('--drop-nulls rows', '--sort', '--action-labels ...')
    """
    if not _TYPED.get():
        return f"{name}={value}"
    return named(name) if value == "True" else f"{named(name)} {value.strip('[]' + chr(39))}"


def mapped(role: str, value: str = "...") -> str:
    """How a user says which column has a role: ``columns={'action': ...}``, or ``--column action=NAME``."""
    if not _TYPED.get():
        return f"columns={{'{role}': {value}}}"
    name = "NAME" if value == "..." else value.strip(chr(39))
    return f"--column {role}={name}"


def mapping_of(role: str) -> str:
    """What a user said about a role: ``columns['action']``, or ``--column action``."""
    return f"--column {role}" if _TYPED.get() else f"columns[{role!r}]"
