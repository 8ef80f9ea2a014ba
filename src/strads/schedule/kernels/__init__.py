"""Compiled passes over many tasks: sorting, packing, and running in parallel."""
