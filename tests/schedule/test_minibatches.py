"""Minibatches: every row is in one, whoever works on it, and nodes do not matter."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from strads.schedule.minibatches import Minibatches, TouchedRows

shapes = st.tuples(st.integers(0, 300), st.integers(1, 40), st.integers(1, 4), st.integers(1, 3))


@given(shapes, st.none() | st.integers(0, 5))
def test_every_row_is_in_one_minibatch_of_one_worker(shape, seed):
    rows, size, nodes, threads = shape
    cut = Minibatches(rows, size, nodes * threads, seed)
    orders = [cut.order(worker) for worker in range(cut.workers)]
    assert sorted(np.concatenate(orders).tolist()) == list(range(cut.count))
    seen = [row for a, b in zip(cut.starts, cut.stops, strict=True) for row in range(a, b)]
    assert seen == list(range(rows))
    assert all(b - a == size for a, b in zip(cut.starts[:-1], cut.stops[:-1], strict=True))
    assert max(map(len, orders)) - min(map(len, orders)) <= 1


@given(shapes)
def test_a_node_has_the_rows_of_its_workers(shape):
    rows, size, nodes, threads = shape
    cut = Minibatches(rows, size, nodes * threads)
    bounds = cut.row_bounds(nodes)
    assert (bounds[0], bounds[-1], len(bounds)) == (0, rows, nodes + 1)
    for worker in range(cut.workers):
        node = worker // threads
        for number in cut.order(worker):
            assert bounds[node] <= cut.starts[number] < cut.stops[number] <= bounds[node + 1]


@given(st.integers(0, 300), st.integers(1, 40), st.integers(1, 12), st.integers(1, 5))
def test_nodes_need_not_have_equally_many_workers(rows, size, workers, nodes):
    cut = Minibatches(rows, size, workers)
    bounds, of_node = cut.row_bounds(nodes), cut.worker_bounds(nodes)
    assert (bounds[0], bounds[-1], of_node[0], of_node[-1]) == (0, rows, 0, workers)
    for node in range(nodes):
        for worker in range(of_node[node], of_node[node + 1]):
            for number in cut.order(worker):
                assert bounds[node] <= cut.starts[number] < cut.stops[number] <= bounds[node + 1]


@given(shapes)
def test_participants_of_each_round(shape):
    rows, size, nodes, threads = shape
    cut = Minibatches(rows, size, nodes * threads)
    counts = np.array([len(cut.order(worker)) for worker in range(cut.workers)])
    for together in (1, threads):
        groups = counts.reshape(-1, together).max(axis=1)
        expected = [int((groups > clock).sum()) for clock in range(groups.max())]
        assert cut.participants(together).tolist() == expected


def test_rows_that_any_of_some_minibatches_touches():
    touched = TouchedRows(5, np.array([0, 2, 2, 5]), np.array([1, 4, 0, 4, 7]))
    assert touched.of(np.array([5])).tolist() == [1, 4]
    assert touched.of(np.array([6])).tolist() == []
    assert touched.of(np.array([5, 7])).tolist() == [0, 1, 4, 7]
    assert touched.of(np.array([], np.int64)).tolist() == []
