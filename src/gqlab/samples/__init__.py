"""Samples and where they come from."""
