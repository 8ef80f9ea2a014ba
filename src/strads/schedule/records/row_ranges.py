"""The rows that chunks of consecutive tasks touch, as a few ranges each: all that is kept of a long, regular loop.

Where tasks walk along a grid, a mesh or a band, so do the rows they touch: recording the ranges of a chunk takes no
memory, and dependences between chunks follow from them. Ranges may include rows that no task touches; then chunks wait
for each other without need, which does no harm to the result. The ranges of a chunk depend only on its accesses, not on
who records them, so neither does a plan that is made from them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.partition import joined_ranges, offsets_of
from strads.schedule.records.access import AccessRecords, TableShape, UniformRecords
from strads.schedule.records.touches import Touches

MAX_RANGES = 24  # of a chunk
GAP, WIDEST_GAP = 8, 1024  # up to the first, gaps never end a range; up to the second, not if ranges run out
MAX_SEGMENTS = 256  # of a chunk, on average: ranges are cut where others begin or end
BATCH = 1 << 16  # tasks whose accesses are added at a time
_BLOCKS = 1 << 17  # of rows, over all tables: enough that few chunks share one for no other reason
_STAMP, _LOW, _HIGH = 0, (1, 3), (2, 4)  # columns of `Marks.blocks`; of all accesses, and of those that write
_NOT_WRITTEN = np.iinfo(np.int32).max
_NO_GAP = 1 << 62  # before the first range of a kind


@dataclass(frozen=True)
class RowRanges:
    """Ranges of rows, numbered across all tables; those of chunk c are `low[c, :count[c]]` to `high[c, :count[c]]`.

    Attributes
    ----------
    low, high : (chunks, MAX_RANGES)
        First and last rows.
    writes : (chunks, MAX_RANGES)
        1 for ranges of rows that are written, 0 for those of all rows.
    count : (chunks,)
        Number of ranges.
    """

    low: NDArray[np.int64]
    high: NDArray[np.int64]
    writes: NDArray[np.uint8]
    count: NDArray[np.int64]

    @classmethod
    def empty(cls, chunks: int) -> "RowRanges":
        """Make room for the ranges of chunks."""
        low, high = np.zeros((2, chunks, MAX_RANGES), np.int64)
        return cls(low, high, np.zeros(low.shape, np.uint8), np.zeros(chunks, np.int64))

    def of(self, chunks: NDArray[np.integer]) -> "RowRanges":
        """Return the ranges of the given chunks, in the given order."""
        return RowRanges(self.low[chunks], self.high[chunks], self.writes[chunks], self.count[chunks])

    def add(self, chunk: int, tasks: range, bounds: NDArray[np.int64], logged: "Logged", marks: "Marks") -> int:
        """Add the accesses of a batch of tasks, which begins in the given chunk.

        Parameters
        ----------
        chunk
            The chunk of the first of the tasks; all its earlier tasks have been added with the same marks.
        tasks, bounds
            Numbers of the tasks; chunk c has the tasks from `bounds[c]` to `bounds[c + 1]`.
        logged
            Number of accesses of each task, and row and tag of each access, as in `SparseRecords`.
        marks
            Memory of a thread.

        Returns
        -------
        The chunk of the task after these; −1 if a chunk has too many ranges.
        """
        return _add(bounds, chunk, tasks.start, *logged, marks, (self.low, self.high, self.writes, self.count))


Logged = tuple[NDArray[np.int32], NDArray[np.integer], NDArray[np.uint8]]
_Arrays = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64]]


class Marks(NamedTuple):
    """What a chunk has touched so far, by blocks of rows.

    Attributes
    ----------
    first_row : (tables,)
        Number of the first row of each table, which begins a block.
    shift
        Binary logarithm of the rows of a block.
    blocks : (blocks, 5)
        For each block: 1 + the chunk that touched it last, the first and the last row that it touches there, relative
        to the block, and the first and the last one that it writes.
    touched : (1 + blocks,)
        Number of the blocks that the chunk has touched, and their numbers.
    most
        Rows that the ranges of a chunk may have.
    """

    first_row: NDArray[np.int64]
    shift: int
    blocks: NDArray[np.int32]
    touched: NDArray[np.int64]
    most: int

    @classmethod
    def of(cls, tables: Sequence[TableShape], most: float = 2.0) -> "Marks":
        """Return marks for tables of these shapes, none set; `most` is a share of their rows."""
        shift = (sum(table.rows for table in tables) // _BLOCKS).bit_length()
        sizes = [-(-table.rows >> shift) for table in tables]
        first_block = offsets_of(sizes)
        blocks, touched = np.zeros((first_block[-1], 5), np.int32), np.zeros(1 + first_block[-1], np.int64)
        return cls(first_block[:-1] << shift, shift, blocks, touched, int(most * (first_block[-1] << shift)))


def units(bounds: NDArray[np.int64]) -> Iterator[tuple[int, list[range]]]:
    """Group chunks, given by the bounds of their tasks, into units of about `BATCH` tasks, or of one large chunk.

    Yields the first chunk of each unit, and its tasks in batches for `RowRanges.add`.
    """
    firsts = np.unique(np.append(np.searchsorted(bounds, np.arange(bounds[0], bounds[-1], BATCH)), len(bounds) - 1))
    for first, last in pairwise(firsts.tolist()):
        begin, end = int(bounds[first]), int(bounds[last])
        yield first, [range(start, min(start + BATCH, end)) for start in range(begin, end, BATCH)]


@njit(nogil=True, cache=True)
def _add(
    bounds: NDArray[np.int64],
    chunk: int,
    first: int,
    counts: NDArray[np.int32],
    rows: NDArray[np.integer],
    tags: NDArray[np.uint8],
    marks: Marks,
    ranges: _Arrays,
) -> int:
    """Implement `RowRanges.add` for the tasks from number `first` on.

    `bounds`, `chunk` and `marks` are its arguments, `counts`, `rows` and `tags` its `logged`; `ranges` are the arrays
    of the object.
    """
    blocks, touched, shift = marks.blocks, marks.touched, np.int64(marks.shift)
    inside = (np.int64(1) << shift) - 1
    access = 0
    for task in range(first, first + len(counts)):
        while task >= bounds[chunk + 1]:
            chunk += 1
        for _ in range(counts[task - first]):
            tag = tags[access]
            row = marks.first_row[tag >> 1] + rows[access]
            access += 1
            block, place, writes = np.uint64(row >> shift), np.int32(row & inside), np.int32(tag & 1)
            if blocks[block, _STAMP] != chunk + 1:
                blocks[block, _STAMP] = chunk + 1
                blocks[block, _LOW[0]] = blocks[block, _HIGH[0]] = place
                blocks[block, _LOW[1]], blocks[block, _HIGH[1]] = (place, place) if writes else (_NOT_WRITTEN, -1)
                touched[0] += 1
                touched[touched[0]] = block
                continue
            for kind in range(1 + writes):
                if place < blocks[block, _LOW[kind]]:
                    blocks[block, _LOW[kind]] = place
                if place > blocks[block, _HIGH[kind]]:
                    blocks[block, _HIGH[kind]] = place
        if task + 1 == bounds[chunk + 1]:
            if not _close(chunk, marks, ranges):
                return -1
            touched[0] = 0
            chunk += 1
    return chunk


@njit(nogil=True, cache=True)
def _close(chunk: int, marks: Marks, ranges: _Arrays) -> bool:
    """Make ranges of the blocks that a chunk has touched, cut at the widest gaps; False if they are too wide."""
    low, high, writes, used = ranges
    blocks, found = marks.blocks, marks.touched[1 : 1 + marks.touched[0]]
    _sort(found)
    begins, ends = np.empty(2 * len(found), np.int64), np.empty(2 * len(found), np.int64)
    widest = np.full(1 + MAX_RANGES, GAP, np.int64)  # gaps, descending
    place = middle = 0
    for kind in range(2):  # what is written is also touched, whether or not it was recorded as read
        middle = place
        for block in found:
            if blocks[block, _HIGH[kind]] >= 0:
                base = block << np.int64(marks.shift)
                begins[place], ends[place] = base + blocks[block, _LOW[kind]], base + blocks[block, _HIGH[kind]]
                _keep_widest(widest, begins[place] - ends[place - 1] if place > middle else _NO_GAP)
                place += 1
    limit = widest[MAX_RANGES]
    if limit > WIDEST_GAP:
        return False
    number, touched = -1, 0
    for range_ in range(place):
        if range_ == 0 or range_ == middle or begins[range_] - ends[range_ - 1] > limit:
            number += 1
            low[chunk, number], writes[chunk, number] = begins[range_], range_ >= middle
            high[chunk, number] = begins[range_] - 1
        touched += ends[range_] - high[chunk, number]
        high[chunk, number] = ends[range_]
    used[chunk] = number + 1
    return touched <= marks.most


@njit(nogil=True, cache=True)
def _sort(values: NDArray[np.int64]) -> None:
    """Sort values that mostly ascend, in place, by Shell's method: NumPy's takes almost a second to compile."""
    step = 1
    while step < len(values) // 3:
        step = 3 * step + 1
    while step > 0:
        for place in range(step, len(values)):
            value, hole = values[place], place
            while hole >= step and values[hole - step] > value:
                values[hole] = values[hole - step]
                hole -= step
            values[hole] = value
        step //= 3


@njit(nogil=True, cache=True)
def _keep_widest(widest: NDArray[np.int64], gap: int) -> None:
    """Insert a gap into the widest ones so far, in descending order, and drop the last of them."""
    place = len(widest) - 1
    if gap > widest[place]:
        while place > 0 and widest[place - 1] < gap:
            widest[place] = widest[place - 1]
            place -= 1
        widest[place] = gap


def ranges_of(records: AccessRecords, bounds: NDArray[np.int64], most: float = 2.0) -> RowRanges | None:
    """Return the ranges of rows that chunks of recorded tasks touch; None if a chunk has too many, or of too many rows.

    `most`: the share of all rows that a chunk may touch; a row that it reads and writes may count twice.
    """
    ranges, marks = RowRanges.empty(len(bounds) - 1), Marks.of(records.tables, most)
    for chunk, batches in units(bounds):
        for tasks in batches:
            chunk = ranges.add(chunk, tasks, bounds, _logged(records, tasks), marks)
            if chunk < 0:
                return None
    return ranges


def _logged(records: AccessRecords, tasks: range) -> Logged:
    if isinstance(records, UniformRecords):
        rows, tags = records.rows[tasks.start : tasks.stop], np.tile(records.tags, len(tasks))
        return np.full(len(tasks), rows.shape[1], np.int32), np.ascontiguousarray(rows).reshape(-1), tags
    accesses = slice(records.offsets[tasks.start], records.offsets[tasks.stop])
    counts = np.diff(records.offsets[tasks.start : tasks.stop + 1]).astype(np.int32)
    return counts, records.rows[accesses], records.tags[accesses]


def as_touches(ranges: RowRanges) -> tuple[Touches, NDArray[np.uint8], int] | None:
    """Return the touches of chunks, as if each were a task; None if ranges overlap so much that these are too many.

    Rows are stretches between bounds of ranges. Also returns the flags of `touches.is_write`, and the number of rows.
    """
    filled = np.arange(MAX_RANGES) < ranges.count[:, None]
    low, end = ranges.low[filled], ranges.high[filled] + 1
    cuts = np.unique(np.concatenate([low, end]))
    first = np.searchsorted(cuts, low)
    lengths = np.searchsorted(cuts, end) - first
    total = int(lengths.sum())
    if total > MAX_SEGMENTS * len(ranges.count):
        return None
    rows = joined_ranges(first, lengths).astype(np.int32)
    offsets = offsets_of(np.bincount(np.nonzero(filled)[0], lengths, len(ranges.count)))
    return Touches(rows, offsets, -1), np.repeat(ranges.writes[filled], lengths), len(cuts)
