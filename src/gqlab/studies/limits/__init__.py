"""What samples allow, measured: Theorems 5 and 6 against simulated counts (docs/estimators.md, docs/theory.md)."""
