"""Plots of results and problems, in Matplotlib."""
