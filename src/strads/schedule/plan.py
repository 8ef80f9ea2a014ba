"""A plan: which tasks of a loop run together, in which order, on which conditions (DESIGN §4.4)."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class RowLocks:
    """Locks that each task of a `locked` plan takes: ascending, without repetition, so that no deadlock is possible.

    The locks of the task at plan position p are `ids[offsets[p]:offsets[p + 1]]`, each below `count`.
    """

    count: int
    offsets: NDArray[np.int64]  # (tasks + 1,)
    ids: NDArray[np.int32]


@dataclass(frozen=True)
class Plan:
    """Jobs over a permutation of the tasks, and the precedence between jobs.

    A job is a group of tasks that one thread runs in order. Jobs are numbered by priority: of those that are
    ready, the lowest number goes first, and `stage` never decreases with the number. Two jobs that touch a common
    written row are ordered by a path of successors, so every timing gives the same result. An empty job is a barrier.
    """

    strategy: str
    reason: str
    order: NDArray[np.integer]  # (tasks,): position in the loop's indices of the task at each plan position
    offsets: NDArray[np.int64]  # (jobs + 1,): job j runs order[offsets[j]:offsets[j + 1]]
    stage: NDArray[np.int32]  # (jobs,)
    predecessors: NDArray[np.int32]  # (jobs,): how many jobs must end before this one
    successor_offsets: NDArray[np.int64]  # (jobs + 1,)
    successors: NDArray[np.int32]
    parallelism: float  # all work / work on the longest chain of jobs
    locks: RowLocks | None = None
    details: dict[str, object] = field(default_factory=dict)  # shown by `explain`, e.g. blocks per table

    @property
    def jobs(self) -> int:
        """Number of jobs, barriers included."""
        return len(self.stage)

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return len(self.order)
