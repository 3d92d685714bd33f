"""One run and what is made of it: results, metrics, floors, frames."""
