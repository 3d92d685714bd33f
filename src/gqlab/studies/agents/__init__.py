"""What agents reach on known environments (docs/learning.md)."""
