"""What the pages of ``gqlab train`` and ``gqlab fit`` share, beside what all pages do."""

from __future__ import annotations

from typing import Any

from gqlab.studies.page import fixed


def score(value: float) -> str:
    """A return."""
    return fixed(value, 1)


def written(encoder: Any) -> str:
    """An encoder with all its parameters, including defaults."""
    given = {name: value for name, value in encoder.get_params(deep=False).items() if value is not None}
    return f"{type(encoder).__name__}({', '.join(f'{name}={value}' for name, value in given.items())})"
