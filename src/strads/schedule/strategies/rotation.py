"""Strategy *rotation*: each task touches one row of each of k written tables (thesis §4.1, algorithms 3 and 4).

Where tasks visit rows often, an epoch goes over the grid several times, each time with some of the tasks of each cell:
factors learned in one cell alone would not fit those of the next. The tasks of a cell run in the order of the rows of
the largest table. Blocks of a single table pass over parts of the loop one after the other, so that what the tasks read
in turn is still in the cache for the next block.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.errors import PlanError
from strads.rng.splitmix import mix
from strads.schedule.details import Deck, Details
from strads.schedule.kernels.counting_sort import group_by_key, sort_groups
from strads.schedule.kernels.parallel import TILE, chunk_bounds, index_dtype
from strads.schedule.plan import Plan
from strads.schedule.records.written_rows import columns_equal
from strads.schedule.strategies.blocks import CACHE_BYTES, blocks_for_cache, equal_work_cuts
from strads.schedule.strategies.dealing import GRAIN, deal_plan
from strads.schedule.strategies.grid import GridJobs, bottleneck, odd, reason_of
from strads.schedule.strategies.problem import Problem

BLOCKS = {1: 32, 2: 32, 3: 8}  # blocks per axis, by the number of axes
BLOCKS_BESIDE_PRIVATE = 16  # blocks per axis, for one or two axes, if tasks also touch tables without conflicts
MANY_TASKS = 1 << 22  # from here on, jobs are still large with twice as many blocks of three tables
MAX_FOR_CACHE = 128  # more blocks make jobs so small that starting them costs more than the cache saves
ENOUGH_OF_GRID = 2.0  # parallelism with which no other strategy is considered
ROWS_NEAR = 2048  # of a block from which rows are drawn: from fewer, draws would vary little
MAX_KEYS = 65_536  # so that the job of a task fits uint16
VISITS = 64  # of a row of the smaller table, on average, beyond which there are several passes over a grid of two
VISITS_OF_JOB = 8  # of such a row in one job, at most, if passes can be made short enough
ROWS_OF_BLOCK = 16  # that are touched, at least, if there are several passes
MIN_PASSES, FEW_PASSES, LEAST_PASSES = 5, 3, 4  # fewest passes: usually; if tables are large; if there are few tasks
LARGE, BLOCKS_IF_LARGE = 1 << 24, 16  # bytes of tables that caches do not hold: each job fetches its rows from memory
STRETCH_BITS, STRETCH_BITS_BESIDE_PRIVATE = (
    4,
    10,
)  # binary logarithm of the number of consecutive tasks that share a pass
# With one table, blocks pass over parts of the loop: at most so many, of at least so many visits a row, tasks a block.
MAX_PARTS, VISITS_OF_PART, TASKS_OF_PART = 64, 4, 8192
SMALL_REPLICAS = 1 << 14  # bytes that take no time to be summed
MIN_TASKS, MIN_BYTES = 256, 1 << 14  # of a job, if there are several passes: its tasks, and the rows that they touch
MIN_BLOCKS = 4  # per axis, if there are several passes, or rows are drawn from it


@njit(nogil=True, cache=True)
def _grid_keys(
    rows: NDArray[np.integer],
    arity: int,
    columns: NDArray[np.int64],
    base: NDArray[np.int64],
    share: NDArray[np.uint16],
    passes: int,
    stretch: int,
    begin: int,
    end: int,
    keys: NDArray[np.uint16],
    counts: NDArray[np.integer],
) -> None:
    """Key of each of the tasks begin..end - 1: the sum of the contributions of its rows' blocks; counts the keys.

    To this is added the pass of the task, below `passes`, times the number of cells. It is the same for each
    2^`stretch` consecutive tasks: given by a hash or, with a single column, their turn in the loop.

    `rows` (tasks · arity,) are numbered within their tables; `columns` are the accesses of a task that determine its
    key, and `base` (arity,) has the number of the first row of each access's table. `share` (all rows,) is what the
    block of a row contributes. `keys` (tasks,) are written, and the occurrences of each are added to `counts`. Indices
    are unsigned, which avoids checks for negative ones.
    """
    width = np.uint64(arity)
    one, two = np.uint64(columns[0]), np.uint64(columns[min(1, len(columns) - 1)])
    first, second = base[one], base[two]
    for start in range(begin, end, TILE):
        tile, last = np.uint64(start), np.uint64(min(start + TILE, end))
        if len(columns) == 1:
            for task in range(tile, last):
                keys[task] = share[np.uint64(first + rows[task * width + one])]
        else:
            for task in range(tile, last):
                row, other = rows[task * width + one], rows[task * width + two]
                keys[task] = share[np.uint64(first + row)] + share[np.uint64(second + other)]
        for column in columns[2:]:
            for task in range(tile, last):
                keys[task] += share[np.uint64(base[column] + rows[task * width + np.uint64(column)])]
        if passes > 1:
            several, cells = np.uint64(passes), np.uint64(len(counts) // passes)
            for task in range(tile, last):
                turn = task >> np.uint64(stretch)
                if len(columns) > 1:
                    turn = (mix(turn) >> np.uint64(32)) * several >> np.uint64(32)
                keys[task] += cells * turn
        for task in range(tile, last):
            counts[keys[task]] += 1


def rotation(problem: Problem) -> Plan:
    """Jobs are the cells of the grid of blocks; a stage is a diagonal.

    Raises
    ------
    PlanError
        If the records are not uniform, if tasks touch two rows of a table, or more tables than rotation serves.
    """
    columns = _axes_or_refuse(problem)
    if problem.loop.near:
        return deal_plan(_deck(problem, columns), problem.loop.deal)
    grid = _Grid.of(problem, columns)
    sorted_by = _column_to_sort_by(problem, columns)
    # The copy may overwrite the records: pass it only if nothing else needs them.
    may_overwrite = grid.jobs.parallelism >= ENOUGH_OF_GRID and sorted_by is None
    copy_in_order = problem.copy_in_order if may_overwrite else None
    groups = group_by_key(grid.keys, grid.counts, grid.jobs.keys, grid.chunks, problem.parallel, copy_in_order)
    if sorted_by is not None:
        found = problem.found
        sort_groups(*groups, found.rows, found.arity, sorted_by, len(grid.chunks) - 1, problem.parallel)
    names, shape = [problem.tables[problem.column_tables[column]].name for column in columns], grid.shape
    details = Details(
        blocks=dict(zip(names, shape, strict=True)),
        bounds=dict(zip(names, grid.cuts, strict=True)),
        cells=grid.jobs.cells,
        bottleneck=bottleneck(names, shape),
    )
    reason = reason_of(names, shape, grid.passes, grid.jobs.stage)
    return problem.plan("rotation", reason, groups, grid.jobs.stage, grid.jobs.precedence, details)


def _column_to_sort_by(problem: Problem, columns: tuple[int, ...]) -> int | None:
    """Column by whose rows the tasks of each cell are sorted; None if that would not be worth the time.

    A job then reads the rows of the largest block once and in sequence. There is nothing to gain if the tables fit in a
    core's cache, and if tasks also touch tables in loop order, sorting would scatter these accesses.
    """
    if len(columns) < 2 or problem.found is not problem.written:
        return None
    sizes = [0] * len(columns)
    for table, axis in _axis_of_tables(problem, columns).items():
        sizes[axis] += problem.tables[table].rows * problem.tables[table].row_bytes
    return None if sum(sizes) <= CACHE_BYTES else columns[int(np.argmax(sizes))]


def evidently_rotates(problem: Problem) -> bool:
    """Whether a rotation is so parallel that no other strategy is considered.

    It does not compute the order of tasks, except where rows are dealt.
    """
    try:
        columns = _axes_or_refuse(problem)
    except PlanError:
        return False
    jobs = rotation(problem) if problem.loop.near else _Grid.of(problem, columns).jobs
    return jobs.parallelism >= ENOUGH_OF_GRID


class _Grid(NamedTuple):
    """The tasks by pass and cell.

    Attributes
    ----------
    cuts, shape
        Bounds of the blocks of each axis, and their number.
    passes
        Number of passes over the grid.
    keys, counts, chunks
        The pass and cell of each task, the tasks of each chunk in each of them, and the bounds of the chunks.
    jobs
        The passes and cells in the order of a rotation.
    """

    cuts: list[NDArray[np.int64]]
    shape: tuple[int, ...]
    passes: int
    keys: NDArray[np.uint16]
    counts: NDArray[np.integer]
    chunks: NDArray[np.int64]
    jobs: GridJobs

    @classmethod
    def of(cls, problem: Problem, columns: tuple[int, ...]) -> "_Grid":
        """Sort the tasks into cells, by their rows in these columns."""
        blocks, passes = _blocks_and_passes(problem, columns)
        cuts = [_cut(problem, column, blocks) for column in columns]
        shape = tuple(len(cut) - 1 for cut in cuts)
        keys, counts, chunks = _keys(problem, columns, cuts, shape, passes)
        jobs = GridJobs.of(counts.sum(axis=0, dtype=np.int64), passes, shape)
        return cls(cuts, shape, passes, keys, counts, chunks, jobs)


def _deck(problem: Problem, columns: tuple[int, ...]) -> Deck:
    """Group the tasks by fine blocks of the tables that rows are drawn from."""
    axis_of = _axis_of_tables(problem, columns)
    near = {axis for table, axis in axis_of.items() if any(table in group for group in problem.loop.near)}
    most, passes = _blocks_and_passes(problem, columns)
    rows = [problem.tables[problem.column_tables[column]].rows for column in columns]
    blocks = [
        min(most, max(count // ROWS_NEAR, MIN_BLOCKS)) if axis in near else most for axis, count in enumerate(rows)
    ]
    most_keys = MAX_KEYS // passes
    grain = 1 if not near else min(GRAIN, int((most_keys / np.prod(blocks)) ** (1 / len(near)) + 1e-9))
    wanted = [b * grain if axis in near else b for axis, b in enumerate(blocks)]
    cuts = [_cut(problem, column, fine) for column, fine in zip(columns, wanted, strict=True)]
    shape = tuple(len(cut) - 1 for cut in cuts)
    dealt = [min(b, fine) if axis in near else fine for axis, (b, fine) in enumerate(zip(blocks, shape, strict=True))]
    keys, counts, bounds = _keys(problem, columns, cuts, shape, passes)
    sizes = counts.sum(axis=0, dtype=np.int64)
    present = np.flatnonzero(sizes)
    order, _ = group_by_key(keys, counts, present, bounds, problem.parallel)
    pass_of, *blocks_of = np.unravel_index(present, (passes, *shape))
    cells = np.stack(blocks_of, axis=1).astype(np.int32)
    tables = problem.tables
    names = [tables[problem.column_tables[column]].name for column in columns]
    axes = {tables[table].name: axis for table, axis in axis_of.items()}
    return Deck(order, sizes[present], pass_of, cells, tuple(dealt), dict(zip(names, cuts, strict=True)), axes)


def _axis_of_tables(problem: Problem, axes: tuple[int, ...]) -> dict[int, int]:
    """Axis of each table that rotates."""
    found, tables = problem.found, problem.tables
    axis_of: dict[int, int] = {}
    for column in problem.columns or ():
        table = problem.column_tables[column]
        for axis, first in enumerate(axes):
            alike = tables[problem.column_tables[first]].rows == tables[table].rows
            if alike and (first == column or columns_equal(found.rows, found.arity, first, column)):
                axis_of.setdefault(table, axis)
    return axis_of


def _axes_or_refuse(problem: Problem) -> tuple[int, ...]:
    if problem.columns is None:
        raise PlanError("tasks touch varying numbers of rows; rotation needs one row of each table")
    tables = [problem.column_tables[column] for column in problem.columns]
    for table in set(tables):
        if tables.count(table) > 1:
            name = problem.tables[table].name
            raise PlanError(
                f"a task touches {tables.count(table)} rows of {name}; rotation needs one row of each table"
            )
    if not tables:
        raise PlanError("no task touches a row that another writes; there is nothing to rotate")
    axes = _axes(problem)
    if len(axes) > max(BLOCKS):
        raise PlanError(f"a task touches rows by {len(axes)} different indices; rotation serves up to {max(BLOCKS)}")
    if len(axes) > 1 and len(tables) > max(BLOCKS):
        # Several tables per index hold the moments of adaptive steps, which converge badly if a cell repeats one row.
        raise PlanError(
            f"a task touches rows of {len(tables)} written tables by {len(axes)} indices; with more than one index, "
            f"rotation serves up to {max(BLOCKS)} tables"
        )
    return axes


def _axes(problem: Problem) -> tuple[int, ...]:
    """One column per index that tasks use: tables of equal length that are always indexed alike rotate together."""
    found, axes = problem.found, list[int]()
    for column in problem.columns or ():
        rows = problem.tables[problem.column_tables[column]].rows
        same = (axis for axis in axes if problem.tables[problem.column_tables[axis]].rows == rows)
        if not any(columns_equal(found.rows, found.arity, axis, column) for axis in same):
            axes.append(column)
    return tuple(axes)


def _blocks(problem: Problem, columns: tuple[int, ...]) -> int:
    """Number of blocks per table."""
    k = len(columns)
    largest = int(MAX_KEYS ** (1 / k) + 1e-9)
    if k == max(BLOCKS):
        return min(largest, BLOCKS[k] * (2 if problem.tasks >= MANY_TASKS else 1))
    if problem.found is not problem.written:  # each block tears apart neighbours in tables that tasks touch in turn
        return min(largest, BLOCKS_BESIDE_PRIVATE)
    tables = [problem.tables[problem.column_tables[column]] for column in columns]
    cached = max(blocks_for_cache(table.rows * table.row_bytes, MAX_FOR_CACHE) for table in tables)
    return min(largest, max(BLOCKS[k], cached))


def _blocks_and_passes(problem: Problem, columns: tuple[int, ...]) -> tuple[int, int]:
    """Number of blocks per table, and of passes over the grid.

    Blocks of one table run their tasks in the same order however many passes there are. A grid of three tables needs
    one pass, as any two blocks meet again for each block of the third. With relaxed tables, whose replicas are summed
    after each stage, several passes would cost too much, unless these are small.
    """
    k, blocks = len(columns), _blocks(problem, columns)
    rows = min(max(int(np.count_nonzero(_work(problem, column))), 1) for column in columns)
    visits = problem.tasks / rows
    if k == 1 and not problem.loop.near and problem.loop.replica_bytes <= SMALL_REPLICAS:
        parts = min(MAX_PARTS, int(visits / VISITS_OF_PART), problem.tasks // (blocks * TASKS_OF_PART))
        return blocks, max(parts, 1)
    if k != 2 or visits <= VISITS or problem.loop.replica_bytes:
        return blocks, 1
    tables = [problem.tables[problem.column_tables[column]] for column in columns]
    row_bytes, is_large = sum(t.row_bytes for t in tables), sum(t.rows * t.row_bytes for t in tables) > LARGE
    most_jobs = min(problem.tasks // max(MIN_TASKS, MIN_BYTES // max(row_bytes, 1)), MAX_KEYS)
    fewer = min(blocks, max(rows // ROWS_OF_BLOCK, MIN_BLOCKS), BLOCKS_IF_LARGE if is_large else blocks)
    while fewer > MIN_BLOCKS and MIN_PASSES * fewer**k > most_jobs:
        fewer = max(fewer // 2, MIN_BLOCKS)
    by_visits = 0 if problem.loop.near else int(visits / (VISITS_OF_JOB * fewer))  # dealt blocks are cut finely instead
    wanted = FEW_PASSES if is_large else max(by_visits, MIN_PASSES)
    passes, least = min(wanted, most_jobs // fewer**k), FEW_PASSES if is_large else LEAST_PASSES
    return (fewer, max(odd(passes), least)) if passes >= least else (blocks, 1)


def _work(problem: Problem, column: int) -> NDArray[np.integer]:
    table = problem.column_tables[column]
    return problem.sampled_row_work[problem.first_row[table] : problem.first_row[table + 1]]


def _cut(problem: Problem, column: int, blocks: int) -> NDArray[np.int64]:
    return equal_work_cuts(_work(problem, column), blocks)


def _keys(
    problem: Problem, columns: tuple[int, ...], cuts: list[NDArray[np.int64]], shape: tuple[int, ...], passes: int
) -> tuple[NDArray[np.uint16], NDArray[np.integer], NDArray[np.int64]]:
    """Number of each task's pass and cell in the grid, in C order, its count in each chunk, and the chunks."""
    found = problem.found
    share = np.zeros(problem.rows, np.uint16)
    for axis, column in enumerate(columns):
        stride = int(np.prod(shape[axis + 1 :]))
        table = problem.column_tables[column]
        values = (np.arange(shape[axis]) * stride).astype(np.uint16)
        share[problem.first_row[table] : problem.first_row[table + 1]] = np.repeat(values, np.diff(cuts[axis]))
    bounds = chunk_bounds(problem.tasks, problem.threads)
    keys = np.empty(problem.tasks, np.uint16)
    counts = np.zeros((len(bounds) - 1, passes * int(np.prod(shape))), index_dtype(problem.tasks))
    chosen = np.array(columns, np.int64)
    stretch = STRETCH_BITS if found is problem.written else STRETCH_BITS_BESIDE_PRIVATE
    if len(columns) == 1:
        stretch = ((problem.tasks - 1) // passes).bit_length()

    def fill(chunk: int) -> None:
        begin, end = bounds[chunk], bounds[chunk + 1]
        _grid_keys(found.rows, found.arity, chosen, found.base, share, passes, stretch, begin, end, keys, counts[chunk])

    problem.parallel(fill, len(counts))
    return keys, counts, bounds
