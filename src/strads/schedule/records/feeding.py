"""Whether tasks produce inputs of later ones: then only the order of the loop gives the intended result."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.schedule.passes.parallel import index_dtype
from strads.schedule.records.access import AccessRecords, UniformRecords
from strads.schedule.records.touches import Touches, span

MANY = 0.5  # of the tasks


def feeds_forward(records: AccessRecords) -> bool:
    """Whether each row has at most one writer, many tasks read rows of earlier tasks, and none those of later ones.

    This holds for dynamic programming, substitution and recurrences, but not for sweeps over a grid or a graph, which
    read rows of both, nor for anything that accumulates.
    """
    if records.rows.size == 0:
        return False
    rows = [table.rows for table in records.tables]
    first_row = np.concatenate([[0], np.cumsum(rows)]).astype(np.int64)
    writer = np.zeros(int(first_row[-1]), index_dtype(records.tasks + 1))  # number of the writer, from 1; 0: none
    none = np.empty(0, np.int64)
    if isinstance(records, UniformRecords):
        accessed = zip(records.access_tables, records.access_writes, strict=True)
        tags = np.array([2 * table + write for table, write in accessed], np.uint8)
        touches = Touches(np.ascontiguousarray(records.rows).reshape(-1), none, len(tags))
    else:
        tags, touches = records.tags, Touches(records.rows, records.offsets, -1)
    return bool(_feeds_forward(touches, records.tasks, tags, first_row, writer))


@njit(nogil=True, cache=True)
def _feeds_forward(
    touches: Touches,
    tasks: int,
    tags: NDArray[np.uint8],
    first_row: NDArray[np.int64],
    writer: NDArray[np.integer],
) -> bool:
    """`tags` holds those of all accesses or, for uniform records, those of one task."""
    uniform = touches.arity >= 0
    for task in range(tasks):
        first, end = span(touches, task)
        for access in range(first, end):
            tag = tags[access - first if uniform else access]
            if tag & 1:
                row = first_row[tag >> 1] + touches.rows[access]
                if writer[row] > 0 and writer[row] != task + 1:
                    return False
                writer[row] = task + 1
    feeding = 0
    for task in range(tasks):
        reads_earlier = False
        first, end = span(touches, task)
        for access in range(first, end):
            tag = tags[access - first if uniform else access]
            other = writer[first_row[tag >> 1] + touches.rows[access]]
            if other > task + 1:
                return False
            reads_earlier |= 0 < other < task + 1
        feeding += reads_earlier
    return feeding > MANY * tasks
