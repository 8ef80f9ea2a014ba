"""Which accesses can conflict: those of rows that some task writes (thesis §7.2.4)."""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.errors import PlanError
from strads.schedule.access import AccessRecords, SparseRecords, TableShape, UniformRecords
from strads.schedule.parallel import TILE, Parallel, chunk_bounds


class Touches(NamedTuple):
    """Accesses in the one form that kernels read, whether the records are uniform or sparse.

    Rows are numbered through all tables: row r of table t is `first_row[t] + r`.
    """

    rows: NDArray[np.integer]  # (accesses,) rows within their tables
    tags: NDArray[np.uint8]  # (accesses,) of sparse records, else empty
    offsets: NDArray[np.int64]  # (tasks + 1,) of sparse records, else empty
    arity: int  # accesses of every task of uniform records, else -1
    base: NDArray[
        np.int64
    ]  # first row of the table of a column (uniform) or tag (sparse); -1: cannot conflict
    written: NDArray[
        np.uint8
    ]  # (all rows,) 1 where some task writes; empty when every row that is left is written


class WrittenRows(NamedTuple):
    """The touches that can conflict, and how the rows of the written tables are numbered."""

    touches: Touches
    first_row: NDArray[np.int64]  # (tables + 1,): tables that no task writes have no rows here
    columns: tuple[int, ...] | None  # uniform records: the columns that are left, duplicates merged


@njit(nogil=True, cache=True)
def span(touches: Touches, task: int) -> tuple[int, int]:
    """First access of a task, and the first of the next."""
    if touches.arity >= 0:
        return task * touches.arity, (task + 1) * touches.arity
    return touches.offsets[task], touches.offsets[task + 1]


@njit(nogil=True, cache=True)
def touched_row(touches: Touches, access: int, begin: int) -> int:
    """Row that an access touches, −1 when it cannot conflict; `begin` is its task's first access."""
    first = touches.base[access - begin] if touches.arity >= 0 else touches.base[touches.tags[access]]
    if first < 0:
        return -1
    row = first + touches.rows[access]
    if len(touches.written) > 0 and touches.written[row] == 0:
        return -1
    return row


@njit(nogil=True, cache=True)
def _first_out_of_bounds(touches: Touches, limit: NDArray[np.int64], begin: int, end: int) -> int:
    """First access of tasks begin..end whose row is outside its table, or −1."""
    for task in range(begin, end):
        first, last = span(touches, task)
        for access in range(first, last):
            kind = access - first if touches.arity >= 0 else int(touches.tags[access])
            row = touches.rows[access]
            if row < 0 or row >= limit[kind]:
                return access
    return -1


