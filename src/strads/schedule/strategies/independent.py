"""Strategy *independent*: no written row is touched by two tasks, so any two tasks may run concurrently."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.errors import PlanError
from strads.schedule.plan import Plan
from strads.schedule.records.touches import Touches, span
from strads.schedule.strategies.precedence import no_precedence
from strads.schedule.strategies.problem import Problem


@njit(nogil=True, cache=True)
def _first_conflict(touches: Touches, tasks: int, seen: NDArray[np.uint64]) -> tuple[int, int]:
    """First row that an earlier task also touched, and the task; (−1, −1) if there is none.

    `seen` has one bit per row, so that it stays in the cache for a big loop; it starts as zeros.
    """
    for task in range(tasks):
        first, last = span(touches, task)
        for access in range(first, last):
            row = touches.rows[access]
            if row >= 0 and seen[row >> 6] & (np.uint64(1) << np.uint64(row & 63)):
                return row, task
        for access in range(first, last):
            row = touches.rows[access]
            if row >= 0:
                seen[row >> 6] |= np.uint64(1) << np.uint64(row & 63)
    return -1, -1


def independent(problem: Problem) -> Plan:
    """Chunks of the loop as jobs without precedence.

    Raises
    ------
    PlanError
        If two tasks touch a row that is written.
    """
    _refuse_small_tables(problem)
    touches = problem.touches
    seen = np.zeros(problem.rows // 64 + 1, np.uint64)
    row, task = _first_conflict(touches, problem.tasks, seen) if len(touches.rows) else (-1, -1)
    if row >= 0:
        end = (task + 1) * touches.arity if touches.arity > 0 else int(touches.offsets[task + 1])
        access = int(np.argmax(touches.rows[:end] == row))
        other = int(np.searchsorted(touches.offsets, access, side="right")) - 1
        other = access // touches.arity if touches.arity > 0 else other
        raise PlanError(f"tasks {other} and {task} both touch {problem.row_name(row)}, which is written")
    groups = problem.pieces()
    jobs = len(groups[1]) - 1
    reason = f"no two tasks conflict: the loop is cut into {jobs} jobs that run in any order"
    return problem.plan("independent", reason, groups, np.zeros(jobs, np.int32), no_precedence(jobs))


def _refuse_small_tables(problem: Problem) -> None:
    """Refuse a loop with more tasks than rows: some row is shared, and no pass over the tasks is needed to know."""
    if len(problem.found.written) > 0:
        return
    for column in problem.columns or ():
        table = problem.tables[problem.column_tables[column]]
        if problem.tasks > table.rows:
            raise PlanError(f"{problem.tasks} tasks write {table.rows} rows of {table.name}: some row is shared")
