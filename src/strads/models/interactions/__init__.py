"""Interactions of users with items, by the users' own ids, and the tables that hold them."""
