"""What was found in data, with what it means for learning."""

from __future__ import annotations

import textwrap
from dataclasses import asdict, dataclass
from typing import Any

from gqlab.support.notebook import html_card
from gqlab.support.words import counted

#: From harmless to harmful.
LEVELS = ("ok", "note", "warning", "problem")

#: Columns of the printed table.
WIDTH = 110


@dataclass(frozen=True)
class Finding:
    """One fact about data.

    Attributes
    ----------
    name : str
    level : {"ok", "note", "warning", "problem"}
    value : number, str, list or None
        The fact itself, in numbers.
    meaning : str
        What it means for learning.
    """

    name: str
    level: str
    value: Any
    meaning: str


@dataclass(frozen=True, repr=False)
class Health:
    """What :func:`gqlab.health` found: ``print`` shows it as a table.

    Attributes
    ----------
    findings : list of Finding
        In the order of the table.
    description : str
        Where the data come from.
    """

    findings: list[Finding]
    description: str

    def __getitem__(self, name: str) -> Finding:
        for finding in self.findings:
            if finding.name == name:
                return finding
        raise KeyError(name)

    @property
    def worst(self) -> str:
        """The level of the most harmful finding."""
        return max((finding.level for finding in self.findings), key=LEVELS.index)

    def table(self) -> str:
        """The findings as text: level, name, value, and below what it means."""
        lines = [f"Health of {self.description}", ""]
        for finding in self.findings:
            lines.append(f"{finding.level:<8} {finding.name}: {shown(finding.value)}")
            lines += textwrap.wrap(finding.meaning, WIDTH, initial_indent=" " * 9, subsequent_indent=" " * 9)
        return "\n".join([*lines, "", self._counts()])

    def _counts(self) -> str:
        """How many findings of each level there are, the worst first."""
        counts = {level: sum(f.level == level for f in self.findings) for level in LEVELS[:0:-1]}
        return ", ".join(counted(n, level) for level, n in counts.items())

    def __repr__(self) -> str:
        return f"Health({self.description}: {self._counts()})"

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        """For notebooks."""
        facts = {f"{f.level}: {f.name}": shown(f.value) for f in self.findings if f.level != "ok"}
        return html_card(f"Health of {self.description}: {self._counts()}", facts, self.table())

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values, for JSON."""
        return {"description": self.description, "findings": [asdict(finding) for finding in self.findings]}


def shown(value: Any) -> str:
    """A value as a reader would write it."""
    if isinstance(value, bool | str):
        return str(value)
    if value is None:
        return "not known"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return ", ".join(f"{key} {shown(inner)}" for key, inner in value.items())
    return ", ".join(shown(inner) for inner in value) or "none"
