"""Loops whose rows depend on what they write: their second call tells whether a plan would hold."""

import numpy as np
import pytest
from numba import njit

import strads
from strads import async_for
from strads.schedule.foresight import SHORT

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
    people[i, 1] += 1
    sums[people[i, 0]] += k  # of a table that the loop writes, though never in this column


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
    assert "shows whether tasks keep to their rows" in calls[1].plan.explain()
    if body is union:
        assert all("a task has left the rows" in stats.plan.explain() for stats in calls[2:])
    else:
        assert all(stats.strategy != "sequential" for stats in calls[2:])
