"""Checking that a plan is safe for a loop, on its own terms: nothing here is shared with the planner."""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.errors import PlanError
from strads.schedule.plan import Plan, RowLocks
from strads.schedule.records.access import AccessRecords, UniformRecords

SLAB = 64  # words of 64 jobs: how much reachability is held at a time


class _Accesses(NamedTuple):
    """Accesses of written rows."""

    task: NDArray[np.int64]
    row: NDArray[np.int64]  # numbered through all tables
    writes: NDArray[np.bool_]
    first_row: NDArray[np.int64]
    names: list[str]

    def name(self, row: int) -> str:
        table = int(np.searchsorted(self.first_row, row, side="right")) - 1
        return f"row {row - int(self.first_row[table])} of {self.names[table]}"


def verify_plan(plan: Plan, records: AccessRecords) -> None:
    """Check that a plan runs every task once and orders all jobs that conflict.

    For small and medium plans; the memory grows with the accesses and the jobs.

    Parameters
    ----------
    plan
        Built by strads or by hand.
    records
        What each task of the loop touches.

    Raises
    ------
    PlanError
        If a task is missing or doubled; if the graph of jobs has a cycle or does not fit its counts; if a
        stage decreases with the job number; if two jobs that touch a common row, which one of them writes, are not
        ordered by a path (named with the row); in a plan with locks, if tasks that share a written row share no
        lock, or locks do not ascend.
    """
    _check_tasks(plan, records.tasks)
    rank = _topological_rank(plan)
    accesses = _written_accesses(records)
    if plan.locks is not None:
        _check_locks(plan, plan.locks, accesses)
    else:
        _check_conflicts(plan, rank, accesses)


def _check_tasks(plan: Plan, tasks: int) -> None:
    offsets = plan.offsets
    fits = len(offsets) == plan.jobs + 1 and offsets[0] == 0 and offsets[-1] == plan.tasks
    if not fits or np.any(np.diff(offsets) < 0):
        raise PlanError(f"offsets must rise from 0 to {plan.tasks}, one entry more than the {plan.jobs} jobs")
    outside = np.flatnonzero((plan.order < 0) | (plan.order >= tasks))
    if len(outside):
        raise PlanError(f"task {int(plan.order[outside[0]])} is not among the {tasks} tasks of the loop")
    times = np.bincount(plan.order, minlength=tasks)
    wrong = np.flatnonzero(times != 1)
    if len(wrong):
        count = int(times[wrong[0]])
        raise PlanError(f"task {int(wrong[0])} is {'missing' if count == 0 else f'planned {count} times'}")


def _topological_rank(plan: Plan) -> NDArray[np.int64]:
    """Position of each job in a topological order."""
    jobs, offsets, successors = plan.jobs, plan.successor_offsets, plan.successors
    fits = len(offsets) == jobs + 1 and offsets[0] == 0 and offsets[-1] == len(successors)
    if not fits or np.any(np.diff(offsets) < 0) or np.any((successors < 0) | (successors >= jobs)):
        raise PlanError(f"successors do not fit {jobs} jobs: give job numbers, and offsets from 0 to their count")
    counted = np.bincount(successors, minlength=jobs)
    wrong = np.flatnonzero(counted != plan.predecessors)
    if len(wrong):
        job = int(wrong[0])
        raise PlanError(f"job {job} says {int(plan.predecessors[job])} predecessors, but has {int(counted[job])}")
    drops = np.flatnonzero(np.diff(plan.stage) < 0)
    if len(drops):
        raise PlanError(f"the stage decreases from job {int(drops[0])} to job {int(drops[0]) + 1}")
    rank, done = _rank_jobs(plan.predecessors.copy(), offsets, successors)
    if done < jobs:
        raise PlanError(f"the jobs wait for each other in a circle: job {int(np.argmin(rank))} can never start")
    return rank


@njit(nogil=True, cache=True)
def _rank_jobs(
    waiting: NDArray[np.int32], offsets: NDArray[np.int64], successors: NDArray[np.int32]
) -> tuple[NDArray[np.int64], int]:
    """Kahn's algorithm; rank −1 for jobs on or behind a cycle."""
    jobs = len(waiting)
    rank = np.full(jobs, -1, np.int64)
    queue = np.empty(jobs, np.int64)
    end = 0
    for job in range(jobs):
        if waiting[job] == 0:
            queue[end] = job
            end += 1
    done = 0
    while done < end:
        job = queue[done]
        rank[job] = done
        done += 1
        for successor in successors[offsets[job] : offsets[job + 1]]:
            waiting[successor] -= 1
            if waiting[successor] == 0:
                queue[end] = successor
                end += 1
    return rank, done


def _written_accesses(records: AccessRecords) -> _Accesses:
    if isinstance(records, UniformRecords):
        tasks, arity = records.rows.shape
        task = np.repeat(np.arange(tasks), arity)
        table = np.tile(np.array(records.access_tables, np.int64), tasks)
        writes = np.tile(np.array(records.access_writes, bool), tasks)
    else:
        task = np.repeat(np.arange(records.tasks), np.diff(records.offsets))
        table = records.tags.astype(np.int64) // 2
        writes = records.tags % 2 == 1
    first_row = np.concatenate([[0], np.cumsum([t.rows for t in records.tables], dtype=np.int64)]).astype(np.int64)
    row = first_row[table] + records.rows.reshape(-1)
    written = np.zeros(int(first_row[-1]), bool)
    written[row[writes]] = True
    kept = written[row]
    return _Accesses(task[kept], row[kept], writes[kept], first_row, [t.name for t in records.tables])


