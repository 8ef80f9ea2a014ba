"""Rows of a CSR matrix: replaced by others, or their products added up."""

from numba import njit


@njit(nogil=True, cache=True)
def replace_rows(indptr, indices, data, own_indptr, own_indices, own_data, row_of, offsets, columns, values):  # type: ignore[no-untyped-def]
    """Copy a matrix, replacing some of its rows and appending others.

    Parameters
    ----------
    indptr, indices, data
        The matrix.
    own_indptr, own_indices, own_data
        Matrix of the other rows.
    row_of : int64 ndarray of shape (rows,)
        For each row of the result, which of the other rows takes its place; −1: none.
    offsets : int64 ndarray of shape (rows + 1,)
        Where the rows of the result start.
    columns, values : ndarrays of shape (offsets[-1],)
        Receive the result.
    """
    for row in range(len(row_of)):
        own, place = row_of[row], offsets[row]
        if own >= 0:
            for entry in range(own_indptr[own], own_indptr[own + 1]):
                columns[place], values[place] = own_indices[entry], own_data[entry]
                place += 1
        elif row + 1 < len(indptr):
            for entry in range(indptr[row], indptr[row + 1]):
                columns[place], values[place] = indices[entry], data[entry]
                place += 1


@njit(nogil=True, cache=True)
def add_gram(indptr, indices, data, rows, weights, out):  # type: ignore[no-untyped-def]
    """Add Σ weights_k (x, 1)(x, 1)ᵀ over the given rows x of a canonical CSR matrix to `out`, which stays symmetric.

    Parameters
    ----------
    indptr, indices, data
        The matrix, of shape (n, features).
    rows : int64 ndarray of shape (k,)
    weights : float64 ndarray of shape (k,)
    out : float64 ndarray of shape (features + 1, features + 1)
    """
    last = len(out) - 1
    for k in range(len(rows)):
        first, end = indptr[rows[k]], indptr[rows[k] + 1]
        for entry in range(first, end):
            i, scaled = indices[entry], weights[k] * data[entry]
            for other in range(first, entry + 1):
                out[i, indices[other]] += scaled * data[other]
            out[last, i] += scaled
        out[last, last] += weights[k]
    for i in range(len(out)):
        for j in range(i):
            out[j, i] = out[i, j]
