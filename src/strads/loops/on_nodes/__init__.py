"""Node programs: the part of a loop that runs on each node of a cluster, or in this process as the only node."""
