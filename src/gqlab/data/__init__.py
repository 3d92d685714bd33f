"""Logged data: transitions from arrays, data frames, Parquet and Minari, collecting them, and their health."""

from gqlab.data.collecting import collect
from gqlab.data.report import Finding, Health, health
from gqlab.data.transitions import Chunk, Transitions

__all__ = ["Chunk", "Finding", "Health", "Transitions", "collect", "health"]
