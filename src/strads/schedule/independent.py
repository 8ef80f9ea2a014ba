"""Strategy *independent*: no written row is touched by two tasks, so any two tasks may run together."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.errors import PlanError
from strads.schedule.parallel import index_dtype
from strads.schedule.plan import Plan
from strads.schedule.precedence import no_precedence
from strads.schedule.problem import FEW_THREADS, Problem
from strads.schedule.written_rows import Touches, span, touched_row

JOBS_PER_THREAD = 8  # enough for balance when tasks take unequal time


@njit(nogil=True, cache=True)
def _first_conflict(touches: Touches, tasks: int, owner: NDArray[np.integer]) -> tuple[int, int, int]:
    """Row, first task and second task of the first conflict; row −1 when there is none."""
    for task in range(tasks):
        first, last = span(touches, task)
        for access in range(first, last):
            row = touched_row(touches, access, first)
            if row < 0:
                continue
            if owner[row] < 0:
                owner[row] = task
            elif owner[row] != task:
                return row, owner[row], task
    return -1, -1, -1


def independent(problem: Problem) -> Plan:
    """Chunks of the loop as jobs without precedence.

    Raises
    ------
    PlanError
        If two tasks touch a row that is written.
    """
    _refuse_crowded_tables(problem)
    owner = np.full(problem.rows, -1, index_dtype(problem.tasks))
    row, one, other = _first_conflict(problem.touches, problem.tasks, owner)
    if row >= 0:
        raise PlanError(f"tasks {one} and {other} both touch {problem.row_name(row)}, which is written")
    groups = problem.contiguous_groups(JOBS_PER_THREAD * max(problem.threads, FEW_THREADS))
    jobs = len(groups[1]) - 1
    reason = f"no written row is touched by two tasks: the loop is cut into {jobs} jobs that run in any order"
    return problem.plan("independent", reason, groups, np.zeros(jobs, np.int32), no_precedence(jobs))


def _refuse_crowded_tables(problem: Problem) -> None:
    """More tasks than rows: some row is shared, and no pass over the tasks is needed to know."""
    if len(problem.touches.written) > 0:
        return
    for column in problem.columns or ():
        table = problem.tables[problem.column_tables[column]]
        if problem.tasks > table.rows:
            raise PlanError(
                f"{problem.tasks} tasks write {table.rows} rows of {table.name}: some row is shared"
            )
