"""The user's functions: what identifies them, where their lines are, and how nodes get them."""
