"""The rows from which each job of a plan draws, if a loop's body calls `near`: rows that no other job uses meanwhile.

A job of a rotation draws from its block. In other plans, it draws from the rows that were recorded for its tasks. One
job that runs the loop alone draws from all rows.
"""

import warnings
from dataclasses import replace

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.partition import joined_ranges, offsets_of, places_of
from strads.rng.numbers import fill_aliases, given_weights
from strads.schedule.details import Pools
from strads.schedule.nodes.assignment import job_of_task
from strads.schedule.plan import Plan
from strads.schedule.records.access import AccessRecords
from strads.schedule.records.parts import as_sparse

_WEIGHTLESS = (
    "rng.near(table, weights) draws rows of weight 0 where a job has no others: `explain()` of the plan says how many; "
    "give rows that may be drawn a positive weight, or order='sequential', which draws from all rows"
)


def pools(plan: Plan, records: AccessRecords, tables: frozenset[int], weights: NDArray[np.void] | None = None) -> Pools:
    """Determine the rows from which the jobs of a plan draw.

    Parameters
    ----------
    plan
        The plan, before its jobs are merged into lanes or separated by barriers.
    records
        The rows that each task touches; all accesses to these tables must be recorded as writes.
    tables
        Tables that share row numbers, by their numbers in the records.
    weights
        Made by `strads.weights`, for the rows of these tables.
    """
    if plan.strategy == "sequential":
        every = np.arange(min(records.tables[table].rows for table in tables))
        whole = np.zeros(plan.jobs, np.int64), np.full(plan.jobs, len(every))
        if weights is None:
            return Pools(every, *whole, *_unweighted())
        share, other = (weights[name][: len(every)] for name in ("share", "other"))
        return Pools(every, *whole, share.copy(), np.clip(other, 0, len(every) - 1))
    found = _blocks(plan, records, tables)
    rows, offsets, pool = _recorded(plan, records, tables) if found is None else found
    low, high, dealt = offsets[pool], offsets[pool + 1], found is not None
    if weights is None:
        return Pools(rows, low, high, *_unweighted(), dealt)
    share, other = np.ones(len(rows)), np.zeros(len(rows), np.int64)
    weightless = int(_fill(rows, offsets, given_weights(weights), share, other))
    if weightless:
        warnings.warn(_WEIGHTLESS, stacklevel=2)
    return Pools(rows, low, high, share, other, dealt, weightless)


def merged(found: Pools, old: Plan, new: Plan) -> Pools:
    """Return the pools of a plan whose jobs run those of another, one after the other: their rows, concatenated.

    With weights, too, a job draws as if it had drawn the old job first, in proportion to the sizes of their pools.
    """
    filled = np.flatnonzero(np.diff(old.offsets))
    job = job_of_task(new)[old.order[old.offsets[filled]]]
    by_job = np.argsort(job, kind="stable")
    sizes = found.sizes[filled][by_job]
    ends = offsets_of(sizes)
    low, high = (ends[np.searchsorted(job[by_job], np.arange(new.jobs), side)] for side in ("left", "right"))
    entries = joined_ranges(found.low[filled][by_job], sizes)
    share, other = found.share, found.other
    if len(share):
        share, other = share[entries], other[entries] + np.repeat(ends[:-1] - low[job[by_job]], sizes)
    return replace(found, rows=found.rows[entries], low=low, high=high, share=share, other=other)


def _unweighted() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    return np.empty(0), np.empty(0, np.int64)


def _blocks(
    plan: Plan, records: AccessRecords, tables: frozenset[int]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]] | None:
    """Return the rows and offsets of all blocks, and the block of each job, if the tables rotate together."""
    grid, cells = plan.details, plan.details.cells
    if not grid.members or cells is None:
        return None
    axes = {grid.axis_of.get(records.tables[table].name) for table in tables}
    axis = axes.pop()
    if axes or axis is None:
        return None
    cut, member = list(grid.bounds.values())[axis], grid.members[axis]
    by_block = np.argsort(member, kind="stable")
    rows = places_of(cut, by_block)
    return rows, offsets_of(np.bincount(member, np.diff(cut))), cells[:, axis].astype(np.int64)


def _recorded(
    plan: Plan, records: AccessRecords, tables: frozenset[int]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows that the tasks of each job touch in every one of the tables, the offsets, and the jobs."""
    sparse = as_sparse(records)
    place = np.full(len(records.tables), -1, np.int64)
    place[sorted(tables)] = np.arange(len(tables))
    last = np.full((len(tables), max(records.tables[table].rows for table in tables)), -1, np.int32)
    rows, offsets = np.empty(len(sparse.rows), np.int64), np.zeros(plan.jobs + 1, np.int64)
    _list_rows(sparse.offsets, sparse.rows, sparse.tags, plan.order, plan.offsets, place, last, rows, offsets)
    return rows[: offsets[-1]].copy(), offsets, np.arange(plan.jobs)


@njit(nogil=True, cache=True)
def _list_rows(
    starts: NDArray[np.int64],
    touched: NDArray[np.integer],
    tags: NDArray[np.uint8],
    order: NDArray[np.integer],
    jobs: NDArray[np.int64],
    place: NDArray[np.int64],
    last: NDArray[np.int32],
    rows: NDArray[np.int64],
    offsets: NDArray[np.int64],
) -> None:
    """List, for each job, the rows that its tasks touch in every one of some tables, each once.

    `starts`, `touched` and `tags` are the offsets, rows and tags of `SparseRecords`. Job j runs the tasks
    `order[jobs[j]:jobs[j + 1]]` and gets `rows[offsets[j]:offsets[j + 1]]`, where `offsets[0]` is 0. `place` has the
    position of each recorded table among those to be listed, −1 for others; `last` (tables to be listed, rows), the
    last job that touches each row, is initially all −1.
    """
    end = 0
    for job in range(len(jobs) - 1):
        begin = end
        for position in range(jobs[job], jobs[job + 1]):
            task = order[position]
            for access in range(starts[task], starts[task + 1]):
                table, row = place[tags[access] >> 1], touched[access]
                if table >= 0 and last[table, row] != job:
                    last[table, row] = job
                    if table == 0:
                        rows[end] = row
                        end += 1
        kept = begin
        for entry in range(begin, end):
            in_all = True
            for table in range(1, len(last)):
                in_all &= last[table, rows[entry]] == job
            if in_all:
                rows[kept] = rows[entry]
                kept += 1
        end = kept
        offsets[job + 1] = end


@njit(nogil=True, cache=True)
def _fill(
    rows: NDArray[np.int64],
    offsets: NDArray[np.int64],
    weights: NDArray[np.float64],
    share: NDArray[np.float64],
    other: NDArray[np.int64],
) -> int:
    """Fill the alias tables of pools; returns how many pools have no weight.

    Pool p has the rows `rows[offsets[p]:offsets[p + 1]]`. `weights` are by row of the table, `share` and `other` by
    entry of `rows`, see `Pools`; for a pool whose weights are all 0 these two are left as they are.
    """
    weightless = 0
    for pool in range(len(offsets) - 1):
        first, last = offsets[pool], offsets[pool + 1]
        own = np.empty(last - first)
        total = 0.0
        for entry in range(first, last):
            own[entry - first] = weights[rows[entry]]
            total += own[entry - first]
        if total > 0:
            fill_aliases(own * (len(own) / total), share[first:last], other[first:last])
        elif len(own) > 0:
            weightless += 1
    return weightless
