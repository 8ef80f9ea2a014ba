"""The loop as every strategy sees it, and how groups of tasks become a plan."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.partition import even_bounds
from strads.schedule.details import Details
from strads.schedule.kernels.counting_sort import PlanOrderCopy
from strads.schedule.kernels.parallel import Parallel, index_dtype
from strads.schedule.kernels.prefetch import SOON, prefetch
from strads.schedule.loop import Loop
from strads.schedule.plan import Plan, RowLocks
from strads.schedule.records.access import AccessRecords, TableShape, UniformRecords
from strads.schedule.records.cost import (
    HANDOVER,
    IF_BARE,
    LEAST,
    TRANSFERRED,
    USUAL,
    WAITING,
    Accesses,
    Estimate,
    nanoseconds_per_task,
)
from strads.schedule.records.private_tables import without_private_tables
from strads.schedule.records.touches import Touches, span
from strads.schedule.records.written_rows import WrittenRows, find_written_rows
from strads.schedule.strategies.blocks import column_work, touch_work
from strads.schedule.strategies.precedence import Precedence, parallelism

# Plans do not depend on the number of threads, so neither do results: these bounds leave work for many.
# To cut the tables of a long loop, accesses are counted of one in up to ONE_IN tasks, but of at least COUNTED tasks.
COUNTED, ONE_IN = 1 << 19, 8
# Jobs of a loop that can be cut anywhere, and the number of tasks in each as long as there are neither fewer nor more.
MIN_JOBS, MAX_JOBS, SMALLEST_JOB = 64, 512, 4096


_IN_ORDER = np.empty(0, np.int64)  # the order of the loop

# The tasks of all groups, one group after the other, None if in loop order; and the bounds of the groups among them.
Groups = tuple[NDArray[np.integer] | None, NDArray[np.int64]]


@dataclass(frozen=True)
class Problem:
    """A loop to be planned: its accesses that can conflict, and how to plan it."""

    records: AccessRecords  # the rows that each task touches
    written: WrittenRows  # the recorded accesses to rows that some task writes
    found: WrittenRows  # those of `written` that can conflict: without private tables
    column_tables: tuple[int, ...]  # table of every recorded column; empty for sparse records
    tasks: int  # their number
    loop: Loop  # the loop that the tasks belong to, all of it or a part
    threads: int  # number of threads that make the plan, on which it does not depend
    copy_in_order: PlanOrderCopy | None = None  # rows to be copied into plan order while that is computed, if any

    @classmethod
    def of(
        cls, records: AccessRecords, loop: Loop, threads: int, copy_in_order: PlanOrderCopy | None = None
    ) -> "Problem":
        """Find the accesses in `records` that can conflict."""
        written = find_written_rows(records)
        found = without_private_tables(written, records)
        tables_of = records.access_tables if isinstance(records, UniformRecords) else ()
        return cls(records, written, found, tables_of, records.tasks, loop, threads, copy_in_order)

    @property
    def parallel(self) -> Parallel:
        """Runs large passes over the tasks in chunks."""
        return self.loop.parallel

    @property
    def tables(self) -> tuple[TableShape, ...]:
        """The tables whose rows tasks touch."""
        return self.records.tables

    @cached_property
    def touches(self) -> Touches:
        """Touches of the tasks, with rows numbered across all tables; takes up to 4 bytes per access."""
        return self.found.touches(self.threads, self.parallel)

    @cached_property
    def write_flags(self) -> NDArray[np.uint8]:
        """Flags of the accesses that write: see `touches.is_write`."""
        return self.found.write_flags()

    @property
    def columns(self) -> tuple[int, ...] | None:
        """Columns of uniform records that can conflict."""
        return self.found.columns

    @property
    def first_row(self) -> NDArray[np.int64]:
        """Number of each table's first row; shape (tables + 1,)."""
        return self.found.first_row

    @property
    def rows(self) -> int:
        """Number of rows of all written tables."""
        return int(self.first_row[-1])

    def pieces(self) -> Groups:
        """Return the loop cut into jobs of consecutive tasks, which balance if the tasks' times differ."""
        return self.contiguous_groups(min(max(self.tasks // SMALLEST_JOB, MIN_JOBS), MAX_JOBS))

    @cached_property
    def row_work(self) -> NDArray[np.integer]:
        """Number of accesses to each row; shape (rows,)."""
        found = self.found
        if found.columns is None or len(found.written) > 0:
            return touch_work(self.touches, self.rows, self.threads, self.parallel)
        return self._column_work(1)

    @cached_property
    def sampled_row_work(self) -> NDArray[np.integer]:
        """The same, but of a long loop only the accesses of some tasks: enough to cut tables into blocks."""
        every = min(self.tasks // COUNTED, ONE_IN)
        if self.columns is None or len(self.found.written) > 0 or every <= 1:
            return self.row_work
        return self._column_work(every)

    def _column_work(self, every: int) -> NDArray[np.integer]:
        found = self.found
        accesses = found.rows, found.columns or (), found.base, self.rows
        return column_work(*accesses, self.threads, self.parallel, every)

    @cached_property
    def nanoseconds_per_task(self) -> float:
        """Estimated lower bound on the time of a task on one thread, from its accesses."""
        return self._nanoseconds(_IN_ORDER, LEAST)

    def nanoseconds_in(self, order: NDArray[np.integer] | None) -> float:
        """Estimated time of a task if tasks run in an order, by default that of the loop: to compare orders."""
        return self._nanoseconds(_IN_ORDER if order is None else order, USUAL)

    @cached_property
    def nanoseconds_if_bare(self) -> float:
        """Estimated time of a task in the order of the loop if it computes nothing, so that its accesses overlap."""
        return self._nanoseconds(_IN_ORDER, IF_BARE)

    def pays(self, order: NDArray[np.integer], worthwhile: float) -> bool:
        """Whether two threads in `order` are at least `worthwhile` times as fast as one in that of the loop.

        Tasks are taken to compute nothing. Of the memory traffic only what exceeds that in loop order counts:
        arithmetic, which is not modelled, may hide the rest.
        """
        alone, together = self.nanoseconds_if_bare, self._nanoseconds(order, IF_BARE)
        fetched, more = (nanoseconds_per_task(self._accesses, tasks, TRANSFERRED) for tasks in (_IN_ORDER, order))
        return alone >= worthwhile * max(together / 2, self.loop.certain_share * (more - fetched))

    def _nanoseconds(self, order: NDArray[np.integer], estimate: Estimate) -> float:
        return max(estimate.task, self.loop.certain_share * nanoseconds_per_task(self._accesses, order, estimate))

    @property
    def waiting_share(self) -> float:
        """Estimated share of the time of a task, in the order of the loop, in which it waits for memory."""
        waiting = nanoseconds_per_task(self._accesses, _IN_ORDER, WAITING)
        return self.loop.certain_share * waiting / self.nanoseconds_in(None)

    @property
    def _accesses(self) -> Accesses:
        row_bytes = np.array([table.row_bytes for table in self.tables], np.int64)
        used_bytes = np.array([table.used_bytes for table in self.tables], np.int64)
        touches, flags = self._all_touches, self.written.write_flags()
        return Accesses(touches, flags, self.tasks, self.written.first_row, row_bytes, used_bytes)

    @cached_property
    def _all_touches(self) -> Touches:
        if self.written is self.found:
            return self.touches
        return self.written.touches(self.threads, self.parallel)

    @property
    def handover_per_task(self) -> float:
        """Nanoseconds that a task waits for rows if those that it writes were last written by another core."""
        return self.found.writes * HANDOVER / 2 / max(self.tasks, 1)

    def row_name(self, row: int) -> str:
        """Name a row, given its number across all tables."""
        table = int(np.searchsorted(self.first_row, row, side="right")) - 1
        return self.tables[table].row_name(row - int(self.first_row[table]))

    def job_work(self, order: NDArray[np.integer], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        """Work of each job: its number of tasks or, if tasks differ, the sum of 1 + accesses of each; shape (jobs,)."""
        if self.columns is not None:
            return np.diff(offsets)
        work = np.zeros(len(offsets) - 1, np.int64)
        pieces = even_bounds(len(work), min(self.threads, len(work)))
        self.parallel(
            lambda c: _job_accesses(self.found.offsets, order, offsets, pieces[c], pieces[c + 1], work), len(pieces) - 1
        )
        return work

    def consecutive_work(self, bounds: NDArray[np.int64]) -> NDArray[np.int64]:
        """The same for jobs that run consecutive tasks of the loop, `bounds[j]:bounds[j + 1]`."""
        if self.columns is not None:
            return np.diff(bounds)
        return np.diff(bounds) + np.diff(self.found.offsets[bounds])

    def plan(
        self,
        strategy: str,
        reason: str,
        groups: Groups,
        stage: NDArray[np.integer],
        precedence: Precedence,
        details: Details | None = None,
        locks: RowLocks | None = None,
        *,
        work: NDArray[np.int64] | None = None,
    ) -> Plan:
        """Make a plan whose jobs are the given groups of tasks, in their order; `work` of each if it is known."""
        order, offsets = groups
        if order is None:
            work = self.consecutive_work(offsets)
        elif self.columns is not None or work is None:
            work = self.job_work(order, offsets)
        return Plan(
            strategy,
            reason,
            order,
            offsets,
            np.ascontiguousarray(stage, np.int32),
            *precedence,
            parallelism=parallelism(work, precedence),
            locks=locks,
            details=replace(details or Details(), work=work),
        )

    def contiguous_groups(self, groups: int) -> Groups:
        """Cut the loop, in its own order, into at most `groups` groups of equal work."""
        groups = min(groups, self.tasks)
        shares = np.arange(groups + 1, dtype=np.int64)
        bounds = shares * self.tasks // max(groups, 1)
        if self.columns is None and groups > 1:
            before = np.arange(self.tasks + 1) + self.found.offsets
            bounds = np.unique(np.searchsorted(before, shares * before[-1] // groups))
        return None, bounds.astype(np.int64)

    def busiest_row_of(self, tasks: int) -> tuple[int, int]:
        """The row that most of the first `tasks` tasks touch, and the number of these; (−1, 0) if none is touched."""
        if self.rows == 0:
            return -1, 0
        counts = _tasks_per_row(self.touches, tasks, np.zeros((2, self.rows), index_dtype(tasks)))
        row = int(np.argmax(counts))
        return (row, int(counts[row])) if counts[row] > 0 else (-1, 0)


@njit(nogil=True, cache=True)
def _job_accesses(
    task_offsets: NDArray[np.int64],
    order: NDArray[np.integer],
    offsets: NDArray[np.int64],
    begin: int,
    end: int,
    work: NDArray[np.int64],
) -> None:
    """Add 1 + the accesses of each of its tasks to the `work` of each of the jobs begin..end - 1.

    Job j runs the tasks `order[offsets[j]:offsets[j + 1]]`, and `task_offsets` (tasks + 1,) says where the accesses of
    each task begin.
    """
    for job in range(begin, end):
        for position in range(offsets[job], offsets[job + 1]):
            if position + SOON < len(order):
                prefetch(task_offsets, order[position + SOON])
            task = order[position]
            work[job] += 1 + task_offsets[task + 1] - task_offsets[task]


@njit(nogil=True, cache=True)
def _tasks_per_row(touches: Touches, tasks: int, scratch: NDArray[np.integer]) -> NDArray[np.integer]:
    counts, last_task = scratch[0], scratch[1]  # last_task: 1 + the last task that touched a row
    for task in range(tasks):
        first, end = span(touches, task)
        for access in range(first, end):
            row = touches.rows[access]
            if row >= 0 and last_task[row] != task + 1:
                last_task[row] = task + 1
                counts[row] += 1
    return counts
