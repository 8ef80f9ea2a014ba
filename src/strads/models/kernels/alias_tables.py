"""Rows drawn in proportion to weights, each in the same time: the alias method (Walker 1977, Vose 1991)."""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.rng.numbers import fill_aliases

_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


class AliasTable(NamedTuple):
    """Of the draws that fall on row r, those with a fraction below `shares[r]` stay there, the others are `others[r]`.

    Attributes
    ----------
    shares : uint32 ndarray of shape (rows,)
        In units of 2⁻³².
    others : int32 ndarray of shape (rows,)
    """

    shares: NDArray[np.uint32]
    others: NDArray[np.int32]


def alias_table(weights: NDArray[np.float64]) -> AliasTable:
    """Return the table that draws rows in proportion to weights ≥ 0, not all 0; there may be no rows."""
    shares, others = np.empty(len(weights)), np.empty(len(weights), np.int64)
    total = weights.sum() if len(weights) else 1.0
    fill_aliases(weights * (len(weights) / total), shares, others)
    return AliasTable(np.minimum(shares * 2.0**32, 2.0**32 - 1).astype(np.uint32), others.astype(np.int32))


@njit(nogil=True, cache=True, inline="always")
def drawn_row(table: Any, product: Any) -> Any:
    """Return the row that is drawn by a random 32-bit number, given its product with the number of rows (uint64)."""
    row = np.int64(product >> _HALF)
    return row if (product & _LOW) < table.shares[row] else table.others[row]
