"""Checksums of tables that do not depend on which node holds which rows."""

from collections.abc import Iterable
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from strads.rng.splitmix import FIRST_FACTOR, GAMMA, SECOND_FACTOR

RowSum = tuple[int, int]

_MASK = (1 << 64) - 1  # sums are taken modulo 2⁶⁴


def row_sum(values: NDArray[Any], first: int) -> RowSum:
    """Return two sums, modulo 2⁶⁴, of hashes of rows and their numbers, of which the first one is `first`.

    Sums of parts of a table add up to those of the whole. Padding of records does not count.
    """
    rows = np.ascontiguousarray(without_padding(values))
    width = rows.nbytes // len(rows) if len(rows) else 0
    if not width:
        return 0, 0
    word = next(size for size in (8, 4, 1) if width % size == 0)
    words = rows.reshape(len(rows), -1).view(np.uint8).reshape(len(rows), width).view(f"u{word}")
    low, high = _sum(words, np.uint64(first))
    return int(low), int(high)


def total_row_sum(sums: Iterable[RowSum]) -> RowSum:
    """Return the sums of a table from those of its parts."""
    low = high = 0
    for part in sums:
        low, high = (low + part[0]) & _MASK, (high + part[1]) & _MASK
    return low, high


def without_padding(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array of records with zeros between its fields, where any bytes may be; others as they are."""
    if array.dtype.names is None or not _has_padding(array.dtype):
        return array
    clean = np.zeros(array.shape, array.dtype)
    for name in array.dtype.names:
        clean[name] = without_padding(array[name])
    return clean


def _has_padding(dtype: np.dtype[Any]) -> bool:
    if dtype.subdtype is not None:
        return _has_padding(dtype.subdtype[0])
    if dtype.fields is None:
        return False
    fields = [field[0] for field in dtype.fields.values()]
    return sum(field.itemsize for field in fields) != dtype.itemsize or any(map(_has_padding, fields))


@numba.njit(nogil=True, cache=True)
def _sum(words, first):  # type: ignore[no-untyped-def]
    """Sum two finalizers of a multiplicative hash of each row (Steele et al., OOPSLA 2014: the mixer of SplitMix64)."""
    low = high = np.uint64(0)
    for row in range(words.shape[0]):
        state = (first + np.uint64(row) + np.uint64(1)) * GAMMA
        for place in range(words.shape[1]):
            state = (state ^ np.uint64(words[row, place])) * FIRST_FACTOR
            state ^= state >> np.uint64(29)
        low += (state ^ (state >> np.uint64(31))) * SECOND_FACTOR
        high += (state ^ (state >> np.uint64(27))) * np.uint64(0xD6E8FEB86659FD93)
    return low, high
