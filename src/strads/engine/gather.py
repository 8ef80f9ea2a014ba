"""Copies of tables in plan order, so that a job streams through memory (DESIGN §4.4)."""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.cluster import ThreadTeam

_CHUNK = 1 << 18  # rows a thread copies at a time
_WINDOW_BYTES = 1 << 18  # of the source, in the cache while all jobs take their rows from it


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
def _are_ascending(indices, runs, first, last):  # type: ignore[no-untyped-def]
    """Whether the indices of each of the runs `first..last - 1` ascend from 0 or more."""
    for run in range(first, last):
        previous = -1
        for position in range(runs[run], runs[run + 1]):
            if indices[position] <= previous:
                return False
            previous = indices[position]
    return True


@njit(nogil=True, cache=True)
def _lower_bound(indices, first, last, row):  # type: ignore[no-untyped-def]
    while first < last:
        middle = (first + last) // 2
        if indices[middle] < row:
            first = middle + 1
        else:
            last = middle
    return first


@njit(nogil=True, cache=True)
def _merge_words(source, indices, runs, target, first_row, last_row, step):  # type: ignore[no-untyped-def]
    """Copy the source rows `first_row..last_row - 1` to their places, `step` rows at a time.

    A window of the source stays in the cache while every run takes its rows from it: memory is read once, in its
    order, where following one run after the other would read each cache line once for every run.
    """
    words = source.shape[1]
    cursors = np.empty(len(runs) - 1, np.int64)
    for run in range(len(cursors)):
        cursors[run] = _lower_bound(indices, runs[run], runs[run + 1], first_row)
    for window in range(first_row, last_row, step):
        end = min(window + step, last_row)
        for run in range(len(cursors)):
            position = cursors[run]
            stop = runs[run + 1]
            while position < stop and indices[position] < end:
                row = indices[position]
                for word in range(words):
                    target[position, word] = source[row, word]
                position += 1
            cursors[run] = position


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
    return (
        array.view(np.uint8).reshape(len(array), row_bytes).view(word)
        if array.ndim == 1
        else (array.reshape(len(array), -1).view(np.uint8).view(word))
    )


def gather_rows(
    source: NDArray[Any],
    indices: NDArray[np.integer],
    runs: NDArray[np.int64],
    team: ThreadTeam,
    target: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """Return `source[indices]`, copied by all threads of the team.

    Parameters
    ----------
    source
        Rows of any dtype, C-contiguous.
    indices
        Row at each position of the result.
    runs
        Boundaries of the jobs, (jobs + 1,): where indices ascend within each, the copy streams through memory.
    team
        The threads.
    target
        Where to copy to: of shape (len(indices), *source.shape[1:]) and the dtype of `source`, C-contiguous; by
        default a new array.
    """
    if target is None:
        target = np.empty((len(indices), *source.shape[1:]), source.dtype)
    if target.size == 0:
        return target
    words, target_words = _as_words(source), _as_words(target)
    if _ascend(indices, runs, team):
        window = max(1, _WINDOW_BYTES // (words.shape[1] * words.itemsize))
        parts = 4 * team.size
        bounds = np.linspace(0, len(source), parts + 1).astype(np.int64)

        def merge(part: int) -> None:
            _merge_words(words, indices, runs, target_words, bounds[part], bounds[part + 1], window)

        team.for_each(merge, parts)
        return target

    def copy(chunk: int) -> None:
        first = chunk * _CHUNK
        _gather_words(words, indices, target_words, first, min(first + _CHUNK, len(indices)))

    team.for_each(copy, -(-len(indices) // _CHUNK))
    return target


def _ascend(indices: NDArray[np.integer], runs: NDArray[np.int64], team: ThreadTeam) -> bool:
    jobs = len(runs) - 1
    if jobs * _WINDOW_BYTES > 64 * len(indices):  # runs too short to gain from
        return False
    ascending = [True] * team.size

    def check(thread: int) -> None:
        first, last = thread * jobs // team.size, (thread + 1) * jobs // team.size
        ascending[thread] = bool(_are_ascending(indices, runs, first, last))

    team.run(check)
    return all(ascending)


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
