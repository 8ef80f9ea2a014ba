"""Random initial rows of tables: each a function of the key and its number, so that tables can grow row by row."""

import numpy as np
from numba import njit

from strads.rng.philox import random_half_words

_BYTE = np.uint64(8)


@njit(nogil=True, cache=True)
def draw_rows(table, numbers, columns, low, high, key):  # type: ignore[no-untyped-def]
    """Draw `columns` numbers of each row, uniformly from low … high.

    The same row gets the same numbers whatever else is drawn: they depend on its number, the column and the key alone
    (Philox2x64-10; Salmon et al. 2011). Four columns share a counter.

    Parameters
    ----------
    table : float32 ndarray of shape (rows, width)
        Of which the first `columns` columns are written.
    numbers : int64 ndarray of shape (rows,)
        The number of each row.
    columns : int
    low, high : float64
    key : uint64
    """
    scale = (high - low) * 2.0**-24
    for row in range(len(table)):
        number = np.uint64(numbers[row])
        for column in range(0, columns, 4):
            words = random_half_words(key, number, np.uint64(column >> 2))
            for place in range(min(4, columns - column)):
                table[row, column + place] = low + scale * (np.int64(words[place] >> _BYTE) + 0.5)
