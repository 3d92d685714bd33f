"""How many samples a small gradient takes (docs/rates.md)."""
