"""Dependences between chunks of consecutive tasks: few, where tasks walk along a grid, a mesh or a band."""

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.partition import offsets_of
from strads.schedule.details import Details
from strads.schedule.kernels.parallel import index_dtype
from strads.schedule.plan import Plan
from strads.schedule.records.access import SparseRecords
from strads.schedule.records.row_ranges import RowRanges, as_touches, ranges_of
from strads.schedule.records.touches import Touches, is_write, span
from strads.schedule.strategies.precedence import linked, parallelism
from strads.schedule.strategies.problem import Problem

CHUNKS = (256, 1024, 4096, 16_384, 65_536)  # numbers of chunks of the whole loop to try
SAMPLES = 8  # stretches that are examined
NEXT = 8  # following chunks that are tested for conflicts with a chunk
SHORT = 4  # runs of at most this average length do not affect where chunks are cut
STRETCH = 8192  # consecutive tasks that are examined
ENOUGH_OF_CHUNKS = 4.0  # parallelism of chunks at which finer ones are not tried
LONG, PARTS = 1 << 20, 16  # from LONG tasks on, one of PARTS parts of the loop is sampled
MAX_EDGES = 64  # dependences of a chunk, on average
MAX_READERS = 256  # of rows that other chunks have also read: average number remembered per chunk
SMALLEST_CHUNK_NS = 3000.0  # nanoseconds of work, compared with which starting a job costs little


@dataclass(frozen=True)
class Chunks:
    """Chunks of consecutive tasks; edges lead from an earlier chunk to a later one."""

    bounds: NDArray[np.int64]  # (chunks + 1,): chunk c has the tasks bounds[c]..bounds[c + 1] - 1
    sources: NDArray[np.int32]  # (edges,): the chunk from which each edge leads
    targets: NDArray[np.int32]  # (edges,): the chunk to which it leads; ascending
    level: NDArray[np.int32]  # (chunks,): length, in chunks, of the longest path to each
    work: NDArray[np.int64]  # (chunks,): tasks, plus their accesses where these were recorded and differ
    parallelism: float  # total work / work on the heaviest path


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

    They are written to `sources` and `targets`, by ascending target. Returns their number, or −1 if there is no room
    for them. `flags` are those of `is_write`, and `bounds` (chunks + 1,) cut the tasks of `touches` into chunks.
    `known` (chunks + 1,) and `last` (rows, 3) are initially all 0. For each row, `last` holds the number, from 1, of
    the chunk that wrote it last, that of the last chunk that has read it since, and the position in `readers` (any, 2)
    of the other readers: a linked list of chunks and next positions that ends with 0. If `readers` is full, a reader
    waits for the previous one.
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


def is_one_chain(problem: Problem) -> bool:
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


@njit(nogil=True, cache=True)
def _conflicts(
    touches: Touches,
    flags: NDArray[np.uint8],
    begin: int,
    size: int,
    chunks: int,
    stamp: int,
    stamps: NDArray[np.int32],
) -> int:
    """Number of the `chunks` chunks after the first one, of `size` tasks each, that conflict with it directly.

    `stamps` (rows, 2), of what was read and what was written, has no entry `stamp` yet.
    """
    for task in range(begin, begin + size):
        first, end = span(touches, task)
        for access in range(first, end):
            if touches.rows[access] >= 0:
                stamps[touches.rows[access], 1 if is_write(touches, flags, first, access) else 0] = stamp
    found = 0
    for chunk in range(1, chunks + 1):
        conflicts = False
        task, stop = begin + chunk * size, begin + (chunk + 1) * size
        while task < stop and not conflicts:
            first, end = span(touches, task)
            for access in range(first, end):
                row = touches.rows[access]
                if row >= 0:
                    writes = is_write(touches, flags, first, access)
                    conflicts |= stamps[row, 1] == stamp or (writes and stamps[row, 0] == stamp)
            task += 1
        found += conflicts
    return found


def _all_conflict(problem: Problem, size: int) -> bool:
    """Whether, judging by samples of the loop, chunks of a size conflict with all that follow soon, so run in turn."""
    length = (1 + NEXT) * size
    if length > problem.tasks:
        return False
    stamps = np.zeros((problem.rows, 2), np.int32)
    starts = np.unique(np.linspace(0, problem.tasks - length, SAMPLES).astype(np.int64)).tolist()
    of_all = problem.touches, problem.write_flags
    return all(
        _conflicts(*of_all, start, size, NEXT, stamp, stamps) == NEXT for stamp, start in enumerate(starts, start=1)
    )


