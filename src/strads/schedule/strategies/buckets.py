"""Strategy *buckets*: groups tasks that touch few rows, such as both ends of a graph edge, by blocks of rows."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.errors import PlanError
from strads.schedule.details import Details
from strads.schedule.kernels.counting_sort import group_by_key
from strads.schedule.kernels.parallel import chunk_bounds, index_dtype
from strads.schedule.kernels.prefetch import SOON, prefetch
from strads.schedule.plan import Plan
from strads.schedule.records.touches import Touches, span
from strads.schedule.strategies.blocks import apportion, blocks_for_cache, equal_work_cuts
from strads.schedule.strategies.dealing import GRAIN, dealt, generator
from strads.schedule.strategies.precedence import chain
from strads.schedule.strategies.problem import Problem

MAX_ROWS = 4  # touched by one task
BLOCKS = 32  # over all tables
MAX_FOR_CACHE = 128
MAX_KEYS = 2**20
ROWS_NEAR, MIN_NEAR = 64, 8  # rows of a block, and blocks, if rows are drawn: pairs of fewer blocks would be few jobs
FREE_JOBS = 32  # for tasks that touch no written row


@njit(nogil=True, cache=True)
def _most_rows(touches: Touches, tasks: int, enough: int) -> int:
    """Largest number of distinct rows that a task touches; stops at the first task that reaches `enough`."""
    found = np.empty(enough, np.int64)
    most = 0
    for task in range(tasks):
        first, last = span(touches, task)
        size = 0
        for access in range(first, last):
            row = touches.rows[access]
            if row < 0:
                continue
            known = False
            for position in range(size):
                known |= found[position] == row
            if not known:
                found[size] = row
                size += 1
                if size == enough:
                    return enough
        most = max(most, size)
    return most


@njit(nogil=True, cache=True)
def _bucket_keys(
    touches: Touches,
    block_of: NDArray[np.integer],
    blocks: int,
    width: int,
    begin: int,
    end: int,
    keys: NDArray[np.unsignedinteger],
    counts: NDArray[np.integer],
    work: NDArray[np.int64],
) -> None:
    """Find the keys of the tasks begin..end - 1; count the tasks of each key, and their work: one and their accesses.

    A key is the sorted distinct blocks of a task as digits, padded to `width` digits by repeating the last. `block_of`
    has the block of each row, below `blocks`. `keys` (tasks,) are written; `counts` and `work`, by key, are added to.
    """
    found = np.empty(width, np.int64)
    tasks, accesses = len(keys), len(touches.rows)
    for task in range(begin, end):
        first, last = span(touches, task)
        size = 0
        for access in range(first, last):
            row = touches.rows[access]
            if access + SOON < accesses:
                prefetch(block_of, touches.rows[access + SOON])
            if row < 0:
                continue
            block = block_of[row]
            place = 0
            while place < size and found[place] < block:
                place += 1
            if place < size and found[place] == block:
                continue
            for position in range(size, place, -1):
                found[position] = found[position - 1]
            found[place] = block
            size += 1
        key = 0
        if size == 0:
            key = blocks**width + task * FREE_JOBS // tasks
        for position in range(width if size > 0 else 0):
            key = key * blocks + found[min(position, size - 1)]
        keys[task] = key
        counts[key] += 1
        work[key] += 1 + last - first


@njit(nogil=True, cache=True)
def _first_fit(buckets: NDArray[np.int32], blocks: int) -> NDArray[np.int64]:
    """First stage in which all blocks of a bucket are free, bucket by bucket; −1 denotes no block.

    Equivalent to filling each stage in turn with the first buckets that are disjoint from those already in it.
    """
    degree, most = np.zeros(blocks, np.int64), 0
    for bucket in buckets:
        for block in bucket:
            if block >= 0:
                degree[block] += 1
                most = max(most, degree[block])
    words = buckets.shape[1] * most // 64 + 1
    used = np.zeros((blocks, words), np.uint64)
    stage = np.zeros(len(buckets), np.int64)
    for number in range(len(buckets)):
        word, taken = -1, ~np.uint64(0)
        while taken == ~np.uint64(0):
            word += 1
            taken = np.uint64(0)
            for block in buckets[number]:
                if block >= 0:
                    taken |= used[block, word]
        bit = np.uint64(0)
        while (taken >> bit) & np.uint64(1):
            bit += np.uint64(1)
        for block in buckets[number]:
            if block >= 0:
                used[block, word] |= np.uint64(1) << bit
        stage[number] = word * 64 + bit
    return stage


def buckets(problem: Problem) -> Plan:
    """Tasks with the same set of blocks form a job; disjoint sets share a stage, the heaviest first.

    Raises
    ------
    PlanError
        If a task touches more than `MAX_ROWS` written rows, or there are more written tables than blocks.
    """
    most = _most_rows_of_a_task(problem)
    if most > MAX_ROWS:
        raise PlanError(f"some task touches more than {MAX_ROWS} written rows, too many for buckets")
    width = max(1, most)
    names, cuts, members = _cut_tables(problem, width)
    blocks = sum(int(member.max()) + 1 for member in members)
    keys, counts, work, bounds = _keys(problem, cuts, members, blocks, width)
    sizes = counts.sum(axis=0, dtype=np.int64)
    present = np.flatnonzero(sizes)
    present = present[np.lexsort((present, -sizes[present]))]
    sets = _decode(present, blocks, width)
    stage = _first_fit(sets, max(blocks, 1))
    priority = np.argsort(stage, kind="stable")
    groups = group_by_key(keys, counts, present[priority], bounds, problem.parallel)
    details = Details(
        blocks={name: int(member.max()) + 1 for name, member in zip(names, members, strict=True)},
        bounds={} if problem.loop.near else dict(zip(names, cuts, strict=True)),
        is_dealt=bool(problem.loop.near),
    )
    stages = int(stage.max(initial=-1)) + 1
    reason = (
        f"each task touches at most {width} row{'s' * (width > 1)} of {' and '.join(names) or 'no table'}: "
        f"rows are cut into {blocks} blocks; tasks of the same blocks form {len(present)} jobs "
        f"in {stages} stage{'s' * (stages > 1)}"
    )
    precedence = chain(sets[priority], max(blocks, 1))
    return problem.plan("buckets", reason, groups, stage[priority], precedence, details, work=work[present[priority]])


def touch_few_rows(problem: Problem) -> bool:
    """Whether no task touches more than `MAX_ROWS` written rows: other strategies need not be tried."""
    return _most_rows_of_a_task(problem) <= MAX_ROWS


def _most_rows_of_a_task(problem: Problem) -> int:
    """Return an upper bound of the written rows that a task touches; above `MAX_ROWS`, it counts no further."""
    if problem.columns is not None and len(problem.columns) <= MAX_ROWS:
        return len(problem.columns)
    return int(_most_rows(problem.touches, problem.tasks, MAX_ROWS + 1))


def _cut_tables(problem: Problem, width: int) -> tuple[list[str], list[NDArray[np.int64]], list[NDArray[np.int32]]]:
    """Cut the touched tables into blocks in proportion to their work.

    Returns
    -------
    Names of the tables, bounds of their pieces, and the block of each piece: a piece is a block, or tables of which
    rows are drawn have blocks of several pieces, dealt at random.
    """
    pieces = [problem.row_work[a:b] for a, b in zip(problem.first_row[:-1], problem.first_row[1:], strict=True)]
    work = np.array([piece.sum(dtype=np.int64) for piece in pieces], np.int64)
    limit = int(MAX_KEYS ** (1 / width) + 1e-9)
    touched = np.flatnonzero(work)
    if len(touched) == 0:
        raise PlanError("no task touches a row that is written")
    if len(touched) > limit:
        raise PlanError(f"tasks write {len(touched)} tables, more than the {limit} blocks that buckets can tell apart")
    table_bytes = sum(problem.tables[t].rows * problem.tables[t].row_bytes for t in touched)
    cached = blocks_for_cache(table_bytes, MAX_FOR_CACHE) if width <= 2 else 0
    blocks = max(len(touched), min(limit, max(BLOCKS, cached)))
    given = apportion(work, blocks)
    random, cuts, members = generator(problem.loop.deal), [], []
    for table in touched:
        count = int(given[table])
        if any(table in group for group in problem.loop.near):
            count = min(count, max(problem.tables[table].rows // ROWS_NEAR, MIN_NEAR))
            cuts.append(equal_work_cuts(pieces[table], GRAIN * count))
            members.append(dealt(len(cuts[-1]) - 1, min(count, len(cuts[-1]) - 1), random))
        else:
            cuts.append(equal_work_cuts(pieces[table], count))
            members.append(np.arange(len(cuts[-1]) - 1, dtype=np.int32))
    return [problem.tables[t].name for t in touched], cuts, members


def _keys(
    problem: Problem,
    cuts: list[NDArray[np.int64]],
    members: list[NDArray[np.int32]],
    blocks: int,
    width: int,
) -> tuple[NDArray[np.unsignedinteger], NDArray[np.integer], NDArray[np.int64], NDArray[np.int64]]:
    """Number of each task's set of blocks, its count in each chunk of tasks, the work of each, and the chunks."""
    block_of = np.zeros(problem.rows, np.int16 if blocks < 2**15 else np.int32)  # small, so that it stays in the cache
    first_block, cut = 0, iter(zip(cuts, members, strict=True))
    for begin, end in zip(problem.first_row[:-1], problem.first_row[1:], strict=True):
        if np.any(problem.row_work[begin:end]):
            bounds, member = next(cut)
            block_of[begin:end] = np.repeat(first_block + member, np.diff(bounds))
            first_block += int(member.max()) + 1
    count = blocks**width + FREE_JOBS
    chunks = chunk_bounds(problem.tasks, problem.threads)
    dtype: np.dtype[np.unsignedinteger] = np.dtype(np.uint16 if count <= 2**16 else np.uint32)
    keys = np.empty(problem.tasks, dtype)
    counts = np.zeros((len(chunks) - 1, count), index_dtype(problem.tasks))
    work = np.zeros(counts.shape, np.int64)

    touches = problem.touches  # computed here, not by every thread

    def fill(chunk: int) -> None:
        begin, end = chunks[chunk], chunks[chunk + 1]
        _bucket_keys(touches, block_of, blocks, width, begin, end, keys, counts[chunk], work[chunk])

    problem.parallel(fill, len(counts))
    return keys, counts, work.sum(axis=0), chunks


def _decode(keys: NDArray[np.int64], blocks: int, width: int) -> NDArray[np.int32]:
    """Blocks of each key; shape (keys, width); all −1 for tasks that touch no written row."""
    sets = np.full((len(keys), width), -1, np.int32)
    bound = keys < blocks**width
    for position in range(width):
        sets[bound, position] = keys[bound] // blocks ** (width - 1 - position) % max(blocks, 1)
    return sets
