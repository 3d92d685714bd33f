"""Estimators: how sampled pseudo-gradients become a move of (θ, ω). One file each."""
