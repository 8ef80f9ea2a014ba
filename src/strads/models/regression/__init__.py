"""Penalized regression: problems, and what solves them."""
