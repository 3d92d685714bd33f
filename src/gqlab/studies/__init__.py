"""Studies: a design as data, its tasks, what is gathered from them, and what is written."""
