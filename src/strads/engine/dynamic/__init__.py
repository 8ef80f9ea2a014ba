"""Execution of dynamic schedules on one node."""
