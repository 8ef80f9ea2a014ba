"""Records as the planner reads them: a row of a task once, and whether tasks feed later ones."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from strads.schedule.choice import sample_stride
from strads.schedule.planner import build_plan
from strads.schedule.records.access import SparseRecords, TableShape, UniformRecords
from strads.schedule.records.flow_dependences import MANY, FlowDependences, flow_dependences
from strads.schedule.records.merging import merge_repeated
from strads.schedule.records.parts import as_sparse, as_uniform

ROWS = 6
TABLES = (TableShape("a", ROWS, 8), TableShape("b", ROWS, 8))
accesses = st.tuples(st.integers(0, ROWS - 1), st.integers(0, 3))  # row and tag
repeated = st.lists(accesses, min_size=30, max_size=34).map(lambda some: 128 * some)
few_or_many = st.one_of(st.lists(accesses, max_size=12), st.lists(accesses, min_size=120, max_size=140), repeated)


def sparse(tasks: list[list[tuple[int, int]]]) -> SparseRecords:
    offsets = np.concatenate([[0], np.cumsum([len(task) for task in tasks])]).astype(np.int64)
    flat = [access for task in tasks for access in task]
    rows, tags = np.array([r for r, _ in flat], np.int32), np.array([t for _, t in flat], np.uint8)
    return SparseRecords(TABLES, offsets, rows, tags)


@given(st.lists(few_or_many, max_size=8))
def test_a_row_is_kept_once_and_written_if_any_access_writes(tasks: list[list[tuple[int, int]]]) -> None:
    records = sparse(tasks)
    counts = np.diff(records.offsets).astype(np.int32)
    kept = merge_repeated(counts, records.rows, records.tags)
    assert kept == counts.sum()
    first = 0
    for task, count in zip(tasks, counts.tolist(), strict=True):
        found = list(zip(records.rows[first:][:count].tolist(), records.tags[first:][:count].tolist(), strict=True))
        first += count
        writes: dict[tuple[int, int], int] = {}
        for row, tag in task:
            writes[row, tag >> 1] = writes.get((row, tag >> 1), 0) | (tag & 1)
        assert found == [(row, 2 * table + write) for (row, table), write in writes.items()]


def test_rows_beyond_those_that_fit_into_the_hash_are_kept() -> None:
    every = np.tile(np.arange(600_000, dtype=np.int32), 2)
    counts, tags = np.array([len(every), 3], np.int32), np.zeros(len(every) + 3, np.uint8)
    rows = np.concatenate([every, np.array([5, 5, 6], np.int32)])
    kept = merge_repeated(counts, rows, tags)
    assert 600_000 < counts[0] < len(every)
    np.testing.assert_array_equal(np.unique(rows[: counts[0]]), every[:600_000])
    assert rows[counts[0] : kept].tolist() == [5, 6]


@given(st.lists(st.lists(accesses, max_size=5), max_size=12))
def test_feeding_follows_its_definition(tasks: list[list[tuple[int, int]]]) -> None:
    writers: dict[tuple[int, int], list[int]] = {}
    for number, task in enumerate(tasks):
        for row, tag in task:
            if tag & 1:
                writers.setdefault((row, tag >> 1), []).append(number)
    backward, foreign, fed = False, False, 0
    for number, task in enumerate(tasks):
        own = {(row, tag >> 1) for row, tag in task if tag & 1}
        reads = [(row, tag >> 1) for row, tag in task if not tag & 1 and (row, tag >> 1) not in own]
        foreign |= bool(reads)
        backward |= any(max(writers.get(read, [-1])) > number for read in reads)
        fed += any(read in writers for read in reads)
    if backward:
        expected = FlowDependences.BACKWARD
    elif not foreign:
        expected = FlowDependences.NEVER
    else:
        expected = FlowDependences.FORWARD if fed > MANY * len(tasks) else FlowDependences.SELDOM
    assert flow_dependences(sparse(tasks)) is expected


@given(st.integers(1, 5), st.lists(st.integers(0, 3), min_size=1, max_size=4), st.integers(0, 2**32 - 1))
def test_both_forms_of_records_say_the_same(tasks: int, tags: list[int], seed: int) -> None:
    rows = np.random.default_rng(seed).integers(0, ROWS, (tasks, len(tags))).astype(np.int32)
    uniform = UniformRecords(TABLES, tuple(tag >> 1 for tag in tags), tuple(bool(tag & 1) for tag in tags), rows)
    compressed = as_sparse(uniform)
    again = as_uniform(compressed)
    for task in range(tasks):
        assert uniform.of_task(task) == compressed.of_task(task) == again.of_task(task)


def test_a_long_loop_without_a_plan_that_wins_is_judged_by_a_part() -> None:
    tasks = 300_000
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 20_000, (tasks, 6)).astype(np.int32)
    rows[:, 0] = np.where(rng.random(tasks) < 0.5, 0, rows[:, 0])
    records = UniformRecords((TableShape("x", 20_000, 4),), (0,) * 6, (True,) * 6, rows)
    plan = build_plan(records, threads=2)
    assert plan.strategy == "sequential"
    text = plan.explain()
    assert f"{len(range(0, tasks, sample_stride(tasks))):,} tasks from all over it" in text
    assert "row 0 of x" in text
    assert "not components: " in text


def test_neighbours_that_conflict_do_not_keep_a_loop_from_being_planned() -> None:
    tasks, width = 400_000, 6
    rng = np.random.default_rng(1)
    near = np.arange(tasks)[:, None] // 3 + rng.integers(0, 60, (tasks, width))
    records = UniformRecords((TableShape("x", tasks // 3 + 60, 8),), (0,) * width, (True,) * width, near.astype("i4"))
    assert build_plan(records, threads=2).strategy == "colouring"
