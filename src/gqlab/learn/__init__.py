"""Learning from environments and logged data."""
