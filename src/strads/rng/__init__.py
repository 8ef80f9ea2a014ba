"""Random numbers as functions of a seed, a place and a count: the same for any number of threads and nodes."""
