"""What a loop takes on one thread, guessed from its accesses: to weigh plans by, as plans must not depend on clocks."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.schedule.touches import Touches, span

TASK = 5.0  # nanoseconds of a task that does nothing
HIT, MISS = 1.0, 5.0  # of an access to a line that is in the first cache, or is not
BYTES = 32.0  # of a row that are worked on in a nanosecond
LINES, LINE_BYTES = 512, 64  # a first cache of 32 KiB
HANDOVER = 20.0  # nanoseconds until a line that another core has written is here
SAMPLES, SAMPLE = 8, 2048  # stretches of the loop that stand for all, and their tasks


@njit(nogil=True, cache=True)
def _of_tasks(
    touches: Touches,
    begin: int,
    end: int,
    order: NDArray[np.integer],
    first_row: NDArray[np.int64],
    row_bytes: NDArray[np.int64],
    cached: NDArray[np.int64],
) -> float:
    """Nanoseconds of consecutive tasks of an order, with a cache of one place for each line."""
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
            cached[place] = line
    return total


def nanoseconds_per_task(
    touches: Touches,
    tasks: int,
    first_row: NDArray[np.int64],
    row_bytes: NDArray[np.int64],
    order: NDArray[np.integer],
) -> float:
    """Return what a task takes at least, on average.

    Parameters
    ----------
    touches
        The accesses that can conflict; all others are left out, as is arithmetic.
    tasks
        How many there are.
    first_row : (tables + 1,)
        Number of each table's first row.
    row_bytes : (tables,)
        Bytes of a row of each table.
    order : (tasks,)
        In which the tasks run; empty where that is their own.
    """
    if tasks == 0 or len(row_bytes) == 0:
        return TASK
    total, count = 0.0, 0
    for begin in np.unique(np.linspace(0, max(tasks - SAMPLE, 0), SAMPLES).astype(np.int64)).tolist():
        end = min(begin + SAMPLE, tasks)
        total += _of_tasks(touches, begin, end, order, first_row, row_bytes, np.full(LINES, -1, np.int64))
        count += end - begin
    return total / count
