"""Merges the accesses of a task to one row: `x[i] += 1` reads and writes it, and no plan distinguishes the two."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.rng.splitmix import GAMMA

_FEW = 8  # accesses of a task that are compared with each other
_MOST_BITS = 20  # of a hash: a task's rows beyond those that fill half of such a table are kept as often as they occur
_MIN_BITS = 8  # a table is no larger than half full requires: it stays in the cache


@njit(nogil=True, cache=True)
def merge_repeated(counts: NDArray[np.integer], rows: NDArray[np.integer], tags: NDArray[np.uint8]) -> int:
    """Keep the first of a task's accesses to a row, as a write if any of them is one; in place.

    Parameters
    ----------
    counts : (tasks,)
        Number of accesses of each task; becomes that of the accesses that are kept.
    rows, tags : (accesses,)
        Row and tag of each, task by task; those that are kept are moved to the front.

    Returns
    -------
    Number of accesses that are kept.
    """
    place, owner = np.empty(1 << _MIN_BITS, np.int64), np.full(1 << _MIN_BITS, -1, np.int64)
    end = read = 0
    for task in range(len(counts)):
        first, stop = end, read + counts[task]
        bits = _MIN_BITS
        while bits < _MOST_BITS and (1 << bits) < 2 * counts[task]:
            bits += 1
        if (1 << bits) > len(owner):
            place, owner = np.empty(1 << bits, np.int64), np.full(1 << bits, -1, np.int64)
        room = 1 << (bits - 1)
        for access in range(read, stop):
            row, tag = rows[access], tags[access]
            known = -1
            if counts[task] <= _FEW:
                for earlier in range(first, end):
                    if rows[earlier] == row and tags[earlier] >> 1 == tag >> 1:
                        known = earlier
            else:
                slot = ((np.uint64(row) * np.uint64(2) + np.uint64(tag >> 1)) * GAMMA) >> np.uint64(64 - bits)
                while owner[slot] == task and (rows[place[slot]] != row or tags[place[slot]] >> 1 != tag >> 1):
                    slot = (slot + np.uint64(1)) & np.uint64((1 << bits) - 1)
                if owner[slot] == task:
                    known = place[slot]
                elif room > 0:
                    owner[slot], place[slot] = task, end
                    room -= 1
            if known >= 0:
                tags[known] |= tag & 1
            else:
                rows[end], tags[end] = row, tag
                end += 1
        counts[task] = end - first
        read = stop
    return end


@njit(nogil=True, cache=True)
def append_records(
    counts: NDArray[np.integer],
    rows: NDArray[np.integer],
    tags: NDArray[np.uint8],
    first_task: int,
    first_access: int,
    all_offsets: NDArray[np.int64],
    all_rows: NDArray[np.integer],
    all_tags: NDArray[np.uint8],
) -> None:
    """Copy the records of some consecutive tasks into those of the whole loop.

    `counts` (tasks,) has the number of accesses of each of these tasks, `rows` and `tags` (accesses,) their rows and
    tags. They go into `all_offsets`, `all_rows` and `all_tags`, the arrays of `SparseRecords`, where the tasks begin at
    number `first_task` and their accesses at `first_access`.
    """
    end = first_access
    for task in range(len(counts)):
        end += counts[task]
        all_offsets[first_task + task + 1] = end
    for access in range(len(rows)):  # slices would compile the message of an error, for more than a second
        all_rows[first_access + access], all_tags[first_access + access] = rows[access], tags[access]
