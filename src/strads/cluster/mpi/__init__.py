"""Backend `mpi`."""
