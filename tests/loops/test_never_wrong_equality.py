"""Values that only look equal: local arrays, long constants, and one name for two numbers."""

import numpy as np
import pytest
from serial import run_or_refuse

import strads
from strads import async_for

MANY = 500_000  # tasks, for two threads to meet in one row
ALONE = 1.5  # more parallelism than tasks can have that nearly all write one row

full, zeros = strads.dvector.full, strads.dvector.zeros


def changing_array_last(k, X, W):
    X[k] += 1
    a = np.zeros(1, np.int64)
    b = np.zeros(1, np.int64)
    a[0] = k
    b[0] = X[k]
    W[(b[0] - 3) * k] += 1 + 0 * a[0]


def changing_array_first(k, X, W):
    X[k] += 1
    a = np.zeros(1, np.int64)
    b = np.zeros(1, np.int64)
    b[0] = X[k]
    a[0] = k
    W[(b[0] - 3) * k] += 1 + 0 * a[0]


def add_to(a, x):
    a += x


def changing_array_by_helper(k, X, W):
    X[k] += 1
    t = np.zeros(1, np.int64)
    add_to(t, X[k])
    W[(t[0] - 3) * k] += 1


def changing_array_by_numpy(k, X, W):
    X[k] += 1
    t = np.zeros(1, np.int64)
    np.add(t, X[k], t)
    W[(t[0] - 3) * k] += 1


def changing_array_by_alias(k, X, W):
    X[k] += 1
    t = np.zeros(1, np.int64)
    same = t
    same[0] = X[k]
    W[(t[0] - 3) * k] += 1


LOCAL_ARRAYS = [
    changing_array_last,
    changing_array_first,
    changing_array_by_helper,
    changing_array_by_numpy,
    changing_array_by_alias,
]


@pytest.mark.parametrize(
    "body",
    [
        changing_array_by_helper,
        *(pytest.param(body, marks=pytest.mark.slow) for body in LOCAL_ARRAYS if body is not changing_array_by_helper),
    ],
)
def test_local_arrays_carry_changing_values_to_a_row_number(body):
    X, W = full(MANY, 3, "i8"), zeros(MANY, "i8")
    async_for(MANY, body, X, W)  # X becomes 4: task k chooses row k
    assert (W.to_numpy() == 1).all()
    for call in range(1, 4):
        X[:] = 2
        assert async_for(MANY, body, X, W).parallelism < ALONE
        assert W[0] == 1 + call * MANY
        assert (W[1:] == 1).all()


@pytest.mark.parametrize("body", LOCAL_ARRAYS)
def test_the_same_where_tasks_choose_differently(body):
    X, W = strads.dvector(np.random.default_rng(0).integers(2, 4, 3000)), zeros(3000, "i8")
    for _ in range(2):
        run_or_refuse(3000, body, X, W)
        X[:] = np.random.default_rng(1).integers(2, 4, 3000)


def by_two_arrays(k, X, x, y):
    a = np.zeros(1, np.int64)
    b = np.zeros(1, np.int64)
    a[0] = k
    b[0] = k % 2
    y[k] += x[a[0]]
    if X[k] > 2:
        x[b[0]] += 1
    X[k] += 0


def by_one_array_filled_twice(k, X, x, y):
    a = np.zeros(1, np.int64)
    a[0] = k
    y[k] += x[a[0]]
    a[0] = k % 2
    if X[k] > 2:
        x[a[0]] += 1
    X[k] += 0


def by_one_name_for_two_numbers(k, X, x, y):
    row = k
    y[k] += x[row]
    row = k % 2
    if X[k] > 2:
        x[row] += 1
    X[k] += 0


def by_two_lists(k, X, x, y):
    a = [0]
    b = [0]
    a[0] = k
    b[0] = k % 2
    y[k] += x[a[0]]
    if X[k] > 2:
        x[b[0]] += 1
    X[k] += 0


@pytest.mark.parametrize("body", [by_two_arrays, by_one_array_filled_twice, by_one_name_for_two_numbers, by_two_lists])
def test_equal_expressions_of_different_values(body):
    """A row that is read in any case is recorded, but it is not the one that is written sometimes."""
    X, x, y = full(MANY, 5, "i8"), zeros(MANY, "i8"), zeros(MANY, "i8")
    for call in range(1, 3):
        try:
            statistics = async_for(MANY, body, X, x, y)
        except strads.AccessPatternError:
            assert not x.to_numpy().any()
            return
        assert statistics.parallelism < 2 * ALONE
        assert x[:2].tolist() == [call * MANY // 2] * 2
        assert not x[2:].any()
    X, x, y = full(2000, 5, "i8"), zeros(2000, "i8"), zeros(2000, "i8")
    run_or_refuse(2000, body, X, x, y)


ROWS = 2000
EVERYWHERE = np.arange(ROWS)
MOSTLY_ZERO = np.where((EVERYWHERE < 100) | (EVERYWHERE >= ROWS - 100), EVERYWHERE, 0)  # the same when abbreviated


def read_and_maybe_write(k, X, x, y):
    r = k % ROWS
    y[k] += x[EVERYWHERE[r]]
    if X[k] > 2:
        x[MOSTLY_ZERO[r]] += 1
    X[k] += 0


def test_long_global_arrays_that_differ_in_the_middle():
    assert repr(EVERYWHERE) == repr(MOSTLY_ZERO)
    X, x, y = full(MANY, 5, "i8"), zeros(ROWS, "i8"), zeros(MANY, "i8")
    try:
        statistics = async_for(MANY, read_and_maybe_write, X, x, y)
    except strads.AccessPatternError:
        assert not x.to_numpy().any()
        return
    assert statistics.parallelism < ALONE
    expected = np.bincount(MOSTLY_ZERO, minlength=ROWS) * (MANY // ROWS)
    assert np.array_equal(x.to_numpy(), expected)
    X, x, y = full(6000, 5, "i8"), zeros(ROWS, "i8"), zeros(6000, "i8")
    assert run_or_refuse(6000, read_and_maybe_write, X, x, y) is None
