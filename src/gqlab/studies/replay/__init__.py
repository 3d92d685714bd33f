"""Agents that learn again from what they keep: steps to threshold, and what makes the difference (docs/learning.md)."""
