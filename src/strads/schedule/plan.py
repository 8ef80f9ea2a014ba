"""A plan: which tasks of a loop run concurrently, in which order, under which conditions (decision 3)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from strads.schedule.passes.parallel import index_dtype

if TYPE_CHECKING:
    from strads.schedule.records.pools import Pools
    from strads.schedule.strategies.dealing import Deck


@dataclass(frozen=True)
class RowLocks:
    """Locks that each task of a `locked` plan takes: in ascending order without repetition, to avoid deadlock.

    The locks of the task at plan position p are `ids[offsets[p]:offsets[p + 1]]`, each below `count`.
    """

    count: int
    offsets: NDArray[np.int64]  # (tasks + 1,)
    ids: NDArray[np.int32]


@dataclass(frozen=True)
class Details:
    """What else is known about a plan; empty where its strategy does not provide it.

    Attributes
    ----------
    work : (jobs,)
        The planner's estimate of the work of each job.
    gain
        Estimated speed-up of two threads over one.
    bottleneck
        What keeps jobs from running together.
    batches
        Number of random batches of the tasks.
    ahead
        Number of tasks by which rows are fetched into the cache before a task needs them; 0 if they are not.
    blocks, bounds
        Of tables, by name: the number of blocks that their rows are cut into, and the bounds of these: (blocks + 1,).
    cells : (jobs, axes)
        Block of each axis of the grid that a job of a rotation works on.
    members, axis_of
        If blocks are dealt: for each axis, the block of each fine block, and the axis of each table, by name. `bounds`
        are those of the fine blocks.
    deck
        What plans of other deals can be made from.
    is_dealt
        Whether another deal gives another plan, made from the records.
    near
        Rows that jobs draw by `near`, by name of the table.
    notes, notes_on_near, rejected
        Lines for `explain`; the last ones by strategy.
    """

    work: NDArray[np.int64] | None = None
    gain: float | None = None
    bottleneck: str = ""
    batches: int = 1
    ahead: int = 0
    blocks: Mapping[str, int] = field(default_factory=dict)
    bounds: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    cells: NDArray[np.int32] | None = None
    members: tuple[NDArray[np.int32], ...] = ()
    axis_of: Mapping[str, int] = field(default_factory=dict)
    deck: "Deck | None" = None
    is_dealt: bool = False
    near: Mapping[str, "Pools"] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    notes_on_near: tuple[str, ...] = ()
    rejected: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """Jobs over a permutation of the tasks, and the precedence between jobs.

    A job is a group of tasks that one thread runs in order. Jobs are numbered by priority: of the ready jobs,
    the lowest number goes first, and `stage` never decreases with the number. Two jobs that touch a common
    written row are ordered by a path of successors, so the result does not depend on timing. An empty job is a
    barrier.
    """

    strategy: str  # its name, see `build_plan`
    reason: str  # why it was chosen and how it groups the tasks, for `explain`
    permutation: NDArray[np.integer] | None  # (tasks,): see `order`; None: tasks keep the order of the loop
    offsets: NDArray[np.int64]  # (jobs + 1,): job j runs order[offsets[j]:offsets[j + 1]]
    stage: NDArray[np.int32]  # (jobs,)
    predecessors: NDArray[np.int32]  # (jobs,): number of direct predecessors of each job
    successor_offsets: NDArray[np.int64]  # (jobs + 1,)
    successors: NDArray[np.int32]  # those of job j: successors[successor_offsets[j]:successor_offsets[j + 1]]
    parallelism: float  # total work / work on the longest chain of jobs
    locks: RowLocks | None = None  # that the tasks of a `locked` plan take
    details: Details = field(default_factory=Details)  # what else is known about it
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
        return np.diff(self.offsets) if self.details.work is None else self.details.work

    def explain(self) -> str:
        """Describe, in several lines, which strategy was chosen, why, and what parallelism it gives."""
        from strads.schedule.explain import explain

        return explain(self)

    def with_details(self, **changes: Any) -> "Plan":
        """Return the same plan with other details."""
        return replace(self, details=replace(self.details, **changes))

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
