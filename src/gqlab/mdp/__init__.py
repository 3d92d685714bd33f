"""Finite Markov decision processes, their chains, and the values of policies."""
