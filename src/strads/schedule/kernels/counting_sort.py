"""Stable grouping of tasks by small keys, and sorting within groups: comparison sorts are too slow for millions."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.partition import even_bounds
from strads.schedule.kernels.parallel import Parallel, index_dtype
from strads.schedule.kernels.prefetch import SOON, prefetch, prefetch_ahead
from strads.schedule.kernels.streaming import LINE, begins_line, empty_lines, finish_streams, stream_lines

_MAX_BUFFERED = 1 << 21  # bytes: as much as a core's private cache holds
_DIGIT_BITS = 11  # of the numbers that groups are sorted by, digit by digit


@dataclass(frozen=True)
class PlanOrderCopy:
    """Rows to be copied into plan order while that order is computed, in one pass."""

    source: NDArray[np.void]  # (tasks or more,): the row of each task
    target: NDArray[np.void]  # (tasks,); may overlap the records that the plan is built from
    order: NDArray[np.integer]  # memory for the order of a plan; if the plan uses it, `target` has been filled

    @classmethod
    def of(cls, source: NDArray[np.void], target: NDArray[np.void]) -> "PlanOrderCopy":
        """Provide memory for the order."""
        return cls(source, target, empty_lines((len(target),), index_dtype(len(target))))

    @property
    def group(self) -> int:
        """Smallest number of tasks, a power of two, whose rows and part of the order fill whole cache lines each."""
        sizes = self.target.itemsize, self.order.itemsize
        return max(LINE // math.gcd(size, LINE) for size in sizes)

    def is_worthwhile(self, keys: int) -> bool:
        """Whether to copy while tasks are grouped by so many keys; otherwise a later pass is faster."""
        buffered = keys * self.group * (self.target.itemsize + self.order.itemsize)
        return begins_line(self.target) and begins_line(self.order) and buffered <= _MAX_BUFFERED


@njit(nogil=True, cache=True)
def count_keys(keys: NDArray[np.integer], begin: int, end: int, counts: NDArray[np.integer]) -> None:
    """Add to `counts` the number of occurrences of each key in `keys[begin:end]`."""
    for task in range(begin, end):
        counts[keys[task]] += 1


@njit(nogil=True, cache=True)
def _scatter(
    keys: NDArray[np.integer], begin: int, end: int, start: NDArray[np.integer], order: NDArray[np.integer]
) -> None:
    for task in range(np.uint64(begin), np.uint64(end)):  # unsigned: no check for negative indices
        key = keys[task]
        position = np.uint64(start[key])
        order[position] = task
        prefetch_ahead(order, position)
        start[key] = position + np.uint64(1)


@njit(nogil=True, cache=True)
def _copy(target: NDArray[Any], begin: int, end: int, buffers: NDArray[Any], buffer: int, size: int) -> None:
    """Write `target[begin:end]` from the buffer of a key."""
    for position in range(begin, end):
        target[position] = buffers[buffer + (position & (size - np.uint64(1)))]


@njit(nogil=True, cache=True)
def _scatter_rows(
    keys: NDArray[np.integer],
    begin: int,
    end: int,
    start: NDArray[np.integer],
    order: NDArray[np.integer],
    source: NDArray[np.void],
    target: NDArray[np.void],
    some_tasks: NDArray[np.integer],
    some_rows: NDArray[np.void],
    group: int,
) -> None:
    """Like `_scatter`, and also copy each task's row of `source` into its place in `target`.

    `some_tasks` and `some_rows` are buffers of `group` tasks for each key, written a cache line at a time once they are
    full: see `streaming`.
    """
    first, size, one = start.copy(), np.uint64(group), np.uint64(1)
    for task in range(np.uint64(begin), np.uint64(end)):
        key = np.uint64(keys[task])
        position = np.uint64(start[key])
        buffer, slot = key * size, position & (size - one)
        some_tasks[buffer + slot] = task
        some_rows[buffer + slot] = source[task]
        start[key] = position + one
        if slot == size - one:
            lowest = position - slot
            if lowest >= first[key]:
                stream_lines(order, lowest, some_tasks, buffer, size)
                stream_lines(target, lowest, some_rows, buffer, size)
            else:  # what comes before is another chunk's or another key's
                _copy(order, np.uint64(first[key]), position + one, some_tasks, buffer, size)
                _copy(target, np.uint64(first[key]), position + one, some_rows, buffer, size)
    for place in range(np.uint64(len(start))):  # what is left in the buffers
        after = np.uint64(start[place])
        lowest = max(after & ~(size - one), np.uint64(first[place]))
        _copy(order, lowest, after, some_tasks, place * size, size)
        _copy(target, lowest, after, some_rows, place * size, size)
    finish_streams()


def group_by_key(
    keys: NDArray[np.integer],
    counts: NDArray[np.integer],
    key_order: NDArray[np.integer],
    bounds: NDArray[np.int64],
    parallel: Parallel,
    copy_in_order: PlanOrderCopy | None = None,
) -> tuple[NDArray[np.integer], NDArray[np.int64]]:
    """Order tasks by key, keeping tasks with the same key in loop order.

    Parameters
    ----------
    keys : (tasks,)
        Key of each task.
    counts : (chunks, keys)
        Occurrences of each key in each chunk of tasks.
    key_order : (groups,)
        Keys in the desired order; must include every key that occurs.
    bounds : (chunks + 1,)
        Chunk c has the tasks `bounds[c]:bounds[c + 1]`.
    parallel
        Runs the chunks.
    copy_in_order
        Rows to be copied into the order.

    Returns
    -------
    order : (tasks,)
        int32 below 2³¹ tasks.
    offsets : (groups + 1,) int64
        Group g is `order[offsets[g]:offsets[g + 1]]`.
    """
    chunks, tasks = len(counts), len(keys)
    if copy_in_order is not None and not copy_in_order.is_worthwhile(counts.shape[1]):
        copy_in_order = None
    sizes = counts[:, key_order].T.astype(np.int64)  # (groups, chunks): earlier chunks come first within a group
    ends = np.cumsum(sizes.ravel()).reshape(sizes.shape)
    order = np.empty(tasks, index_dtype(tasks)) if copy_in_order is None else copy_in_order.order
    start = np.zeros(counts.shape, f"u{order.itemsize}")
    start[:, key_order] = (ends - sizes).T
    if copy_in_order is None:
        parallel(lambda c: _scatter(keys, bounds[c], bounds[c + 1], start[c], order), chunks)
    else:
        rows, group = (copy_in_order.source, copy_in_order.target), copy_in_order.group
        buffered = (counts.shape[1] * group,)

        def scatter(c: int) -> None:
            buffers = empty_lines(buffered, order.dtype), empty_lines(buffered, rows[0].dtype)
            _scatter_rows(keys, bounds[c], bounds[c + 1], start[c], order, *rows, *buffers, group)

        parallel(scatter, chunks)
    return order, np.concatenate([[0], ends[:, -1]]).astype(np.int64)


@njit(nogil=True, cache=True)
def _sort_groups(
    order: NDArray[np.integer],
    offsets: NDArray[np.int64],
    begin: int,
    end: int,
    numbers: NDArray[np.integer],
    width: int,
    column: int,
) -> None:
    """Sort the groups begin..end - 1: see `sort_groups`.

    What is sorted are pairs (number minus the group's lowest, place in the group), digit by digit, in the cache.
    """
    largest = 0
    for group in range(begin, end):
        largest = max(largest, offsets[group + 1] - offsets[group])
    tasks = np.empty(largest, order.dtype)
    pairs, sorted_pairs = np.empty(largest, np.uint64), np.empty(largest, np.uint64)
    starts = np.empty(1 << _DIGIT_BITS, np.uint32)
    half, step, item = np.uint64(32), np.uint64(width), np.uint64(column)
    for group in range(begin, end):
        first, size = np.uint64(offsets[group]), np.uint64(offsets[group + 1] - offsets[group])
        low, high = ~np.uint64(0), np.uint64(0)
        for place in range(size):
            if place + np.uint64(SOON) < size:
                prefetch(numbers, np.uint64(order[first + place + np.uint64(SOON)]) * step + item)
            tasks[place] = order[first + place]
            number = np.uint64(numbers[np.uint64(order[first + place]) * step + item])
            pairs[place] = number
            low, high = min(low, number), max(high, number)
        if low >= high:
            continue
        for place in range(size):
            pairs[place] = (pairs[place] - low) << half | place
        bits = np.uint64(0)
        while (high - low) >> bits > np.uint64(0):
            bits += np.uint64(1)
        digits = (bits + np.uint64(_DIGIT_BITS - 1)) // np.uint64(_DIGIT_BITS)
        width_of_digit = (bits + digits - np.uint64(1)) // digits
        radix = np.uint64(1) << width_of_digit
        shift = half
        for _ in range(digits):
            starts[: np.int64(radix)] = 0
            for place in range(size):
                starts[pairs[place] >> shift & (radix - np.uint64(1))] += np.uint32(1)
            before = np.uint32(0)
            for digit in range(radix):
                count = starts[digit]
                starts[digit] = before
                before += count
            for place in range(size):
                digit = pairs[place] >> shift & (radix - np.uint64(1))
                sorted_pairs[np.uint64(starts[digit])] = pairs[place]
                starts[digit] += np.uint32(1)
            pairs, sorted_pairs = sorted_pairs, pairs
            shift += width_of_digit
        for place in range(size):
            order[first + place] = tasks[pairs[place] & np.uint64(0xFFFFFFFF)]


def sort_groups(
    order: NDArray[np.integer],
    offsets: NDArray[np.int64],
    numbers: NDArray[np.integer],
    width: int,
    column: int,
    chunks: int,
    parallel: Parallel,
) -> None:
    """Sort the tasks of each group by a number that each has, in place; tasks of the same number keep their order.

    Parameters
    ----------
    order : (tasks,), offsets : (groups + 1,)
        The groups, as `group_by_key` returns them.
    numbers : (all tasks · width,)
        Numbers of the tasks, not negative, which differ by less than 2³² in a group; a task is sorted by the one at
        `column` among its `width`.
    chunks
        Number of parts, of about equally many tasks, that may run in parallel.
    parallel
        Runs the chunks.
    """
    bounds = np.searchsorted(offsets, even_bounds(len(order), chunks))
    bounds[-1] = len(offsets) - 1
    parallel(lambda c: _sort_groups(order, offsets, bounds[c], bounds[c + 1], numbers, width, column), chunks)
