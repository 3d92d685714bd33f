"""What the numbers of data stand for: the labels of actions, and the columns that observations were made of.

A column of numbers is itself. Others become numbers, and the schema remembers how, so that another file is read alike:

* true and false: 1 and 0,
* dates and times: days since 1970-01-01, and lengths of time in days,
* text: a number for each of its labels, 1 for that of the row and 0 for the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gqlab.data.rows import MOST_ACTIONS
from gqlab.data.wording import named
from gqlab.support import checks

#: What an action may be called.
Label = str | int | float

#: Kinds of columns.
KINDS = ("number", "boolean", "date", "category")

#: Labels of a column of an observation, at most: more are hardly categories, and each is a number of its own.
MOST_LABELS = 100

#: Labels that a message lists.
LISTED = 8


@dataclass(frozen=True)
class Column:
    """A column of the source, and what it became."""

    name: str
    kind: str = "number"
    labels: tuple[str, ...] = ()

    def note(self) -> str:
        """What was done to it; nothing for numbers."""
        if self.kind == "boolean":
            return f"Column {self.name!r} holds true and false: 1 and 0."
        if self.kind == "date":
            return f"Column {self.name!r} holds dates or times: days since 1970-01-01, or lengths in days."
        if self.kind == "category":
            several = f"it became {len(self.labels)} numbers, one for each of {listed(self.labels)}."
            return f"Column {self.name!r} holds text: {several}"
        return ""


@dataclass(frozen=True)
class Schema:
    """The labels of actions, in the order of their numbers, and the columns of an observation.

    Attributes
    ----------
    action_labels : tuple, or None
        None where actions are numbers from 0.
    columns : tuple of Column
        None are known of arrays.
    """

    action_labels: tuple[Label, ...] | None = None
    columns: tuple[Column, ...] = ()

    def names(self, size: int) -> tuple[str, ...]:
        """The names of the numbers of an observation: ``stock``, ``region=east``, ``region=north``, …"""
        out: list[str] = []
        for column in self.columns:
            lone = len(self.columns) == 1 and size > 1 and column.kind != "category"
            if lone:
                out += [f"{column.name}[{j}]" for j in range(size)]
            elif column.kind == "category":
                out += [f"{column.name}={label}" for label in column.labels]
            else:
                out.append(column.name)
        return tuple(out) if out else tuple(f"observation[{j}]" for j in range(size))

    def notes(self) -> tuple[str, ...]:
        """What was done to columns that are no numbers."""
        return tuple(column.note() for column in self.columns if column.kind != "number")

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON; empty where there is nothing to know."""
        out: dict[str, Any] = {}
        if self.action_labels is not None:
            out["action_labels"] = list(self.action_labels)
        if self.columns:
            out["observation_columns"] = [
                {"name": c.name, "kind": c.kind, **({"labels": list(c.labels)} if c.labels else {})}
                for c in self.columns
            ]
        return out

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Schema:
        """What :meth:`to_dict` wrote; ``ValueError`` for anything else."""
        labels = values.get("action_labels")
        columns = values.get("observation_columns", [])
        if not isinstance(columns, list) or not all(isinstance(column, dict) for column in columns):
            raise ValueError(f"observation_columns is {checks.shown(columns)}, expected a list of columns")
        return cls(None if labels is None else action_labels(labels), tuple(_column(column) for column in columns))


def _column(values: Mapping[str, Any]) -> Column:
    name, kind, labels = values.get("name"), values.get("kind"), values.get("labels", [])
    known = isinstance(name, str) and isinstance(kind, str) and kind in KINDS
    if not known or not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise ValueError(f"observation_columns: {checks.shown(dict(values))} is no column")
    if (kind == "category") != bool(labels) or len(set(labels)) != len(labels) or len(labels) > MOST_LABELS:
        raise ValueError(f"observation_columns: the labels of {name!r} are {checks.shown(labels)}")
    return Column(str(name), str(kind), tuple(labels))


def action_labels(given: Any) -> tuple[Label, ...]:
    """Labels that somebody lists: all text, or all numbers, each once."""
    name = named("action_labels")
    labels = [] if isinstance(given, str | bytes) else checks.several(name, given)
    labels = [label.item() if hasattr(label, "item") and getattr(label, "ndim", 1) == 0 else label for label in labels]
    text = all(isinstance(label, str) for label in labels)
    numbers = all(
        isinstance(label, int | float) and not isinstance(label, bool) and abs(label) < 2**53 for label in labels
    )
    if not labels or not (text or numbers):
        raise ValueError(f"{name} is {checks.shown(given)}, expected a list of texts, or of numbers")
    if len(set(labels)) != len(labels) or len(labels) > MOST_ACTIONS:
        raise ValueError(f"{name} is {checks.shown(given)}, expected each once, and at most {MOST_ACTIONS}")
    return tuple(str(label) if text else label for label in labels)


def listed(labels: Sequence[Any]) -> str:
    """The first of them, as a message shows them."""
    more = f" and {len(labels) - LISTED:,} more" if len(labels) > LISTED else ""
    return ", ".join(checks.shown(label) for label in labels[:LISTED]) + more
