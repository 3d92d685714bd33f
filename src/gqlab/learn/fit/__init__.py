"""Models of logged data."""
