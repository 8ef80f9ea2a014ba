"""Passes over the columns of a design matrix on one machine, and copies of selected columns.

Vectors are float64. The matrix is a `Columns`, or the array or arrays of one: float32 or float64 `values`, and for
sparse columns `rows` and `indptr`. Threads call the passes for different ranges `begin..end − 1` of one output.
"""

from numba import njit
from numpy import float64, zeros

from strads.models.kernels.columns import column_add, column_dot

_ROWS_AT_A_TIME = 8  # unrolled


@njit(nogil=True, fastmath=True, cache=True)
def correlate(columns, vector, chosen, begin, end, out):  # type: ignore[no-untyped-def]
    """Set `out[k]` to x_jᵀ v for the column j = `chosen[k]`, for k in begin..end − 1.

    `columns` are those of the whole matrix, and v is `vector`, of shape (rows,).
    """
    for k in range(begin, end):
        out[k] = column_dot(columns, chosen[k], vector)


@njit(nogil=True, fastmath=True, cache=True)
def correlate_range(columns, vector, begin, end, out):  # type: ignore[no-untyped-def]
    """Set `out[j]` to x_jᵀ v for the columns j in begin..end − 1 of all `columns`; v is `vector`, of shape (rows,)."""
    for j in range(begin, end):
        out[j] = column_dot(columns, j, vector)


@njit(nogil=True, fastmath=True, cache=True)
def correlate_rows(values, vector, begin, end, out):  # type: ignore[no-untyped-def]
    """Set `out[j]` to x_jᵀ v for the columns j in begin..end − 1 of `values`, an array in C order; v is `vector`.

    Several rows are read at a time, contiguously.
    """
    rows = len(vector)
    whole = rows - rows % _ROWS_AT_A_TIME
    width = 512  # columns of a strip whose sums stay in the L1 cache
    for left in range(begin, end, width):
        right = min(left + width, end)
        sums = out[left:right]
        sums[:] = 0.0
        for i in range(0, whole, _ROWS_AT_A_TIME):
            v0, v1, v2, v3 = vector[i], vector[i + 1], vector[i + 2], vector[i + 3]
            v4, v5, v6, v7 = vector[i + 4], vector[i + 5], vector[i + 6], vector[i + 7]
            r0, r1, r2, r3 = values[i], values[i + 1], values[i + 2], values[i + 3]
            r4, r5, r6, r7 = values[i + 4], values[i + 5], values[i + 6], values[i + 7]
            for j in range(left, right):
                near = v0 * r0[j] + v1 * r1[j] + v2 * r2[j] + v3 * r3[j]
                far = v4 * r4[j] + v5 * r5[j] + v6 * r6[j] + v7 * r7[j]
                sums[j - left] += near + far
        for i in range(whole, rows):
            row, v = values[i], vector[i]
            for j in range(left, right):
                sums[j - left] += v * row[j]


@njit(nogil=True, fastmath=True, cache=True)
def add_moments(values, by_columns, weights, begin, end, sums, squares):  # type: ignore[no-untyped-def]
    """Set `sums[j]` to Σ_i weights_i x_ij and `squares[j]` to Σ_i weights_i x_ij², for j in begin..end − 1.

    `values` is a dense array, read column by column if `by_columns`, as is fast in Fortran order, else row by row;
    `weights` has an element for each row.
    """
    rows = len(weights)
    if by_columns:
        for j in range(begin, end):
            total = square = 0.0
            for i in range(rows):
                x = float64(values[i, j])
                total += weights[i] * x
                square += weights[i] * x * x
            sums[j] = total
            squares[j] = square
    else:
        sums[begin:end] = 0.0
        squares[begin:end] = 0.0
        for left in range(begin, end, 512):
            right = min(left + 512, end)
            for i in range(rows):
                row, weight = values[i], weights[i]
                for j in range(left, right):
                    x = float64(row[j])
                    sums[j] += weight * x
                    squares[j] += weight * x * x


@njit(nogil=True, fastmath=True, cache=True)
def add_sparse_moments(values, rows, indptr, weights, begin, end, sums, squares):  # type: ignore[no-untyped-def]
    """Set `sums` and `squares` as `add_moments` does, with the same `weights`, of a matrix in CSC form.

    That is given by `values`, `rows` and `indptr`, as in `SparseColumns`.
    """
    for j in range(begin, end):
        total = square = 0.0
        for place in range(indptr[j], indptr[j + 1]):
            x = float64(values[place])
            total += weights[rows[place]] * x
            square += weights[rows[place]] * x * x
        sums[j] = total
        squares[j] = square


@njit(nogil=True, cache=True)
def gather_dense(values, chosen, out):  # type: ignore[no-untyped-def]
    """Copy the `chosen` columns of a dense array of any memory order to `out`, of shape (rows, len(chosen))."""
    if values.strides[0] < values.strides[1]:
        for k in range(len(chosen)):
            for i in range(values.shape[0]):
                out[i, k] = values[i, chosen[k]]
    else:
        for i in range(values.shape[0]):
            for k in range(len(chosen)):
                out[i, k] = values[i, chosen[k]]


@njit(nogil=True, fastmath=True, cache=True)
def combine(columns, chosen, coefficients, rows):  # type: ignore[no-untyped-def]
    """Return Σ_k coefficients_k x_j with j = `chosen[k]`, of shape (rows,).

    `coefficients` has an element for each of the chosen `columns`; `rows` is their length.
    """
    out = zeros(rows)
    for k in range(len(chosen)):
        if coefficients[k] != 0.0:
            column_add(columns, chosen[k], coefficients[k], out)
    return out


@njit(nogil=True, fastmath=True, cache=True)
def fill_dense(columns, chosen, out):  # type: ignore[no-untyped-def]
    """Copy the `chosen` columns to `out`, a dense array of shape (rows, len(chosen))."""
    out[:] = 0.0
    for k in range(len(chosen)):
        column_add(columns, chosen[k], 1.0, out[:, k])
