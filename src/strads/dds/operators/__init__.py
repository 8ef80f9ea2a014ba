"""Operators on the rows of tables (thesis §7.1.3): map, filter, transform, reduce, join, group_by_key."""