def _cut(runs: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Bounds of chunks of about `size` tasks: none contains the end of one long run and the beginning of another.

    A row of a grid is a run. A chunk across two of them would make the second wait for the end of the first.
    """
    if SHORT * len(runs) > runs[-1] - runs[0]:
        return cut_evenly(int(runs[0]), int(runs[-1]), size)
    lengths = np.diff(runs)
    pieces = np.maximum(1, np.rint(lengths / size)).astype(np.int64)
    long = np.repeat(lengths >= size, pieces)
    number = np.arange(len(long)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    starts = np.repeat(runs[:-1], pieces) + number * np.repeat(lengths, pieces) // np.repeat(pieces, pieces)
    follows = starts // size  # short runs that begin in the same range of the loop form one chunk
    new = np.ones(len(starts), np.bool_)
    new[1:] = long[1:] | long[:-1] | (follows[1:] != follows[:-1])
    return np.append(starts[new], runs[-1])


def cut_evenly(begin: int, end: int, size: int) -> NDArray[np.int64]:
    """Bounds of chunks of `size` tasks."""
    return np.append(np.arange(begin, end, size), end)


def best_chunks(problem: Problem) -> Chunks | None:
    """Return the coarsest chunks with enough parallelism, else the best found; None if the loop is one chain.

    For a long loop, the chunk size is chosen on a part of its middle.
    """
    sizes = sizes_to_try(problem, problem.tasks)
    if not sizes or _all_conflict(problem, sizes[-1]):
        return None
    runs = _runs(problem)
    last = np.zeros((problem.rows, 3), np.int32)
    if problem.tasks < LONG:
        best, _ = _coarsest(problem, runs, sizes, last)
        return best
    begin, end = problem.tasks // 2, problem.tasks // 2 + problem.tasks // PARTS
    _, size = _coarsest(problem, runs[(runs >= begin) & (runs <= end)], sizes, last)
    return None if size == 0 else _chunks(problem, _cut(runs, size), last)


def sampled_chunks(
    part: Problem, records: SparseRecords, begin: int, tasks: int, worthwhile: float
) -> tuple[NDArray[np.int64] | None, float]:
    """Return bounds of chunks for a loop of which a part has been recorded, and the parallelism within the part.

    None and 0 if the part does not tell: its runs are not of one length, and not short; or it is one chain, or chunks
    touch too many ranges of rows, or so many rows that they could not have a `worthwhile` parallelism.
    """
    runs = _runs(part)
    inner = runs[1:-1]
    lengths = np.unique(np.diff(inner))
    is_short = SHORT * len(runs) > part.tasks
    if not is_short and len(lengths) != 1:
        return None, 0.0
    best, best_size = 0.0, 0
    for size in sizes_to_try(part, tasks) if len(runs) > 1 else ():
        bounds = _cut(runs if is_short else inner, size)
        ranges = ranges_of(records, bounds, 2 / worthwhile)
        found = None if ranges is None else chunks_of_ranges(bounds, ranges)
        if found is not None and found.parallelism > best:
            best, best_size = found.parallelism, size
        if best >= ENOUGH_OF_CHUNKS:
            break
    if best_size == 0:
        return None, 0.0
    if is_short:
        return cut_evenly(0, tasks, best_size), best
    length = int(lengths[0])
    starts = np.arange((begin + int(inner[0])) % length, tasks, length)
    return _cut(np.unique(np.concatenate([[0], starts, [tasks]])), best_size), best


def sizes_to_try(problem: Problem, tasks: int) -> list[int]:
    """Sizes of chunks to try, from coarse to fine, for a loop of that many tasks like those of the problem."""
    most = int(tasks * problem.nanoseconds_per_task / SMALLEST_CHUNK_NS)
    return [tasks // count for count in CHUNKS if count <= min(max(most, CHUNKS[0]), tasks)]


def _runs(problem: Problem) -> NDArray[np.int64]:
    """Bounds of the runs of tasks, within which each task waits for the previous one."""
    starts = np.empty(problem.tasks, np.bool_)
    last = np.zeros((problem.rows, 2), index_dtype(problem.tasks + 2))
    _find_runs(problem.touches, problem.write_flags, 0, problem.tasks, last, starts)
    starts[0] = True
    return np.append(np.flatnonzero(starts), problem.tasks)


def _coarsest(
    problem: Problem, runs: NDArray[np.int64], sizes: list[int], last: NDArray[np.int32]
) -> tuple[Chunks | None, int]:
    """Return the first chunks with enough parallelism, else the best, and their size; None and 0 if none is usable."""
    best, best_size = None, 0
    for size in sizes if len(runs) > 1 else ():
        found = _chunks(problem, _cut(runs, size), last)
        _forget(problem.touches, runs[0], runs[-1], last)
        if found is None:
            break
        if best is None or found.parallelism > best.parallelism:
            best, best_size = found, size
        if best.parallelism >= ENOUGH_OF_CHUNKS:
            break
    return best, best_size


@njit(nogil=True, cache=True)
def _forget(touches: Touches, begin: int, end: int, last: NDArray[np.int32]) -> None:
    for task in range(begin, end):
        first, stop = span(touches, task)
        for access in range(first, stop):
            if touches.rows[access] >= 0:
                last[touches.rows[access]] = 0


def _chunks(problem: Problem, bounds: NDArray[np.int64], last: NDArray[np.int32]) -> Chunks | None:
    """Find the dependences of chunks; `last` (rows, 3) is initially all 0."""
    return _linked(problem.touches, problem.write_flags, bounds, bounds, problem.consecutive_work(bounds), last)


def chunks_of_ranges(bounds: NDArray[np.int64], ranges: RowRanges) -> Chunks | None:
    """Find the dependences of chunks by the ranges of rows that they touch."""
    found = as_touches(ranges)
    if found is None:
        return None
    touches, flags, rows = found
    numbers = np.arange(len(bounds))
    return _linked(touches, flags, numbers, bounds, np.diff(bounds), np.zeros((rows, 3), np.int32))


def _linked(
    touches: Touches,
    flags: NDArray[np.uint8],
    parts: NDArray[np.int64],
    bounds: NDArray[np.int64],
    work: NDArray[np.int64],
    last: NDArray[np.int32],
) -> Chunks | None:
    """Find the dependences of chunks; None if these are too many.

    `parts` are the bounds of the chunks among the tasks of `touches`, whose accesses `flags` describes, and `bounds`
    those in the loop; `work` (chunks,) is the work of each. `last` (rows, 3) is initially all 0.
    """
    count = len(bounds) - 1
    known = np.zeros(count + 1, np.int32)
    sources, targets = np.empty((2, count * MAX_EDGES), np.int32)
    readers = np.empty((count * MAX_READERS, 2), np.int32)
    edges = _find_edges(touches, flags, parts, last, readers, known, sources, targets)
    if edges < 0:
        return None
    sources, targets = sources[:edges], targets[:edges]
    level = np.zeros(count, np.int32)
    _levels_of_edges(sources, targets, level)
    return Chunks(bounds, sources, targets, level, work, parallelism(work, linked(sources, targets, count)))


def plan_in_loop_order(chunks: Chunks) -> Plan:
    """Make a plan whose jobs are the chunks, numbered as in the loop.

    For one node without replicas only: jobs of a stage may wait for each other.
    """
    return Plan(
        "wavefront",
        kept_order(chunks),
        None,
        chunks.bounds,
        np.maximum.accumulate(chunks.level),
        *linked(chunks.sources, chunks.targets, len(chunks.level)),
        parallelism=chunks.parallelism,
        details=Details(gain=chunks.parallelism, work=chunks.work),
    )


def kept_order(chunks: Chunks) -> str:
    """Explain a plan whose chunks keep the order of the loop wherever it matters."""
    return (
        f"dependences in loop order between {len(chunks.level)} chunks of consecutive tasks leave a parallelism of "
        f"{chunks.parallelism:.1f}: the result is that of the sequential loop"
    )


def plan_of_chunks(chunks: Chunks, strategy: str, reason: str) -> Plan:
    """Make a plan whose jobs are the chunks, by level: two chunks of a level do not conflict."""
    job_to_chunk = np.argsort(chunks.level, kind="stable")
    job_of = np.empty(len(job_to_chunk), np.int32)
    job_of[job_to_chunk] = np.arange(len(job_to_chunk), dtype=np.int32)
    return Plan(
        strategy,
        reason,
        None,
        offsets_of(np.diff(chunks.bounds)[job_to_chunk]),
        chunks.level[job_to_chunk],
        *linked(job_of[chunks.sources], job_of[chunks.targets], len(job_of)),
        parallelism=chunks.parallelism,
        details=Details(gain=chunks.parallelism, work=chunks.work[job_to_chunk]),
        starts=chunks.bounds[job_to_chunk],
    )
