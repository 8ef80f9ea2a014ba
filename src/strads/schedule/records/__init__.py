"""What is known of a loop's tasks: which rows they touch, at which cost, and who owns the rows."""
