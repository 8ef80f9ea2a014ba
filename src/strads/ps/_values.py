"""Check row numbers and values, and convert them to the form that tables store."""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray
from scipy import sparse as scipy_sparse

from strads.dds.integers import check_integers_fit
from strads.engine.ps.messages import Result, Values
from strads.engine.ps.sparse_rows import SparseResult, SparseValues
from strads.engine.ps.table_format import TableFormat
from strads.errors import ArgumentError, BodyIndexError, InputError


def checked_rows(rows: ArrayLike, size: int) -> NDArray[np.int64]:
    """Return row numbers as an array, or raise BodyIndexError if one is out of range."""
    array = np.atleast_1d(np.asarray(rows))
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        raise ArgumentError(f"rows has shape {array.shape} and dtype {array.dtype}: give whole numbers")
    numbers = np.ascontiguousarray(array, np.int64)
    place = _first_outside(numbers, size)
    if place >= 0:
        raise BodyIndexError(f"row {numbers[place]} (at place {place} of rows): the table has the rows 0 … {size - 1}")
    return numbers


@njit(nogil=True, cache=True)
def _first_outside(rows, size):  # type: ignore[no-untyped-def]
    for i in range(len(rows)):
        if rows[i] < 0 or rows[i] >= size:
            return i
    return -1


def checked_values(values: Any, count: int, format: TableFormat) -> Values:
    """Return the values of `count` rows as a table stores them, or raise InputError."""
    shape = count, format.columns
    array: Any = values.tocsr() if scipy_sparse.issparse(values) else np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise InputError(f"values of dtype {array.dtype}: give numbers")
    if array.size and not np.can_cast(array.dtype, format.dtype, "same_kind"):
        raise InputError(f"values of dtype {array.dtype}: the table holds whole numbers ({np.dtype(format.dtype)})")
    check_integers_fit(array.data if scipy_sparse.issparse(array) else array, np.dtype(format.dtype))
    if scipy_sparse.issparse(array):
        if array.shape != shape:
            raise InputError(f"values of shape {array.shape}: expected {shape}")
        return _entries(array, format) if format.sparse else array.toarray().astype(format.dtype, copy=False)
    if array.shape != shape:
        try:
            array = np.broadcast_to(array, shape)
        except ValueError:
            raise InputError(f"values of shape {array.shape}: expected {shape}") from None
    if format.sparse:
        return _entries(scipy_sparse.csr_array(array), format)
    return np.ascontiguousarray(array, format.dtype)


def _entries(matrix: scipy_sparse.csr_array, format: TableFormat) -> SparseValues:
    """Return the entries of a matrix, those of each row in column order."""
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    values = matrix.data.astype(format.dtype, copy=False)
    return SparseValues(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32, copy=False), values)


def as_matrix(result: Result, columns: int) -> Any:
    """Return rows that were read in the user's form: a dense or sparse array."""
    if not isinstance(result, SparseResult):
        return result
    rows = result.assembled()
    return scipy_sparse.csr_array((rows.values, rows.columns, rows.starts), shape=(len(rows), columns))
