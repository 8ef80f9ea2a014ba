"""The job pool (thesis §4.2.2): of the ready jobs, a thread takes the one with the highest priority in the plan.

The pool is a state machine over arrays, with the events `take` and `finish`. It is independent of threads and tasks;
compiled workers call it under one lock, and the tests drive it without threads.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.engine.atomics import compare_and_swap, fetch_add, load, pause
from strads.engine.compiling import ON_DISK
from strads.schedule.plan import Plan

WAIT = -1  # no job is ready, but some are still to come
_MAX_LOOKED_AT = 64  # ready jobs that are searched for one whose data are in a thread's cache
_JOB_BITS = 32  # low bits of a key: the number of the job; the high ones are its rank
_JOB_MASK = (1 << _JOB_BITS) - 1
FINISHED = -2  # every job has been finished, or the pool was stopped

# Fields of `JobPool.state`.
_LOCK, _READY, _TAKEN, _DONE, STOPPED, _PATIENCE, _FIFO, _PUSHED, _QUEUED, _LONGEST = range(10)


class JobPool(NamedTuple):
    """Run-time state of one execution of a plan."""

    state: NDArray[np.int64]  # lock, jobs in the heap, jobs taken, jobs done, stop flag, …
    heap: NDArray[np.int64]  # min-heap of ready jobs, each with its rank (or turn) in the high bits
    pending: NDArray[np.int32]  # unfinished predecessors of each job
    finished: NDArray[np.int32]  # jobs in the order in which they ended: a topological order of the plan
    successor_offsets: NDArray[np.int64]  # (jobs + 1,): where each job's successors start
    successors: NDArray[np.int32]  # (edges,): the jobs that wait for each job directly
    ranks: NDArray[np.int64]  # the rank of each job; empty: jobs are ranked by their numbers
    home: NDArray[np.int32]  # of each job a number that jobs with much data in common share; empty: not known


def make_job_pool(
    plan: Plan, *, order: str = "heaviest", patience: int = 0, ranks: NDArray[np.int64] | None = None
) -> JobPool:
    """Fill a pool with a plan's jobs; those without predecessors are ready.

    Parameters
    ----------
    plan
        The jobs.
    order
        Which of the ready jobs goes first: the "heaviest", as the plan numbers them, or, for comparison, the
        one that has been ready longest ("fifo").
    patience
        Number of attempts to take a job after which `take_or_wait` returns `WAIT`; 0: unlimited.
    ranks : (jobs,), optional
        Of the ready jobs, the one with the lowest rank goes first, instead of the one with the lowest number.
    """
    ready = np.flatnonzero(plan.predecessors == 0)
    state = np.zeros(16, np.int64)
    state[_READY] = state[_PUSHED] = state[_LONGEST] = len(ready)
    state[_PATIENCE], state[_FIFO] = patience, order == "fifo"
    heap = np.empty(plan.jobs, np.int64)
    if order == "fifo":
        ready |= np.arange(len(ready)) << _JOB_BITS
    elif ranks is not None:
        ready = np.sort(ready | ranks[ready] << _JOB_BITS)
    heap[: len(ready)] = ready  # ascending, hence a valid heap
    finished = np.empty(plan.jobs, np.int32)
    ranks = np.empty(0, np.int64) if ranks is None else ranks
    dependences = plan.predecessors.astype(np.int32), finished, plan.successor_offsets, plan.successors
    return JobPool(state, heap, *dependences, ranks, _homes(plan))


def _homes(plan: Plan) -> NDArray[np.int32]:
    """Return the blocks of the longest table that jobs of a rotation work on."""
    cells, rows = plan.details.cells, [int(bounds[-1]) for bounds in plan.details.bounds.values()]
    if cells is None or len(cells) != plan.jobs or len(rows) != cells.shape[1]:
        return np.empty(0, np.int32)
    return np.ascontiguousarray(cells[:, np.argmax(rows)])


@njit(cache=True, **ON_DISK)
def _push(pool: JobPool, job: int) -> None:
    key = np.int64(job)
    if pool.state[_FIFO] != 0:
        key |= pool.state[_PUSHED] << _JOB_BITS
    elif len(pool.ranks) > 0:
        key |= pool.ranks[job] << _JOB_BITS
    pool.state[_PUSHED] += 1
    child = pool.state[_READY]
    pool.state[_READY] += 1
    pool.state[_LONGEST] = max(pool.state[_LONGEST], child + 1)
    while child > 0:
        parent = (child - 1) // 2
        if pool.heap[parent] <= key:
            break
        pool.heap[child] = pool.heap[parent]
        child = parent
    pool.heap[child] = key


@njit(cache=True, **ON_DISK)
def _chosen(pool: JobPool, size: int, member: int, members: int) -> int:
    """Place in the heap of the first job whose data are in the cache of thread `member`; 0 if none."""
    if len(pool.home) == 0 or members == 1 or size > _MAX_LOOKED_AT:
        return 0
    best = -1
    for place in range(size):
        is_home = pool.home[pool.heap[place] & _JOB_MASK] % members == member
        if is_home and (best < 0 or pool.heap[place] < pool.heap[best]):
            best = place
    return max(best, 0)


@njit(cache=True)
def take(pool: JobPool, member: int = 0, members: int = 1) -> int:
    """Take the first ready job; `WAIT` if there is none yet, `FINISHED` if there will be none.

    Of `members` threads, number `member` prefers jobs that work on the same blocks as its earlier ones.
    """
    if pool.state[STOPPED] != 0 or pool.state[_TAKEN] == len(pool.pending):
        return FINISHED
    size = pool.state[_READY]
    if size == 0:
        return WAIT
    parent = _chosen(pool, size, member, members)
    first = pool.heap[parent]
    pool.state[_QUEUED] += size
    size -= 1
    pool.state[_READY] = size
    pool.state[_TAKEN] += 1
    last = pool.heap[size]
    while parent > 0 and last < pool.heap[(parent - 1) // 2]:
        pool.heap[parent] = pool.heap[(parent - 1) // 2]
        parent = (parent - 1) // 2
    while 2 * parent + 1 < size:
        child = 2 * parent + 1
        if child + 1 < size and pool.heap[child + 1] < pool.heap[child]:
            child += 1
        if last <= pool.heap[child]:
            break
        pool.heap[parent] = pool.heap[child]
        parent = child
    pool.heap[parent] = last
    return first & _JOB_MASK


@njit(cache=True)
def finish(pool: JobPool, job: int) -> None:
    """Record that a job has ended; successors that waited only for it become ready."""
    pool.finished[pool.state[_DONE]] = job
    pool.state[_DONE] += 1
    for position in range(pool.successor_offsets[job], pool.successor_offsets[job + 1]):
        successor = pool.successors[position]
        pool.pending[successor] -= 1
        if pool.pending[successor] == 0:
            _push(pool, successor)


@njit(cache=True)
def finish_and_take(pool: JobPool, job: int, end: int) -> int:
    """`finish` a job, and `take` the first ready one if its number is below `end`."""
    finish(pool, job)
    if pool.state[_READY] == 0 or pool.heap[0] & _JOB_MASK < end:
        return take(pool)
    return WAIT


@njit(cache=True, **ON_DISK)
def _lock(pool: JobPool) -> None:
    attempts = 0
    while not compare_and_swap(pool.state, _LOCK, 0, 1):
        attempts += 1
        pause(attempts)


@njit(cache=True, **ON_DISK)
def _may_take(pool: JobPool) -> bool:
    """Whether `take` may find anything but `WAIT`; only reads, so that waiting threads do not slow down others."""
    state = pool.state
    return load(state, _READY) > 0 or load(state, STOPPED) != 0 or load(state, _TAKEN) == len(pool.pending)


@njit(cache=True, **ON_DISK)
def take_or_wait(pool: JobPool, member: int, members: int) -> int:
    """Thread-safe `take`: waits until a job is ready, or its patience is exhausted (`WAIT`)."""
    attempts = 0
    while True:
        if _may_take(pool):
            _lock(pool)
            job = take(pool, member, members)
            fetch_add(pool.state, _LOCK, -1)
            if job != WAIT:
                return job
        attempts += 1
        if attempts == pool.state[_PATIENCE]:
            return WAIT
        pause(attempts)


@njit(nogil=True, cache=True)
def finish_locked(pool: JobPool, job: int) -> None:
    """Thread-safe `finish`."""
    _lock(pool)
    finish(pool, job)
    fetch_add(pool.state, _LOCK, -1)


@njit(nogil=True, cache=True)
def arrive(pool: JobPool, job: int) -> None:
    """Finish a job that stands for an external event; its predecessor count includes the event, so none takes it."""
    _lock(pool)
    pool.state[_TAKEN] += 1
    finish(pool, job)
    fetch_add(pool.state, _LOCK, -1)


def stop(pool: JobPool) -> None:
    """Make every worker return soon, even within a job (a flag that is only ever set needs no lock)."""
    pool.state[STOPPED] = 1


def jobs_done(pool: JobPool) -> NDArray[np.int32]:
    """Return the jobs in the order in which they ended."""
    return pool.finished[: int(pool.state[_DONE])]


def jobs_taken_and_done(pool: JobPool) -> tuple[int, int]:
    """Return how many jobs have been taken, and how many of them have ended."""
    return int(pool.state[_TAKEN]), int(pool.state[_DONE])


def queue_lengths(pool: JobPool) -> tuple[float, int]:
    """Return the mean number of ready jobs when one was taken, and the maximum."""
    taken = int(pool.state[_TAKEN])
    return float(pool.state[_QUEUED]) / max(taken, 1), int(pool.state[_LONGEST])
