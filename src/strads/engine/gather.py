"""Copies of tables in plan order, so that a job streams through memory (DESIGN §4.4)."""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.cluster import ThreadTeam

_CHUNK = 1 << 18  # rows a thread copies at a time


@njit(nogil=True, cache=True)
def _gather_words(source, indices, target, first, last):  # type: ignore[no-untyped-def]
    rows, words = source.shape
    for position in range(first, last):
        row = indices[position]
        if row < 0:
            row += rows
        for word in range(words):
            target[position, word] = source[row, word]


@njit(nogil=True, cache=True)
def _gather_ragged(source, offsets, indices, target, target_offsets, first, last):  # type: ignore[no-untyped-def]
    rows = len(offsets) - 1
    for position in range(first, last):
        row = indices[position]
        if row < 0:
            row += rows
        start = target_offsets[position]
        for item in range(target_offsets[position + 1] - start):
            target[start + item] = source[offsets[row] + item]


def _as_words(array: NDArray[Any]) -> NDArray[Any]:
    """View rows of any dtype as rows of machine words: one compiled kernel serves them all."""
    row_bytes = array.dtype.itemsize * int(np.prod(array.shape[1:]))
    word = np.uint32 if row_bytes % 4 == 0 else np.uint8
    return array.view(np.uint8).reshape(len(array), row_bytes).view(word) if array.ndim == 1 else (
        array.reshape(len(array), -1).view(np.uint8).view(word)
    )


def gather_rows(source: NDArray[Any], indices: NDArray[np.integer], team: ThreadTeam) -> NDArray[Any]:
    """Return `source[indices]`, copied by all threads of the team."""
    target = np.empty((len(indices), *source.shape[1:]), source.dtype)
    if target.size == 0:
        return target
    words, target_words = _as_words(source), _as_words(target)

    def copy(chunk: int) -> None:
        first = chunk * _CHUNK
        _gather_words(words, indices, target_words, first, min(first + _CHUNK, len(indices)))

    team.for_each(copy, -(-len(indices) // _CHUNK))
    return target


def gather_ragged(
    values: NDArray[Any], offsets: NDArray[np.int64], indices: NDArray[np.integer], team: ThreadTeam
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return values and offsets of the ragged rows `indices`, copied by all threads of the team."""
    target_offsets = np.zeros(len(indices) + 1, np.int64)
    np.cumsum(np.diff(offsets)[indices], out=target_offsets[1:])
    target = np.empty(int(target_offsets[-1]), values.dtype)

    def copy(chunk: int) -> None:
        first = chunk * _CHUNK
        last = min(first + _CHUNK, len(indices))
        _gather_ragged(values, offsets, indices, target, target_offsets, first, last)

    team.for_each(copy, -(-len(indices) // _CHUNK))
    return target, target_offsets
