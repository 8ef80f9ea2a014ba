"""Loops whose rows depend on what they write: their second call tells whether a plan would hold."""

import sys

import numpy as np
import pytest
from numba import njit

import strads
from strads import async_for
from strads.loops import program, python_mode
from strads.loops.argument_kinds import bind_arguments
from strads.loops.indices import LoopIndices
from strads.loops.on_nodes import first_look
from strads.loops.python_mode import record_few
from strads.schedule.loop_sample import SHORT

TASKS, ROWS = SHORT, 3000


def union(k, edges, parent):
    a, b = edges[k, 0], edges[k, 1]
    while parent[a] != a:
        a = parent[a]
    while parent[b] != b:
        b = parent[b]
    if a != b:
        parent[max(a, b)] = min(a, b)


def by_owner(k, who, people, sums):
    i = who[k]
    people[i, 1 + 0 * k] += 1
    sums[people[i, 0]] += k  # of a table that the loop writes, though never in this column, which the analysis misses


def problem(body):
    rng = np.random.default_rng(0)
    if body is union:
        return [rng.integers(0, ROWS, (TASKS, 2)), np.arange(ROWS)]
    people = np.column_stack([rng.permutation(ROWS), np.zeros(ROWS, np.int64)])
    return [rng.integers(0, ROWS, TASKS), people, np.zeros(ROWS, np.int64)]


@pytest.mark.few(1)
@pytest.mark.nodes
@pytest.mark.parametrize("body", [union, by_owner])
def test_a_plan_is_only_made_if_tasks_keep_to_their_rows(runtime, body):
    given, calls = problem(body), []
    tables = list(map(strads.dvector, given))
    for _ in range(4):
        for table, array in zip(tables[1:], given[1:], strict=True):
            table[:] = array
        calls.append(async_for(TASKS, body, *tables, record_order=True))
        expected, plain = [array.copy() for array in given], njit(body)
        for k in calls[-1].order:
            plain(k, *expected)
        for table, array in zip(tables, expected, strict=True):
            np.testing.assert_array_equal(table.to_numpy(), array)
    assert [stats.strategy for stats in calls[:2]] == ["sequential", "sequential"]
    assert "samples whether the rows stay the same" in calls[1].plan.explain()
    if body is union:
        assert all("these have changed" in stats.plan.explain() for stats in calls[2:])
    else:
        assert all(stats.strategy != "sequential" for stats in calls[2:])


def count_of_all(k, who, people, sums):
    sums[0] += 1
    people[who[k] % people[0, 1], 0 * k] += 1


def long_tasks(k, edges, parent):
    total = 0
    for j in range(60_000):
        total += j % 7
    a = edges[k, 0]
    if parent[a] != total % 2 - 5:
        parent[parent[a]] = edges[k, 1]


def compiled_recorders(monkeypatch):
    found = []
    original = program.LoopProgram._recorder
    monkeypatch.setattr(
        program.LoopProgram, "_recorder", lambda *args, **options: found.append(1) or original(*args, **options)
    )
    return found


def test_tasks_that_leave_their_rows_need_no_recorder(monkeypatch):
    found = compiled_recorders(monkeypatch)
    tables = list(map(strads.dvector, problem(union)))
    for _ in range(3):
        stats = async_for(TASKS, union, *tables)
        tables[1][:] = np.arange(ROWS)
    assert "these have changed" in stats.plan.explain()
    assert not found


def test_a_row_of_all_tasks_is_seen_without_a_recorder(monkeypatch):
    found = compiled_recorders(monkeypatch)
    who, people, sums = problem(count_of_all)
    people[:, 1] = ROWS
    tables = list(map(strads.dvector, [who, people, sums]))
    for _ in range(3):
        stats = async_for(TASKS, count_of_all, *tables)
    assert "touch row 0 of sums" in stats.plan.explain()
    assert tables[2][0] == 3 * TASKS
    assert not found


def test_long_tasks_are_looked_at_by_compiled_code(monkeypatch):
    found = compiled_recorders(monkeypatch)
    edges, parent = problem(union)
    tables = strads.dvector(edges), strads.dvector(parent)
    for _ in range(2):
        async_for(TASKS, long_tasks, *tables)
    assert found


