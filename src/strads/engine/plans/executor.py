"""Runs a plan on the threads of this machine: one compiled call per thread, without the interpreter between jobs."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit, typeof, types
from numpy.typing import NDArray

from strads.cluster import ThreadTeam
from strads.engine.atomics import compare_and_swap, fetch_add, pause
from strads.engine.compiling import UNCOUNTED, compiled, local_counters
from strads.engine.plans.job_pool import (
    FINISHED,
    STOPPED,
    WAIT,
    finish_locked,
    make_job_pool,
    queue_lengths,
    stop,
)
from strads.engine.plans.prefetch_trials import BLOCK, TRIALS, begin_block, end_block
from strads.engine.plans.seats import FIRST, LANE, LAST, Seats, finish_job, provide_jobs, take_job
from strads.engine.plans.transfers import NodeTransfers
from strads.engine.stopping import stoppable
from strads.engine.views.kinds import RECENT_SIZE
from strads.engine.views.random_numbers import DRAW_STATE
from strads.engine.views.types import bind_with
from strads.schedule.plan import Plan, RowLocks
from strads.schedule.records.ownership import Ownership

Worker = Callable[..., int]
# Owner of each row, and offsets and numbers of the rows that each job claims when it begins: see `Ownership`.
Claiming = tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]

# The locks, offsets and ids of each task's locks, the sequence in which they ran if it is recorded, and its counter.
Locking = tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]

Task = tuple[Any, tuple[Any | None, ...]]  # a body, and the constructors of its views

# Threads for each unit of a plan's parallelism, which is an average: for a time, more jobs may be ready.
_SLACK = 1.5
_TOTAL_STRIDE = 8  # doubles in a cache line
# Tasks between checks of the stop flag, as a job may take minutes: of any kind, and of short ones.
_STRIDE, _LONG_STRIDE = 64, 1024


@dataclass(frozen=True)
class ExecutablePlan:
    """A plan as a worker needs it, in plain arrays."""

    plan: Plan
    # (tasks,): the loop index k of the task at each plan position; None if that is the position itself; start and step
    # if the tasks of a range run in its order
    indices: NDArray[np.integer] | tuple[int, int] | None
    ownership: Ownership | None = None  # of the rows of guarded tables, if any

    @property
    def in_loop_order(self) -> bool:
        """Whether all tasks of a job run in the order of the loop, which is that of a range."""
        return not isinstance(self.indices, np.ndarray)

    def stretches(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where the tasks of each job begin and end: positions in the loop if in its order, else in the plan."""
        begins, ends = self.plan.offsets[:-1], self.plan.offsets[1:]
        if self.plan.starts is None or not self.in_loop_order:
            return begins, ends
        return self.plan.starts, self.plan.starts + (ends - begins)

    def lanes(self) -> NDArray[np.int32]:
        """Return the lane of each job: the replica of relaxed tables that it works on; −1: that of its thread."""
        lane = self.plan.lane
        return np.full(self.plan.jobs, -1, np.int32) if lane is None else lane


@dataclass(frozen=True)
class Execution:
    """Result of one execution of a plan."""

    seconds: float  # wall-clock time, from the first transfers to the end of the last thread
    sequence: NDArray[np.int64] | None  # of `locked` plans, if recorded: rank of each plan position
    compute_seconds: float = 0.0  # in compiled code, summed over threads
    mean_queue: float = 0.0  # mean number of ready jobs when one was taken
    longest_queue: int = 0  # largest number of ready jobs at any time


@njit(nogil=True, cache=True)
def _acquire(locks, ids, first, last, state) -> bool:  # type: ignore[no-untyped-def]
    """Acquire a task's locks `ids[first:last]` in ascending order; False if the run was stopped meanwhile.

    `locks` (int32) has an entry for each lock, 1 while it is held; `state` is that of the job pool.
    """
    for entry in range(first, last):
        attempts = 0
        while not compare_and_swap(locks, ids[entry], 0, 1):
            if state[STOPPED] != 0:
                return False
            attempts += 1
            pause(attempts)
    return True


@njit(nogil=True, cache=True)
def _release(locks, ids, first, last) -> None:  # type: ignore[no-untyped-def]
    """Release what `_acquire` has acquired: the `locks` `ids[first:last]`."""
    for entry in range(first, last):
        fetch_add(locks, ids[entry], -1)


@njit(nogil=True, cache=True)
def _claim(claiming, holder) -> None:  # type: ignore[no-untyped-def]
    """Make a job, or a task that holds its locks, the owner of its rows, which no other one is using."""
    if claiming is not None:
        owner, offsets, rows = claiming
        for entry in range(offsets[holder], offsets[holder + 1]):
            owner[rows[entry]] = holder


@compiled
def _index_at(indices, position):  # type: ignore[no-untyped-def]
    """Return the loop index of the task at a position of the plan."""
    if isinstance(indices, types.NoneType):
        return lambda indices, position: np.int64(position)
    if isinstance(indices, types.UniTuple):
        return lambda indices, position: indices[0] + indices[1] * np.int64(position)
    return lambda indices, position: np.int64(indices[position])


