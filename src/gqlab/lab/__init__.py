"""One run and what can be computed from it: results, metrics, floors, frames."""
