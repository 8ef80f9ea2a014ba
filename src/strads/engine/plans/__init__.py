"""Execution of a loop's plan: on the threads of one machine, and as one node's part."""