def _make_fetch(fetching: Task) -> Any:
    """Make the compiled function that fetches the rows of a task."""
    body, constructors = fetching
    bind, size = bind_with(constructors), RECENT_SIZE * len(constructors)

    @njit(error_model="numpy", **UNCOUNTED)
    def fetch(indices, position, job, lane, storages):  # type: ignore[no-untyped-def]
        """Fetch the rows of the task at a `position`, in `job` on `lane`; `indices`, `storages`: see `make_worker`."""
        recent, drawn = local_counters(size), local_counters(DRAW_STATE)
        recent[:] = 0
        drawn[0] = 0
        index = _index_at(indices, position)
        body(index, *bind(storages, (position, job, lane, job, index, drawn, recent)))

    return fetch


def _make_run_job(
    body: Any,
    constructors: tuple[Any | None, ...],
    fastmath: bool | set[str],
    short: bool,
    fetching: Task | None,
) -> Any:
    bind = bind_with(constructors)
    if fetching is not None:
        return _make_run_job_fetching(body, bind, fastmath, _make_fetch(fetching))
    stride = _LONG_STRIDE if short else _STRIDE

    @njit(fastmath=fastmath, error_model="numpy", **UNCOUNTED)
    def run_job(state, locking, claiming, indices, ahead, first, last, job, lane, storages):  # type: ignore[no-untyped-def]
        """Run the tasks of `job`, at the positions `first..last - 1`, on replica `lane`; returns early when stopped.

        For `state`, `claiming`, `indices` and `storages` see `make_worker`; `locking` and `ahead` are not used.
        """
        _claim(claiming, job)
        drawn = local_counters(DRAW_STATE)
        for start in range(first, last, stride):  # LLVM may vectorize the tasks of a stride
            if state[STOPPED] != 0:
                return
            for position in range(start, min(start + stride, last)):
                index = _index_at(indices, position)
                drawn[0] = 0
                body(index, *bind(storages, (position, job, lane, job, index, drawn)))

    return run_job


def _make_run_job_fetching(body: Any, bind: Any, fastmath: bool | set[str], fetch: Any) -> Any:
    @njit(fastmath=fastmath, error_model="numpy", **UNCOUNTED)
    def run_job(state, locking, claiming, indices, ahead, first, last, job, lane, storages):  # type: ignore[no-untyped-def]
        """As in `_make_run_job`, but fetch the rows of tasks that are `ahead`, where that is faster."""
        _claim(claiming, job)
        drawn, times = local_counters(DRAW_STATE), local_counters(TRIALS)
        for start in range(first, last, BLOCK):
            if state[STOPPED] != 0:
                return
            end, block = min(start + BLOCK, last), (start - first) // BLOCK
            fetches, began = begin_block(block, times)
            fetched = end if fetches else start
            for position in range(start, end):
                if position < fetched:  # not a constant of the loop: there is one copy of the body, so the same bits
                    fetch(indices, min(position + ahead, last - 1), job, lane, storages)
                index = _index_at(indices, position)
                drawn[0] = 0
                body(index, *bind(storages, (position, job, lane, job, index, drawn)))
            end_block(block, began, times)

    return run_job


def _make_run_job_locked(body: Any, constructors: tuple[Any | None, ...], fastmath: bool | set[str], *_: Any) -> Any:
    bind = bind_with(constructors)

    @njit(fastmath=fastmath, error_model="numpy", **UNCOUNTED)
    def run_job(state, locking, claiming, indices, ahead, first, last, job, lane, storages):  # type: ignore[no-untyped-def]
        """As in `_make_run_job`, but each task takes its locks (`locking`) and claims its rows by itself.

        `state`, `claiming`, `indices`, `first`, `last`, `job`, `lane` and `storages` are as there; `ahead` is not used.
        """
        locks, offsets, ids, sequence, counter = locking
        drawn = local_counters(DRAW_STATE)
        for position in range(first, last):
            if state[STOPPED] != 0:  # negligible beside the locks
                return
            start, end = offsets[position], offsets[position + 1]
            if not _acquire(locks, ids, start, end, state):
                return
            _claim(claiming, position)
            index = _index_at(indices, position)
            drawn[0] = 0
            body(index, *bind(storages, (position, job, lane, position, index, drawn)))
            if len(sequence) > 0:
                sequence[position] = fetch_add(counter, 0, 1)
            _release(locks, ids, start, end)

    return run_job


