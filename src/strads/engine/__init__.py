"""Execution of plans."""
