"""Estimates the time of a loop on one thread from its accesses: plans must not depend on measured times.

There are five estimates. A lower bound, in which all misses are those of a small table, says how much work there is to
share. The usual time has misses in tables of their sizes. Of bare tasks, which compute nothing, the processor overlaps
the accesses: such tasks lose most by another order than that of the data. The last two say for how long a task occupies
the memory, which all cores share, and for how long it waits for the L3 cache or the memory.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.schedule.records.touches import Touches, is_write, span

TASK = 5.0  # nanoseconds of a task that does nothing
HIT, MISS = 1.0, 5.0  # nanoseconds of an access to a line that is in the L1 cache, or in the L2 cache
BARE, OVERLAPPED, FOUND = 1.0, 0.25, 1.5  # the same three if accesses overlap and nothing is computed
NEXT = 2.0  # to a line beside one that is in the L1 cache, which the processor fetches early
TRANSFER = 8.0  # to fetch a line from memory and to write it back, with all cores together
L2_BYTES, L3_BYTES = 1 << 20, 1 << 24  # assumed sizes of a core's caches
L3_HIT, FAR = 8.0, 20.0  # to a line in the L3 cache, or in memory; several of such misses overlap
BARE_L3_HIT, BARE_FAR = 2.0, 8.0  # the same two if nothing is computed, so that many overlap
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
    usual: tuple[float, float],
    following: NDArray[np.float64],
    miss: NDArray[np.float64],
    cached: NDArray[np.int64],
) -> float:
    """Nanoseconds of the tasks at positions `begin..end - 1` of an order, with a direct-mapped cache.

    `order` (tasks,) is empty for the order of the loop; `touches`, `flags`, `first_row`, `row_bytes` and `used_bytes`
    are as in `Accesses`. `usual` are the nanoseconds of a task without accesses and of an access to a cached line. An
    access to another line takes `following` (tables,) nanoseconds if a neighbouring line is cached, else `miss`
    (tables,); one to a row that is used in part always takes the latter. `cached` (LINES,) says which line is in each
    place of the cache, as 64 times its number plus the table, −1 for none; it is updated.
    """
    total = 0.0
    bare, hit = usual
    for position in range(begin, end):
        task = order[position] if len(order) > 0 else position
        total += bare
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
            if hit > 0:
                total += used_bytes[table] / BYTES
            if used_bytes[table] < row_bytes[table]:  # probably other lines than those of the access before
                total += miss[table]
            elif cached[place] == line * 64 + table:
                total += hit
            else:
                apart = max(row_bytes[table] // LINE_BYTES, 1)
                before, after = line - apart, line + apart
                is_near = cached[(before + table * 97) % LINES] == before * 64 + table
                is_near |= cached[(after + table * 97) % LINES] == after * 64 + table
                total += following[table] if is_near else miss[table]
            if row_bytes[table] <= NUMBER and is_write(touches, flags, first, access):
                total += hit + (row_bytes[table] / BYTES if hit > 0 else 0.0)  # it has mostly been read before
            cached[place] = line * 64 + table
    return total


class Estimate(NamedTuple):
    """Nanoseconds of a task without accesses, and of an access to a cached line, to one beside such a line, to another.

    The last two are for tables that the L2 cache holds, for those that the L3 cache holds, and for larger ones.
    """

    task: float
    hit: float
    beside: tuple[float, float, float]
    miss: tuple[float, float, float]


LEAST = Estimate(TASK, HIT, (MISS,) * 3, (MISS,) * 3)  # all misses are those of a small table
USUAL = Estimate(TASK, HIT, (NEXT,) * 3, (MISS, L3_HIT, FAR))  # misses are those of tables of their sizes
IF_BARE = Estimate(BARE, OVERLAPPED, (NEXT,) * 3, (FOUND, BARE_L3_HIT, BARE_FAR))  # of a task that computes nothing
# For how long a task occupies the memory. All cores share it: this is the least time however many threads run.
TRANSFERRED = Estimate(0.0, 0.0, (0.0, 0.0, TRANSFER), (0.0, 0.0, TRANSFER))
WAITING = Estimate(0.0, 0.0, (0.0,) * 3, (0.0, L3_HIT, FAR))  # for the L3 cache or the memory


def nanoseconds_per_task(loop: Accesses, order: NDArray[np.integer], estimate: Estimate) -> float:
    """Return an estimate of the average time of a task, from a sample of ranges of an order.

    Parameters
    ----------
    loop
        Its accesses.
    order : (tasks,)
        Order in which the tasks run; empty for the order of the loop.
    estimate
        Which time.
    """
    if loop.tasks == 0 or len(loop.row_bytes) == 0:
        return estimate.task
    sizes = np.diff(loop.first_row) * loop.row_bytes
    small, middle = sizes <= L2_BYTES, sizes <= L3_BYTES
    beside, miss = (np.select([small, middle], each[:2], each[2]) for each in (estimate.beside, estimate.miss))
    usual, of_tables = (estimate.task, estimate.hit), (loop.first_row, loop.row_bytes, loop.used_bytes)
    total, count = 0.0, 0
    for begin in np.unique(np.linspace(0, max(loop.tasks - SAMPLE, 0), SAMPLES).astype(np.int64)).tolist():
        end = min(begin + SAMPLE, loop.tasks)
        cached = np.full(LINES, -1, np.int64)
        total += _of_tasks(loop.touches, loop.flags, begin, end, order, *of_tables, usual, beside, miss, cached)
        count += end - begin
    return total / count
