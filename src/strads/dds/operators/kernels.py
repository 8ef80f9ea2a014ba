"""Compiled loops over rows, around a user's compiled function."""

from typing import Any

import numpy as np
from numba import njit, types
from numba.core.dispatcher import Dispatcher
from numba.np.numpy_support import as_dtype
from numpy.typing import NDArray

from strads.dds._selection import read_only
from strads.dds._storage import Storage
from strads.dds.ragged import RaggedArray

Table = NDArray[Any] | tuple[NDArray[Any], NDArray[np.int64]]


def table_of(rows: Storage, *, writes: bool = False) -> Table:
    """Return rows in the form that kernels take; read-only unless `writes`."""
    if isinstance(rows, RaggedArray):
        return (rows.values if writes else read_only(rows.values)), rows.offsets
    return rows if writes else read_only(rows)


@njit(nogil=True)
def _dense_row(table, row):  # type: ignore[no-untyped-def]
    return table[row]


@njit(nogil=True)
def _ragged_row(table, row):  # type: ignore[no-untyped-def]
    return table[0][table[1][row] : table[1][row + 1]]


def row_reader(is_ragged: bool) -> Dispatcher:
    """Return the compiled function `row(table, number)`."""
    return _ragged_row if is_ragged else _dense_row


@njit(nogil=True)
def _put_nothing(columns, row, values):  # type: ignore[no-untyped-def]
    pass


@njit(nogil=True)
def _put_number(columns, row, value):  # type: ignore[no-untyped-def]
    columns[0][row] = value


def _put_tuple(count: int, place: int = 0) -> Dispatcher:
    """Make a function that writes each element of a tuple to its column; unrolled, as types may differ."""
    if place == count:
        return _put_nothing
    put_rest = _put_tuple(count, place + 1)

    @njit(nogil=True)
    def put(columns, row, values):  # type: ignore[no-untyped-def]
        columns[place][row] = values[place]
        put_rest(columns, row, values)

    return put


def number_dtypes(result: Any) -> list[np.dtype[Any]] | None:
    """Return the dtypes of a number, or of a tuple of numbers; None for other types."""
    elements = list(result) if isinstance(result, types.BaseTuple) else [result]
    kinds = [types.unliteral(element) for element in elements]
    if not kinds or not all(isinstance(kind, types.Number | types.Boolean) for kind in kinds):
        return None
    return [as_dtype(kind) for kind in kinds]


def map_kernel(function: Dispatcher, result: Any, is_ragged: bool) -> Dispatcher:
    """Make a kernel that writes `function(row)` for rows `first..last - 1` to columns, one per number."""
    read_row = row_reader(is_ragged)
    put = _put_tuple(len(result)) if isinstance(result, types.BaseTuple) else _put_number

    # `table` is what `table_of` returns for a node's rows, of which `first..last - 1` are processed; `args` are the
    # function's arguments after the row; `columns` are arrays of shape (rows,), one for each number of a result.
    @njit(nogil=True)
    def kernel(table, first, last, args, columns):  # type: ignore[no-untyped-def]
        for row in range(first, last):
            put(columns, row, function(read_row(table, row), *args))

    return kernel


def sequence_kernel(function: Dispatcher, dtype: np.dtype[Any], is_ragged: bool) -> Dispatcher:
    """Make a kernel that returns the concatenated arrays of some rows, and writes their lengths."""
    read_row = row_reader(is_ragged)

    # `table`, `first`, `last` and `args` as in `map_kernel`; `columns` holds the array of lengths, int64 (rows,).
    @njit(nogil=True)
    def kernel(table, first, last, args, columns):  # type: ignore[no-untyped-def]
        values = np.empty(max(16, last - first), dtype)
        end = 0
        for row in range(first, last):
            found = function(read_row(table, row), *args)
            if end + len(found) > len(values):
                longer = np.empty(max(end + len(found), 2 * len(values)), dtype)
                longer[:end] = values[:end]
                values = longer
            for k in range(len(found)):
                values[end + k] = found[k]
            end += len(found)
            columns[0][row] = len(found)
        return values[:end]

    return kernel


def transform_kernel(function: Dispatcher, result: Any, is_ragged: bool, fields: int) -> Dispatcher:
    """Make a kernel that replaces rows by the function's results, if it returns any.

    Its argument `at`, an int64 array of shape (1,), gets the number of the current row.
    """
    read_row = row_reader(is_ragged)
    if isinstance(result, types.Array):

        @njit(nogil=True)
        def copy_arrays(table, first, last, args, columns, at):  # type: ignore[no-untyped-def]
            # `table`, `first`, `last` and `args` as in `map_kernel`; `columns` is empty: arrays are copied to `table`.
            for row in range(first, last):
                at[0] = row
                target = read_row(table, row)
                value = function(target, *args)
                if len(value) != len(target):
                    raise ValueError("the function returned an array of another length than the row")
                target[:] = value

        return copy_arrays
    if isinstance(result, types.BaseTuple):
        put = _put_tuple(fields)
    else:
        put = _put_nothing if isinstance(result, types.NoneType) else _put_number

    # `table`, `first`, `last` and `args` as in `map_kernel`; `columns` are the columns or fields of these rows.
    @njit(nogil=True)
    def kernel(table, first, last, args, columns, at):  # type: ignore[no-untyped-def]
        for row in range(first, last):
            at[0] = row
            put(columns, row, function(read_row(table, row), *args))

    return kernel


@njit(nogil=True)
def _copied_row(table, row):  # type: ignore[no-untyped-def]
    return table[row].copy()


def reduce_kernel(function: Dispatcher, copies: bool) -> Dispatcher:
    """Make a kernel that combines rows `first..last - 1` from left to right."""
    first_row = _copied_row if copies else _dense_row

    @njit(nogil=True)
    def kernel(table, first, last):  # type: ignore[no-untyped-def]
        total = first_row(table, first)
        for row in range(first + 1, last):
            total = function(total, table[row])
        return total

    return kernel
