"""The leaderboard: every algorithm as a multiple of the statistical floor (docs/estimators.md)."""
