"""Cutting tables into blocks of rows that carry equal work."""

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.partition import offsets_of
from strads.rng.splitmix import GAMMA
from strads.schedule.kernels.parallel import Parallel, chunk_bounds, index_dtype
from strads.schedule.records.touches import Touches

STRETCH = 512  # consecutive tasks that are counted or skipped together
CACHE_BYTES = 512 * 1024  # a block of this size stays in a core's private cache


def equal_work_cuts(work: NDArray[np.integer], blocks: int) -> NDArray[np.int64]:
    """Cut the rows of a table into contiguous blocks of about equal work.

    Each block takes its share of the remaining work, so a row heavier than a block's share does not unbalance
    the other blocks.

    Parameters
    ----------
    work : (rows,)
        Number of accesses to each row.
    blocks
        How many blocks to cut, at least 1.

    Returns
    -------
    (cut + 1,) int64
        Bounds: block b has the rows `bounds[b]:bounds[b + 1]`. Every block has work, unless there is none at
        all; if fewer than `blocks` rows are touched, there are fewer blocks.
    """
    before = offsets_of(work)
    total = before[-1]
    if total == 0:
        return np.array([0, len(work)], np.int64)
    bounds = [0]
    for block in range(blocks - 1):
        done = before[bounds[-1]]
        share = (total - done) / (blocks - block)
        end = int(np.searchsorted(before, math.ceil(done + share)))  # a float would have all of them converted
        nearest = end - 1 if done + share - before[end - 1] < before[end] - done - share else end
        cut = nearest if before[nearest] > done else end
        if before[cut] >= total:
            break
        bounds.append(cut)
    return np.array([*bounds, len(work)], np.int64)


def blocks_for_cache(table_bytes: int, most: int) -> int:
    """Number of blocks, at most `most`, such that each fits in a core's cache."""
    return min(most, -(-table_bytes // CACHE_BYTES))


def apportion(work: NDArray[np.integer], blocks: int) -> NDArray[np.int64]:
    """Divide blocks among tables in proportion to their work; each table with any work gets at least one."""
    given = np.minimum(work, 1).astype(np.int64)
    for _ in range(blocks - int(given.sum())):
        with np.errstate(divide="ignore", invalid="ignore"):
            load = np.where(given > 0, work / given, 0.0)
        given[int(np.argmax(load))] += 1 if np.any(given) else 0
    return given


@njit(nogil=True, cache=True)
def _count_columns(
    rows: NDArray[np.integer],
    arity: int,
    columns: NDArray[np.int64],
    base: NDArray[np.int64],
    every: int,
    begin: int,
    end: int,
    counts: NDArray[np.integer],
) -> None:
    """Count accesses of the tasks begin..end - 1 in `columns`; `base` (arity,) is each column's first row number.

    Only one of `every` stretches of tasks is counted, chosen by a hash so that no period of the loop biases the sample.
    """
    width = np.uint64(arity)
    for stretch in range(begin // STRETCH, -(-end // STRETCH)):
        group, position = divmod(np.uint64(stretch), np.uint64(every))
        if (group * GAMMA >> np.uint64(32)) % np.uint64(every) != position:
            continue
        start, last = np.uint64(max(stretch * STRETCH, begin)), np.uint64(min((stretch + 1) * STRETCH, end))
        for column in columns:
            first, offset = base[column], np.uint64(column)
            for task in range(start, last):  # unsigned: no check for negative indices
                counts[np.uint64(first + rows[task * width + offset])] += 1


@njit(nogil=True, cache=True)
def _count_rows(rows: NDArray[np.integer], begin: int, end: int, counts: NDArray[np.integer]) -> None:
    for access in range(begin, end):
        if rows[access] >= 0:
            counts[rows[access]] += 1


def column_work(
    rows: NDArray[np.integer],
    columns: tuple[int, ...],
    base: NDArray[np.int64],
    count: int,
    threads: int,
    parallel: Parallel,
    every: int = 1,
) -> NDArray[np.integer]:
    """Number of accesses to each row, counted directly in the records.

    Parameters
    ----------
    rows : (tasks · arity,)
        Row that each access touches, within its table.
    columns
        The accesses to count.
    base : (arity,)
        Number of the first row of each column's table.
    count
        Total number of rows.
    threads, parallel
        How the pass is parallelized.
    every
        Only one of `every` stretches of consecutive tasks is counted.

    Returns
    -------
    (count,)
    """
    arity = len(base)
    bounds = _chunks(len(rows) // max(arity, 1), count, threads)
    counts = np.zeros((len(bounds) - 1, count), index_dtype(len(rows)))
    chosen = np.array(columns, np.int64)
    how = rows, arity, chosen, base, every
    parallel(lambda c: _count_columns(*how, bounds[c], bounds[c + 1], counts[c]), len(counts))
    return _summed(counts)


def touch_work(touches: Touches, count: int, threads: int, parallel: Parallel) -> NDArray[np.integer]:
    """Number of accesses to each of `count` rows; shape (count,)."""
    bounds = _chunks(len(touches.rows), count, threads)
    counts = np.zeros((len(bounds) - 1, count), index_dtype(len(touches.rows)))
    parallel(lambda c: _count_rows(touches.rows, bounds[c], bounds[c + 1], counts[c]), len(counts))
    return _summed(counts)


def _chunks(length: int, count: int, threads: int) -> NDArray[np.int64]:
    """Chunks of a counting pass: few enough that their private counters do not cost more than the pass."""
    return chunk_bounds(length, max(1, min(threads, length // max(count, 1))))


def _summed(counts: NDArray[np.integer]) -> NDArray[np.integer]:
    return counts[0] if len(counts) == 1 else counts.sum(axis=0, dtype=counts.dtype)
