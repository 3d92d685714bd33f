"""How bad input is answered: one line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def refused(message: str, begins: bool = False) -> Iterator[None]:
    """A ``ValueError`` of one line that has this text in it, or ``begins`` with it."""
    with pytest.raises(ValueError, match="^" * begins + re.escape(message)) as error:
        yield
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500
