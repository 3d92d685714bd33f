"""Judging policies by a log: their values and gains with intervals, and where the log cannot say."""
