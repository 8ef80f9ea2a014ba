"""Loops that get other tables or indices in each call, as minibatches do: a plan would serve one call only."""

from math import exp

import numpy as np
import pytest
from tests.loops.serial import refuse, run_or_refuse

import strads

ROWS, TASKS = 20_000, 2_000


def attract(k, left, right, W, C, rate):
    i, j = left[k], right[k]
    for f in range(W.shape[1]):
        step = rate * (C[j, f] - W[i, f])
        W[i, f] += step
        C[j, f] -= step


def spread(k, frontier, neighbours, level):
    for n in range(2):
        v = neighbours[frontier[k]] + n
        if level[v] < 0:
            level[v] = k


def attract_slowly(k, left, right, W, C, rate):
    total = 0.0
    for n in range(1000):
        total += exp(-n * rate)
    W[left[k], 0] += total
    C[right[k], 0] -= total


def relax_edges(k, frontier, starts, ends, weights, distance, parent):
    v = frontier[k]
    for p in range(starts[v], starts[v + 1]):
        w = ends[p]
        if weights[p] < 0.75 and distance[v] + weights[p] < distance[w]:
            distance[w] = distance[v] + weights[p]
            parent[w] = v


def sweep(k, grid, colour):
    for t in range(1 + (k + colour) % 2, grid.shape[1] - 1, 2):
        grid[k + 1, t] = 0.25 * (grid[k, t] + grid[k + 2, t] + grid[k + 1, t - 1] + grid[k + 1, t + 1])


def predict(k, features, weights):
    total = 0.0
    for j in range(features.shape[1]):
        total += weights[features[k, j]]
    step = 0.5 / (1.0 + exp(-total))
    for j in range(features.shape[1]):
        weights[features[k, j]] -= step


class Minibatches:
    """The arguments of calls with other pairs, in tables of their own, and common weights."""

    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)
        self.weights = [strads.dvector(self.rng.random((ROWS, 3))) for _ in range(2)]

    def next(self, tasks=TASKS):
        left, right = (strads.dvector(self.rng.integers(0, ROWS, tasks)) for _ in range(2))
        return left, right, *self.weights, 0.1


def strategies(calls):
    return [strads.async_for(TASKS, *call).strategy for call in calls]


def test_minibatches_in_tables_of_their_own():
    batches = Minibatches()
    for _ in range(6):
        assert run_or_refuse(TASKS, attract, *batches.next()) is None
    found = strategies([(attract, *batches.next()) for _ in range(2)])
    assert found == ["sequential"] * 2


def test_minibatches_of_indices():
    batches = Minibatches()
    arguments = batches.next()
    for _ in range(6):
        assert run_or_refuse(batches.rng.permutation(TASKS)[:1000], attract, *arguments) is None
    assert strads.async_for(batches.rng.permutation(TASKS)[:1000], attract, *arguments).strategy == "sequential"


def test_a_loop_that_computes_is_planned_in_each_call():
    batches = Minibatches()
    assert "sequential" not in strategies([(attract_slowly, *batches.next()) for _ in range(5)])


def test_short_calls_say_nothing_about_long_ones():
    batches = Minibatches()
    for tasks in (5, 3, 4, 1):
        strads.async_for(tasks, attract_slowly, *batches.next(tasks))
    assert strategies([(attract_slowly, *batches.next())]) != ["sequential"]


def test_a_program_that_is_run_again_gives_the_same_result():
    def program():
        statistics = strads.async_for(TASKS, attract, *Minibatches().next(), record_order=True)
        return statistics.order.tolist()

    assert program() == program() == program() == program()


def test_plans_return_with_the_data():
    batches = Minibatches()
    assert strategies([(attract, *batches.next()) for _ in range(4)])[2:] == ["sequential"] * 2
    arguments = batches.next()
    assert strategies([(attract, *arguments) for _ in range(3)])[1:] == ["rotation"] * 2


@pytest.mark.parametrize("order", ["any", "sequential"])
def test_frontiers_on_a_large_table(order):
    rng = np.random.default_rng(0)
    neighbours, level = strads.dvector(rng.integers(0, ROWS - 1, ROWS)), strads.dvector.full(ROWS, -1, "i4")
    for size in (300, 20, 1, 500, 70, 0, 40):
        frontier = strads.dvector(rng.integers(0, ROWS, size))
        assert run_or_refuse(size, spread, frontier, neighbours, level, order=order) is None
        neighbours[3] = ROWS - 1
        refuse(
            strads.BodyIndexError,
            size + 1,
            spread,
            strads.dvector(np.full(size + 1, 3)),
            neighbours,
            level,
            order=order,
        )
        neighbours[3] = 0


def test_frontiers_under_conditions_on_data():
    """Other vertices touch other rows, whatever the outcomes of the conditions on weights."""
    rng = np.random.default_rng(0)
    starts = strads.dvector(8 * np.arange(ROWS + 1))
    ends, weights = strads.dvector(rng.integers(0, ROWS, 8 * ROWS)), strads.dvector(rng.integers(1, 8, 8 * ROWS) / 8)
    frontier, distance = strads.dvector(np.zeros(TASKS, np.int64)), strads.dvector.full(ROWS, 99.0)
    parent = strads.dvector.full(ROWS, -1, "i8")
    distance[:50] = 0.0
    for size in (50, 30, 70, 400, 900, 800, 850):
        frontier[:] = rng.integers(0, 50 if size < 100 else ROWS, TASKS)
        tables = frontier, starts, ends, weights, distance, parent
        assert run_or_refuse(size, relax_edges, *tables) is None
    assert "change from call to call" in strads.async_for(860, relax_edges, *tables).plan.explain()


