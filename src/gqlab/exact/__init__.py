"""Exact quantities in NumPy, which share no code with the rules: so that each checks the other."""
