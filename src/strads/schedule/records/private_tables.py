"""Tables of which no two tasks touch the same row, such as one result for each task: they cause no conflicts."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.partition import offsets_of
from strads.schedule.records.access import AccessRecords, UniformRecords
from strads.schedule.records.written_rows import WrittenRows


def without_private_tables(found: WrittenRows, records: AccessRecords) -> WrittenRows:
    """Drop the accesses to tables of which every task touches rows beyond, or below, those of the tasks before it.

    Anything else would be found only with a pass over the rows of each table, which may be many more than the tasks.

    Parameters
    ----------
    found
        The accesses that can conflict by what the tasks write.
    records
        The rows that each task touches, from which these were found.
    """
    tables = len(records.tables)
    if isinstance(records, UniformRecords):
        private, table_of = _of_columns(found, records.access_tables), records.access_tables
    else:
        shared = np.zeros(tables, np.bool_)
        _mark_shared(found.rows, found.tags, found.offsets, shared)
        private = {t for t in range(tables) if _rows(found, t) > 0 and not shared[t]}
        table_of = tuple(t for t in range(tables) for _ in range(2))
    return _without(found, private, table_of) if private else found


def _rows(found: WrittenRows, table: int) -> int:
    return int(found.first_row[table + 1] - found.first_row[table])


def _of_columns(found: WrittenRows, table_of: tuple[int, ...]) -> set[int]:
    tables = [table_of[column] for column in found.columns or ()]
    of_one = {t: c for t, c in zip(tables, found.columns or (), strict=True) if tables.count(t) == 1}
    return {t for t, column in of_one.items() if _is_monotone(found.rows, found.arity, column)}


def _without(found: WrittenRows, private: set[int], table_of: tuple[int, ...]) -> WrittenRows:
    sizes = [0 if table in private else _rows(found, table) for table in range(len(found.first_row) - 1)]
    first_row = offsets_of(sizes)
    base = np.array(
        [-1 if t in private or found.base[i] < 0 else first_row[t] for i, t in enumerate(table_of)], np.int64
    )
    written = found.written
    if len(written) > 0:
        kept = [written[a:b] for t, (a, b) in enumerate(pairwise(found.first_row.tolist())) if t not in private]
        written = np.concatenate([written[:0], *kept])
    smaller = replace(found, first_row=first_row, base=base, written=written)
    if found.columns is None:
        writes = int(np.count_nonzero((found.tags & 1 != 0) & (base[found.tags] >= 0)))
        return replace(smaller, writes=writes)
    pairs = zip(found.columns, found.column_writes, strict=True)
    kinds = {column: writes for column, writes in pairs if table_of[column] not in private}
    tasks = len(found.rows) // found.arity
    return replace(
        smaller, columns=tuple(kinds), column_writes=tuple(kinds.values()), writes=sum(kinds.values()) * tasks
    )


@njit(nogil=True, cache=True)
def _is_monotone(rows: NDArray[np.integer], arity: int, column: int) -> bool:
    """Whether the rows of a column strictly rise, or strictly fall, from task to task."""
    tasks = len(rows) // arity
    if tasks < 2:
        return True
    rises = rows[arity + column] > rows[column]
    for task in range(1, tasks):
        row, before = rows[task * arity + column], rows[(task - 1) * arity + column]
        if row == before or (row > before) != rises:
            return False
    return True


@njit(nogil=True, cache=True)
def _mark_shared(
    rows: NDArray[np.integer], tags: NDArray[np.uint8], offsets: NDArray[np.int64], shared: NDArray[np.bool_]
) -> None:
    """Set `shared` (tables,) for tables of which the rows of tasks neither rise nor fall; stops when all are set.

    The rows of a task rise if all of them are larger than those of every task before it.
    """
    tables = len(shared)
    highest, lowest = np.full(tables, -1, np.int64), np.full(tables, np.iinfo(np.int64).max, np.int64)
    top, bottom = highest.copy(), lowest.copy()  # of the tasks before
    may_rise, may_fall = np.ones(tables, np.bool_), np.ones(tables, np.bool_)
    left = tables
    for task in range(len(offsets) - 1):
        first, last = offsets[task], offsets[task + 1]
        for access in range(first, last):
            table, row = tags[access] >> 1, np.int64(rows[access])
            if shared[table]:
                continue
            may_rise[table] &= row > top[table]
            may_fall[table] &= row < bottom[table]
            highest[table], lowest[table] = max(highest[table], row), min(lowest[table], row)
            if not (may_rise[table] or may_fall[table]):
                shared[table] = True
                left -= 1
                if left == 0:
                    return
        for access in range(first, last):
            table = tags[access] >> 1
            top[table], bottom[table] = highest[table], lowest[table]
