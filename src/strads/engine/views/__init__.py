"""Views: what a body sees of each argument, when it is recorded and when it runs (decision 1)."""
