"""What may run together: access records, conflicts, plans. Pure functions, no I/O."""
