"""Which accesses can conflict: those to rows that some task writes (thesis §7.2.4)."""

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.partition import offsets_of
from strads.schedule.kernels.parallel import Parallel
from strads.schedule.records.access import AccessRecords, SparseRecords, TableShape, UniformRecords
from strads.schedule.records.touches import Touches, sparse_touches, uniform_touches


@dataclass(frozen=True)
class WrittenRows:
    """Accesses that can conflict, and how rows are numbered: row r of table t is `first_row[t] + r`."""

    rows: NDArray[np.integer]  # (accesses,): rows within their tables, as recorded; int32 or int64
    tags: NDArray[np.uint8]  # (accesses,) for sparse records, else empty
    offsets: NDArray[np.int64]  # (tasks + 1,) for sparse records, else empty
    arity: int  # recorded accesses per task for uniform records, else −1
    first_row: NDArray[np.int64]  # (tables + 1,): tables that no task writes have no rows here
    base: NDArray[np.int64]  # number of the first row of a column's or tag's table; −1 if no task writes it
    written: NDArray[np.uint8]  # (all rows,): 1 for rows that some task writes; empty if all touched rows are written
    columns: tuple[int, ...] | None  # uniform records: columns that can conflict, duplicates merged
    column_writes: tuple[bool, ...]  # whether each of the columns writes
    writes: int  # number of accesses that write

    def write_flags(self) -> NDArray[np.uint8]:
        """Return flags whose lowest bit says whether each column, or each access of sparse records, writes."""
        return self.tags if self.columns is None else np.array(self.column_writes, np.uint8)

    def touches(self, threads: int, parallel: Parallel) -> Touches:
        """Return the accesses that can conflict, in the form that kernels read."""
        rows = int(self.first_row[-1])
        if self.columns is None:
            return sparse_touches(self.rows, self.tags, self.offsets, self.base, self.written, rows, threads, parallel)
        return uniform_touches(self.rows, self.arity, self.columns, self.base, self.written, rows, threads, parallel)


@njit(nogil=True, cache=True)
def columns_equal(rows: NDArray[np.integer], arity: int, first: int, second: int) -> bool:
    """Whether two accesses of every task have the same row number."""
    for start in range(0, len(rows), arity):  # noqa: SIM110 - Numba compiles no generator expressions
        if rows[start + first] != rows[start + second]:
            return False
    return True


@njit(nogil=True, cache=True)
def _mark_column(rows: NDArray[np.integer], arity: int, column: int, first: int, written: NDArray[np.uint8]) -> None:
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
    """Set `written` to 1 for the rows of all writing accesses; `base` has the first row number of each tag."""
    for access in range(len(rows)):
        tag = tags[access]
        if tag & 1:
            written[base[tag] + rows[access]] = 1


def find_written_rows(records: AccessRecords) -> WrittenRows:
    """Drop the accesses to rows that no task writes; merge columns that always touch the same row."""
    return _uniform(records) if isinstance(records, UniformRecords) else _sparse(records)


def _plain(rows: NDArray[np.integer]) -> NDArray[np.integer]:
    """Flat, contiguous, int32 or int64: every other type would make Numba compile all kernels again."""
    if rows.dtype not in (np.dtype(np.int32), np.dtype(np.int64)):
        rows = rows.astype(np.int64)
    return np.ascontiguousarray(rows).reshape(-1)


def _numbering(tables: tuple[TableShape, ...], used: set[int]) -> NDArray[np.int64]:
    return offsets_of([table.rows if t in used else 0 for t, table in enumerate(tables)])


def _uniform(records: UniformRecords) -> WrittenRows:
    rows, table_of = _plain(records.rows), records.access_tables
    used = {t for t, writes in zip(table_of, records.access_writes, strict=True) if writes}
    first_row = _numbering(records.tables, used)
    base = np.array([first_row[t] if t in used else -1 for t in table_of], np.int64)
    columns, writes = _merge_duplicates(records, rows, [c for c, t in enumerate(table_of) if t in used])
    columns, written = _drop_unwritten(rows, columns, writes, base, int(first_row[-1]))
    none = np.empty(0, np.int64)
    tags = np.empty(0, np.uint8)
    kinds = tuple(writes[column] for column in columns)
    return WrittenRows(
        rows, tags, none, len(table_of), first_row, base, written, tuple(columns), kinds, sum(kinds) * records.tasks
    )


def _merge_duplicates(
    records: UniformRecords, rows: NDArray[np.integer], columns: list[int]
) -> tuple[list[int], dict[int, bool]]:
    """Keep the first of the columns that always refer to the same row of a table; it writes if any of them does."""
    kept: list[int] = []
    writes: dict[int, bool] = {}
    for column in columns:
        for other in kept:
            same_table = records.access_tables[other] == records.access_tables[column]
            if same_table and columns_equal(rows, len(records.access_tables), other, column):
                writes[other] |= records.access_writes[column]
                break
        else:
            kept.append(column)
            writes[column] = records.access_writes[column]
    return kept, writes


def _drop_unwritten(
    rows: NDArray[np.integer],
    columns: list[int],
    writes: dict[int, bool],
    base: NDArray[np.int64],
    rows_of_tables: int,
) -> tuple[list[int], NDArray[np.uint8]]:
    """Drop columns that touch no written row; the mask of written rows is empty if no column needs it."""
    if all(writes.values()):
        return columns, np.empty(0, np.uint8)
    arity = len(base)
    written = np.zeros(rows_of_tables, np.uint8)
    for column in columns:
        if writes[column]:
            _mark_column(rows, arity, column, base[column], written)
    left = [c for c in columns if writes[c] or _column_touches_written(rows, arity, c, base[c], written)]
    needed = not all(writes[c] for c in left)
    return left, written if needed else np.empty(0, np.uint8)


def _sparse(records: SparseRecords) -> WrittenRows:
    rows = _plain(records.rows)
    tags = np.ascontiguousarray(records.tags, dtype=np.uint8)
    offsets = np.ascontiguousarray(records.offsets, dtype=np.int64)
    counts = _tag_counts(tags)
    used = {t for t in range(len(records.tables)) if counts[2 * t + 1] > 0}
    first_row = _numbering(records.tables, used)
    tables = [t for t in range(len(records.tables)) for _ in range(2)]
    base = np.array([first_row[t] if t in used else -1 for t in tables], np.int64)
    written = np.empty(0, np.uint8)
    if any(counts[2 * t] > 0 for t in used):
        written = np.zeros(int(first_row[-1]), np.uint8)
        _mark_written(rows, tags, base, written)
    writes = int(counts[1::2].sum())
    return WrittenRows(rows, tags, offsets, -1, first_row, base, written, None, (), writes)