def test_a_loop_that_computes_little_is_not_planned_in_each_call():
    rng = np.random.default_rng(0)
    weights = strads.dvector.zeros(1 << 16, "f8")
    calls = [(predict, strads.dvector(rng.integers(0, 1 << 16, (TASKS, 20))), weights) for _ in range(5)]
    assert strategies(calls)[2:] == ["sequential"] * 3


@pytest.mark.parametrize("colours", [2, 3])
def test_numbers_that_return_are_planned(colours):
    grid = strads.dvector(np.random.default_rng(0).normal(size=(TASKS + 2, 40)))
    found = strategies([(sweep, grid, call % colours) for call in range(4 * colours)])
    assert "sequential" not in found[2 * colours :]


def test_numbers_that_do_not_return_are_not_planned():
    grid = strads.dvector(np.random.default_rng(0).normal(size=(TASKS + 2, 40)))
    assert set(strategies([(sweep, grid, call % 10) for call in range(30)])[1:10]) == {"sequential"}


def test_calls_of_other_types_and_sizes():
    """A call is prepared like the one before only if its code is the same, and what it writes is small beside it."""
    rng = np.random.default_rng(1)
    tables = [strads.dvector(rng.random((ROWS, 3))) for _ in range(2)]
    for tasks in (900, 800, 1000, 3, 700, 2000, 0, 1500, 1, 1200):
        pairs = rng.integers(0, ROWS, (2, 2 * tasks))
        left, right = (pairs[0, ::2], pairs[1, :tasks]) if tasks % 3 else map(strads.dvector, pairs[:, :tasks])
        indices = rng.integers(0, tasks, tasks // 2) if tasks % 2 == 0 else tasks
        assert run_or_refuse(indices, attract, right, left, *tables[::-1], 0.1) is None
        assert run_or_refuse(indices, attract, left, right, *tables, 0.1) is None
        beyond = np.full(tasks + 1, ROWS)
        refuse(strads.BodyIndexError, tasks + 1, attract, beyond, np.append(right, 0), *tables, 0.1)


def test_a_call_like_the_one_before_has_a_plan_of_its_own_length():
    batches = Minibatches()
    for tasks in (2000, 1900, 1500, 1700, 30):
        statistics = strads.async_for(tasks, attract, *batches.next(tasks), record_order=True)
    assert statistics.order.tolist() == list(range(30))
    assert statistics.plan.tasks == 30
    assert statistics.reconnaissance_seconds == 0.0
    assert "change from call to call" in statistics.plan.explain()


def queue_neighbours(k, frontier, neighbours, level, following, count):
    v = neighbours[frontier[k]]
    if level[v] < 0:
        level[v] = level[frontier[k]] + 1
        following[count[0]] = v
        count[0] += 1


def test_long_frontiers_whose_rows_the_loop_chooses():
    """They are prepared like the one before, until one returns: then samples show whether a plan would last."""
    rng = np.random.default_rng(2)
    neighbours, level = strads.dvector(rng.integers(0, 3 * ROWS, 3 * ROWS)), strads.dvector.full(3 * ROWS, -1, "i8")
    following, count = strads.dvector.zeros(3 * ROWS, "i8"), strads.dvector.zeros(1, "i8")
    tables = neighbours, level, following, count
    for size in (20_000, 18_000, 25_000, 40_000, 300, 17_000):
        frontier = strads.dvector(rng.integers(0, 3 * ROWS, size))
        assert run_or_refuse(size, queue_neighbours, frontier, *tables) is None
        level[rng.integers(0, 3 * ROWS, 20_000)] = -1
        count[0] = 0
    for _ in range(3):
        assert run_or_refuse(size, queue_neighbours, frontier, *tables) is None
    count[0] = 3 * ROWS
    level[:] = -1
    refuse(strads.BodyIndexError, size, queue_neighbours, frontier, *tables)


def test_plans_do_not_share_the_memory_of_the_indices_that_they_were_made_for():
    """The same indices come back in another array, after those of the first call have changed in place."""

    def mix(k, values):
        values[k % 1000] = (values[k % 1000] * 3 + k) % 10007

    rng = np.random.default_rng(0)
    values, expected = strads.dvector.zeros(1000, "i8"), np.zeros(1000, "i8")
    given = rng.integers(0, 1 << 16, 20_000)
    first = given.copy()
    for call in range(5):
        if call == 2:
            given[:] = rng.integers(0, 1 << 16, len(given))
        statistics = strads.async_for(first.copy() if call > 2 else given, mix, values, record_order=True)
        for k in statistics.order:
            expected[k % 1000] = (expected[k % 1000] * 3 + k) % 10007
        assert values.to_numpy().tolist() == expected.tolist()
