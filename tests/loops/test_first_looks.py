"""Loops whose rows depend on what they write: the first call tells whether a plan would hold."""

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


def tables(body):
    return list(map(strads.dvector, problem(body)))


def check(found, stats_of_calls, body):
    """The result is that of the plain loop in the orders of the calls."""
    expected, plain = problem(body), njit(body)
    for stats in stats_of_calls:
        for k in stats.order:
            plain(k, *expected)
    for table, array in zip(found, expected, strict=True):
        np.testing.assert_array_equal(table.to_numpy(), array)


@pytest.mark.nodes
@pytest.mark.parametrize("body", [union, by_owner])
def test_a_plan_is_only_made_if_tasks_keep_to_their_rows(runtime, body):
    found = tables(body)
    calls = [async_for(TASKS, body, *found, record_order=True) for _ in range(3)]
    assert "which shows whether tasks keep to their rows" in calls[0].plan.explain()
    assert calls[0].strategy == "sequential"
    if body is union:
        assert all("a task has left the rows" in stats.plan.explain() for stats in calls[1:])
    else:
        assert all(stats.strategy != "sequential" for stats in calls[1:])
        assert calls[2].reconnaissance_seconds == 0
    check(found, calls, body)


def test_loops_with_other_indices_know_it():
    found = tables(union)
    for tasks in (range(TASKS), range(TASKS - 1), range(1, TASKS)):
        stats = async_for(tasks, union, *found)
    assert "a task has left the rows" in stats.plan.explain()
