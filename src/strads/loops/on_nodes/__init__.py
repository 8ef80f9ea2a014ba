"""Node programs: what each node of a cluster does of a loop, and this process where it is the only node."""
