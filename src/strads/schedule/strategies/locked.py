"""Strategy *locked*: chunks of the loop run in any order, each task under the locks of its rows (thesis §7.2.4)."""

from dataclasses import replace

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.rng.splitmix import GAMMA
from strads.schedule.plan import Plan, RowLocks
from strads.schedule.records.touches import Touches, span
from strads.schedule.strategies.precedence import no_precedence
from strads.schedule.strategies.problem import Problem

MAX_LOCKS = 2**16  # tables of more rows share locks by a hash of the row


@njit(nogil=True, cache=True)
def _fill_locks(touches: Touches, hashed: bool, shift: int, offsets: NDArray[np.int64], ids: NDArray[np.int32]) -> int:
    """Fill in the locks of each task, ascending without repetition; returns their total number."""
    end = 0
    for task in range(len(offsets) - 1):
        begin = end
        first, last = span(touches, task)
        for access in range(first, last):
            row = touches.rows[access]
            if row >= 0:
                ids[end] = (np.uint64(row) * GAMMA) >> np.uint64(shift) if hashed else np.uint64(row)
                end += 1
        ids[begin:end].sort()
        kept = begin
        for position in range(begin, end):
            if position == begin or ids[position] != ids[kept - 1]:
                ids[kept] = ids[position]
                kept += 1
        end = kept
        offsets[task + 1] = end
    return end


def row_locks(problem: Problem) -> RowLocks:
    """Locks of each task in loop order; rows of all tables are hashed to at most 2¹⁶ locks."""
    bits = max(1, min(MAX_LOCKS, problem.rows) - 1).bit_length()
    offsets = np.zeros(problem.tasks + 1, np.int64)
    ids = np.empty(int(problem.row_work.sum(dtype=np.int64)), np.int32)
    used = _fill_locks(problem.touches, problem.rows > MAX_LOCKS, 64 - bits, offsets, ids)
    return RowLocks(2**bits, offsets, ids[:used].copy())


def locked(problem: Problem) -> Plan:
    """Chunks of the loop as jobs without precedence; each task holds the locks of its rows. Applies to every loop."""
    groups = problem.pieces()
    jobs = len(groups[1]) - 1
    locks = row_locks(problem)
    row, sharing = problem.busiest_row_of(problem.tasks)
    reason = f"the loop is cut into {jobs} jobs that run in any order, each task under locks of its rows"
    if row >= 0:
        reason += f" ({sharing} of {problem.tasks} tasks share {problem.row_name(row)})"
    reason += "; the result depends on timing, that of any other strategy does not"
    stage = np.zeros(jobs, np.int32)
    plan = problem.plan("locked", reason, groups, stage, no_precedence(jobs), locks=locks)
    # The tasks of the busiest row run one after another.
    return replace(plan, parallelism=min(plan.parallelism, problem.tasks / max(sharing, 1)))
