"""Rejects inconsistent records; kernels rely on these checks and do not repeat them."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.errors import PlanError
from strads.schedule.kernels.parallel import TILE, Parallel, chunk_bounds
from strads.schedule.records.access import SparseRecords, TableShape, UniformRecords


@njit(nogil=True, cache=True)
def _columns_outside(
    rows: NDArray[np.unsignedinteger], arity: int, limit: NDArray[np.unsignedinteger], begin: int, end: int
) -> bool:
    """Whether a row of tasks begin..end is outside its column's table; no early exit, so that it vectorizes.

    Rows and limits are unsigned, so a negative row appears as a very large one.
    """
    outside = False
    for tile in range(begin, end, TILE):
        last = min(tile + TILE, end)
        for column in range(arity):
            highest = limit[column]
            for task in range(tile, last):
                outside |= rows[task * arity + column] >= highest
    return outside


@njit(nogil=True, cache=True)
def _tagged_outside(
    rows: NDArray[np.unsignedinteger],
    tags: NDArray[np.uint8],
    limit: NDArray[np.unsignedinteger],
    begin: int,
    end: int,
) -> bool:
    outside = False
    for access in range(begin, end):
        outside |= rows[access] >= limit[tags[access]]
    return outside


def check_uniform(records: UniformRecords, rows: NDArray[np.integer], threads: int, parallel: Parallel) -> None:
    """Check the shape of uniform records and the bounds of their rows (flat, contiguous).

    Raises
    ------
    PlanError
        If columns and accesses differ in number, or a row is outside its table.
    """
    arity = len(records.access_tables)
    if records.rows.ndim != 2 or records.rows.shape[1] != arity or len(records.access_writes) != arity:
        raise PlanError(
            f"the records name {arity} accesses a task, but rows have the shape {records.rows.shape}: "
            "give one column an access"
        )
    unsigned, limit = _unsigned(rows, [records.tables[t] for t in records.access_tables])
    bounds = chunk_bounds(records.tasks, threads)
    outside = np.zeros(len(bounds) - 1, bool)

    def check(chunk: int) -> None:
        outside[chunk] = _columns_outside(unsigned, arity, limit, bounds[chunk], bounds[chunk + 1])

    parallel(check, len(outside))
    if np.any(outside):
        access = int(np.flatnonzero(rows.reshape(-1, arity).view(unsigned.dtype) >= limit)[0])
        task, column = divmod(access, arity)
        raise _outside(task, int(rows[access]), records.tables[records.access_tables[column]])


def check_sparse(records: SparseRecords, rows: NDArray[np.integer], threads: int, parallel: Parallel) -> None:
    """Check offsets, tags and rows (contiguous) of sparse records.

    Raises
    ------
    PlanError
        If offsets do not increase from 0 to the number of accesses, a tag refers to no table, or a row is outside
        its table.
    """
    offsets, tags = records.offsets, records.tags
    fits = len(offsets) > 0 and offsets[0] == 0 and offsets[-1] == len(rows) == len(tags)
    if not fits or np.any(offsets[1:] < offsets[:-1]):
        raise PlanError(
            f"offsets must increase from 0 to the number of accesses ({len(rows)} rows, {len(tags)} tags): "
            "the accesses of task t are offsets[t]:offsets[t + 1]"
        )
    if int(tags.max(initial=0)) >= max(2 * len(records.tables), 1):
        raise PlanError(f"a tag names a table beyond the {len(records.tables)} of the records: tag = 2 * table + write")
    unsigned, limit = _unsigned(rows, [table for table in records.tables for _ in range(2)])
    bounds = chunk_bounds(len(rows), threads)
    outside = np.zeros(len(bounds) - 1, bool)

    def check(chunk: int) -> None:
        outside[chunk] = _tagged_outside(unsigned, tags, limit, bounds[chunk], bounds[chunk + 1])

    parallel(check, len(outside))
    if np.any(outside):
        access = int(np.flatnonzero(unsigned >= limit[tags])[0])
        task = int(np.searchsorted(offsets, access, side="right")) - 1
        raise _outside(task, int(rows[access]), records.tables[int(tags[access]) // 2])


def _unsigned(
    rows: NDArray[np.integer], tables: list[TableShape]
) -> tuple[NDArray[np.unsignedinteger], NDArray[np.unsignedinteger]]:
    """Rows as unsigned numbers, and the number of rows of each table in the same type."""
    unsigned = rows.view(f"u{rows.itemsize}")
    most = int(np.iinfo(rows.dtype).max)
    return unsigned, np.array([min(table.rows, most) for table in tables], unsigned.dtype)


def _outside(task: int, row: int, table: TableShape) -> PlanError:
    return PlanError(f"task {task} touches row {row} of table '{table.name}', which has {table.rows} rows")
