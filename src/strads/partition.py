"""Consecutive parts of a range, where each begins, and the distinct ones of some numbers or pairs."""

from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

_Integer = TypeVar("_Integer", bound=np.integer)


def even_bounds(count: int, parts: int) -> NDArray[np.int64]:
    """Return the bounds of parts of 0..count − 1 whose sizes differ by at most one.

    Returns
    -------
    int64 array of shape (parts + 1,)
        From 0 to `count`, ascending.
    """
    return np.linspace(0, count, parts + 1).astype(np.int64)


def offsets_of(lengths: ArrayLike) -> NDArray[np.int64]:
    """Return where parts of these lengths start, and where the last one ends: shape (parts + 1,)."""
    count = np.shape(lengths)[0]
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(lengths, dtype=np.int64, out=offsets[1:])
    return offsets


def places_of(offsets: NDArray[np.int64], parts: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the places of the items of some parts, part by part in the given order."""
    starts = offsets[parts]
    return joined_ranges(starts, offsets[parts + 1] - starts)


def joined_ranges(starts: NDArray[np.integer], lengths: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the numbers of several ranges, one range after the other."""
    ends = offsets_of(lengths)
    return np.arange(ends[-1]) + np.repeat(starts - ends[:-1], lengths)


def distinct(numbers: NDArray[_Integer]) -> NDArray[_Integer]:
    """Return each number once, in ascending order.

    As `np.unique`, by sorting: many different numbers take NumPy 2.3 and later, which put them into a hash table, ten
    times as long.
    """
    ordered = np.sort(numbers, axis=None)
    return ordered[np.concatenate([ordered[:1] == ordered[:1], ordered[1:] != ordered[:-1]])]


def distinct_pairs(first: NDArray[np.integer], second: NDArray[np.integer], count: int) -> NDArray[np.int64]:
    """Return each pair once, in ascending order; no number is negative, and those of `second` are below `count`.

    Returns
    -------
    int64 array of shape (distinct pairs, 2)
    """
    numbers = distinct(first.astype(np.int64) * count + second)  # single numbers sort much faster
    return np.stack(np.divmod(numbers, max(count, 1)), axis=1)
