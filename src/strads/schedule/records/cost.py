"""Estimates the time of a loop on one thread from its accesses: plans must not depend on measured times."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.schedule.records.touches import Touches, is_write, span

TASK = 5.0  # nanoseconds of a task that does nothing
HIT, MISS = 1.0, 5.0  # nanoseconds of an access to a line that is in the L1 cache, or is not
BYTES = 32.0  # of a row that are processed per nanosecond
NUMBER = 8  # bytes of a row that is one number
LINES, LINE_BYTES = 512, 64  # an L1 cache of 32 KiB
HANDOVER = 20.0  # nanoseconds to fetch a line that another core has written
SAMPLES, SAMPLE = 8, 2048  # number of sampled ranges of the loop, and tasks in each


@njit(nogil=True, cache=True)
def _of_tasks(
    touches: Touches,
    flags: NDArray[np.uint8],
    begin: int,
    end: int,
    order: NDArray[np.integer],
    first_row: NDArray[np.int64],
    row_bytes: NDArray[np.int64],
    cached: NDArray[np.int64],
) -> float:
    """Nanoseconds of consecutive tasks of an order, with a direct-mapped cache."""
    total = 0.0
    for position in range(begin, end):
        task = order[position] if len(order) > 0 else position
        total += TASK
        first, stop = span(touches, task)
        for access in range(first, stop):
            row = touches.rows[access]
            if row < 0:
                continue
            table = 0
            while first_row[table + 1] <= row:
                table += 1
            line = (row * row_bytes[table] // LINE_BYTES) * 64 + table
            place = (line // 64 + table * 97) % LINES
            total += (HIT if cached[place] == line else MISS) + row_bytes[table] / BYTES
            if row_bytes[table] <= NUMBER and is_write(touches, flags, first, access):
                total += HIT + row_bytes[table] / BYTES  # it has mostly been read before
            cached[place] = line
    return total


def nanoseconds_per_task(
    touches: Touches,
    flags: NDArray[np.uint8],
    tasks: int,
    first_row: NDArray[np.int64],
    row_bytes: NDArray[np.int64],
    order: NDArray[np.integer],
) -> float:
    """Return a lower bound on the average time of a task.

    Parameters
    ----------
    touches
        The accesses that can conflict; all others are ignored, as is arithmetic.
    flags
        Which of them write: see `touches.is_write`.
    tasks
        Number of tasks.
    first_row : (tables + 1,)
        Number of each table's first row.
    row_bytes : (tables,)
        Bytes of a row of each table.
    order : (tasks,)
        Order in which the tasks run; empty for the order of the loop.
    """
    if tasks == 0 or len(row_bytes) == 0:
        return TASK
    total, count = 0.0, 0
    for begin in np.unique(np.linspace(0, max(tasks - SAMPLE, 0), SAMPLES).astype(np.int64)).tolist():
        end = min(begin + SAMPLE, tasks)
        total += _of_tasks(touches, flags, begin, end, order, first_row, row_bytes, np.full(LINES, -1, np.int64))
        count += end - begin
    return total / count
