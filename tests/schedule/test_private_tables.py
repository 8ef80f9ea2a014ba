"""Tables of which every task touches rows of its own cause no conflicts, take no axis, and cost what they cost."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strads.schedule.kernels.parallel import sequential
from strads.schedule.loop import Loop
from strads.schedule.planner import build_plan
from strads.schedule.records.access import SparseRecords, TableShape, UniformRecords
from strads.schedule.records.parts import as_sparse
from strads.schedule.records.private_tables import without_private_tables
from strads.schedule.records.written_rows import find_written_rows
from strads.schedule.strategies.problem import Problem

TASKS, USERS = 3000, 50


def shapes(*rows: int) -> tuple[TableShape, ...]:
    return tuple(TableShape(f"T{number}", count, 8) for number, count in enumerate(rows))


def one_result_a_task(results: np.ndarray, reads: np.ndarray | None = None) -> UniformRecords:
    """Each task writes a row that is shared, and one result; with `reads` it also reads one."""
    users = np.random.default_rng(0).integers(0, USERS, TASKS)
    columns = [users, results] if reads is None else [users, results, reads]
    tables, writes = (0, 1, 1)[: len(columns)], (True, True, False)[: len(columns)]
    return UniformRecords(shapes(USERS, 2 * TASKS), tables, writes, np.stack(columns, axis=1).astype(np.int32))


def tables_in_conflict(records: UniformRecords | SparseRecords) -> set[int]:
    problem = Problem.of(records, Loop(tasks=records.tasks), 2)
    return {t for t in range(len(records.tables)) if problem.first_row[t + 1] > problem.first_row[t]}


@pytest.mark.parametrize("step", [1, 2, -1])
@pytest.mark.parametrize("form", [lambda records: records, as_sparse])
def test_one_result_for_each_task_is_no_conflict(step, form) -> None:
    rows = np.arange(TASKS) * abs(step)
    assert tables_in_conflict(form(one_result_a_task(rows if step > 0 else rows[::-1]))) == {0}


def test_it_takes_no_axis() -> None:
    plan = build_plan(one_result_a_task(np.arange(TASKS)), threads=2, strategy="rotation")
    assert list(plan.details.blocks) == ["T0"]


@pytest.mark.parametrize("form", [lambda records: records, as_sparse])
def test_rows_that_return_conflict(form) -> None:
    rows = np.arange(TASKS)
    rows[TASKS - 1] = 7
    assert tables_in_conflict(form(one_result_a_task(rows))) == {0, 1}
    assert tables_in_conflict(form(one_result_a_task(np.arange(TASKS), np.maximum(np.arange(TASKS) - 1, 0)))) == {0, 1}


def test_a_loop_of_such_tables_is_independent() -> None:
    rows = np.arange(TASKS, dtype=np.int32)[:, None]
    records = UniformRecords(shapes(TASKS), (0,), (True,), rows)
    assert build_plan(records, threads=2).strategy == "independent"
    assert build_plan(records, threads=2, strategy="rotation").details.blocks == {"T0": 32}


def test_estimates_of_time_count_them() -> None:
    with_result = one_result_a_task(np.arange(TASKS))
    users = UniformRecords(shapes(USERS), (0,), (True,), with_result.rows[:, :1].copy())
    longer, shorter = (Problem.of(records, Loop(tasks=records.tasks), 2) for records in (with_result, users))
    assert longer.nanoseconds_in(None) > shorter.nanoseconds_in(None)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_only_tables_without_conflicts_are_dropped(data: st.DataObject) -> None:
    counts = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=8))
    size, rows = sum(counts), st.integers(0, 5)
    tags = data.draw(st.lists(st.integers(0, 5), min_size=size, max_size=size))
    touched = data.draw(st.lists(rows, min_size=size, max_size=size))
    if data.draw(st.booleans()):
        touched = sorted(touched)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    records = SparseRecords(shapes(6, 6, 6), offsets, np.array(touched, np.int32), np.array(tags, np.uint8))
    written = find_written_rows(records)
    found = without_private_tables(written, records)
    task = np.repeat(np.arange(len(counts)), counts)
    for table in range(3):
        own = records.tags >> 1 == table
        rows_of = {(int(r), int(t)) for r, t in zip(records.rows[own], task[own], strict=True)}
        is_shared = len({r for r, _ in rows_of}) < len(rows_of)
        has_rows = found.first_row[table + 1] > found.first_row[table]
        assert not is_shared or has_rows == (written.first_row[table + 1] > written.first_row[table])
    before, after = (each.touches(1, sequential).rows for each in (written, found))
    for access, tag in enumerate(tags):
        table = tag >> 1
        is_kept = found.first_row[table + 1] > found.first_row[table] and before[access] >= 0
        assert after[access] == (before[access] - written.first_row[table] + found.first_row[table] if is_kept else -1)
