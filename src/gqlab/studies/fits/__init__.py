"""Which variance reduction pays in passes over a log (docs/learning.md)."""
