"""Exact quantities in NumPy, which share no code with the rules: each is a check of the other."""
