"""A plan: which tasks of a loop run concurrently, in which order, under which conditions (decision 3)."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.schedule.details import Details
from strads.schedule.kernels.parallel import index_dtype


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
    details: Details = field(default_factory=Details)  # further facts about it
    lane: NDArray[np.int32] | None = None  # (jobs,): replica of the relaxed tables that a job works on; barriers −1
    starts: NDArray[np.int64] | None = (
        None  # (jobs,): loop position of each job's first task, if the tasks of every job are consecutive in the loop
    )

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
        filled = self.work[np.diff(self.offsets) > 0]
        barriers = self.jobs - len(filled)
        stages = len(np.unique(self.stage))
        lines = [
            f"strategy: {self.strategy}",
            f"reason: {self.reason}",
            f"tasks: {self.tasks:,}",
            f"jobs: {len(filled):,}" + (f" and {barriers:,} barrier{'s' * (barriers > 1)}" if barriers else ""),
            f"stages: {stages:,}",
            f"parallelism: {self.parallelism:.1f}",
        ]
        if len(filled):
            lines.append(f"work of a job: heaviest {filled.max():,}, median {int(np.median(filled)):,}")
        details = self.details
        if details.blocks:
            lines.append("blocks: " + ", ".join(f"{count} of {name}" for name, count in details.blocks.items()))
        if details.prefetch_distance:
            lines.append(
                f"rows are fetched into the cache {details.prefetch_distance} tasks ahead, as most are not in it"
            )
        lines += [*_locks(self), *details.notes, *details.notes_on_near]
        lines += [f"not {strategy}: {why}" for strategy, why in details.rejected.items()]
        return "\n".join(lines)

    def with_details(self, **changes: Any) -> "Plan":
        """Return the same plan with other details."""
        return replace(self, details=replace(self.details, **changes))

    def listed(self) -> "Plan":
        """Return the same plan with the tasks of all jobs in one list, instead of only the first of each job."""
        return self if self.starts is None else replace(self, permutation=self.order, starts=None)


def _locks(plan: Plan) -> list[str]:
    lines = []
    if plan.lane is not None:
        lines.append(f"lanes: {int(plan.lane.max(initial=-1)) + 1}")
    if plan.locks is not None:
        lines.append(f"locks: {plan.locks.count:,}; the result depends on timing")
        lines.append(
            "use strategy='auto' to get the same result in every run; if the body draws rows at random, draw them with "
            "rng.near(table)"
        )
    return lines
