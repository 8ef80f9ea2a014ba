"""The rows that chunks of consecutive tasks touch, as a few ranges each: all that is kept of a long, regular loop.

Where tasks walk along a grid, a mesh or a band, so do the rows they touch: recording the ranges of a chunk takes no
memory, and dependences between chunks follow from them. Ranges may include rows that no task touches; then chunks wait
for each other without need, which does no harm to the result. The ranges of a chunk depend only on its accesses, not on
who records them, so neither does a plan that is made from them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.schedule.records.access import SparseRecords, TableShape
from strads.schedule.records.touches import Touches

MOST_RANGES = 16  # of a chunk
GAP = 8  # rows between a range and an access that it takes in
WIDEST_GAP = 1024  # rows between two ranges that become one if there is no room for another
MOST_SEGMENTS = 256  # of a chunk, on average: ranges are cut where others begin or end
_Arrays = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]
BATCH = 1 << 16  # tasks whose accesses are added at a time
_HINTS = 64  # accesses of a task for which the range of the previous task's access is tried first


@dataclass(frozen=True)
class RowRanges:
    """Ranges of rows, numbered across all tables; those of chunk c are `low[c, :count[c]]` to `high[c, :count[c]]`.

    Attributes
    ----------
    low, high : (chunks, MOST_RANGES)
        First and last rows.
    writes : (chunks, MOST_RANGES)
        1 for ranges of rows that are written, 0 for those that are read.
    count : (chunks,)
        Number of ranges.
    work : (chunks,)
        Tasks and accesses of a chunk.
    """

    low: NDArray[np.int64]
    high: NDArray[np.int64]
    writes: NDArray[np.uint8]
    count: NDArray[np.int64]
    work: NDArray[np.int64]

    @classmethod
    def empty(cls, chunks: int) -> "RowRanges":
        """Make room for the ranges of chunks."""
        low, high = np.zeros((2, chunks, MOST_RANGES), np.int64)
        return cls(low, high, np.zeros(low.shape, np.uint8), *np.zeros((2, chunks), np.int64))

    def of(self, chunks: NDArray[np.integer]) -> "RowRanges":
        """Return the ranges of the given chunks, in the given order."""
        own = self.low[chunks], self.high[chunks], self.writes[chunks]
        return RowRanges(*own, self.count[chunks], self.work[chunks])

    @property
    def arrays(self) -> _Arrays:
        """All arrays, in their order."""
        return self.low, self.high, self.writes, self.count, self.work


def first_rows(tables: Sequence[TableShape]) -> NDArray[np.int64]:
    """Number of the first row of each table; shape (tables,)."""
    return np.cumsum([0, *(table.rows for table in tables)], dtype=np.int64)[:-1]


def units(bounds: NDArray[np.int64]) -> Iterator[tuple[int, list[range]]]:
    """Group chunks, given by the bounds of their tasks, into units of about `BATCH` tasks, or of one large chunk.

    Yields the first chunk of each unit, and its tasks in batches for `add_accesses`.
    """
    firsts = np.unique(np.append(np.searchsorted(bounds, np.arange(bounds[0], bounds[-1], BATCH)), len(bounds) - 1))
    for first, last in pairwise(firsts.tolist()):
        begin, end = int(bounds[first]), int(bounds[last])
        yield first, [range(start, min(start + BATCH, end)) for start in range(begin, end, BATCH)]


@njit(nogil=True, cache=True)
def add_accesses(
    bounds: NDArray[np.int64],
    chunk: int,
    first: int,
    counts: NDArray[np.int32],
    rows: NDArray[np.integer],
    tags: NDArray[np.uint8],
    first_row: NDArray[np.int64],
    ranges: _Arrays,
) -> int:
    """Add the accesses of the tasks from `first` on, each row of a task once, to the ranges of their chunks.

    Parameters
    ----------
    bounds
        Chunk c has the tasks from `bounds[c]` to `bounds[c + 1]`.
    chunk
        The chunk of task `first`.
    counts : (tasks,)
        Accesses of each task.
    rows, tags
        Those of `SparseRecords`.
    first_row, ranges
        From `first_rows` and `RowRanges.arrays`.

    Returns
    -------
    The chunk of the task after these; −1 if a chunk has too many ranges.
    """
    low, high, writes, used, work = ranges
    hints = np.zeros(_HINTS, np.int64)
    end, access = first + len(counts), 0
    uniform = _is_uniform(counts, tags)
    task = first
    while task < end:
        while task >= bounds[chunk + 1]:
            chunk += 1
        stop = min(end, bounds[chunk + 1])
        own = low[chunk], high[chunk], writes[chunk]
        if uniform:
            arity = np.int64(counts[0])
            accesses = (stop - task) * arity
            found = _add_columns(rows, tags, access, accesses, arity, first_row, own, used[chunk])
        else:
            accesses = np.int64(0)
            for one in range(task, stop):
                accesses += counts[one - first]
            found = _add_each(
                counts[task - first : stop - first], rows, tags, access, first_row, own, used[chunk], hints
            )
        if found < 0:
            return -1
        used[chunk] = found
        work[chunk] += stop - task + accesses
        access += accesses
        task = stop
    return chunk


@njit(nogil=True, cache=True)
def _is_uniform(counts: NDArray[np.int32], tags: NDArray[np.uint8]) -> bool:
    """Whether all tasks make accesses of the same tags."""
    arity = counts[0]
    for count in counts:
        if count != arity:
            return False
    for access in range(arity, len(tags)):  # noqa: SIM110 - Numba compiles no generator expressions
        if tags[access] != tags[access - arity]:
            return False
    return True


@njit(nogil=True, cache=True)
def _add_columns(
    rows: NDArray[np.integer],
    tags: NDArray[np.uint8],
    begin: int,
    accesses: int,
    arity: int,
    first_row: NDArray[np.int64],
    own: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]],
    used: int,
) -> int:
    """Add the accesses of tasks that make equally many, to the same tables; return the number of ranges, −1 if full."""
    for place in range(arity):
        shift, kind = first_row[tags[begin + place] >> 1], tags[begin + place] & 1
        access, end = np.uint64(begin + place), np.uint64(begin + accesses)
        while access < end:
            lowest = highest = np.int64(rows[access])
            while access < end:
                row = np.int64(rows[access])
                if row < lowest - GAP or row > highest + GAP:
                    break
                lowest, highest = min(lowest, row), max(highest, row)
                access += np.uint64(arity)
            used = _add_range(shift + lowest, shift + highest, kind, own, used)
            if used < 0:
                return -1
    return used


@njit(nogil=True, cache=True)
def _add_each(
    counts: NDArray[np.int32],
    rows: NDArray[np.integer],
    tags: NDArray[np.uint8],
    access: int,
    first_row: NDArray[np.int64],
    own: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]],
    used: int,
    hints: NDArray[np.int64],
) -> int:
    """Add the accesses of any tasks; return the number of ranges, −1 if there is no room for all."""
    low, high, writes = own
    for count in counts:
        for place in range(count):
            tag = tags[access]
            row, kind = first_row[tag >> 1] + rows[access], tag & 1
            access += 1
            hint = min(place, _HINTS - 1)
            found = hints[hint]
            if found < used and writes[found] == kind and low[found] - GAP <= row <= high[found] + GAP:
                low[found], high[found] = min(low[found], row), max(high[found], row)
                continue
            before = used
            used = _add_range(row, row, kind, own, used)
            if used < 0:
                return -1
            hints[hint] = used - 1
            if used == before:
                for other in range(used):
                    if writes[other] == kind and low[other] <= row <= high[other]:
                        hints[hint] = other
    return used


@njit(nogil=True, cache=True)
def _add_range(
    lowest: int, highest: int, kind: int, own: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]], used: int
) -> int:
    """Add rows to a range that is near them, or to a new one; return the number of ranges, −1 if there is no room.

    Where rows scatter around a place, ranges begin as many that grow together.
    """
    low, high, writes = own
    for place in range(used):
        if writes[place] == kind and low[place] - GAP <= highest and lowest <= high[place] + GAP:
            low[place], high[place] = min(low[place], lowest), max(high[place], highest)
            return used
    if used == MOST_RANGES:
        used = _join_nearest(own)
        if used == MOST_RANGES:
            return -1
    low[used], high[used], writes[used] = lowest, highest, kind
    return used + 1


@njit(nogil=True, cache=True)
def _join_nearest(own: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]]) -> int:
    """Join the two ranges that are nearest to each other, unless they are far apart; return the number of ranges."""
    low, high, writes = own
    nearest, first, second = WIDEST_GAP + 1, 0, 0
    for one in range(MOST_RANGES):
        for other in range(one):
            gap = max(low[one], low[other]) - min(high[one], high[other])
            if writes[one] == writes[other] and gap < nearest:
                nearest, first, second = gap, other, one
    if second == 0:
        return MOST_RANGES
    last = MOST_RANGES - 1
    low[first], high[first] = min(low[first], low[second]), max(high[first], high[second])
    low[second], high[second], writes[second] = low[last], high[last], writes[last]
    return last


def ranges_of(records: SparseRecords, bounds: NDArray[np.int64]) -> RowRanges | None:
    """Return the ranges of rows that chunks of recorded tasks touch; None if a chunk has too many."""
    ranges, first_row = RowRanges.empty(len(bounds) - 1), first_rows(records.tables)
    for chunk, batches in units(bounds):
        for tasks in batches:
            counts = np.diff(records.offsets[tasks.start : tasks.stop + 1]).astype(np.int32)
            accesses = slice(records.offsets[tasks.start], records.offsets[tasks.stop])
            logged = counts, records.rows[accesses], records.tags[accesses]
            chunk = add_accesses(bounds, chunk, tasks.start, *logged, first_row, ranges.arrays)
            if chunk < 0:
                return None
    return ranges


def as_touches(ranges: RowRanges) -> tuple[Touches, NDArray[np.uint8], int] | None:
    """Return the touches of chunks, as if each were a task; None if ranges overlap so much that these are too many.

    Rows are stretches between bounds of ranges. Also returns the flags of `touches.is_write`, and the number of rows.
    """
    filled = np.arange(MOST_RANGES) < ranges.count[:, None]
    low, end = ranges.low[filled], ranges.high[filled] + 1
    cuts = np.unique(np.concatenate([low, end]))
    first = np.searchsorted(cuts, low)
    lengths = np.searchsorted(cuts, end) - first
    total = int(lengths.sum())
    if total > MOST_SEGMENTS * len(ranges.count):
        return None
    starts = np.cumsum(lengths) - lengths
    rows = (np.arange(total) + np.repeat(first - starts, lengths)).astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(np.nonzero(filled)[0], lengths, len(ranges.count)))])
    return Touches(rows, offsets.astype(np.int64), -1), np.repeat(ranges.writes[filled], lengths), len(cuts)
