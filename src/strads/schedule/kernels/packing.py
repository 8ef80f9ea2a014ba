"""Packing unequal pieces into bins of about equal load: longest processing time first (Graham 1969)."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

ALL_SORTED = 4096  # up to this many pieces, all are sorted; beyond that, only those that affect the balance
LIGHT = 32  # a piece this many times lighter than a bin's share does not affect the balance


@njit(nogil=True, cache=True)
def _pack(
    work: NDArray[np.int64], heavy: NDArray[np.int64], bin_of: NDArray[np.int32], load: NDArray[np.int64]
) -> None:
    """Fill `bin_of` (pieces,) and `load` (bins,); `heavy` lists the heavy pieces, heaviest first."""
    for piece in heavy:
        lightest = np.argmin(load)
        bin_of[piece] = lightest
        load[lightest] += work[piece]
    share = -(-work.sum() // len(load))
    current = 0
    for piece in range(len(work)):
        if bin_of[piece] < 0:
            while load[current] >= share and current + 1 < len(load):
                current += 1
            bin_of[piece] = current
            load[current] += work[piece]


def pack(work: NDArray[np.int64], bins: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Put each heavy piece, heaviest first, into the lightest bin; then fill the bins with light ones in order.

    Parameters
    ----------
    work : (pieces,) int64
        Work of each piece.
    bins
        Number of bins, at least 1.

    Returns
    -------
    bin_of : (pieces,) int32
    load : (bins,) int64
    """
    heavy = np.arange(len(work))
    if len(work) > ALL_SORTED:
        heavy = np.flatnonzero(work * (bins * LIGHT) >= work.sum())
    heavy = heavy[np.lexsort((heavy, -work[heavy]))]
    bin_of, load = np.full(len(work), -1, np.int32), np.zeros(bins, np.int64)
    _pack(work, heavy, bin_of, load)
    return bin_of, load


def cut(work: NDArray[np.int64], bins: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Cut a sequence of pieces into consecutive parts of about equal load; returns what `pack` does."""
    bin_of, load = np.full(len(work), -1, np.int32), np.zeros(bins, np.int64)
    _pack(work, np.empty(0, np.int64), bin_of, load)
    return bin_of, load