def _check_conflicts(plan: Plan, rank: NDArray[np.int64], accesses: _Accesses) -> None:
    """A job that touches a row must reach the next one that writes it, and be reached by the one that wrote it before.

    Next and before in topological order: so all pairs are ordered of which one writes.
    """
    jobs = max(plan.jobs, 1)
    job_of = np.empty(plan.tasks, np.int64)
    job_of[plan.order] = np.repeat(np.arange(plan.jobs), np.diff(plan.offsets))
    by_rank = np.argsort(rank)
    place_of = rank[job_of[accesses.task]] if len(accesses.row) else accesses.row
    touched = np.unique(accesses.row * jobs + place_of)
    written = np.unique((accesses.row * jobs + place_of)[accesses.writes])
    row, place = touched // jobs, touched % jobs
    after, before = np.searchsorted(written, touched, side="right"), np.searchsorted(written, touched) - 1
    found = []
    for neighbour, forward in ((after, True), (before, False)):
        inside = np.flatnonzero((neighbour >= 0) & (neighbour < len(written)))
        inside = inside[written[neighbour[inside]] // jobs == row[inside]]
        other = written[neighbour[inside]] % jobs
        ends = (place[inside], other) if forward else (other, place[inside])
        found.append(np.stack([*ends, row[inside]], axis=1))
    conflicts = np.concatenate(found)
    pairs, at = np.unique(conflicts[:, 0] * jobs + conflicts[:, 1], return_index=True)
    sources, targets = by_rank[pairs // jobs], by_rank[pairs % jobs]
    ordered = np.zeros(len(pairs), bool)
    for first in range(0, plan.jobs, SLAB * 64):
        inside = (targets >= first) & (targets < first + SLAB * 64)
        if np.any(inside):
            reached = _reachable(by_rank, plan.successor_offsets, plan.successors, first)
            bit = targets[inside] - first
            words = reached[sources[inside], bit // 64]
            ordered[inside] = (words >> (bit % 64).astype(np.uint64)) & np.uint64(1) == 1
    wrong = np.flatnonzero(~ordered)
    if len(wrong):
        pair = int(wrong[0])
        one, other = sorted((int(sources[pair]), int(targets[pair])))
        name = accesses.name(int(conflicts[at[pair], 2]))
        raise PlanError(
            f"jobs {one} and {other} both touch {name}, which is written, but no path of successors orders them"
        )


@njit(nogil=True, cache=True)
def _reachable(
    by_rank: NDArray[np.int64], offsets: NDArray[np.int64], successors: NDArray[np.int32], first: int
) -> NDArray[np.uint64]:
    """Bits of the jobs `first`, `first` + 1, … that each job reaches; shape (jobs, SLAB)."""
    reached = np.zeros((len(by_rank), SLAB), np.uint64)
    for job in by_rank[::-1]:
        for successor in successors[offsets[job] : offsets[job + 1]]:
            for word in range(SLAB):
                reached[job, word] |= reached[successor, word]
            bit = successor - first
            if 0 <= bit < SLAB * 64:
                reached[job, bit // 64] |= np.uint64(1) << np.uint64(bit % 64)
    return reached


def _check_locks(plan: Plan, locks: RowLocks, accesses: _Accesses) -> None:
    """Locks ascend within a task, and all tasks that touch a written row have a lock in common, if they are several."""
    sizes = np.diff(locks.offsets)
    if len(sizes) != plan.tasks or locks.offsets[0] != 0 or locks.offsets[-1] != len(locks.ids) or np.any(sizes < 0):
        raise PlanError(
            f"lock offsets must rise from 0 to {len(locks.ids)}, one entry more than the {plan.tasks} tasks"
        )
    if np.any((locks.ids < 0) | (locks.ids >= locks.count)):
        raise PlanError(f"a lock is not among the {locks.count} locks of the plan")
    position = np.repeat(np.arange(plan.tasks), sizes)
    falling = np.flatnonzero((np.diff(locks.ids) <= 0) & (np.diff(position) == 0))
    if len(falling):
        task = int(plan.order[position[falling[0]]])
        raise PlanError(f"the locks of task {task} do not ascend: two threads could wait for each other for ever")
    position_of = np.empty(plan.tasks, np.int64)
    position_of[plan.order] = np.arange(plan.tasks)
    common: dict[int, set[int]] = {}
    pairs = np.unique(np.stack([accesses.task, accesses.row]), axis=1)
    several = np.bincount(pairs[1], minlength=1) > 1
    for task, row in pairs[:, several[pairs[1]]].T.tolist():
        place = position_of[task]
        held = set(locks.ids[locks.offsets[place] : locks.offsets[place + 1]].tolist())
        common[row] = common.get(row, held) & held
        if not common[row]:
            raise PlanError(
                f"task {task} touches {accesses.name(row)}, which is written, without a lock that guards it"
            )
