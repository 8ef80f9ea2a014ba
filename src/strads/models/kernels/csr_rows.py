"""Rows of a CSR matrix, replaced by others."""

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
