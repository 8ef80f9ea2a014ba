"""The touches of tasks in a single form that kernels read, whether the records are uniform or sparse."""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.schedule.kernels.parallel import Parallel, chunk_bounds, index_dtype


class Touches(NamedTuple):
    """Rows that tasks touch, numbered across all tables; −1 for accesses that cannot conflict."""

    rows: NDArray[np.integer]  # (accesses,)
    offsets: NDArray[np.int64]  # (tasks + 1,) for sparse records, else empty
    arity: int  # accesses per task for uniform records, else −1


@njit(nogil=True, cache=True)
def span(touches: Touches, task: int) -> tuple[int, int]:
    """First access of a task, and first access of the next task."""
    if touches.arity >= 0:
        return task * touches.arity, (task + 1) * touches.arity
    return touches.offsets[task], touches.offsets[task + 1]


@njit(nogil=True, cache=True)
def is_write(touches: Touches, flags: NDArray[np.uint8], first: int, access: int) -> bool:
    """Whether an access of a task writes, given `WrittenRows.write_flags` and the task's first access."""
    return flags[access - first if touches.arity >= 0 else access] & 1 != 0


@njit(nogil=True, cache=True)
def _number_columns(
    rows: NDArray[np.integer],
    arity: int,
    columns: NDArray[np.int64],
    base: NDArray[np.int64],
    written: NDArray[np.uint8],
    begin: int,
    end: int,
    numbered: NDArray[np.integer],
) -> None:
    """Write the row numbers of the tasks begin..end - 1 into `numbered`; −1 for rows that no task writes.

    `rows`, `arity`, `columns`, `base` and `written` are as in `uniform_touches`; `numbered` is (tasks · columns,).
    """
    width = len(columns)
    for task in range(begin, end):
        for position in range(width):
            column = columns[position]
            row = base[column] + rows[task * arity + column]
            kept = len(written) == 0 or written[row] != 0
            numbered[task * width + position] = row if kept else -1


@njit(nogil=True, cache=True)
def _number_tagged(
    rows: NDArray[np.integer],
    tags: NDArray[np.uint8],
    base: NDArray[np.int64],
    written: NDArray[np.uint8],
    begin: int,
    end: int,
    numbered: NDArray[np.integer],
) -> None:
    """The same for the accesses begin..end - 1 of sparse records.

    `rows`, `tags` and `numbered` are (accesses,); `base` and `written` are as in `sparse_touches`.
    """
    for access in range(begin, end):
        first = base[tags[access]]
        row = first + rows[access]
        kept = first >= 0 and (tags[access] & 1 != 0 or len(written) == 0 or written[row] != 0)
        numbered[access] = row if kept else -1


def uniform_touches(
    rows: NDArray[np.integer],
    arity: int,
    columns: tuple[int, ...],
    base: NDArray[np.int64],
    written: NDArray[np.uint8],
    rows_of_tables: int,
    threads: int,
    parallel: Parallel,
) -> Touches:
    """Touches of the chosen columns; `rows` itself if it is already numbered across all tables.

    Parameters
    ----------
    rows : (tasks · arity,)
        Row that each access touches, within its table.
    arity
        Accesses per task.
    columns
        Accesses that can conflict.
    base : (arity,)
        Number of the first row of each column's table.
    written : (all rows,) or empty
        1 for rows that some task writes; empty if all touched rows are written.
    rows_of_tables
        Total number of rows.
    threads, parallel
        How the pass is parallelized.
    """
    dtype, none = index_dtype(rows_of_tables), np.empty(0, np.int64)
    if columns == tuple(range(arity)) and not base.any() and len(written) == 0 and rows.dtype == dtype:
        return Touches(rows, none, arity)
    tasks = len(rows) // arity if arity else 0
    numbered = np.empty(tasks * len(columns), dtype)
    chosen = np.array(columns, np.int64)
    bounds = chunk_bounds(tasks, threads)
    parallel(
        lambda c: _number_columns(rows, arity, chosen, base, written, bounds[c], bounds[c + 1], numbered),
        len(bounds) - 1,
    )
    return Touches(numbered, none, len(columns))


def sparse_touches(
    rows: NDArray[np.integer],
    tags: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    base: NDArray[np.int64],
    written: NDArray[np.uint8],
    rows_of_tables: int,
    threads: int,
    parallel: Parallel,
) -> Touches:
    """Touches of sparse records, given their `rows`, `tags` and `offsets`.

    `base` has an entry for each tag, −1 for tables that no task writes; `written` and the other parameters are as for
    `uniform_touches`.
    """
    dtype = index_dtype(rows_of_tables)
    if not base.any() and len(written) == 0 and rows.dtype == dtype:
        return Touches(rows, offsets, -1)
    numbered = np.empty(len(rows), dtype)
    bounds = chunk_bounds(len(rows), threads)
    parallel(
        lambda c: _number_tagged(rows, tags, base, written, bounds[c], bounds[c + 1], numbered),
        len(bounds) - 1,
    )
    return Touches(numbered, offsets, -1)
