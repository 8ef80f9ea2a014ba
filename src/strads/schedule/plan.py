"""A plan: which tasks of a loop run concurrently, in which order, under which conditions (decision 3)."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from strads.schedule.passes.parallel import index_dtype


@dataclass(frozen=True)
class RowLocks:
    """Locks that each task of a `locked` plan takes: in ascending order without repetition, to avoid deadlock.

    The locks of the task at plan position p are `ids[offsets[p]:offsets[p + 1]]`, each below `count`.
    """

    count: int
    offsets: NDArray[np.int64]  # (tasks + 1,)
    ids: NDArray[np.int32]


@dataclass(frozen=True)
class Plan:
    """Jobs over a permutation of the tasks, and the precedence between jobs.

    A job is a group of tasks that one thread runs in order. Jobs are numbered by priority: of the ready jobs,
    the lowest number goes first, and `stage` never decreases with the number. Two jobs that touch a common
    written row are ordered by a path of successors, so the result does not depend on timing. An empty job is a
    barrier.
    """

    strategy: str
    reason: str
    permutation: NDArray[np.integer] | None  # (tasks,): see `order`; None: tasks keep the order of the loop
    offsets: NDArray[np.int64]  # (jobs + 1,): job j runs order[offsets[j]:offsets[j + 1]]
    stage: NDArray[np.int32]  # (jobs,)
    predecessors: NDArray[np.int32]  # (jobs,): number of direct predecessors of each job
    successor_offsets: NDArray[np.int64]  # (jobs + 1,)
    successors: NDArray[np.int32]
    parallelism: float  # total work / work on the longest chain of jobs
    locks: RowLocks | None = None
    details: dict[str, object] = field(default_factory=dict)  # shown by `explain`, e.g. blocks per table
    lane: NDArray[np.int32] | None = None  # (jobs,): replica of the relaxed tables that a job works on; barriers −1
    starts: NDArray[np.int64] | None = None  # (jobs,): loop position of a job's first task, if others follow in turn

    @cached_property
    def order(self) -> NDArray[np.integer]:
        """Position in the loop's indices of the task at each plan position; shape (tasks,)."""
        if self.permutation is not None:
            return self.permutation
        order = np.arange(self.tasks, dtype=index_dtype(self.tasks))
        if self.starts is not None:
            order += np.repeat(self.starts - self.offsets[:-1], np.diff(self.offsets)).astype(order.dtype)
        return order

    @property
    def jobs(self) -> int:
        """Number of jobs, including barriers."""
        return len(self.stage)

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return int(self.offsets[-1])

    @property
    def work(self) -> NDArray[np.int64]:
        """Work of each job: the planner's estimate, else the number of its tasks; shape (jobs,)."""
        measured = self.details.get("work")
        return measured if isinstance(measured, np.ndarray) else np.diff(self.offsets)

    def explain(self) -> str:
        """Describe, in several lines, which strategy was chosen, why, and what parallelism it gives."""
        from strads.schedule.explain import explain

        return explain(self)

    def listed(self) -> "Plan":
        """Return the same plan with the tasks of all jobs in one list, instead of only the first of each job."""
        return self if self.starts is None else replace(self, permutation=self.order, starts=None)

    def with_lanes(self, lanes: int) -> "Plan":
        """Merge the jobs of each stage into at most `lanes`, with a barrier after every stage.

        For loops with relaxed tables: each lane works on a replica of them, and the replicas are summed at the
        barriers (decision 4).

        Parameters
        ----------
        lanes
            Replicas of the relaxed tables, at least 1.

        Raises
        ------
        PlanError
            If `lanes` is below 1, or if jobs of one stage wait for each other.
        """
        from strads.schedule.strategies.lanes import with_lanes

        return with_lanes(self, lanes)
