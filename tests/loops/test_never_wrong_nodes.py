"""On nodes, where tables lie in parts that move: a plan holds while they lie as it found them."""

import numpy as np
import pytest
from serial import refuse, run_or_refuse

import strads
from strads import async_for
from strads.cluster import Runtime

pytestmark = pytest.mark.nodes

full, zeros = strads.dvector.full, strads.dvector.zeros


def shrink(k, W):
    W[k] = W[k] // 2 + 1


def sgd(k, d, W, H):
    r = d[k]
    w, h = W[r.a], H[r.b]
    before = w[0]
    w[0] = (w[0] * 31 + h[0] + k) % 1009
    h[0] = (h[0] * 17 + before + k) % 1009


def pairs(tasks: int, users: int, items: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    data = np.zeros(tasks, [("a", "i4"), ("b", "i4")])
    data["a"] = rng.random(tasks) ** 2 * users
    data["b"] = rng.random(tasks) ** 2 * items
    return data


def test_loops_in_turn_move_rows_under_each_other(runtime):
    data = pairs(4000, 2000, 300)
    d, W, H = strads.dvector(data), full((2000, 1), 100, "i8"), full((300, 1), 7, "i8")
    w, h = W.to_numpy().copy(), H.to_numpy().copy()
    for _ in range(3):
        statistics = async_for(2000, shrink, W, record_order=True)
        for k in statistics.order.tolist():
            shrink(k, w)
        statistics = async_for(4000, sgd, d, W, H, record_order=True)
        for k in statistics.order.tolist():
            sgd(k, data.view(np.recarray), w, h)
    assert np.array_equal(W.to_numpy(), w)
    assert np.array_equal(H.to_numpy(), h)


def test_the_same_with_other_work_between(runtime):
    """Each of them moves the rows of the other: nothing but the loops is called in between."""
    data = pairs(4000, 2000, 300)
    d, W, H = strads.dvector(data), full((2000, 1), 100, "i8"), full((300, 1), 7, "i8")
    w, h = W.to_numpy().copy(), H.to_numpy().copy()
    calls = []
    for turn in range(6):
        other = (sgd, (d, W, H), 4000) if turn % 2 else (shrink, (W,), 2000)
        calls.append((other[0], async_for(other[2], other[0], *other[1], record_order=True).order.tolist()))
    calls.append((shrink, async_for(2000, shrink, W, record_order=True).order.tolist()))
    for body, order in calls:
        for k in order:
            body(k, *((w,) if body is shrink else (data.view(np.recarray), w, h)))
    assert np.array_equal(W.to_numpy(), w)
    assert np.array_equal(H.to_numpy(), h)


def test_rows_that_are_moved_between_calls(runtime: Runtime, nodes: int):
    data = pairs(4000, 2000, 300)
    d, W, H = strads.dvector(data), full((2000, 1), 100, "i8"), full((300, 1), 7, "i8")
    w, h = W.to_numpy().copy(), H.to_numpy().copy()
    for cut in (1000, 300, 1999, 0, 2000, 1000):
        if nodes > 1 and runtime.cluster.backend == "threads":
            W.distribute(runtime.cluster, np.array([0, *np.linspace(cut, 2000, nodes).astype(int)]))
        for k in async_for(2000, shrink, W, record_order=True).order.tolist():
            shrink(k, w)
        if nodes > 1 and runtime.cluster.backend == "threads":
            W.distribute(runtime.cluster, np.array([0, *np.linspace(cut, 2000, nodes).astype(int)]))
            H.distribute(runtime.cluster, np.array([0, *np.linspace(cut // 7, 300, nodes).astype(int)]))
        for k in async_for(4000, sgd, d, W, H, record_order=True).order.tolist():
            sgd(k, data.view(np.recarray), w, h)
    assert np.array_equal(W.to_numpy(), w)
    assert np.array_equal(H.to_numpy(), h)


def add(k, A, W):
    W[k] += A[0] * len(A) + A[k % len(A)]


def add_if_there(k, A, W):
    if k < len(A):
        W[k] = A[k]


def add_mean(k, A, W):
    W[k] += A.sum()


@pytest.mark.few(2)
@pytest.mark.parametrize("body", [add, add_if_there, add_mean])
@pytest.mark.parametrize("is_table", [False, True])
def test_arrays_and_tables_of_other_lengths(runtime, body, is_table):
    if is_table and body is add_mean:
        return  # a table is used row by row
    W = zeros(100, "i8")
    for length in (3, 7, 50, 100, 3, 120):
        A = np.arange(length) + 1
        assert run_or_refuse(100, body, strads.dvector(A) if is_table else A, W) is None


def by_both(k, A, W):
    W[k] += A[k % 2, 0] + A.shape[1]


def test_arrays_of_other_widths(runtime):
    W = zeros(100, "i8")
    for columns in (3, 5, 1):
        assert run_or_refuse(100, by_both, np.arange(2 * columns).reshape(2, columns), W) is None


def scatter(k, A, W):
    W[A[k]] += 1


def test_index_arrays_that_change_in_place(runtime):
    A, W = np.arange(500), zeros(500, "i8")
    for row in (3, 4, 5):
        assert run_or_refuse(500, scatter, A, W) is None
        A[100:200] = row
    A[0] = 500
    refuse(strads.BodyIndexError, 500, scatter, A, W)


def changing(k, X, W):
    X[k] += 1
    W[0 if X[k] > 2 else k] += 1


def test_rows_chosen_by_changing_values(runtime):
    X, W = strads.dvector(np.random.default_rng(0).integers(0, 4, 600)), zeros(600, "i8")
    for _ in range(3):
        run_or_refuse(600, changing, X, W)


def test_new_bounds_and_new_tables_in_turn(runtime):
    """Freed tables leave their names and numbers to others."""
    for rows in (100, 37, 100, 64):
        W = strads.dvector(np.arange(rows))
        assert run_or_refuse(rows, shrink, W) is None
        assert run_or_refuse(rows // 2, shrink, W) is None
        assert run_or_refuse(range(rows - 1, -1, -2), shrink, W) is None


def longer_rows(batch, p, W):
    for n in range(len(batch)):
        for _ in range(len(batch[n])):
            W[p[n]] += 1


def test_minibatches_of_another_table(runtime):
    rng = np.random.default_rng(0)
    p, W = strads.dvector(np.arange(5)), zeros(5, "i8")
    strads.register_aggregation(W, "sum")
    expected = np.zeros(5, int)
    for _ in range(4):
        lengths = rng.integers(0, 3, 60)
        lengths[:2] = 1, 2
        docs = strads.dvector([[1] * n for n in lengths], "i8")
        strads.sync_for(docs, longer_rows, p, W, batch_size=5, recon=True)
        expected += lengths.reshape(12, 5).sum(0)
        assert W.to_list() == expected.tolist()


def walk(k, steps, W):
    W[W[k % len(W)] % len(W)] += steps[k]


def test_a_loop_that_leaves_its_rows_reads_what_was_written_between_calls(runtime):
    rng = np.random.default_rng(4)
    steps, expected = rng.integers(1, 9, 600), rng.integers(0, 400, 400)
    W, table = strads.dvector(expected.copy()), strads.dvector(steps.copy())
    for call in range(3):
        stats = async_for(600, walk, table, W, record_order=True)
        for k in stats.order.tolist():
            walk(k, steps, expected)
        assert np.array_equal(W.to_numpy(), expected), (call, stats.strategy)
        steps[call:] = rng.integers(1, 9, 600 - call)
        table[:] = steps


def first_of(k, chosen, W):
    row = W[chosen[k]]
    if row[0 * len(chosen)] > 1.5:
        row[0] -= 1


def test_an_empty_row_is_an_error_in_every_call(runtime):
    chosen, W = (
        strads.dvector(np.array([2, 2, 1, 2, 0, 2, 2, 0] * 2)),
        strads.dvector([[1.75, -1.5], [], [-2.25]], "f4"),
    )
    for call in range(3):
        with pytest.raises(strads.BodyIndexError):
            async_for(16, first_of, chosen, W)
        chosen[15 - call] = 0
    chosen[:] = 2
    async_for(16, first_of, chosen, W)
