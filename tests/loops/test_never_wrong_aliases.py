"""What a body writes where the same thing has two names: rows in other objects, and views of a written table."""

import numpy as np
import pytest
from serial import run_or_refuse

import strads
from strads import async_for

MANY = 2_000_000  # tasks, for two threads to meet in one row

full, zeros = strads.dvector.full, strads.dvector.zeros


# -- writes that go through something else ------------------------------------------------------------------

STATE = [("a", "f8"), ("v", "f8", (3,))]


def states(rows):
    table = np.zeros(rows, STATE)
    table["v"] = np.arange(3 * rows).reshape(rows, 3)
    return strads.dvector(table)


def add_to_field_by_index(k, rows, R):
    R[rows[k]].v[0] += 1


def add_to_field(k, rows, R):
    R[k].v[0] += 1


def add_to_field_of_named_record(k, rows, R):
    r = R[rows[k]]
    v = r.v
    v[1] += r.a + 1


def assign_to_field(k, rows, R):
    r = R[k]
    r.v[:] = r.v[0] + 1


def fill(values, number):
    for f in range(len(values)):
        values[f] += number


def add_by_helper(k, rows, R):
    fill(R[rows[k]].v, 2)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "body", [add_to_field_by_index, add_to_field, add_to_field_of_named_record, assign_to_field, add_by_helper]
)
def test_arrays_in_records_are_written(body):
    rows = strads.dvector(np.random.default_rng(0).integers(0, 50, 400))
    R = states(400)
    for _ in range(3):
        run_or_refuse(400, body, rows, R)


TURN = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])


def multiply_into(k, D, W):
    np.dot(TURN, W[k] + 1.0, W[k])


def multiply_into_the_next_row(k, D, W):
    np.dot(TURN, W[k] + 1.0, W[(k + 1) % len(W)])


def multiply_into_a_shared_row(k, D, W):
    np.dot(TURN, W[k % 3] + D[k], W[k % 3])


def multiply_into_a_named_row(k, D, W):
    w = W[k % 3]
    np.dot(TURN, w + D[k], w)


def add_into(k, D, W):
    np.add(W[0], D[k], W[0])


def add_into_by_name(k, D, W):
    np.add(W[0], D[k], out=W[0])


def round_into(k, D, W):
    np.round(W[k] * 0.3, 0, W[k % 3])


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "body",
    [
        multiply_into,
        multiply_into_the_next_row,
        multiply_into_a_shared_row,
        multiply_into_a_named_row,
        add_into,
        add_into_by_name,
        round_into,
    ],
)
def test_what_numpy_writes_into_is_written(body):
    D, W = (strads.dvector(np.arange(3.0 * 2000).reshape(2000, 3)) for _ in range(2))
    for _ in range(3):
        run_or_refuse(2000, body, D, W)


def copy_into(k, D, W):
    W[0][:] = D[k] + W[0]


def swap_rows(k, D, W):
    a, b = W[0], W[k]
    a[0], b[0] = b[0] + 1, a[0]


def add_in_place(k, D, W):
    row = W[k % 3]
    row += D[k]


@pytest.mark.few(1)
@pytest.mark.parametrize("body", [copy_into, swap_rows, add_in_place])
def test_rows_under_other_names_are_written(body):
    D, W = strads.dvector(np.arange(2.0 * 2000).reshape(2000, 2)), zeros((2000, 2), "f8")
    for _ in range(3):
        run_or_refuse(2000, body, D, W)


# -- views of a written table --------------------------------------------------------------------------------


def next_after(k, W, A):
    W[(k + 1) % len(W)] = A[k] + 1


def from_another_job(k, W, A):
    W[k] = A[(k + len(W) // 64) % len(A)] + 1


VIEWS = {
    "to_numpy": lambda table: table.to_numpy(),
    "asarray": lambda table: np.asarray(table),
    "slice": lambda table: table[:],
    "part": lambda table: table[: len(table) // 2],
    "reversed": lambda table: table.to_numpy()[::-1],
    "own array": lambda table: table.storage,
}


def check_view(tasks, body, view):
    W = zeros(tasks, "i8")
    plain = np.zeros(tasks, np.int64)
    A = VIEWS[view](W)
    refusal = ""
    try:
        stats = async_for(len(A), body, W, A, record_order=True)
    except strads.ArgumentError as error:
        refusal = str(error)
    if refusal:
        assert "'W'" in refusal
        assert "'A'" in refusal
        assert not W.to_numpy().any()
        return
    same = {"part": plain[: len(A)], "reversed": plain[::-1]}.get(view, plain)
    for k in stats.order.tolist():
        body(k, plain, same)
    assert np.array_equal(W.to_numpy(), plain)


@pytest.mark.parametrize("view", VIEWS)
def test_an_array_that_is_a_view_of_a_written_table(view):
    check_view(1000, next_after, view)


def test_a_view_that_other_threads_write():
    check_view(MANY, from_another_job, "to_numpy")


def test_a_table_over_memory_that_is_passed_too():
    memory = np.zeros(1000, np.int64)
    W = strads.dvector(memory, copy=False)
    if not np.shares_memory(W.to_numpy(), memory):
        return
    plain = memory.copy()
    try:
        stats = async_for(1000, next_after, W, memory, record_order=True)
    except strads.ArgumentError:
        assert np.array_equal(memory, plain)
        return
    for k in stats.order.tolist():
        next_after(k, plain, plain)
    assert np.array_equal(W.to_numpy(), plain)


def test_two_tables_over_the_same_memory():
    memory = np.zeros(1000, np.int64)
    W, A = strads.dvector(memory, copy=False), strads.dvector(memory, copy=False)
    if not np.shares_memory(W.to_numpy(), A.to_numpy()):
        return
    plain = memory.copy()
    try:
        stats = async_for(1000, next_after, W, A, record_order=True)
    except strads.ArgumentError:
        assert np.array_equal(memory, plain)
        return
    for k in stats.order.tolist():
        next_after(k, plain, plain)
    assert np.array_equal(W.to_numpy(), plain)


def test_an_array_that_is_a_view_of_a_table_only_read():
    def copy(k, D, A, W):
        W[k] = D[k] + A[len(A) - 1 - k]

    D, W = strads.dvector(np.arange(1000)), zeros(1000, "i8")
    assert run_or_refuse(1000, copy, D, D.to_numpy(), W) is None
