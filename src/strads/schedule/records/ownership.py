"""Which rows a job may touch: checked during the run where reconnaissance could not determine the rows for certain.

Two jobs that own a common row are ordered by the plan, so a task may touch any row of its own job and the result is
still that of a serial order; on a cluster these are also the rows that are on the node while the job runs. A job of a
rotation owns its blocks, which takes two comparisons to check. Any other job *claims*, when it begins, the rows that
were recorded for its tasks or, if the plan orders jobs by blocks of rows and one node has all rows, these blocks.
Under row locks, each task claims its rows. All accesses to a guarded table are recorded as writes, so a row has one
owner at a time.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.partition import offsets_of
from strads.schedule.plan import Plan
from strads.schedule.records.access import AccessRecords, SparseRecords
from strads.schedule.records.parts import as_sparse

_NO_BLOCKS = np.zeros(0, np.int32)
NOBODY = -1  # owner of rows that no job has claimed


@dataclass(frozen=True)
class Ownership:
    """Rows of the guarded tables that each job (each task, if the plan has row locks) owns.

    Attributes
    ----------
    first
        Table → number of its first unit, which is a row or a block.
    block_of
        Table → (rows,): block of each row, for tables whose units are blocks.
    low, high
        Table → (jobs,): job j owns the rows `low[j]..high[j] - 1` of the table.
    units
        Number of units that may be claimed; 0 if `low` and `high` describe all ownership.
    offsets, claims
        Job j claims the units `claims[offsets[j]:offsets[j + 1]]` when it begins.
    """

    first: dict[int, int]
    block_of: dict[int, NDArray[np.int32]]
    low: dict[int, NDArray[np.int64]]
    high: dict[int, NDArray[np.int64]]
    units: int
    offsets: NDArray[np.int64]
    claims: NDArray[np.int64]

    def claiming(self) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
        """Return the owner of each unit before a run, which jobs change in it, and `offsets` and `claims`."""
        return np.full(self.units, NOBODY, np.int32), self.offsets, self.claims

    def of_jobs(self, jobs: NDArray[np.int64]) -> "Ownership":
        """Return the ownership of the given jobs, in the given order; −1 denotes a job that owns nothing."""
        offsets = offsets_of(np.append(np.diff(self.offsets), 0)[jobs])
        pieces = [self.claims[self.offsets[job] : self.offsets[job + 1]] for job in jobs if job >= 0]
        low = {table: np.append(rows, 0)[jobs] for table, rows in self.low.items()}
        high = {table: np.append(rows, 0)[jobs] for table, rows in self.high.items()}
        claims = np.concatenate([*pieces, self.claims[:0]])
        return Ownership(self.first, self.block_of, low, high, self.units, offsets, claims)


def ownership(plan: Plan, records: AccessRecords, tables: set[int], *, one_node: bool = True) -> Ownership:
    """Determine which rows the jobs of a plan own.

    Parameters
    ----------
    plan
        The plan as it will be run, with all jobs.
    records
        The rows that each task touches.
    tables
        The guarded tables, by their numbers in the records.
    one_node
        Whether all rows are on the node that runs the job.
    """
    numbers = sorted(tables)
    low = {table: np.zeros(plan.jobs, np.int64) for table in numbers}
    high = {table: np.zeros(plan.jobs, np.int64) for table in numbers}
    base = np.full(len(records.tables), -1, np.int64)
    sparse = as_sparse(records)
    first: dict[int, int] = {}
    block_of: dict[int, NDArray[np.int32]] = {}
    units = 0
    for table in numbers:
        first[table] = units
        cells = _cells(plan, records, sparse, table)
        if cells is not None:
            low[table], high[table] = cells
            continue
        base[table] = units
        of_rows = _blocks(plan, records, table, one_node)
        if of_rows is None:
            units += records.tables[table].rows
        else:
            block_of[table] = of_rows
            units += int(of_rows.max(initial=-1)) + 1
    holders = plan.offsets if plan.locks is None else np.arange(plan.tasks + 1, dtype=np.int64)
    offsets, claims = np.zeros(len(holders), np.int64), np.empty(0, np.int64)
    if units > 0:
        claims = np.empty(len(sparse.rows), np.int64)
        blocks = tuple(block_of.get(table, _NO_BLOCKS) for table in range(len(records.tables)))
        last = np.full(units, -1, np.int32)
        _claim(sparse.offsets, sparse.rows, sparse.tags, plan.order, holders, base, blocks, last, offsets, claims)
        claims = claims[: int(offsets[-1])].copy()
    return Ownership(first, block_of, low, high, units, offsets, claims)


def _cut(plan: Plan, records: AccessRecords, table: int) -> NDArray[np.int64] | None:
    """Return the bounds of the blocks of a table, if the plan has any under its name."""
    names = [shape.name for shape in records.tables]
    return plan.details.bounds.get(names[table]) if names.count(names[table]) == 1 else None


def _blocks(plan: Plan, records: AccessRecords, table: int, one_node: bool) -> NDArray[np.int32] | None:
    """Return the block of each row of a table of which a job owns whole blocks: of buckets, or sets of fine ones."""
    if one_node and plan.strategy == "buckets" and (cut := _cut(plan, records, table)) is not None:
        return np.repeat(np.arange(len(cut) - 1, dtype=np.int32), np.diff(cut))
    axis = plan.details.axis_of.get(records.tables[table].name)
    if axis is None:
        return None
    return np.repeat(plan.details.members[axis], np.diff(list(plan.details.bounds.values())[axis]))


def _cells(
    plan: Plan, records: AccessRecords, sparse: SparseRecords, table: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Return the block of each job of a rotation, if it contains all rows of the table that the job touches."""
    cells, cut = plan.details.cells, _cut(plan, records, table)
    if cut is None or cells is None or plan.details.members:
        return None
    block = cells[:, list(plan.details.bounds).index(records.tables[table].name)]
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
    """Widen `low` and `high` (jobs,) to the rows of a table that each job touches; `jobs` bounds jobs in `order`."""
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
    holders: NDArray[np.int64],
    base: NDArray[np.int64],
    blocks: tuple[NDArray[np.int32], ...],
    last: NDArray[np.int32],
    ends: NDArray[np.int64],
    claims: NDArray[np.int64],
) -> None:
    """List the units of each holder, each once.

    `offsets`, `rows` and `tags` are those of `SparseRecords`, and `order` is that of the plan. Holder h, which is a job
    or, under row locks, a task, runs `order[holders[h]:holders[h + 1]]`. `base` (tables,) has the number of each
    table's first unit, −1 for tables of which nothing is claimed, and `blocks` the block of each row of each table,
    empty if its units are rows. The units of holder h are written to `claims[ends[h]:ends[h + 1]]`, where `ends[0]` is
    0. `last` (units,), the last holder of each unit, is initially all −1.
    """
    end = 0
    for holder in range(len(holders) - 1):
        for position in range(holders[holder], holders[holder + 1]):
            task = order[position]
            for access in range(offsets[task], offsets[task + 1]):
                table = tags[access] >> 1
                first = base[table]
                if first < 0:
                    continue
                block_of = blocks[table]
                row = rows[access]
                unit = first + (block_of[row] if len(block_of) > 0 else row)
                if last[unit] != holder:
                    last[unit] = holder
                    claims[end] = unit
                    end += 1
        ends[holder + 1] = end
