"""Access patterns for the tests of this folder."""

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from strads.schedule.records.access import AccessRecords, SparseRecords, TableShape, UniformRecords


def uniform(
    sizes: Sequence[int],
    tables: Sequence[int],
    rows: object,
    writes: Sequence[bool] | None = None,
    dtype: type = np.int32,
) -> UniformRecords:
    shapes = tuple(TableShape("WHUVXYZ"[t], size, 160) for t, size in enumerate(sizes))
    matrix = np.array(rows, dtype)
    matrix = matrix.reshape(-1, len(tables)) if len(tables) else matrix
    return UniformRecords(shapes, tuple(tables), tuple(writes or [True] * len(tables)), matrix)


def sparse(sizes: Sequence[int], tasks: Sequence[Sequence[tuple[int, int, bool]]]) -> SparseRecords:
    """Records of tasks given as lists of (table, row, write)."""
    shapes = tuple(TableShape("WHUVXYZ"[t], size, 160) for t, size in enumerate(sizes))
    flat = [access for task in tasks for access in task]
    offsets = np.cumsum([0] + [len(task) for task in tasks]).astype(np.int64)
    rows = np.array([row for _, row, _ in flat], np.int32)
    tags = np.array([2 * table + write for table, _, write in flat], np.uint8)
    return SparseRecords(shapes, offsets, rows, tags)


def ratings(tasks: int, users: int, items: int, seed: int = 0) -> UniformRecords:
    """Matrix factorization with popular items."""
    rng = np.random.default_rng(seed)
    columns = rng.integers(0, users, tasks), (rng.random(tasks) ** 1.5 * items).astype(np.int64)
    return uniform([users, items], [0, 1], np.stack(columns, axis=1))


def edges(tasks: int, nodes: int, seed: int = 0) -> UniformRecords:
    """Both ends of random edges of a graph."""
    return uniform([nodes], [0, 0], np.random.default_rng(seed).integers(0, nodes, (tasks, 2)))


def scattered(tasks: int, rows: int, most: int, seed: int = 0) -> SparseRecords:
    """Tasks that write 0 to `most` random rows of one table."""
    rng = np.random.default_rng(seed)
    return sparse(
        [rows],
        [[(0, int(r), True) for r in rng.integers(0, rows, rng.integers(0, most + 1))] for _ in range(tasks)],
    )


@st.composite
def uniform_loops(draw: st.DrawFn) -> UniformRecords:
    """Any uniform access: up to three tables, repeated ones, reads among the writes, equal columns."""
    sizes = draw(st.lists(st.integers(1, 40), min_size=1, max_size=3))
    tables = draw(st.lists(st.integers(0, len(sizes) - 1), min_size=0, max_size=5))
    writes = draw(st.lists(st.booleans(), min_size=len(tables), max_size=len(tables)))
    tasks = draw(st.integers(0, 120))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows = np.stack([rng.integers(0, sizes[t], tasks) for t in tables], axis=1) if tables else np.empty((tasks, 0))
    if len(tables) > 1 and tables[0] == tables[1] and draw(st.booleans()):
        rows[:, 1] = rows[:, 0]
    shapes = tuple(TableShape("WHU"[t], size, 160) for t, size in enumerate(sizes))
    dtype = draw(st.sampled_from([np.int32, np.int64]))
    return UniformRecords(shapes, tuple(tables), tuple(writes), rows.astype(dtype))


@st.composite
def k_partite_loops(draw: st.DrawFn) -> UniformRecords:
    """One row of each of one to three written tables."""
    sizes = draw(st.lists(st.sampled_from([1, 2, 5, 40, 300]), min_size=1, max_size=3))
    tasks = draw(st.integers(0, 400))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    skew = draw(st.sampled_from([1, 4]))
    rows = np.stack([(rng.random(tasks) ** skew * size).astype(np.int32) for size in sizes], axis=1)
    return uniform(sizes, range(len(sizes)), rows)


@st.composite
def loops_that_read_elsewhere(draw: st.DrawFn) -> UniformRecords:
    """One row of each of two written tables, and one more of the second, which no task writes."""
    users, items, others = (draw(st.sampled_from([1, 5, 40, 300])) for _ in range(3))
    tasks = draw(st.integers(0, 150))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows = rng.integers([0, 0, items], [users, items, items + others], (tasks, 3))
    return uniform([users, items + others], [0, 1, 1], rows, [True, True, False])


@st.composite
def sparse_loops(draw: st.DrawFn) -> SparseRecords:
    """Any sparse access."""
    sizes = draw(st.lists(st.sampled_from([1, 3, 20, 200]), min_size=1, max_size=4))
    most = draw(st.sampled_from([1, 2, 4, 9]))
    tasks = draw(st.integers(0, 150))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    reads = draw(st.sampled_from([0.0, 0.5, 0.95]))
    loop = []
    for _ in range(tasks):
        tables = rng.integers(0, len(sizes), rng.integers(0, most + 1))
        loop.append([(int(t), int(rng.integers(0, sizes[t])), bool(rng.random() >= reads)) for t in tables])
    return sparse(sizes, loop)


def any_loops() -> st.SearchStrategy[AccessRecords]:
    """Every kind of loop."""
    return st.one_of(uniform_loops(), k_partite_loops(), loops_that_read_elsewhere(), sparse_loops())
