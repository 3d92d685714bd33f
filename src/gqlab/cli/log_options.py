"""The options of every command that reads a log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

if TYPE_CHECKING:
    from gqlab.data.transitions import Transitions


@dataclass(frozen=True)
class LogOptions:
    """Which files, and how they are read."""

    files: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="FILE...", help_behavior_hint="")]
    """CSV or Parquet files, patterns or folders, in the order of time."""

    column: Annotated[tuple[str, ...], tyro.conf.arg(metavar="[ROLE=NAME ...]", help_behavior_hint="")] = ()
    """What a column means, where its name does not say so: action=lever, observation=x,v. A name that holds a comma is
    given alone, once for each: observation=a,b is two columns, observation:="a, b" is one."""

    time: Annotated[str | None, tyro.conf.arg(metavar="NAME", help_behavior_hint="")] = None
    """The column of time, in numbers or dates."""

    gap: Annotated[str | None, tyro.conf.arg(metavar="LENGTH", help_behavior_hint="")] = None
    """Cut an episode off where more time than this passes between two rows: a number, or 2h, 1d for dates."""

    sort: Annotated[tuple[str, ...] | None, tyro.conf.arg(metavar="[NAME ...]", help_behavior_hint="")] = None
    """Sort the rows first: by these columns, or without a name by episode and time."""

    ends: Annotated[
        Literal["truncated", "terminated"] | None,
        tyro.conf.arg(metavar="{truncated,terminated}", help_behavior_hint=""),
    ] = None
    """What the last rows of episodes are that do not say how they end."""

    drop_nulls: Annotated[
        Literal["rows", "episodes"] | None, tyro.conf.arg(metavar="{rows,episodes}", help_behavior_hint="")
    ] = None
    """Leave out rows, or whole episodes, with empty values."""

    action_labels: Annotated[tuple[str, ...], tyro.conf.arg(metavar="[LABEL ...]", help_behavior_hint="")] = ()
    """What the actions are called, in the order of their numbers. Default: the texts that occur, by alphabet."""

    delimiter: Annotated[str | None, tyro.conf.arg(metavar="CHARACTER", help_behavior_hint="")] = None
    """Between the values of a CSV file. Default: what its first line has most of."""

    decimal: Annotated[Literal[".", ","], tyro.conf.arg(help_behavior_hint="")] = "."
    """In the numbers of CSV files."""

    encoding: Annotated[str, tyro.conf.arg(metavar="NAME", help_behavior_hint="")] = "utf8"
    """Of CSV files, such as latin1."""


def read_log(options: LogOptions) -> Transitions:
    """The transitions of the files; messages name the options of the command line."""
    from gqlab.data.transitions import Transitions
    from gqlab.data.wording import command_line

    if not options.files:
        raise ValueError("files: none is given, expected CSV or Parquet files")
    sort: Any = options.sort if options.sort is None or options.sort else True
    with command_line():
        return Transitions.from_files(
            list(options.files),
            columns_of(options.column),
            time=options.time,
            gap=_number(options.gap),
            sort=list(sort) if isinstance(sort, tuple) else sort,
            ends=options.ends,
            drop_nulls=options.drop_nulls,
            action_labels=_labels(options.action_labels),
            delimiter=options.delimiter,
            decimal=options.decimal,
            encoding=options.encoding,
        )


def _number(text: str | None) -> Any:
    """A number, where it is one."""
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        return text


def _labels(texts: tuple[str, ...]) -> list[Any] | None:
    """Labels that are all numbers are numbers."""
    numbers = [_number(text) for text in texts]
    return None if not texts else numbers if all(isinstance(label, float) for label in numbers) else list(texts)


def columns_of(texts: tuple[str, ...]) -> dict[str, list[str]] | None:
    """ROLE=NAME, ROLE=NAME,NAME or ROLE:=NAME as the dictionary that :meth:`gqlab.Transitions.from_files` takes.

    Examples
    --------
    >>> columns_of(("action=lever", "observation=x,v", "observation:=height, in m"))
    {'action': ['lever'], 'observation': ['x', 'v', 'height, in m']}
    """
    out: dict[str, list[str]] = {}
    for text in texts:
        role, equals, names = text.partition("=")
        if not equals or not names:
            raise ValueError(f"--column is {text!r}, expected ROLE=NAME, as in action=lever")
        whole = role.endswith(":")
        out.setdefault(role.removesuffix(":"), []).extend([names] if whole else names.split(","))
    return out or None
