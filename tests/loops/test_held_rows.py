"""Rows that a body holds in variables: those that it never writes are recorded as read."""

import numpy as np
import pytest

import strads
from strads import async_for
from strads.errors import PlanError


def add_one(row):
    row[1] += 1


def only_read(k, t):
    base, own = t[0], t[k + 1]
    for f in range(len(own)):
        own[f] += base[f]


def read_item_by_item(k, t):
    for f in range(t.shape[1]):
        t[k + 1, f] += t[0][f]


def read_by_a_slice(k, t):
    base = t[0]
    tail = base[1:]
    t[k + 1, 0] += tail[0] + tail[-1]


def read_in_a_branch(k, t):
    base = t[0] if k % 2 else t[len(t) - 1]
    own = t[k + 1] if k < len(t) - 2 else t[k]
    own[0] += base[1]


READING = [only_read, read_item_by_item, read_by_a_slice, read_in_a_branch]


def written(k, t):
    base = t[0]
    t[k + 1, 0] = base[1]
    base[1] += 1


def written_by_another_name(k, t):
    base = t[0]
    other = base
    t[k + 1, 0] = base[1]
    other[1] += 1


def written_by_a_slice(k, t):
    base = t[0]
    tail = base[1:]
    tail[0] += 1
    t[k + 1, 0] = base[1]


def written_by_a_slice_in_a_variable(k, t):
    part = slice(1, 2)
    tail = t[0][part]
    tail[0] += 1
    t[k + 1, 0] = t[0][1]


def written_by_a_helper(k, t):
    base = t[0]
    add_one(base)
    t[k + 1, 0] = base[1]


def written_in_place(k, t):
    base = t[0]
    base += 1
    t[k + 1, 0] = base[1]


def written_by_numpy(k, t):
    base = t[0]
    np.add(base, 1, base)
    t[k + 1, 0] = base[1]


def written_from_a_tuple(k, t):
    rows = (t[0], t[k + 1])
    rows[0][1] += 1
    rows[1][0] = rows[0][1]


def written_in_another_turn(k, t):
    last = t[k + 1]
    for turn in range(2):
        last[1] += turn
        last = t[0]
    t[k + 1, 0] = t[0][1]


def written_by_either_name(k, t):
    base = t[0]
    own = t[k + 1]
    chosen = own if k % 3 == 5 else base
    chosen[1] += 1
    own[0] = base[1]


WRITING = [
    written,
    written_by_another_name,
    written_by_a_slice,
    written_by_a_slice_in_a_variable,
    written_by_a_helper,
    written_in_place,
    written_by_numpy,
    written_from_a_tuple,
    written_in_another_turn,
    written_by_either_name,
]


def table(tasks):
    values = np.zeros((tasks + 2, 3))
    values[0] = 1, 2, 3
    return strads.dvector(values)


@pytest.mark.few(2)
@pytest.mark.parametrize("body", READING, ids=lambda body: body.__name__)
def test_tasks_that_read_the_same_row_run_together(body):
    n = 500
    t = table(n)
    expected = t.to_numpy().copy()
    for k in range(n):
        body(k, expected)
    # Rows that are only read depend on nothing but the order, which is kept.
    stats = async_for(n, body, t, threads=2, order="sequential", strategy="wavefront", fastmath=False)
    assert stats.plan.parallelism > 2
    assert np.array_equal(t.to_numpy(), expected)


@pytest.mark.few(2)
@pytest.mark.parametrize("body", WRITING, ids=lambda body: body.__name__)
def test_tasks_that_write_the_same_row_do_not(body):
    n = 20_000
    t = table(n)
    expected = t.to_numpy().copy()
    for k in range(n):
        body(k, expected)
    with pytest.raises(PlanError):
        async_for(n, body, t, threads=2, strategy="independent")
    async_for(n, body, t, threads=2, order="sequential", strategy="wavefront", fastmath=False)
    assert np.array_equal(t.to_numpy(), expected)


def test_rows_of_rows_count_as_written():
    def body(k, t):
        matrix = t[0]
        row = matrix[1]
        row[0] += 1
        t[k + 1, 0, 0] = matrix[1, 0]

    n = 20_000
    t = strads.dvector.zeros((n + 1, 2, 2))
    async_for(n, body, t, threads=2, order="sequential")
    assert np.array_equal(t.to_numpy()[1:, 0, 0], np.arange(1, n + 1))


def test_knapsack_runs_in_its_order_without_being_asked():
    def knapsack(k, weights, values, best):
        before, now = best[k], best[k + 1]
        for capacity in range(len(now)):
            now[capacity] = before[capacity]
            if capacity >= weights[k]:
                now[capacity] = max(now[capacity], before[capacity - weights[k]] + values[k])

    rng = np.random.default_rng(0)
    weights, values = rng.integers(1, 20, 60), rng.integers(0, 100, 60)
    expected = np.zeros((61, 300), np.int64)
    for k in range(60):
        knapsack(k, weights, values, expected)
    best = strads.dvector.zeros((61, 300), "i8")
    stats = async_for(60, knapsack, weights, values, best, threads=2)
    assert "so the loop's order is kept" in stats.plan.explain()
    assert np.array_equal(best.to_numpy(), expected)
