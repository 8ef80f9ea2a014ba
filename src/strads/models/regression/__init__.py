"""Penalized regression: problems and solvers."""
