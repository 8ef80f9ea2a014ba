"""Blocks of a single table run parts of the loop in turn: each row has its tasks in the order of the loop."""

import numpy as np
import pytest
from numba import njit

import strads

TASKS, ROWS = 800_000, 500
LABEL = np.dtype([("item", "i4"), ("worker", "i4"), ("label", "i4")])


def decayed(k, rows, values, level):
    level[rows[k]] = 0.9 * level[rows[k]] + values[k // 4]


def confused(k, labels, truth, confusion, prior):
    """Of the labels there are few, and integers: threads count them apart."""
    given = labels[k]
    for c in range(truth.shape[1]):
        confusion[given.worker, c] += truth[given.item, c] * given.label
    prior[given.label] += 1


def plain(body):
    step = njit(body)

    @njit
    def loop(tasks, *arrays):
        for k in range(tasks):
            step(k, *arrays)

    return loop


def problem():
    rng = np.random.default_rng(0)
    return rng, rng.integers(0, ROWS, TASKS)


@pytest.mark.parametrize("threads", [1, 2])
def test_rows_have_their_tasks_in_the_order_of_the_loop(threads):
    rng, rows = problem()
    values, level = rng.normal(size=TASKS // 4), np.zeros(ROWS)
    table = strads.dvector(level)
    arguments = strads.dvector(rows), strads.dvector(values)
    loop = plain(decayed)
    for _ in range(3):
        stats = strads.async_for(TASKS, decayed, *arguments, table, threads=threads, fastmath=False)
        loop(TASKS, rows, values, level)
        np.testing.assert_array_equal(table.to_numpy(), level)
    assert stats.strategy == "rotation"
    assert stats.plan.jobs > 32
    assert "each over one part of the loop" in stats.plan.explain()
    assert stats.plan.parallelism > 16


@pytest.mark.nodes
def test_counters_of_few_rows_do_not_bind_the_others(runtime):
    rng, workers = problem()
    labels = np.zeros(TASKS, LABEL)
    labels["worker"], labels["item"], labels["label"] = workers, np.arange(TASKS) // 8, rng.integers(0, 5, TASKS)
    truth, confusion, prior = rng.random((TASKS // 8, 3)), np.zeros((ROWS, 3)), np.zeros(5, np.int64)
    tables = [strads.dvector(array) for array in (labels, truth, confusion, prior)]
    loop = plain(confused)
    for _ in range(2):
        stats = strads.async_for(TASKS, confused, *tables, fastmath=False)
        loop(TASKS, labels, truth, confusion, prior)
        np.testing.assert_array_equal(tables[2].to_numpy(), confusion)
        np.testing.assert_array_equal(tables[3].to_numpy(), prior)
    assert stats.strategy == "rotation"
    assert stats.plan.parallelism > 16
