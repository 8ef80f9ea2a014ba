"""Whether tasks produce inputs of later ones: then only the order of the loop gives the intended result."""

from enum import Enum

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.partition import offsets_of
from strads.schedule.kernels.parallel import index_dtype
from strads.schedule.records.access import AccessRecords, UniformRecords
from strads.schedule.records.touches import Touches, span

MANY = 0.25  # of the tasks
_BACKWARD, _NEVER = -1, -2  # in place of a number of tasks


class FlowDependences(Enum):
    """What tasks read of rows that others write: see `flow_dependences`."""

    BACKWARD = "some task reads a row that a later one writes"
    FORWARD = "many tasks read rows that only earlier ones write"
    SELDOM = "few tasks read rows that only earlier ones write"
    NEVER = "tasks only read rows that they also write"


def flow_dependences(records: AccessRecords) -> FlowDependences:
    """Say what tasks read of rows that others write; what a task writes itself does not count.

    A loop is `BACKWARD` if any part of it is. `FORWARD` are dynamic programming, substitution, recurrences and sums
    from the leaves of a tree to its root, but not sweeps over a grid or a graph, which read rows of earlier and later
    tasks, nor tasks that only accumulate.
    """
    if records.rows.size == 0 or np.all(records.tags & 1):
        return FlowDependences.NEVER
    first_row = offsets_of([table.rows for table in records.tables])
    # Number, from 1, of the last task that writes each row, and of the last one so far; 0: none.
    writer, latest = np.zeros((2, int(first_row[-1])), index_dtype(records.tasks + 1))
    none = np.empty(0, np.int64)
    if isinstance(records, UniformRecords):
        touches = Touches(np.ascontiguousarray(records.rows).reshape(-1), none, len(records.access_tables))
    else:
        touches = Touches(records.rows, records.offsets, -1)
    fed = _feeding(touches, records.tasks, records.tags, first_row, writer, latest)
    if fed in (_BACKWARD, _NEVER):
        return FlowDependences.BACKWARD if fed == _BACKWARD else FlowDependences.NEVER
    return FlowDependences.FORWARD if fed > MANY * records.tasks else FlowDependences.SELDOM


@njit(nogil=True, cache=True)
def _feeding(
    touches: Touches,
    tasks: int,
    tags: NDArray[np.uint8],
    first_row: NDArray[np.int64],
    writer: NDArray[np.integer],
    latest: NDArray[np.integer],
) -> int:
    """Number of tasks that read rows which only earlier tasks write, or one of the negative codes.

    `tags` holds those of all accesses or, for uniform records, those of one task. Unlike elsewhere, the rows in
    `touches` are numbered within their tables, of which `first_row` (tables + 1,) has the number of the first row.
    `writer` and `latest` (all rows,) are scratch memory of zeros: the last task that writes each row, from 1, and the
    last one so far.
    """
    uniform = touches.arity >= 0
    for task in range(tasks):
        first, end = span(touches, task)
        for access in range(first, end):
            tag = tags[access - first if uniform else access]
            if tag & 1:
                writer[first_row[tag >> 1] + touches.rows[access]] = task + 1
    fed, foreign = 0, False
    for task in range(tasks):
        reads_earlier = False
        first, end = span(touches, task)
        for access in range(first, end):
            tag = tags[access - first if uniform else access]
            if tag & 1:
                latest[first_row[tag >> 1] + touches.rows[access]] = task + 1
        for access in range(first, end):
            tag = tags[access - first if uniform else access]
            row = first_row[tag >> 1] + touches.rows[access]
            if tag & 1 or latest[row] == task + 1:
                continue
            if writer[row] > task + 1:
                return _BACKWARD
            foreign = True
            reads_earlier |= writer[row] > 0
        fed += reads_earlier
    return fed if foreign else _NEVER
