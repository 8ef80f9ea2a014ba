"""Copies of tables in plan order, so that a job streams through memory."""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.cluster import ThreadTeam
from strads.dds.ragged import offsets_of
from strads.partition import even_bounds
from strads.schedule.kernels.prefetch import SOON, prefetch

_CHUNK = 1 << 18  # rows that a thread copies at a time
_WINDOW_BYTES = 1 << 19  # of the source, kept in the cache while all jobs copy their rows from it
_PARTS = 4  # parts of the source per thread


@njit(nogil=True, cache=True)
def _gather(source, indices, target, first, last):  # type: ignore[no-untyped-def]
    """Copy `source[indices[first:last]]` to `target[first:last]`; negative indices count from the end."""
    rows = len(source)
    for position in range(first, last):
        if position + SOON < last and indices[position + SOON] >= 0:
            prefetch(source, indices[position + SOON])
        row = indices[position]
        if row < 0:
            row += rows
        target[position] = source[row]


@njit(nogil=True, cache=True)
def _cut(indices, runs, row, cuts):  # type: ignore[no-untyped-def]
    """Find where each run `indices[runs[r]:runs[r + 1]]`, if ascending, reaches `row`; writes the places to `cuts`."""
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
    """Copy the source rows `first_row..last_row - 1` to their places in `target`, `step` rows at a time.

    Run r is `indices[starts[r]:stops[r]]`. A window of the source stays in the cache while every run copies its rows
    from it: memory is read once, sequentially, where following one run after another would read each cache line once
    per run.

    Returns whether every run was completed; one that does not ascend, or has a negative index, is not.
    """
    cursors = starts.astype(np.uint64)  # unsigned, to avoid the check for negative indices
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
    """Copy segments `first..last - 1` of the source, from `starts`, to `target_offsets` in the target."""
    for position in range(first, last):
        if position + SOON < last:
            soon = position + SOON
            prefetch(source, starts[soon])
            prefetch(source, starts[soon] + max(target_offsets[soon + 1] - target_offsets[soon] - 1, 0))
        begin, start = target_offsets[position], starts[position]
        for item in range(target_offsets[position + 1] - begin):
            target[begin + item] = source[start + item]


def as_records(array: NDArray[Any]) -> NDArray[Any]:
    """View rows of any dtype as records of bytes: kernels are compiled per row size, and copy rows fast."""
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
        Boundaries of the jobs, (jobs + 1,): if indices ascend within each, the copy streams through memory.
    team
        The threads.
    target
        Output array of shape (len(indices), *source.shape[1:]) and the dtype of `source`, C-contiguous; by default
        a new array.
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
    """Copy `source[indices]` to `target` window by window, if the runs ascend and are long enough to benefit.

    `source` and `target` are rows as records, and `runs` is as in `gather_rows`. Returns whether all rows were copied.
    """
    jobs, parts = len(runs) - 1, _PARTS * team.size
    if jobs * _WINDOW_BYTES > 128 * len(indices):
        return False
    bounds = even_bounds(len(source), parts)
    cuts = np.stack([runs[:-1]] * parts + [runs[1:]])  # (parts + 1, jobs): bounds of each part in each run
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
    """Return the concatenation of pieces of an array, copied by all threads of the team.

    Parameters
    ----------
    source
        Rows of any dtype, C-contiguous.
    starts : (segments,)
        First row of each piece.
    offsets : (segments + 1,)
        Where the pieces start in the result, which also gives their lengths.
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
