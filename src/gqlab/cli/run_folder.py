"""Where a command puts what it makes, unless ``--out`` says otherwise: a folder for every run that is another one."""

from __future__ import annotations

import hashlib
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

#: What makes no other run of it.
ALIKE = frozenset(
    "env files steps passes threshold out quiet json force workers config code seeds".split()  # noqa: SIM905
)

#: Longer names are cut, and end in a digest.
LONGEST = 80


def run_folder(base: Path, name: str, options: Any, alike: frozenset[str] = frozenset()) -> Path:
    """A folder in ``base`` that is named by all that distinguishes the run from one with the defaults.

    Examples
    --------
    >>> from gqlab.cli.train import Train
    >>> run_folder(Path("results/train"), "MountainCar-v0", Train("MountainCar-v0", eta=0.5, seed=1)).name
    'MountainCar-v0-eta-0.5-seed-1'
    """
    parts = [_clean(name)]
    for field in fields(options):
        value = getattr(options, field.name)
        if field.name not in ALIKE | alike and value != field.default:
            shown = "-".join(map(str, value)) if isinstance(value, tuple) else str(value)
            parts.append(field.name.replace("_", "-") if value is True else f"{field.name}-{shown}".replace("_", "-"))
    whole = "-".join(_clean(part) for part in parts)
    if len(whole) > LONGEST:
        whole = f"{whole[: LONGEST - 9]}-{hashlib.sha256(whole.encode()).hexdigest()[:8]}"
    return base / whole


def _clean(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.") or "run"
