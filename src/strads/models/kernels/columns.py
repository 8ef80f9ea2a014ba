"""Columns of a design matrix, dense or sparse, for compiled code: one interface for every solver."""

from typing import Any, NamedTuple

from numpy import float64, int32, int64, uint32, uint64
from numpy.typing import NDArray
from scipy.sparse import csc_array

from strads.engine.compiling import by_types


class DenseColumns(NamedTuple):
    """A full matrix; in Fortran order, columns are read at full speed."""

    values: NDArray[Any]  # rows × columns, float32 or float64


class SparseColumns(NamedTuple):
    """The stored entries of a matrix in CSC form: those of column j are `indptr[j]..indptr[j + 1] - 1`.

    `rows` are uint32 or uint64, `indptr` uint64: unsigned indices need no check for negative numbers, so that sums over
    a column are vectorized (twice as fast as with SciPy's int32).
    """

    values: NDArray[Any]  # of the stored entries, float32 or float64
    rows: NDArray[Any]  # the row of each stored entry
    indptr: NDArray[Any]  # columns + 1 offsets


Columns = DenseColumns | SparseColumns


def sparse_columns(matrix: Any) -> SparseColumns:
    """Return the columns of a SciPy matrix in CSC form, or the rows of one in CSR form; only `indptr` is copied."""
    unsigned = uint32 if matrix.indices.dtype.itemsize == 4 else uint64
    return SparseColumns(matrix.data, matrix.indices.view(unsigned), matrix.indptr.astype(uint64))


def matrix_of(columns: SparseColumns, rows: int) -> csc_array:
    """Return columns with so many rows as a SciPy matrix in CSC form, which shares the entries."""
    signed = int32 if columns.rows.dtype.itemsize == 4 else int64  # of unsigned ones SciPy makes a copy
    parts = columns.values, columns.rows.view(signed), columns.indptr.astype(int64)
    return csc_array(parts, shape=(rows, len(columns.indptr) - 1))


def scaled_rows(columns: Columns, factors: NDArray[float64]) -> Columns:
    """Return columns with the entries factors_i x_ij."""
    of_entries = factors[:, None] if isinstance(columns, DenseColumns) else factors[columns.rows]
    return columns._replace(values=columns.values * of_entries)


@by_types()
def column_length(columns, j):  # type: ignore[no-untyped-def]
    """Number of stored entries of column j; for compiled code only."""
    if columns.instance_class is DenseColumns:
        return lambda columns, j: columns.values.shape[0]
    return lambda columns, j: int64(columns.indptr[j + 1] - columns.indptr[j])


@by_types(jit_options={"fastmath": True, "forceinline": True}, inline="never")
def column_dot(columns, j, vector):  # type: ignore[no-untyped-def]
    """x_jᵀ v; for compiled code only."""
    if columns.instance_class is DenseColumns:

        def dense(columns, j, vector):  # type: ignore[no-untyped-def]
            total = 0.0
            for i in range(len(vector)):
                total += columns.values[i, j] * vector[i]
            return total

        return dense

    def sparse(columns, j, vector):  # type: ignore[no-untyped-def]
        total = 0.0
        for place in range(columns.indptr[j], columns.indptr[j + 1]):
            total += columns.values[place] * vector[columns.rows[place]]
        return total

    return sparse


@by_types(jit_options={"fastmath": True, "forceinline": True}, inline="never")
def column_add(columns, j, amount, vector):  # type: ignore[no-untyped-def]
    """v ← v + amount · x_j; for compiled code only."""
    if columns.instance_class is DenseColumns:

        def dense(columns, j, amount, vector):  # type: ignore[no-untyped-def]
            for i in range(len(vector)):
                vector[i] += amount * columns.values[i, j]

        return dense

    def sparse(columns, j, amount, vector):  # type: ignore[no-untyped-def]
        for place in range(columns.indptr[j], columns.indptr[j + 1]):
            vector[columns.rows[place]] += amount * columns.values[place]

    return sparse


@by_types(jit_options={"fastmath": True, "forceinline": True}, inline="never")
def column_weighted_square(columns, j, weights):  # type: ignore[no-untyped-def]
    """Σ weights_i x_ij²; for compiled code only."""
    if columns.instance_class is DenseColumns:

        def dense(columns, j, weights):  # type: ignore[no-untyped-def]
            total = 0.0
            for i in range(len(weights)):
                total += weights[i] * columns.values[i, j] ** 2
            return total

        return dense

    def sparse(columns, j, weights):  # type: ignore[no-untyped-def]
        total = 0.0
        for place in range(columns.indptr[j], columns.indptr[j + 1]):
            total += weights[columns.rows[place]] * columns.values[place] ** 2
        return total

    return sparse
