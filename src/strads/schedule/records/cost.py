"""Estimates the time of a loop on one thread from its accesses: plans must not depend on measured times.

There are two estimates. A lower bound, in which all misses are those of a small table, says how much work there is to
share. Orders of the tasks are compared by what misses cost in tables of their sizes.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.schedule.records.touches import Touches, is_write, span

TASK = 5.0  # nanoseconds of a task that does nothing
HIT, MISS = 1.0, 5.0  # nanoseconds of an access to a line that is in the L1 cache, or in the L2 cache
NEXT = 2.0  # to a line beside one that is in the L1 cache, which the processor fetches early
L2_BYTES, L3_BYTES = 1 << 20, 1 << 24
L3_MISS, FAR = 8.0, 20.0  # to a line in the L3 cache, or in memory; the processor waits for several at a time
BYTES = 32.0  # of a row that are processed per nanosecond
NUMBER = 8  # bytes of a row that is one number
LINES, LINE_BYTES = 512, 64  # an L1 cache of 32 KiB
HANDOVER = 20.0  # nanoseconds to fetch a line that another core has written
SAMPLES, SAMPLE = 8, 2048  # number of sampled ranges of the loop, and tasks in each


class Accesses(NamedTuple):
    """The accesses of a loop that can conflict; all others are ignored, as is arithmetic.

    Attributes
    ----------
    touches, flags, tasks
        The rows that tasks touch, which of them they write (see `touches.is_write`), and the number of tasks.
    first_row : (tables + 1,)
        Number of each table's first row.
    row_bytes, used_bytes : (tables,)
        Bytes of a row of each table, and those of them that an access touches.
    """

    touches: Touches
    flags: NDArray[np.uint8]
    tasks: int
    first_row: NDArray[np.int64]
    row_bytes: NDArray[np.int64]
    used_bytes: NDArray[np.int64]


@njit(nogil=True, cache=True)
def _of_tasks(
    touches: Touches,
    flags: NDArray[np.uint8],
    begin: int,
    end: int,
    order: NDArray[np.integer],
    first_row: NDArray[np.int64],
    row_bytes: NDArray[np.int64],
    used_bytes: NDArray[np.int64],
    following: float,
    miss: NDArray[np.float64],
    cached: NDArray[np.int64],
) -> float:
    """Nanoseconds of the tasks at positions `begin..end - 1` of an order, with a direct-mapped cache.

    `order` (tasks,) is empty for the order of the loop; `touches`, `flags`, `first_row`, `row_bytes` and `used_bytes`
    are as in `Accesses`. An access to a line that is not cached takes `following` nanoseconds if a neighbouring line is
    cached, else `miss` (tables,); one to a row that is used in part always takes the latter. `cached` (LINES,) says
    which line is in each place of the cache, as 64 times its number plus the table, −1 for none; it is updated.
    """
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
            line = row * row_bytes[table] // LINE_BYTES
            place = (line + table * 97) % LINES
            total += used_bytes[table] / BYTES
            if used_bytes[table] < row_bytes[table]:  # probably other lines than those of the access before
                total += miss[table]
            elif cached[place] == line * 64 + table:
                total += HIT
            else:
                apart = max(row_bytes[table] // LINE_BYTES, 1)
                before, after = line - apart, line + apart
                is_near = cached[(before + table * 97) % LINES] == before * 64 + table
                is_near |= cached[(after + table * 97) % LINES] == after * 64 + table
                total += following if is_near else miss[table]
            if row_bytes[table] <= NUMBER and is_write(touches, flags, first, access):
                total += HIT + row_bytes[table] / BYTES  # it has mostly been read before
            cached[place] = line * 64 + table
    return total


def nanoseconds_per_task(loop: Accesses, order: NDArray[np.integer], *, least: bool) -> float:
    """Return an estimate of the average time of a task.

    Parameters
    ----------
    loop
        Its accesses.
    order : (tasks,)
        Order in which the tasks run; empty for the order of the loop.
    least
        Whether to return a lower bound.
    """
    if loop.tasks == 0 or len(loop.row_bytes) == 0:
        return TASK
    if least:
        return _of_sample(loop, order, MISS, np.full(len(loop.row_bytes), MISS))
    return _of_sample(loop, order, NEXT, _misses(loop, MISS))


def waiting_per_task(loop: Accesses) -> float:
    """Return for how long a task in the order of the loop waits for the L3 cache or the memory, in nanoseconds."""
    if loop.tasks == 0 or len(loop.row_bytes) == 0:
        return 0.0
    order, misses = np.empty(0, np.int64), _misses(loop, 0.0)
    return _of_sample(loop, order, 0.0, misses) - _of_sample(loop, order, 0.0, np.zeros_like(misses))


def _misses(loop: Accesses, small: float) -> NDArray[np.float64]:
    """Nanoseconds of a miss in each table, `small` in those that the L2 cache holds."""
    sizes = np.diff(loop.first_row) * loop.row_bytes
    return np.select([sizes <= L2_BYTES, sizes <= L3_BYTES], [small, L3_MISS], FAR)


def _of_sample(loop: Accesses, order: NDArray[np.integer], following: float, miss: NDArray[np.float64]) -> float:
    """Nanoseconds of a task, from a sample of ranges of an order."""
    total, count = 0.0, 0
    sizes = loop.first_row, loop.row_bytes, loop.used_bytes
    for begin in np.unique(np.linspace(0, max(loop.tasks - SAMPLE, 0), SAMPLES).astype(np.int64)).tolist():
        end = min(begin + SAMPLE, loop.tasks)
        cached = np.full(LINES, -1, np.int64)
        total += _of_tasks(loop.touches, loop.flags, begin, end, order, *sizes, following, miss, cached)
        count += end - begin
    return total / count
