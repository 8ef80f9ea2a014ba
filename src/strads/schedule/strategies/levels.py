"""Levels of single tasks: first run those that wait for no other, then those that waited for them, and so on."""

from itertools import pairwise

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.partition import offsets_of
from strads.schedule.details import Details
from strads.schedule.kernels.parallel import index_dtype
from strads.schedule.plan import Plan
from strads.schedule.records.touches import Touches, is_write, span
from strads.schedule.strategies.precedence import Precedence
from strads.schedule.strategies.problem import Problem

WINDOWS = (1024, 8192, 65_536)  # window sizes, in tasks, to try
SAMPLES = 8  # windows sampled when a size is chosen
SMALLEST_JOB_NS = 3000.0  # nanoseconds of work, compared with which starting a job costs little
MAX_JOBS = 8  # of a level: each waits for all jobs of the level before
WAITING_NS = 1000.0  # nanoseconds until all threads have seen the end of a level


@njit(nogil=True, cache=True)
def _find_levels(
    touches: Touches,
    flags: NDArray[np.uint8],
    begin: int,
    end: int,
    base: int,
    last: NDArray[np.integer],
    level: NDArray[np.integer],
) -> int:
    """Find the level of each task of a window, from `base` on; returns the first level above them all.

    `last` (rows, 2) holds, for each row, the first level above the tasks that wrote it, and above those that read it;
    0 if there are none. Levels below `base` belong to earlier windows.
    """
    highest = base - 1
    for task in range(begin, end):
        first, stop = span(touches, task)
        own = base
        for access in range(first, stop):
            row = touches.rows[access]
            if row >= 0:
                own = max(own, last[row, 0])
                if is_write(touches, flags, first, access):
                    own = max(own, last[row, 1])
        for access in range(first, stop):
            row = touches.rows[access]
            if row >= 0:
                kind = 0 if is_write(touches, flags, first, access) else 1
                last[row, kind] = max(last[row, kind], own + 1)
        level[task] = own
        highest = max(highest, own)
    return highest + 1


def best_window(problem: Problem) -> tuple[int, float]:
    """Return the size of a window, and the estimated speed-up of two threads over one with it."""
    best, best_gain = WINDOWS[0], _gain(problem, WINDOWS[0])
    for window in WINDOWS[1:]:
        if window > problem.tasks:
            break
        gain = _gain(problem, window)
        if gain > 1.1 * best_gain:  # a larger window departs further from the loop's order
            best, best_gain = window, gain
    return best, best_gain


def _gain(problem: Problem, window: int) -> float:
    """Estimated speed-up of two threads over one, from a sample of the windows of a size."""
    starts = range(0, problem.tasks, window)
    chosen = np.unique(np.linspace(0, len(starts) - 1, SAMPLES).astype(int))
    last = np.zeros((problem.rows, 2), np.int32)
    level = np.empty(problem.tasks, np.int32)
    base, alone, together = 0, 0.0, 0.0
    for number in chosen.tolist():
        begin, end = starts[number], min(starts[number] + window, problem.tasks)
        top = int(_find_levels(problem.touches, problem.write_flags, begin, end, base, last, level))
        work = np.bincount(level[begin:end] - base, minlength=top - base) * problem.nanoseconds_per_task
        alone += work.sum()
        apart = _pieces(work) > 1
        moved = work * (1 + problem.handover_per_task / problem.nanoseconds_per_task)
        together += np.where(apart, moved / 2 + WAITING_NS, work).sum()
        base = top
    return alone / together if together else 1.0


def _pieces(nanoseconds: NDArray[np.floating]) -> NDArray[np.int64]:
    """Number of jobs of each level."""
    return np.clip(nanoseconds // SMALLEST_JOB_NS, 1, MAX_JOBS).astype(np.int64)


def plan_of_levels(problem: Problem, window: int, gain: float) -> Plan:
    """Make a plan in which the tasks of each level of a window run together."""
    level = np.empty(problem.tasks, np.int32)
    last = np.zeros((problem.rows, 2), np.int32)
    base = 0
    for begin in range(0, problem.tasks, window):
        end = min(begin + window, problem.tasks)
        base = int(_find_levels(problem.touches, problem.write_flags, begin, end, base, last, level))
    sizes = np.bincount(level, minlength=base).astype(np.int64)
    pieces = _pieces(sizes * problem.nanoseconds_per_task)
    # Consecutive levels of one job each are merged into one job.
    begins = np.flatnonzero((pieces > 1) | (np.concatenate([[2], pieces[:-1]]) > 1))
    stage_of = np.cumsum(np.isin(np.arange(base), begins)) - 1
    jobs_of_stage = pieces[begins]
    tasks_of_stage = np.bincount(stage_of, weights=sizes).astype(np.int64)
    cuts = [np.arange(jobs) * tasks // jobs for jobs, tasks in zip(jobs_of_stage, tasks_of_stage, strict=True)]
    first_task = offsets_of(tasks_of_stage)
    offsets = np.concatenate([*(start + cut for start, cut in zip(first_task, cuts, strict=False)), [problem.tasks]])
    order = np.argsort(level, kind="stable").astype(index_dtype(problem.tasks))
    stage = np.repeat(np.arange(len(jobs_of_stage)), jobs_of_stage)
    reason = (
        f"in each window of {window:,} tasks, those that wait for no other run together, then those that waited for "
        f"them alone, and so on, {base:,} levels in all: the result is that of the sequential loop"
    )
    groups = order, offsets.astype(np.int64)
    return problem.plan("wavefront", reason, groups, stage, _all_before(jobs_of_stage), Details(gain=gain))


def _all_before(sizes: NDArray[np.int64]) -> Precedence:
    """Make every job of a stage wait for all jobs of the previous stage."""
    first = offsets_of(sizes)
    following = np.append(sizes[1:], 0)
    predecessors = np.repeat(np.concatenate([[0], sizes[:-1]]), sizes).astype(np.int32)
    offsets = offsets_of(np.repeat(following, sizes))
    successors = [
        np.tile(np.arange(begin, end), size) for (begin, end), size in zip(pairwise(first[1:]), sizes, strict=False)
    ]
    return Precedence(predecessors, offsets, np.concatenate([*successors, np.empty(0)]).astype(np.int32))