def test_a_look_writes_nothing_and_leaves_the_tracer(monkeypatch):
    who, people, sums = problem(by_owner)
    bound = bind_arguments(by_owner, tuple(map(strads.dvector, (who, people, sums))))
    roles = program.LoopProgram(by_owner, bound, fastmath=True).argument_roles
    before = sys.gettrace()
    records = record_few(by_owner, bound, roles, LoopIndices.of(TASKS))
    assert sys.gettrace() is before
    assert records is not None
    assert records.tasks == 64
    assert all((records.tags[records.offsets[:-1]] & 1).tolist()), "each task changes its row of people"
    np.testing.assert_array_equal(bound.tables[1].dense, people)
    np.testing.assert_array_equal(bound.tables[2].dense, 0)
    middle = (2 * 20 + 1) * TASKS // 128
    assert (0, who[middle]) in records.of_task(20)


def hash_of_index(k, who, people, sums):
    h = k + 3
    for _ in range(len(sums) // 46):
        h = h * h + 1  # which Python's integers would never end to compute
    sums[people[h & 1023, 0]] += k
    people[who[k], 1] += 1


def test_integers_of_a_look_wrap_around():
    who, people, sums = problem(by_owner)
    tables = list(map(strads.dvector, (who, people, sums)))
    for _ in range(3):
        async_for(TASKS, hash_of_index, *tables)
    assert tables[2].to_numpy().sum() == 3 * np.arange(TASKS).sum()
    assert tables[1].to_numpy()[:, 1].sum() == 3 * TASKS


def test_a_look_that_is_interrupted_after_the_run_undoes_it(monkeypatch):
    tables, count = list(map(strads.dvector, problem(by_owner))), strads.accumulator(0)

    def counted(k, who, people, sums, count):
        i = who[k]
        people[i, 1 + 0 * k] += 1
        sums[people[i, 0]] += k
        count.add(1)

    async_for(TASKS, counted, *tables, count)
    before, looks = [table.to_numpy().copy() for table in tables], []

    def interrupted(*arguments):
        looks.append(1)
        if len(looks) == 2:
            raise KeyboardInterrupt
        return record_few(*arguments)

    monkeypatch.setattr(first_look, "record_few", interrupted)
    with pytest.raises(KeyboardInterrupt):
        async_for(TASKS, counted, *tables, count)
    assert len(looks) == 2
    assert count.value == TASKS
    for table, values in zip(tables, before, strict=True):
        np.testing.assert_array_equal(table.to_numpy(), values)


def test_a_look_that_ends_early_leaves_the_tracer(monkeypatch):
    who, people, sums = problem(by_owner)
    bound = bind_arguments(by_owner, tuple(map(strads.dvector, (who, people, sums))))
    roles = program.LoopProgram(by_owner, bound, fastmath=True).argument_roles

    def tracer(frame, event, argument):
        return tracer

    before, found = sys.gettrace(), set()
    try:
        for lines in [*range(20), *range(5000, 6000, 7)]:
            monkeypatch.setattr(python_mode, "_MAX_LINES", lines)
            sys.settrace(tracer)
            records = record_few(by_owner, bound, roles, LoopIndices.of(TASKS))
            assert sys.gettrace() is tracer
            found.add(records is None)
    finally:
        sys.settrace(before)
    assert True in found


def placed(k, keys, cursor, out):
    out[cursor[keys[k]]] = k
    cursor[keys[k]] += 1


def test_rows_that_no_longer_exist_after_the_run_need_no_recorder(monkeypatch):
    found = compiled_recorders(monkeypatch)
    keys = np.random.default_rng(0).integers(0, 9, TASKS)
    ends = np.cumsum(np.bincount(keys))
    tables = strads.dvector(keys), strads.dvector(ends), strads.dvector.zeros(TASKS, "i8")
    for _ in range(3):
        tables[1][:] = np.append(0, ends[:-1])
        stats = async_for(TASKS, placed, *tables, order="sequential")
        np.testing.assert_array_equal(tables[2].to_numpy(), np.argsort(keys, kind="stable"))
        np.testing.assert_array_equal(tables[1].to_numpy(), ends)
    assert "these have changed" in stats.plan.explain()
    assert not found
