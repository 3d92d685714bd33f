"""Many cells in one call: what they are, how they are split into tasks, and the store that keeps finished ones."""
