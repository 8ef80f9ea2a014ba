"""Strategy *wavefront*: the loop in its own order, with the parallelism that its dependences allow.

A task runs once all earlier tasks have run that write what it reads, or touch what it writes. So the result is that of
the sequential loop, and tasks that are close in the loop, whose data are close in memory, run at about the same time.
Dependences are tracked between chunks of consecutive tasks if these leave enough parallelism, as they do on grids,
meshes and bands; otherwise between the single tasks of a window, level by level.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.errors import PlanError
from strads.schedule.passes.parallel import index_dtype
from strads.schedule.plan import Plan
from strads.schedule.records.touches import Touches, is_write, span
from strads.schedule.strategies.precedence import Precedence, parallelism
from strads.schedule.strategies.problem import Problem

CHUNKS = (256, 1024, 4096, 16_384)  # numbers of chunks of the whole loop to try
WINDOWS = (1024, 8192, 65_536)  # window sizes, in tasks, to try
SAMPLES = 8  # windows sampled when a size is chosen
SHORT = 4  # runs of at most this average length do not affect where chunks are cut
STRETCH = 8192  # consecutive tasks that are examined
ENOUGH = 4.0  # parallelism of chunks at which finer ones are not tried
LONG, PARTS = 1 << 20, 16  # from LONG tasks on, one of PARTS parts of the loop is sampled
MOST_EDGES = 64  # dependences of a chunk, on average
MOST_READERS = 256  # of rows that other chunks have also read: average number remembered per chunk
SMALLEST_JOB = 3000.0  # nanoseconds of work, compared with which starting a job costs little
MOST_JOBS = 8  # of a level: each waits for all jobs of the level before
WAITING = 1000.0  # nanoseconds until all threads have seen the end of a level


def wavefront(problem: Problem, worthwhile: float = 0.0) -> Plan:
    """Follow the dependences of the loop in its order; applies to every loop.

    The estimated speed-up of two threads over one is in `details["gain"]`.

    Raises
    ------
    PlanError
        If that is less than `worthwhile`, which is known long before the plan would be complete.
    """
    chunked = None if worthwhile > 0 and _is_one_chain(problem) else _best_chunks(problem)
    if chunked is not None and chunked.parallelism >= ENOUGH:
        return _plan_of_chunks(problem, chunked)
    window, gain = _best_window(problem)
    best = gain if chunked is None else max(gain, chunked.parallelism)
    if best < worthwhile:
        raise PlanError(f"its parallelism would be only {best:.1f}")
    if chunked is not None and chunked.parallelism >= gain:
        return _plan_of_chunks(problem, chunked)
    return _plan_of_levels(problem, window, gain)


# -- dependences between chunks ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Chunks:
    """Chunks of consecutive tasks; edges lead from an earlier chunk to a later one."""

    bounds: NDArray[np.int64]
    sources: NDArray[np.int32]
    targets: NDArray[np.int32]
    level: NDArray[np.int32]  # length, in chunks, of the longest path to each
    parallelism: float


@njit(nogil=True, cache=True)
def _find_edges(
    touches: Touches,
    flags: NDArray[np.uint8],
    bounds: NDArray[np.int64],
    last: NDArray[np.int32],
    readers: NDArray[np.int32],
    known: NDArray[np.int32],
    sources: NDArray[np.int32],
    targets: NDArray[np.int32],
) -> int:
    """Edges to a chunk from the last writer of each row it reads, and from those that touched since a row it writes.

    Returns their number, or −1 if there is no room for them. `known` (chunks + 1,) and `last` (rows, 3) are initially
    all 0. For each row, `last` holds the number, from 1, of the chunk that wrote it last, that of the last chunk that
    has read it since, and the position in `readers` (any, 2) of the other readers: a linked list of chunks and next
    positions that ends with 0. If `readers` is full, a reader waits for the previous one.
    """
    count, free = 0, 1 if len(readers) > 1 else 0
    for place in range(1, len(readers)):
        readers[place, 1] = place + 1 if place + 1 < len(readers) else 0
    for chunk in range(1, len(bounds)):
        for task in range(bounds[chunk - 1], bounds[chunk]):
            first, end = span(touches, task)
            for access in range(first, end):
                row = touches.rows[access]
                if row < 0:
                    continue
                writes = is_write(touches, flags, first, access)
                if not writes and chunk in (last[row, 0], last[row, 1]):
                    continue  # whatever waits for the chunk waits for this access
                source, others = last[row, 0], np.int32(0)
                if writes:
                    if last[row, 1] > 0:  # which has waited for the writer
                        source = last[row, 1]
                    others = last[row, 2]
                    last[row, 0], last[row, 1], last[row, 2] = chunk, 0, 0
                else:
                    reader = last[row, 1]
                    last[row, 1] = chunk
                    if reader > 0 and free > 0:
                        place = free
                        free = int(readers[place, 1])
                        readers[place, 0], readers[place, 1] = reader, last[row, 2]
                        last[row, 2] = place
                    elif reader > 0:
                        source = reader
                while source > 0:
                    if source != chunk and known[source] != chunk:
                        known[source] = chunk
                        if count == len(sources):
                            return -1
                        sources[count], targets[count] = source - 1, chunk - 1
                        count += 1
                    source = np.int32(0)
                    if others > 0:
                        source, following = readers[others, 0], readers[others, 1]
                        readers[others, 1] = free
                        free, others = int(others), following
    return count


@njit(nogil=True, cache=True)
def _levels_of_edges(sources: NDArray[np.int32], targets: NDArray[np.int32], level: NDArray[np.int32]) -> None:
    """Longest path to each chunk; edges are sorted by target, and sources are smaller."""
    for edge in range(len(sources)):
        level[targets[edge]] = max(level[targets[edge]], level[sources[edge]] + 1)


@njit(nogil=True, cache=True)
def _find_runs(
    touches: Touches,
    flags: NDArray[np.uint8],
    begin: int,
    stop: int,
    last: NDArray[np.integer],
    starts: NDArray[np.bool_],
) -> None:
    """Mark the tasks that do not wait for the previous task.

    `last` (rows, 2) has the numbers, from 2, of the tasks that last wrote and last read a row; 0 if there are none.
    """
    for task in range(begin, stop):
        first, end = span(touches, task)
        alone = True
        for access in range(first, end):
            row = touches.rows[access]
            if row < 0:
                continue
            alone &= last[row, 0] != task + 1
            if is_write(touches, flags, first, access):
                alone &= last[row, 1] != task + 1
                last[row, 0] = task + 2
            else:
                last[row, 1] = task + 2
        starts[task - begin] = alone


def _is_one_chain(problem: Problem) -> bool:
    """Whether, judging by samples of the loop, each task waits for the previous one.

    Then so does each chunk of consecutive tasks: they run one after another.
    """
    starts = np.unique(np.linspace(0, max(problem.tasks - STRETCH, 0), SAMPLES).astype(np.int64))
    last = np.zeros((problem.rows, 2), index_dtype(problem.tasks + 2))
    for start in starts.tolist():
        end = min(start + STRETCH, problem.tasks)
        apart = np.empty(end - start, np.bool_)
        _find_runs(problem.touches, problem.write_flags, start, end, last, apart)
        if apart[1:].any():
            return False
    return True


def _cut(runs: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Bounds of chunks of about `size` tasks: none contains the end of one long run and the beginning of another.

    A row of a grid is a run. A chunk across two of them would make the second wait for the end of the first.
    """
    if SHORT * len(runs) > runs[-1] - runs[0]:
        return np.append(np.arange(runs[0], runs[-1], size), runs[-1])
    lengths = np.diff(runs)
    pieces = np.maximum(1, np.rint(lengths / size)).astype(np.int64)
    long = np.repeat(lengths >= size, pieces)
    number = np.arange(len(long)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    starts = np.repeat(runs[:-1], pieces) + number * np.repeat(lengths, pieces) // np.repeat(pieces, pieces)
    follows = starts // size  # short runs that begin in the same range of the loop form one chunk
    new = np.ones(len(starts), np.bool_)
    new[1:] = long[1:] | long[:-1] | (follows[1:] != follows[:-1])
    return np.append(starts[new], runs[-1])


def _best_chunks(problem: Problem) -> _Chunks | None:
    """Return the coarsest chunks with enough parallelism, else the best found; None if the loop is one chain.

    For a long loop, the chunk size is chosen on a part of its middle.
    """
    most = int(problem.tasks * problem.nanoseconds_per_task / SMALLEST_JOB)
    sizes = [problem.tasks // count for count in CHUNKS if count <= min(max(most, CHUNKS[0]), problem.tasks)]
    runs = _runs(problem)
    last = np.zeros((problem.rows, 3), np.int32)
    if problem.tasks < LONG:
        best, _ = _coarsest(problem, runs, sizes, last)
        return best
    begin, end = problem.tasks // 2, problem.tasks // 2 + problem.tasks // PARTS
    _, size = _coarsest(problem, runs[(runs >= begin) & (runs <= end)], sizes, last)
    return None if size == 0 else _chunks(problem, _cut(runs, size), last)


def _runs(problem: Problem) -> NDArray[np.int64]:
    """Bounds of the runs of tasks, within which each task waits for the previous one."""
    starts = np.empty(problem.tasks, np.bool_)
    last = np.zeros((problem.rows, 2), index_dtype(problem.tasks + 2))
    _find_runs(problem.touches, problem.write_flags, 0, problem.tasks, last, starts)
    starts[0] = True
    return np.append(np.flatnonzero(starts), problem.tasks)


def _coarsest(
    problem: Problem, runs: NDArray[np.int64], sizes: list[int], last: NDArray[np.int32]
) -> tuple[_Chunks | None, int]:
    """Return the first chunks with enough parallelism, else the best, and their size; None and 0 if none is usable."""
    best, best_size = None, 0
    for size in sizes if len(runs) > 1 else ():
        found = _chunks(problem, _cut(runs, size), last)
        _forget(problem.touches, runs[0], runs[-1], last)
        if found is None:
            break
        if best is None or found.parallelism > best.parallelism:
            best, best_size = found, size
        if best.parallelism >= ENOUGH:
            break
    return best, best_size


@njit(nogil=True, cache=True)
def _forget(touches: Touches, begin: int, end: int, last: NDArray[np.int32]) -> None:
    for task in range(begin, end):
        first, stop = span(touches, task)
        for access in range(first, stop):
            if touches.rows[access] >= 0:
                last[touches.rows[access]] = 0


def _chunks(problem: Problem, bounds: NDArray[np.int64], last: NDArray[np.int32]) -> _Chunks | None:
    """Find the dependences of chunks; `last` (rows, 3) is initially all 0."""
    count = len(bounds) - 1
    known = np.zeros(count + 1, np.int32)
    sources, targets = np.empty((2, count * MOST_EDGES), np.int32)
    readers = np.empty((count * MOST_READERS, 2), np.int32)
    edges = _find_edges(problem.touches, problem.write_flags, bounds, last, readers, known, sources, targets)
    if edges < 0:
        return None
    sources, targets = sources[:edges], targets[:edges]
    level = np.zeros(count, np.int32)
    _levels_of_edges(sources, targets, level)
    work = problem.consecutive_work(bounds)
    return _Chunks(bounds, sources, targets, level, parallelism(work, _precedence(sources, targets, count)))


def _precedence(sources: NDArray[np.int32], targets: NDArray[np.int32], jobs: int) -> Precedence:
    offsets = np.concatenate([[0], np.cumsum(np.bincount(sources, minlength=jobs))]).astype(np.int64)
    predecessors = np.bincount(targets, minlength=jobs).astype(np.int32)
    return Precedence(predecessors, offsets, targets[np.argsort(sources, kind="stable")])


def _plan_of_chunks(problem: Problem, chunks: _Chunks) -> Plan:
    count = len(chunks.level)
    job_to_chunk = np.argsort(chunks.level, kind="stable")
    job_of = np.empty(count, np.int32)
    job_of[job_to_chunk] = np.arange(count, dtype=np.int32)
    sizes = np.diff(chunks.bounds)[job_to_chunk]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    order = np.arange(problem.tasks) + np.repeat(chunks.bounds[job_to_chunk] - offsets[:-1], sizes)
    precedence = _precedence(job_of[chunks.sources], job_of[chunks.targets], count)
    reason = (
        f"dependences in loop order between {count} chunks of consecutive tasks leave a parallelism of "
        f"{chunks.parallelism:.1f}: the result is that of the sequential loop"
    )
    groups = order.astype(index_dtype(problem.tasks)), offsets
    details: dict[str, object] = {"gain": chunks.parallelism}
    return problem.plan("wavefront", reason, groups, chunks.level[job_to_chunk], precedence, details)


# -- levels of single tasks --------------------------------------------------------------------------------------


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
    """Level of each task of a window, above `base`; returns the first level above them all.

    `last` (rows, 2) holds the first levels above those of the tasks that wrote and that read a row, 0 if there are
    none; levels up to `base` belong to earlier windows.
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


def _best_window(problem: Problem) -> tuple[int, float]:
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
        together += np.where(apart, moved / 2 + WAITING, work).sum()
        base = top
    return alone / together if together else 1.0


def _pieces(nanoseconds: NDArray[np.floating]) -> NDArray[np.int64]:
    """Number of jobs of each level."""
    return np.clip(nanoseconds // SMALLEST_JOB, 1, MOST_JOBS).astype(np.int64)


def _plan_of_levels(problem: Problem, window: int, gain: float) -> Plan:
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
    first_task = np.concatenate([[0], np.cumsum(tasks_of_stage)])
    offsets = np.concatenate([*(start + cut for start, cut in zip(first_task, cuts, strict=False)), [problem.tasks]])
    order = np.argsort(level, kind="stable").astype(index_dtype(problem.tasks))
    stage = np.repeat(np.arange(len(jobs_of_stage)), jobs_of_stage)
    reason = (
        f"in each window of {window:,} tasks, those that wait for no other run together, then those that waited for "
        f"them alone, and so on, {base:,} levels in all: the result is that of the sequential loop"
    )
    groups = order, offsets.astype(np.int64)
    return problem.plan("wavefront", reason, groups, stage, _all_before(jobs_of_stage), {"gain": gain})


def _all_before(sizes: NDArray[np.int64]) -> Precedence:
    """Make every job of a stage wait for all jobs of the previous stage."""
    first = np.concatenate([[0], np.cumsum(sizes)])
    following = np.append(sizes[1:], 0)
    predecessors = np.repeat(np.concatenate([[0], sizes[:-1]]), sizes).astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum(np.repeat(following, sizes))]).astype(np.int64)
    successors = [
        np.tile(np.arange(begin, end), size) for (begin, end), size in zip(pairwise(first[1:]), sizes, strict=False)
    ]
    return Precedence(predecessors, offsets, np.concatenate([*successors, np.empty(0)]).astype(np.int32))
