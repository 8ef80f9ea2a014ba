"""Schedules known in advance: rounds of jobs, and the routes of shards between them."""
