"""The strategies: each groups tasks that share no written row, in its own way."""
