"""The leaderboard in units of the floor (docs/estimators.md)."""
