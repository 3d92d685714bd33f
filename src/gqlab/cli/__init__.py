"""The command line: one module for each command, and the pages that they write."""

from gqlab.cli.main import main

__all__ = ["main"]
