"""What commands print with ``--json``: one document on stdout, and nothing else there."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """Only dictionaries, lists, text and numbers; a number that is not finite becomes None."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_json(document: Any) -> None:
    """One document on stdout."""
    print(json.dumps(plain(document), ensure_ascii=False, indent=1, allow_nan=False))