@njit(nogil=True, cache=True)
def _columns_out_of_bounds(
    rows: NDArray[np.unsignedinteger], arity: int, limit: NDArray[np.unsignedinteger], begin: int, end: int
) -> bool:
    """Whether a row of tasks begin..end is outside its column's table; no early exit, so that it vectorizes.

    Rows and limits come as unsigned numbers: a negative row is a very large one.
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
def _columns_equal(rows: NDArray[np.integer], arity: int, first: int, second: int) -> bool:
    for start in range(0, len(rows), arity):  # noqa: SIM110 - Numba compiles no generator expressions
        if rows[start + first] != rows[start + second]:
            return False
    return True


@njit(nogil=True, cache=True)
def _mark_column(
    rows: NDArray[np.integer], arity: int, column: int, first: int, written: NDArray[np.uint8]
) -> None:
    for access in range(column, len(rows), arity):
        written[first + rows[access]] = 1


@njit(nogil=True, cache=True)
def _column_touches_written(
    rows: NDArray[np.integer], arity: int, column: int, first: int, written: NDArray[np.uint8]
) -> bool:
    for access in range(column, len(rows), arity):  # noqa: SIM110 - Numba compiles no generator expressions
        if written[first + rows[access]] != 0:
            return True
    return False


@njit(nogil=True, cache=True)
def _tag_counts(tags: NDArray[np.uint8]) -> NDArray[np.int64]:
    counts = np.zeros(256, np.int64)
    for tag in tags:
        counts[tag] += 1
    return counts


@njit(nogil=True, cache=True)
def _mark_written(
    rows: NDArray[np.integer], tags: NDArray[np.uint8], base: NDArray[np.int64], written: NDArray[np.uint8]
) -> None:
    for access in range(len(rows)):
        tag = tags[access]
        if tag & 1:
            written[base[tag] + rows[access]] = 1


def find_written_rows(records: AccessRecords, threads: int, parallel: Parallel) -> WrittenRows:
    """Drop the accesses of rows that no task writes; merge columns that always touch the same row.

    Parameters
    ----------
    records
        What each task touches.
    threads
        How many chunks the check of the bounds may be cut into.
    parallel
        Runs chunks.

    Returns
    -------
    WrittenRows
        The accesses that are left, and the numbering of rows through all written tables.

    Raises
    ------
    PlanError
        If the records contradict themselves: a row outside its table, offsets that do not fit.
    """
    if isinstance(records, UniformRecords):
        return _uniform(records, threads, parallel)
    return _sparse(records, threads, parallel)


def _plain(rows: NDArray[np.integer]) -> NDArray[np.integer]:
    """Flat, contiguous, int32 or int64: every other type would make Numba compile all kernels again."""
    if rows.dtype not in (np.dtype(np.int32), np.dtype(np.int64)):
        rows = rows.astype(np.int64)
    return np.ascontiguousarray(rows).reshape(-1)


def _numbering(tables: tuple[TableShape, ...], used: set[int]) -> NDArray[np.int64]:
    sizes = [table.rows if t in used else 0 for t, table in enumerate(tables)]
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)


def _uniform(records: UniformRecords, threads: int, parallel: Parallel) -> WrittenRows:
    arity = len(records.access_tables)
    if records.rows.ndim != 2 or records.rows.shape[1] != arity or len(records.access_writes) != arity:
        raise PlanError(
            f"the records name {arity} accesses a task, but rows have the shape {records.rows.shape}: "
            "give one column an access"
        )
    rows, table_of = _plain(records.rows), records.access_tables
    used = {t for t, writes in zip(table_of, records.access_writes, strict=True) if writes}
    first_row = _numbering(records.tables, used)
    base = np.array([first_row[t] if t in used else -1 for t in table_of], np.int64)
    empty = np.empty(0, np.uint8)
    touches = Touches(rows, empty, np.empty(0, np.int64), arity, base, empty)
    limit = np.array([records.tables[t].rows for t in table_of], np.int64)
    _check_bounds(records, touches, limit, threads, parallel)
    columns, writes = _merge_duplicates(records, rows, [c for c in range(arity) if table_of[c] in used])
    columns, written = _drop_unwritten(records, rows, columns, writes, first_row)
    base[[c for c in range(arity) if c not in columns]] = -1
    return WrittenRows(touches._replace(written=written), first_row, tuple(columns))


def _merge_duplicates(
    records: UniformRecords, rows: NDArray[np.integer], columns: list[int]
) -> tuple[list[int], dict[int, bool]]:
    """Keep the first of columns that always name the same row of a table; it writes if any of them does."""
    kept: list[int] = []
    writes: dict[int, bool] = {}
    for column in columns:
        for other in kept:
            same_table = records.access_tables[other] == records.access_tables[column]
            if same_table and _columns_equal(rows, len(records.access_tables), other, column):
                writes[other] |= records.access_writes[column]
                break
        else:
            kept.append(column)
            writes[column] = records.access_writes[column]
    return kept, writes


def _drop_unwritten(
    records: UniformRecords,
    rows: NDArray[np.integer],
    columns: list[int],
    writes: dict[int, bool],
    first_row: NDArray[np.int64],
) -> tuple[list[int], NDArray[np.uint8]]:
    """Drop columns that touch no written row; the mask of written rows is empty when no column needs it."""
    if all(writes.values()):
        return columns, np.empty(0, np.uint8)
    arity = len(records.access_tables)
    written = np.zeros(int(first_row[-1]), np.uint8)
    for column in columns:
        if writes[column]:
            _mark_column(rows, arity, column, first_row[records.access_tables[column]], written)
    left = [
        c
        for c in columns
        if writes[c] or _column_touches_written(rows, arity, c, first_row[records.access_tables[c]], written)
    ]
    needed = not all(writes[c] for c in left)
    return left, written if needed else np.empty(0, np.uint8)


def _sparse(records: SparseRecords, threads: int, parallel: Parallel) -> WrittenRows:
    rows = _plain(records.rows)
    tags = np.ascontiguousarray(records.tags, dtype=np.uint8)
    offsets = np.ascontiguousarray(records.offsets, dtype=np.int64)
    fits = len(offsets) > 0 and offsets[0] == 0 and offsets[-1] == len(rows) == len(tags)
    if not fits or np.any(offsets[1:] < offsets[:-1]):
        raise PlanError(
            f"offsets must rise from 0 to the number of accesses ({len(rows)} rows, {len(tags)} tags): "
            "the accesses of task t are offsets[t]:offsets[t + 1]"
        )
    counts = _tag_counts(tags)
    if np.any(counts[2 * len(records.tables) :]):
        raise PlanError(
            f"a tag names a table beyond the {len(records.tables)} of the records: tag = 2 * table + write"
        )
    used = {t for t in range(len(records.tables)) if counts[2 * t + 1] > 0}
    first_row = _numbering(records.tables, used)
    base = np.full(256, -1, np.int64)
    limit = np.zeros(256, np.int64)
    for t, table in enumerate(records.tables):
        limit[2 * t : 2 * t + 2] = table.rows
        if t in used:
            base[2 * t : 2 * t + 2] = first_row[t]
    touches = Touches(rows, tags, offsets, -1, base, np.empty(0, np.uint8))
    _check_bounds(records, touches, limit, threads, parallel)
    if any(counts[2 * t] > 0 for t in used):
        written = np.zeros(int(first_row[-1]), np.uint8)
        _mark_written(rows, tags, base, written)
        touches = touches._replace(written=written)
    return WrittenRows(touches, first_row, None)


def _check_bounds(
    records: AccessRecords, touches: Touches, limit: NDArray[np.int64], threads: int, parallel: Parallel
) -> None:
    """Refuse rows outside their tables: kernels do not check again."""
    bounds = chunk_bounds(records.tasks, threads)
    suspects = np.zeros(len(bounds) - 1, np.int64)
    unsigned = touches.rows.view(f"u{touches.rows.itemsize}")
    ceiling = np.minimum(limit, np.iinfo(touches.rows.dtype).max).astype(unsigned.dtype)

    def check(chunk: int) -> None:
        begin, end = bounds[chunk], bounds[chunk + 1]
        if touches.arity >= 0 and not _columns_out_of_bounds(unsigned, touches.arity, ceiling, begin, end):
            suspects[chunk] = -1
        else:
            suspects[chunk] = _first_out_of_bounds(touches, limit, begin, end)

    parallel(check, len(suspects))
    if np.all(suspects < 0):
        return
    access = int(suspects[suspects >= 0][0])
    if isinstance(records, UniformRecords):
        task, column = divmod(access, touches.arity)
        table = records.tables[records.access_tables[column]]
    else:
        task = int(np.searchsorted(touches.offsets, access, side="right")) - 1
        table = records.tables[int(touches.tags[access]) // 2]
    raise PlanError(
        f"task {task} touches row {int(touches.rows[access])} of table '{table.name}', "
        f"which has {table.rows} rows"
    )
