"""What launchers such as `mpiexec` tell each process of a job, by environment variables."""

import os

OWNER = "STRADS_MPI_PROCESS"  # the process that initialized MPI, whose children must not
# Those by which Open MPI, MPICH and Intel MPI tell the size of the job; those of `srun --mpi=pmix`.
_SIZE = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
_SLURM_SIZE, _SLURM_PMIX = "SLURM_STEP_NUM_TASKS", "PMIX_RANK"
# Those by which Open MPI, MPICH and Intel MPI, and Slurm tell the rank.
_RANK = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", _SLURM_PMIX)


def is_launched() -> bool:
    """Whether this process is one of several of a job; not in child processes of such a job."""
    if os.environ.get(OWNER, "") not in ("", str(os.getpid())):
        return False
    names = (*_SIZE, _SLURM_SIZE) if _SLURM_PMIX in os.environ else _SIZE
    sizes = (os.environ.get(name, "") for name in names)
    return any(size.isdigit() and int(size) > 1 for size in sizes)


def is_first() -> bool:
    """Whether this process has rank 0, or no rank from a launcher."""
    return all(os.environ.get(name, "0") == "0" for name in _RANK)
