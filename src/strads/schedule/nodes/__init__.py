"""Placing a plan on nodes: which node runs which job, and which rows move when."""
