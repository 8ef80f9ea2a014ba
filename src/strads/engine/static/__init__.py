"""Execution of the Static Engine's rounds on one node."""
