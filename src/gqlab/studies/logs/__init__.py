"""Where variance reduction pays on logged data (docs/learning.md)."""
