"""Copies of tables in plan order, so that a job streams through memory (DESIGN §4.4)."""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.cluster import ThreadTeam
from strads.dds._ragged import offsets_of

_CHUNK = 1 << 18  # rows a thread copies at a time
_WINDOW_BYTES = 1 << 19  # of the source, in the cache while all jobs take their rows from it
_PARTS = 4  # of the source for each thread


@njit(nogil=True, cache=True)
def _gather(source, indices, target, first, last):  # type: ignore[no-untyped-def]
    rows = len(source)
    for position in range(first, last):
        row = indices[position]
        if row < 0:
            row += rows
        target[position] = source[row]


@njit(nogil=True, cache=True)
def _cut(indices, runs, row, cuts):  # type: ignore[no-untyped-def]
    """Find where each run, if it ascends, reaches `row`."""
    for run in range(len(cuts)):
        first, last = runs[run], runs[run + 1]
        while first < last:
            middle = (first + last) // 2
            if indices[middle] < row:
                first = middle + 1
            else:
                last = middle
        cuts[run] = first


@njit(nogil=True, cache=True)
def _merge(source, indices, starts, stops, target, first_row, last_row, step):  # type: ignore[no-untyped-def]
    """Copy the source rows `first_row..last_row - 1` to their places, `step` rows at a time.

    A window of the source stays in the cache while every run takes its rows from it: memory is read once, in its
    order, where following one run after the other would read each cache line once for every run.

    Returns whether every run got from its start to its stop: not if it does not ascend, or has a negative index.
    """
    cursors = starts.astype(np.uint64)  # unsigned, or each index would be tested for being one from the end
    for window in range(first_row, last_row, step):
        end = np.uint64(min(window + step, last_row))
        for run in range(len(cursors)):
            position, stop = cursors[run], np.uint64(stops[run])
            while position < stop and np.uint64(indices[position]) < end:
                target[position] = source[np.uint64(indices[position])]
                position += np.uint64(1)
            cursors[run] = position
    complete = True
    for run in range(len(cursors)):
        complete &= cursors[run] == np.uint64(stops[run])
    return complete


@njit(nogil=True, cache=True)
def _gather_segments(source, starts, target, target_offsets, first, last):  # type: ignore[no-untyped-def]
    for position in range(first, last):
        begin, start = target_offsets[position], starts[position]
        for item in range(target_offsets[position + 1] - begin):
            target[begin + item] = source[start + item]


def as_records(array: NDArray[Any]) -> NDArray[Any]:
    """View rows of any dtype as records of bytes: kernels are compiled for a size, and copy it in few instructions."""
    row_bytes = array.dtype.itemsize * int(np.prod(array.shape[1:]))
    return array.reshape(-1).view(np.uint8).view([("bytes", np.uint8, (row_bytes,))])


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
    source_rows, target_rows = as_records(source), as_records(target)
    if _merge_runs(source_rows, indices, runs, team, target_rows):
        return target

    def copy(chunk: int) -> None:
        first = chunk * _CHUNK
        _gather(source_rows, indices, target_rows, first, min(first + _CHUNK, len(indices)))

    team.for_each(copy, -(-len(indices) // _CHUNK))
    return target


def _merge_runs(
    source: NDArray[Any], indices: NDArray[np.integer], runs: NDArray[np.int64], team: ThreadTeam, target: NDArray[Any]
) -> bool:
    """Copy all rows window by window if the runs ascend, and are long enough to gain from it; whether they did."""
    jobs, parts = len(runs) - 1, _PARTS * team.size
    if jobs * _WINDOW_BYTES > 128 * len(indices):
        return False
    bounds = np.linspace(0, len(source), parts + 1).astype(np.int64)
    cuts = np.stack([runs[:-1]] * parts + [runs[1:]])  # (parts + 1, jobs): what part p copies of each run
    team.for_each(lambda part: _cut(indices, runs, bounds[part + 1], cuts[part + 1]), parts - 1)
    if np.any(cuts[1:] < cuts[:-1]):
        return False
    step = max(1, _WINDOW_BYTES // source.itemsize)
    complete = [False] * parts

    def merge(part: int) -> None:
        arrays = source, indices, cuts[part], cuts[part + 1], target
        complete[part] = _merge(*arrays, bounds[part], bounds[part + 1], step)

    team.for_each(merge, parts)
    return all(complete)


def gather_ragged(
    values: NDArray[Any], offsets: NDArray[np.int64], indices: NDArray[np.integer], team: ThreadTeam
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return values and offsets of the ragged rows `indices`, copied by all threads of the team."""
    target_offsets = offsets_of(np.diff(offsets)[indices])
    return gather_segments(values, offsets[:-1][indices], target_offsets, team), target_offsets


def gather_segments(
    source: NDArray[Any], starts: NDArray[np.int64], offsets: NDArray[np.int64], team: ThreadTeam
) -> NDArray[Any]:
    """Return pieces of an array one after the other, copied by all threads of the team.

    Parameters
    ----------
    source
        Rows of any dtype, C-contiguous.
    starts : (segments,)
        First row of each piece.
    offsets : (segments + 1,)
        Where the pieces are in the result: these say how long they are.
    team
        The threads.
    """
    target = np.empty((int(offsets[-1]), *source.shape[1:]), source.dtype)
    if target.size == 0:
        return target
    source_rows, target_rows = as_records(source), as_records(target)

    def copy(chunk: int) -> None:
        first = chunk * _CHUNK
        _gather_segments(source_rows, starts, target_rows, offsets, first, min(first + _CHUNK, len(starts)))

    team.for_each(copy, -(-len(starts) // _CHUNK))
    return target
