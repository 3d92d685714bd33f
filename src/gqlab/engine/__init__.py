"""Driving the rules: random numbers, trajectories, recording, threads."""
