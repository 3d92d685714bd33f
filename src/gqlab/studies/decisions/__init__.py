"""Whether decisions from logs are right, on problems whose values are known exactly (docs/deciding.md)."""
