"""Strategy *colouring*: chunks of consecutive tasks, coloured like a map, run colour by colour (Saad 2003, §12.4).

For loops over a mesh, a grid or anything else whose tasks touch rows near those of the tasks before, in any order. Most
tasks keep their neighbours, so rows stay in the cache, and nothing is copied into another order.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.errors import PlanError
from strads.partition import offsets_of
from strads.schedule.plan import Plan
from strads.schedule.records.access import SparseRecords
from strads.schedule.records.parts import as_sparse
from strads.schedule.records.row_ranges import RowRanges, as_touches, ranges_of
from strads.schedule.strategies.chunks import (
    ENOUGH_OF_CHUNKS,
    Chunks,
    chunks_of_ranges,
    cut_evenly,
    plan_of_chunks,
    sizes_to_try,
)
from strads.schedule.strategies.problem import Problem

MAX_COLOURS = 16  # with more, too few chunks have the same colour


@njit(nogil=True, cache=True)
def _first_free(
    rows: NDArray[np.int32], offsets: NDArray[np.int64], writes: NDArray[np.uint8], count: int
) -> NDArray[np.int64]:
    """Lowest colour of each chunk that no earlier conflicting chunk has; `MAX_COLOURS` if all are taken.

    The arguments are the touches of the chunks, and the number of different rows.
    """
    read, written = np.zeros(count, np.uint32), np.zeros(count, np.uint32)  # bit sets: colours of the chunks that did
    colours = np.empty(len(offsets) - 1, np.int64)
    for chunk in range(len(colours)):
        taken = np.uint32(0)
        for touch in range(offsets[chunk], offsets[chunk + 1]):
            taken |= written[rows[touch]]
            if writes[touch]:
                taken |= read[rows[touch]]
        colour = 0
        while colour < MAX_COLOURS and (taken >> np.uint32(colour)) & np.uint32(1):
            colour += 1
        colours[chunk] = colour
        for touch in range(offsets[chunk], offsets[chunk + 1]):
            used = written if writes[touch] else read
            used[rows[touch]] |= np.uint32(1) << np.uint32(colour)
    return colours


def coloured(bounds: NDArray[np.int64], ranges: RowRanges | None) -> Chunks | None:
    """Return chunks that wait for those of earlier colours whose row ranges conflict; None if there are too many."""
    found = None if ranges is None else as_touches(ranges)
    if ranges is None or found is None:
        return None
    touches, writes, rows = found
    colours = _first_free(touches.rows, touches.offsets, writes, rows)
    if colours.max(initial=0) == MAX_COLOURS:
        return None
    order = np.argsort(colours, kind="stable")
    chunks = chunks_of_ranges(offsets_of(np.diff(bounds)[order]), ranges.of(order))
    if chunks is None:
        return None
    level = np.empty_like(chunks.level)
    level[order] = chunks.level
    number = order.astype(np.int32)
    return Chunks(bounds, number[chunks.sources], number[chunks.targets], level, np.diff(bounds), chunks.parallelism)


def colouring_from_sample(part: Problem, records: SparseRecords, tasks: int) -> NDArray[np.int64] | None:
    """Return bounds of chunks for a loop of which a part has been recorded; None if colouring is not worthwhile."""
    for size in sizes_to_try(part, tasks):
        bounds = cut_evenly(0, part.tasks, size)
        chunks = coloured(bounds, ranges_of(records, bounds, 1 / ENOUGH_OF_CHUNKS))
        if chunks is not None and chunks.parallelism >= ENOUGH_OF_CHUNKS:
            return cut_evenly(0, tasks, size)
    return None


def colouring_of_ranges(bounds: NDArray[np.int64], ranges: RowRanges | None) -> Plan | None:
    """Plan a loop by the ranges of rows that its chunks touch; None if that leaves too little parallelism."""
    chunks = coloured(bounds, ranges)
    return None if chunks is None or chunks.parallelism < ENOUGH_OF_CHUNKS else _plan(chunks)


def colouring(problem: Problem) -> Plan:
    """Colour the coarsest chunks with enough parallelism, else those with the most.

    Raises
    ------
    PlanError
        If tasks of each chunk touch rows all over the tables.
    """
    records, best = as_sparse(problem.records), None
    for size in sizes_to_try(problem, problem.tasks) or [1]:
        bounds = cut_evenly(0, problem.tasks, size)
        chunks = coloured(bounds, ranges_of(records, bounds, 1 / ENOUGH_OF_CHUNKS))
        if chunks is not None and (best is None or chunks.parallelism > best.parallelism):
            best = chunks
        if best is not None and best.parallelism >= ENOUGH_OF_CHUNKS:
            break
    if best is None:
        raise PlanError("consecutive tasks touch rows that are far apart, or too many chunks of them share rows")
    return _plan(best)


def _plan(chunks: Chunks) -> Plan:
    stages = int(chunks.level.max(initial=-1)) + 1
    reason = (
        f"consecutive tasks touch rows that are near each other: {len(chunks.level):,} chunks of them have "
        f"{stages} colour{'s' * (stages > 1)}, and those of one colour share no row that is written"
    )
    return plan_of_chunks(chunks, "colouring", reason)
