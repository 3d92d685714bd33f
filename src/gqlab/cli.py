"""The command line: ``gqlab``."""

from __future__ import annotations


def main() -> None:
    """Entry point."""
    raise SystemExit("gqlab: no command yet")
