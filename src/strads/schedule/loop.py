"""What the planner knows of a loop besides its records."""

from dataclasses import dataclass

from strads.schedule.kernels.parallel import Parallel, sequential
from strads.schedule.strategies.dealing import Deal


@dataclass(frozen=True, kw_only=True)
class Loop:
    """A loop to be planned.

    Attributes
    ----------
    tasks
        Number of its tasks.
    in_order
        Whether the result must be that of the sequential loop.
    streams
        Whether tasks read data that are stored in the order of the loop and are not copied into that of the plan.
    certain_share
        The share of the accesses that are made unconditionally, not only under conditions that the loop changes.
    near
        Groups of tables, by number, of which tasks draw rows that their job owns: drawn rows are not recorded.
    deal
        Seed and number that determine how the rows of these tables are dealt to blocks.
    replica_bytes
        Size of the relaxed tables and counters, whose replicas are summed after each stage.
    seed
        Seed of the random batches of `components`.
    allocates
        Whether tasks create arrays: recording has to run what they compute.
    copies
        Whether recording a task copies the rows that it touches.
    computes
        Whether a task may take much longer than its accesses.
    parallel
        Runs large passes over the tasks in chunks.
    """

    tasks: int
    in_order: bool = False
    streams: bool = False
    certain_share: float = 1.0
    near: tuple[frozenset[int], ...] = ()
    deal: Deal = ()
    replica_bytes: int = 0
    seed: int = 0
    allocates: bool = False
    copies: bool = False
    computes: bool = True
    parallel: Parallel = sequential