def make_worker(
    body: Any,
    constructors: tuple[Any | None, ...],
    fastmath: bool | set[str],
    *,
    locked: bool,
    short: bool,
    fetching: Task | None = None,
) -> Worker:
    """Make the lazily compiled worker of a body: takes jobs until none is left or one needs the interpreter.

    The worker returns the number of an empty job that the caller must serve and finish, `WAIT`, or `FINISHED`. Its
    arguments: `seat` is the thread's row of `Seats`; `state` that of the `JobPool`; `locking` the `Locking` of a plan
    with locks; `claiming` the `Claiming`, if there are guarded tables; `indices` are those of an `ExecutablePlan`;
    `ahead` is by how many tasks rows are fetched before they are needed; `served` says whether the caller serves empty
    jobs; `storages` has one item for each argument of the body. Tasks are `short` if they take well under a
    microsecond. `fetching` is the body over views that fetch what it touches, and their constructors.
    """
    provide_jobs()
    factory = _make_run_job_locked if locked else _make_run_job
    run_job = factory(body, constructors, fastmath, short, fetching)

    @njit(nogil=True, no_cfunc_wrapper=True, _nrt=False)
    def worker(seat, state, locking, claiming, indices, ahead, served, storages):  # type: ignore[no-untyped-def]
        """Take jobs and run them; returns at the first empty one if these are `served`.

        The arguments are described above.
        """
        place = seat.ctypes.data
        while True:
            job = take_job(place)
            if job < 0 or (served and seat[FIRST] == seat[LAST]):
                return job
            run_job(state, locking, claiming, indices, ahead, seat[FIRST], seat[LAST], job, seat[LANE], storages)
            finish_job(place)

    return worker


def _worker_arguments(
    state: NDArray[np.int64],
    locking: Locking | None,
    claiming: Claiming | None,
    executable: ExecutablePlan,
    *,
    served: bool,
) -> tuple[Any, ...]:
    return state, locking, claiming, executable.indices, executable.plan.details.prefetch_distance, served


def compile_worker(worker: Worker, executable: ExecutablePlan, storages: tuple[Any, ...]) -> None:
    """Compile a worker for these arguments, so that errors are raised before any thread starts."""
    locking = _locking(executable.plan.locks, 0, False)
    claiming = None if executable.ownership is None else executable.ownership.claiming()
    arguments = _worker_arguments(np.zeros(1, np.int64), locking, claiming, executable, served=False)
    worker.compile(tuple(typeof(argument) for argument in (np.zeros(1, np.int64), *arguments, storages)))  # type: ignore[attr-defined]


def _locking(locks: RowLocks | None, tasks: int, record_order: bool) -> Locking | None:
    if locks is None:
        return None
    sequence = np.zeros(tasks if record_order else 0, np.int64)
    return np.zeros(locks.count, np.int32), locks.offsets, locks.ids, sequence, np.zeros(1, np.int64)


def execute(
    worker: Worker,
    executable: ExecutablePlan,
    storages: tuple[Any, ...],
    team: ThreadTeam,
    *,
    claiming: Claiming | None = None,
    transfers: NodeTransfers | None = None,
    job_order: str = "heaviest",
    record_order: bool = False,
) -> Execution:
    """Execute a plan once.

    Parameters
    ----------
    worker
        From `make_worker`.
    executable
        The plan and its loop indices.
    storages
        One storage for each argument of the body.
    team
        The threads that take jobs.
    claiming
        Owners of rows, and the rows that each job claims, if there are guarded tables.
    transfers
        Serves the plan's empty jobs; without one they are skipped.
    job_order
        See `make_job_pool`.
    record_order
        Whether to record the order of tasks of a `locked` plan.

    Raises
    ------
    The first exception of the body; the other threads stop after a few more tasks.
    """
    plan = executable.plan
    patience = 0 if transfers is None else transfers.patience
    pool = make_job_pool(plan, order=job_order, patience=patience)
    locking = _locking(plan.locks, plan.tasks, record_order)
    arguments = _worker_arguments(pool.state, locking, claiming, executable, served=transfers is not None)
    members = _useful_threads(plan, team.size)
    seats = Seats(pool, *executable.stretches(), executable.lanes(), members)
    working = np.zeros(members)

    def work(thread: int) -> None:
        try:
            while True:
                begin = time.perf_counter()
                job = worker(seats.rows[thread], *arguments, storages)
                working[thread] += time.perf_counter() - begin
                if job == FINISHED:
                    return
                assert transfers is not None
                if job == WAIT:
                    transfers.idle()
                else:
                    transfers.serve(job)
                    finish_locked(pool, job)
        except BaseException:
            stop(pool)
            raise

    start = time.perf_counter()
    if transfers is not None:
        transfers.open(pool)
    with stoppable() as end_bodies:

        def halt() -> None:
            stop(pool)
            end_bodies()

        team.run(work, members, on_interrupt=halt)
    sequence = locking[3] if locking is not None and record_order else None
    seconds = time.perf_counter() - start
    return Execution(seconds, sequence, float(working.sum()), *queue_lengths(pool))


def _useful_threads(plan: Plan, threads: int) -> int:
    """Return how many threads take jobs: more than the plan can keep busy would only be in the way of the others."""
    if plan.locks is not None:  # whose parallelism is an upper bound for single tasks
        return threads
    return max(1, min(threads, plan.jobs, math.ceil(_SLACK * plan.parallelism)))


def zero_totals(jobs: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return zeros for an accumulator's sum in each job, in column 0: one cache line each, shape (jobs, 8).

    They are always summed in this layout: NumPy's order of summation, hence the bits, depend on it.
    """
    return np.zeros((jobs, _TOTAL_STRIDE), dtype)
