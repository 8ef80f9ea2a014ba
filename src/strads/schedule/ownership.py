"""Which rows a job may touch: what the run of a loop checks where reconnaissance could not know the rows for sure.

Two jobs that own a common row are ordered by the plan, so whatever a task touches of the rows of its own job leaves the
result that of a serial order; and on nodes these are the rows that are there while the job runs. A job of a rotation
owns its blocks: two comparisons. Else it *claims* the rows that were recorded for its tasks when it begins; under row
locks, so does each task. All accesses to a guarded table are recorded as writes, so a row has one owner at a time.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.schedule.access import AccessRecords, SparseRecords
from strads.schedule.plan import Plan
from strads.schedule.record_parts import as_sparse

NOBODY = -1  # owner of rows that no job has claimed


@dataclass(frozen=True)
class Ownership:
    """Rows of jobs (of tasks, where a plan has row locks), numbered through the tables that are guarded.

    Attributes
    ----------
    first_row
        Table → number of its first row.
    low, high
        Table → (jobs,): the rows `low[j]..high[j] - 1` of the table are job j's.
    rows
        How many rows may be claimed; 0 where blocks say all.
    offsets, claims
        Job j claims the rows `claims[offsets[j]:offsets[j + 1]]` when it begins.
    """

    first_row: dict[int, int]
    low: dict[int, NDArray[np.int64]]
    high: dict[int, NDArray[np.int64]]
    rows: int
    offsets: NDArray[np.int64]
    claims: NDArray[np.int64]

    def owners(self) -> NDArray[np.int32]:
        """Return who owns each row before the run."""
        return np.full(self.rows, NOBODY, np.int32)

    def of_jobs(self, jobs: NDArray[np.int64]) -> "Ownership":
        """Return what some jobs own, in the given order; −1 stands for a job that owns nothing."""
        offsets = np.concatenate([[0], np.cumsum(np.append(np.diff(self.offsets), 0)[jobs])]).astype(np.int64)
        pieces = [self.claims[self.offsets[job] : self.offsets[job + 1]] for job in jobs if job >= 0]
        low = {table: np.append(rows, 0)[jobs] for table, rows in self.low.items()}
        high = {table: np.append(rows, 0)[jobs] for table, rows in self.high.items()}
        return Ownership(self.first_row, low, high, self.rows, offsets, np.concatenate([*pieces, self.claims[:0]]))


def ownership(plan: Plan, records: AccessRecords, tables: set[int]) -> Ownership:
    """Find which rows the jobs of a plan own.

    Parameters
    ----------
    plan
        As it will be run, all jobs.
    records
        What each task touches.
    tables
        Those that are guarded, by their numbers in the records.
    """
    sizes = {table: records.tables[table].rows for table in sorted(tables)}
    first_row = dict(zip(sizes, np.cumsum([0, *sizes.values()]).tolist(), strict=False))
    low = {table: np.zeros(plan.jobs, np.int64) for table in sizes}
    high = {table: np.zeros(plan.jobs, np.int64) for table in sizes}
    base = np.full(len(records.tables), -1, np.int64)
    sparse = as_sparse(records)
    for table, first in first_row.items():
        blocks = _blocks(plan, records, sparse, table)
        if blocks is None:
            base[table] = first
        else:
            low[table], high[table] = blocks
    rows = sum(sizes.values()) if np.any(base >= 0) else 0
    units = plan.offsets if plan.locks is None else np.arange(plan.tasks + 1, dtype=np.int64)
    offsets, claims = np.zeros(len(units), np.int64), np.empty(0, np.int64)
    if rows > 0:
        arrays = sparse.offsets, sparse.rows, sparse.tags, plan.order, units, base
        _claim(*arrays, np.full(rows, -1, np.int64), offsets, claims, False)
        claims = np.empty(int(offsets[-1]), np.int64)
        _claim(*arrays, np.full(rows, -1, np.int64), offsets, claims, True)
    return Ownership(first_row, low, high, rows, offsets, claims)


def _blocks(
    plan: Plan, records: AccessRecords, sparse: SparseRecords, table: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Return the block of each job of a rotation, if it holds all that the job touches of the table."""
    cells, cuts = plan.details.get("cells"), plan.details.get("bounds")
    name = records.tables[table].name
    if not isinstance(cells, np.ndarray) or not isinstance(cuts, dict) or name not in cuts:
        return None
    if [shape.name for shape in records.tables].count(name) > 1:
        return None
    block, cut = cells[:, list(cuts).index(name)], cuts[name]
    low, high = cut[block].astype(np.int64), cut[block + 1].astype(np.int64)
    first, end = np.full(plan.jobs, np.iinfo(np.int64).max), np.zeros(plan.jobs, np.int64)
    _extent(sparse.offsets, sparse.rows, sparse.tags, plan.order, plan.offsets, table, first, end)
    return (low, high) if np.all((end == 0) | ((low <= first) & (end <= high))) else None


@njit(nogil=True, cache=True)
def _extent(
    offsets: NDArray[np.int64],
    rows: NDArray[np.integer],
    tags: NDArray[np.uint8],
    order: NDArray[np.integer],
    jobs: NDArray[np.int64],
    table: int,
    low: NDArray[np.int64],
    high: NDArray[np.int64],
) -> None:
    for job in range(len(jobs) - 1):
        for position in range(jobs[job], jobs[job + 1]):
            task = order[position]
            for access in range(offsets[task], offsets[task + 1]):
                if tags[access] >> 1 == table:
                    low[job] = min(low[job], rows[access])
                    high[job] = max(high[job], rows[access] + 1)


@njit(nogil=True, cache=True)
def _claim(
    offsets: NDArray[np.int64],
    rows: NDArray[np.integer],
    tags: NDArray[np.uint8],
    order: NDArray[np.integer],
    units: NDArray[np.int64],
    base: NDArray[np.int64],
    last: NDArray[np.int64],
    ends: NDArray[np.int64],
    claims: NDArray[np.int64],
    fill: bool,
) -> None:
    """List the rows of each unit once; without `fill` only count them."""
    end = 0
    for unit in range(len(units) - 1):
        for position in range(units[unit], units[unit + 1]):
            task = order[position]
            for access in range(offsets[task], offsets[task + 1]):
                first = base[tags[access] >> 1]
                if first < 0:
                    continue
                row = first + rows[access]
                if last[row] != unit:
                    last[row] = unit
                    if fill:
                        claims[end] = row
                    end += 1
        ends[unit + 1] = end
