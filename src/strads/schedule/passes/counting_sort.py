"""Stable grouping of tasks by small keys: comparison sorts are too slow for millions of tasks."""

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.schedule.passes.parallel import Parallel, index_dtype
from strads.schedule.passes.prefetch import prefetch_ahead


@dataclass(frozen=True)
class PlanOrderCopy:
    """Rows to be copied into plan order while that order is computed, in one pass."""

    source: NDArray[np.void]  # (tasks or more,): the row of each task
    target: NDArray[np.void]  # (tasks,); may overlap the records that the plan is built from
    order: NDArray[np.integer]  # memory for the order of a plan; if the plan uses it, `target` has been filled


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
def _scatter_rows(
    keys: NDArray[np.integer],
    begin: int,
    end: int,
    start: NDArray[np.integer],
    order: NDArray[np.integer],
    source: NDArray[np.void],
    target: NDArray[np.void],
) -> None:
    """Like `_scatter`, and also copy each task's row of `source` into its place in `target`."""
    for task in range(np.uint64(begin), np.uint64(end)):
        key = keys[task]
        position = np.uint64(start[key])
        order[position] = task
        target[position] = source[task]
        prefetch_ahead(order, position)
        prefetch_ahead(target, position)
        start[key] = position + np.uint64(1)


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
    sizes = counts[:, key_order].T.astype(np.int64)  # (groups, chunks): earlier chunks come first within a group
    ends = np.cumsum(sizes.ravel()).reshape(sizes.shape)
    order = np.empty(tasks, index_dtype(tasks)) if copy_in_order is None else copy_in_order.order
    start = np.zeros(counts.shape, f"u{order.itemsize}")
    start[:, key_order] = (ends - sizes).T
    if copy_in_order is None:
        parallel(lambda c: _scatter(keys, bounds[c], bounds[c + 1], start[c], order), chunks)
    else:
        rows = copy_in_order.source, copy_in_order.target
        parallel(lambda c: _scatter_rows(keys, bounds[c], bounds[c + 1], start[c], order, *rows), chunks)
    return order, np.concatenate([[0], ends[:, -1]]).astype(np.int64)
