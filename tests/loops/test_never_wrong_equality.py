"""Values that only look equal: local arrays, long constants, and one name for two numbers."""

import importlib
from collections import namedtuple

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
    X, W = full(MANY, 3, "i8"), zeros(MANY, "f8")
    async_for(MANY, body, X, W)  # X becomes 4: task k chooses row k
    assert (W.to_numpy() == 1).all()
    for call in range(1, 4):
        X[:] = 2
        assert async_for(MANY, body, X, W).parallelism < ALONE
        assert W[0] == 1 + call * MANY
        assert (W[1:] == 1).all()


@pytest.mark.few(1)
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


@pytest.mark.few(1)
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


# -- what a body refers to, known by its content ------------------------------------------------------------------


def added(body, *arguments):
    """What a body adds to each of some rows."""
    W = zeros(50, "f8")
    async_for(50, body, W, *arguments)
    assert len(set(W.to_numpy().tolist())) == 1
    return W.to_numpy()[0]


def add_x(k, W, point):
    W[k] += point.x


def test_named_tuples_whose_fields_have_another_order():
    for fields, expected in [("x y", 1), ("y x", 2), ("x y", 1)]:
        assert added(add_x, namedtuple("Point", fields)(1, 2)) == expected


def record_of(value, count):
    whole = np.zeros((), [("values", "f8", (count,)), ("z", "c16")])
    whole["values"][count // 2] = value
    whole["z"] = 1.0 + value * 1e-12
    return whole[()]


@pytest.mark.few(1)
@pytest.mark.parametrize("count", [2, 1002])
def test_global_records_that_look_alike(count):
    def body_of(value):
        record = record_of(value, count)

        def body(k, W):
            W[k] += record["values"][count // 2] + record["z"].real

        return body

    assert repr(record_of(1.0, 1002)) == repr(record_of(2.0, 1002))
    for value in (1.0, 2.0):
        assert added(body_of(value)) == value + (1.0 + value * 1e-12)


def test_global_arrays_of_another_layout():
    def body_of(array):
        def body(k, W):
            W[k] += array.strides[0]

        return body

    for array in (np.arange(8.0)[::2], np.arange(0.0, 8.0, 2.0)):
        assert added(body_of(array)) == array.strides[0]


class Shy(float):
    """A number that does not show its value."""

    def __repr__(self):
        return "Shy"


def test_numbers_that_do_not_show_their_value():
    def body_of(number):
        def body(k, W):
            W[k] += number

        return body

    for value in (1.0, 2.0):
        assert added(body_of(Shy(value))) == value


def test_modules_that_import_each_other(tmp_path, monkeypatch):
    (tmp_path / "one_of_two.py").write_text("import other_of_two\n\ndef double(x):\n    return 2 * x\n")
    (tmp_path / "other_of_two.py").write_text("import one_of_two\n")
    monkeypatch.syspath_prepend(tmp_path)
    one_of_two = importlib.import_module("one_of_two")

    def body(k, W):
        W[k] += one_of_two.double(3.0)

    assert added(body) == 6.0


@pytest.mark.parametrize("strategy", ["buckets", "rotation"])
def test_a_body_that_only_reads_is_refused_by_what_it_cannot_serve(strategy):
    def body(k, x, rows):
        if x[rows[k]] > 1000:
            return

    with pytest.raises(strads.PlanError, match="independent"):
        async_for(200, body, zeros(50, "f8"), strads.dvector(np.arange(200) % 50), strategy=strategy)
