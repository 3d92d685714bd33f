"""Candidates in a TOML file: a table for each, with its algorithm, the parameters of that, and features of its own."""

from __future__ import annotations

import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

from gqlab.algorithms import ALGORITHMS
from gqlab.encoders.specs import encoder_from_text
from gqlab.judge.selecting import Candidate
from gqlab.learn.fit.fit import MEMORY
from gqlab.support import checks
from gqlab.support.files import one_line, open_regular

#: What a table may contain besides the parameters of its algorithm.
OWN = ("algorithm", "encoder", "passes")


def read_candidates(path: Path) -> dict[str, Candidate]:
    """The candidates of a file; ``ValueError`` in one line that names the file and the candidate."""
    try:
        with open_regular(path) as file:
            values = tomllib.load(file)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"--candidates: {path} is not TOML: {one_line(error)}") from None
    except RecursionError:
        raise ValueError(f"--candidates: {path} is nested too deeply") from None
    if not values:
        raise ValueError(f'--candidates: {path} is empty, expected tables such as [careful] with algorithm = "FittedQ"')
    found = {}
    for name, table in values.items():
        try:
            found[name] = _candidate(name, table)
        except ValueError as error:
            raise ValueError(f"--candidates: {path}: {name}: {one_line(error)}") from None
    return found


def _candidate(name: str, table: Any) -> Candidate:
    if not isinstance(table, dict):
        raise ValueError(f'it is {checks.shown(table)}, expected a table such as [{name}] with algorithm = "FittedQ"')
    if name in ("", "log"):
        raise ValueError("a candidate cannot have that name; expected another")
    known = {name: kind for name, kind in ALGORITHMS.items() if MEMORY.takes(kind)}
    kind: Any = known[checks.one_of("algorithm", table.get("algorithm"), known)]
    takes = [field.name for field in fields(kind)]
    given = {key: value for key, value in table.items() if key not in OWN}
    for key, value in given.items():
        if key not in takes:
            raise ValueError(
                f"{key} is {checks.shown(value)}, which {kind.__name__} does not take; expected any of "
                f"{', '.join([*takes, *OWN[1:]])}"
            )
    passes = table.get("passes")
    return Candidate(
        kind(**given),
        encoder_from_text(table["encoder"]) if "encoder" in table else None,
        None if passes is None else checks.integer("passes", passes, least=1),
    )
