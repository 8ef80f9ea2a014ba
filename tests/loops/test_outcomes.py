"""Rows that are touched only under conditions that the loop changes: reconnaissance goes both ways, a plan lasts."""

import numpy as np
import pytest
from serial import run_or_refuse

import strads
from strads import async_for
from strads.bodies.analysis import TableKind, analyse_body

VALUES = TableKind(1)
TASKS = 3000


def with_outcomes(body, *kinds):
    return analyse_body(body, kinds).with_outcomes


def pick(x):
    if x > 2:
        return 0
    return 1


# -- bodies whose rows are known, though not whether they are touched ----------------------------------------------


def under_a_condition(k, A, B, W):
    if W[A[k]] < 3:
        W[B[k]] += 1


def in_either_arm(k, A, B, W):
    if W[A[k]] % 2 == 0:
        W[A[k]] += 1
    else:
        W[B[k]] += 2


def in_a_loop_of_an_arm(k, A, B, W):
    if W[A[k]] < 9:
        for t in range(k % 4):
            W[B[t * 7]] += t
        W[A[k]] += 1


def after_continue(k, A, B, W):
    for t in range(3):
        if W[A[k] // (t + 1)] % 3 == t:
            continue
        W[B[k] // (t + 1)] += 1


def after_break(k, A, B, W):
    for t in range(4):
        if W[A[k] // (t + 1)] > 5:
            break
        W[B[k] // (t + 1)] += 1
    W[A[k]] += 1


def after_early_return(k, A, B, W):
    if W[A[k]] > 6:
        return
    W[B[k]] += pick(W[A[k]])


def under_a_flag(k, A, B, W):
    found = False
    for t in range(3):
        if W[A[k] // (t + 1)] > 3:
            found = True
    if found:
        W[B[k]] -= 1
    W[A[k]] += 1


def in_a_while_loop(k, A, B, W):
    t = 0
    while t < k % 4 and W[A[k]] < 7:
        t += 1
        W[B[k] // t] += 1


def in_nested_arms(k, A, B, W):
    if W[A[k]] < 6:
        if A[k] % 2:
            W[B[k]] += 1
        elif W[B[k] // 2] > 1:
            W[B[k] // 3] += 1
        else:
            W[A[k]] += 2


def beside_an_exception(k, A, B, W):
    if W[A[k]] < 0:
        raise ValueError("negative")
    if W[A[k]] < 5:
        W[B[k]] += 1


def in_a_helper(k, A, B, W):
    if pick(A[k]) + pick(W[A[k]]) > 1:
        W[B[k]] += 1


def under_either_condition(k, A, B, W):
    if W[A[k]] > 2 or W[A[k] // 2] % 2 == 0:
        W[B[k]] += 1


def under_one_of_many(k, A, B, W):
    if W[A[k]] > 4 or (W[A[k] // 2] % 2 == 0 and (W[B[k] // 2] > 1 or A[k] % 3 == 0)) or W[B[k] // 3] == 1:
        W[B[k]] += 1
    elif A[k] % 2 or W[A[k] // 3] > 2:
        W[A[k]] += 1


def by_both_ways_of_what_is_known(k, A, B, W):
    """Which arm leads there, only the index knows."""
    reached = A[k] % 3 == 0 if W[A[k]] % 2 else W[B[k] // 2] > 0
    if reached:
        W[B[k]] += 1


def exit_before_a_break(k, A, B, W):
    for t in range(4):
        if A[k] % (t + 2) == 1:
            return
        if W[B[t]] > 1:
            break
    W[A[k]] += 1


KNOWN = [
    under_a_condition,
    in_either_arm,
    in_a_loop_of_an_arm,
    after_continue,
    after_break,
    after_early_return,
    under_a_flag,
    in_a_while_loop,
    in_nested_arms,
    beside_an_exception,
    in_a_helper,
    under_either_condition,
    exit_before_a_break,
]


@pytest.fixture
def tables():
    rng = np.random.default_rng(7)
    first, second = rng.integers(0, 500, (2, TASKS))
    return first, second, strads.dvector(rng.integers(0, 4, 500))


@pytest.mark.few(2)
@pytest.mark.parametrize("body", KNOWN, ids=lambda body: body.__name__)
def test_is_recorded_once_for_all_values(body, tables):
    assert with_outcomes(body, VALUES, VALUES, VALUES) is not None
    assert run_or_refuse(TASKS, body, *tables, threads=2) is None
    for _ in range(2):
        tables[-1][:] = tables[-1].to_numpy()[::-1].copy()  # other values, other outcomes
        assert run_or_refuse(TASKS, body, *tables, threads=2) is None
    statistics = async_for(TASKS, body, *tables, threads=2)
    assert statistics.reconnaissance_seconds == 0


@pytest.mark.few(2)
@pytest.mark.parametrize("body", KNOWN[:4], ids=lambda body: body.__name__)
def test_on_nodes(body, tables):
    rng = np.random.default_rng(11)
    with strads.init("threads", nodes=2, threads=1):
        for _ in range(3):
            assert run_or_refuse(TASKS, body, *tables) is None
            tables[-1][:] = rng.integers(0, 4, 500)


# -- bodies where no set of outcomes reaches all that a run may reach ----------------------------------------------


def row_by_outcome(k, A, B, W):
    i = A[k] if W[A[k]] > 0 else B[k]
    W[i] += 1


def row_left_by_a_loop(k, A, B, W):
    t = 0
    for t in range(4):
        if W[A[k] // (t + 1)] > 2:
            break
    W[B[k] // (t + 1)] += 1


def two_ways_out(k, A, B, W):
    for t in range(4):
        if W[A[k]] % 2:
            if A[t] % 3 == 0:
                break
        elif B[t] % 3 == 0:
            break
        W[(A[k] + t) % 500] += 1


def exit_in_an_arm(k, A, B, W):
    for t in range(4):
        if W[A[k] // (t + 1)] > 1:
            W[B[k] // (t + 1)] += 1
            if A[t] % 3 == 0:
                return
    W[A[k]] += 1


def as_often_as_a_value(k, A, B, W):
    for t in range(W[A[k]] % 4):
        W[B[k] // (t + 1)] += 1


def counted(k, A, B, W):
    n = 0
    for t in range(4):
        if W[A[k] // (t + 1)] > 1:
            n += 1
            W[B[k] // n] += 1


def listed(k, A, B, W):
    found = [A[k]]
    if W[A[k]] > 1:
        found.append(B[k])
    W[found[-1]] += 1


def what_an_iterator_has_left(k, A, B, W):
    rest = iter(range(4))
    for t in rest:
        if W[A[k] // (t + 1)] > 1:
            break
    for t in rest:
        W[B[k] // (t + 1)] += 1


def count(W, i, x):
    if x % 2:
        W[i] += 1


def helper_with_two_meanings(k, A, B, W):
    count(W, A[k], A[k])  # the same branch is decided here
    count(W, B[k], W[A[k]])


UNKNOWN = [
    row_by_outcome,
    row_left_by_a_loop,
    two_ways_out,
    exit_in_an_arm,
    as_often_as_a_value,
    counted,
    listed,
    what_an_iterator_has_left,
    helper_with_two_meanings,
]


@pytest.mark.few(1)
@pytest.mark.parametrize("body", UNKNOWN, ids=lambda body: body.__name__)
def test_what_outcomes_do_not_reach_stays_volatile(body, tables):
    assert with_outcomes(body, VALUES, VALUES, VALUES) is None
    for _ in range(3):
        assert run_or_refuse(TASKS, body, *tables, threads=2) is None
        tables[-1][:] = tables[-1].to_numpy()[::-1].copy()


# -- where other values than the run's lead reconnaissance astray ---------------------------------------------------


def only_where_valid(k, A, W):
    if W[k] > 0:
        W[A[k]] += 1


def test_rows_that_exist_only_where_the_condition_holds():
    rows = np.arange(1000)
    rows[::3] = 10**6  # no such row
    values = np.ones(1000, np.int64)
    values[::3] = 0
    W = strads.dvector(values)
    for _ in range(3):
        assert run_or_refuse(1000, only_where_valid, rows, W, threads=2) is None
    rows[0] = 3
    assert run_or_refuse(1000, only_where_valid, rows, W, threads=2) is None


def until_it_is_enough(k, A, W):
    t = 0
    while True:
        if W[k] > 3:
            break
        W[k] += A[t]
        t = (t + 1) % 5


def test_a_loop_that_only_values_end():
    W = strads.dvector(np.arange(100) % 5)
    assert run_or_refuse(100, until_it_is_enough, np.ones(5, np.int64), W, threads=2) is None


def by_a_row_of_floats(k, A, W, X):
    w = W[A[k]]
    if w.sum() < 5.0:
        w[:] += 0.5
        X[A[k]] += 1


def test_rows_that_are_used_as_arrays():
    W, X = strads.dvector(np.zeros((50, 3))), strads.dvector.zeros(50)
    for _ in range(3):
        assert run_or_refuse(1000, by_a_row_of_floats, np.arange(1000) % 50, W, X, threads=2) is None
    assert async_for(1000, by_a_row_of_floats, np.arange(1000) % 50, W, X, threads=2).reconnaissance_seconds >= 0


def search(k, A, W):
    for t in range(len(A)):
        if W[t] >= A[k]:
            W[t] -= 1
            break


def test_a_search_that_ends_soon_is_not_recorded_to_its_end():
    needed, W = np.ones(5000, np.int64), strads.dvector(np.full(100_000, 10))
    long = strads.dvector(np.ones(100_000, np.int64))
    assert async_for(5000, search, long, W, threads=2).strategy == "sequential"
    assert W.to_list()[:502] == [0] * 500 + [10, 10]
    assert run_or_refuse(5000, search, needed, W, threads=2) is None


# -- what an independent attack has found ---------------------------------------------------------------------------


def counted_by_a_flag(k, A, B, W):
    w, x, more = W[A[k]], 0, True
    while more:
        x = x + 1
        more = x < w
    W[B[k] // x] += 1


def alias_and_recursion(k, A, B, W):
    f = count
    f(W, A[k], W[B[k]])
    f(W, A[k] // 2, W[B[k]])
    recursive(W, A[k], 1)


def recursive(W, i, n):
    if n > 0:
        W[i] += 1
        recursive(W, W[i] % 500, n - 1)


def only_recursion(k, A, B, W):
    recursive(W, A[k], 3)


@pytest.mark.few(1)
@pytest.mark.parametrize("body", [counted_by_a_flag, alias_and_recursion, only_recursion], ids=lambda b: b.__name__)
def test_loops_left_by_an_edge_and_functions_that_call_themselves(body, tables):
    facts = analyse_body(body, [VALUES] * 3)
    assert facts.with_outcomes is None
    assert facts.volatile == {2}
    for options in ({}, {"strategy": "components"}):
        run_or_refuse(TASKS, body, *tables, threads=2, **options)
        tables[-1][:] = tables[-1].to_numpy()[::-1].copy()


@pytest.mark.few(1)
@pytest.mark.parametrize("body", [under_one_of_many, by_both_ways_of_what_is_known], ids=lambda body: body.__name__)
def test_no_way_to_a_row_is_missed(body, tables):
    for _ in range(3):
        tables[-1][:] = tables[-1].to_numpy()[::-1].copy()
        assert run_or_refuse(TASKS, body, *tables, threads=2) is None


def test_what_is_only_read_does_not_count_as_written_though_a_condition_decides(tables):
    def body(k, A, W):
        if W[k] > W[A[k] % 100]:
            W[k] -= 1

    facts = analyse_body(body, [VALUES, VALUES])
    assert facts.reads_count_as_writes == {1}
    assert facts.with_outcomes is not None
    assert not facts.with_outcomes.reads_count_as_writes
    values = strads.dvector(np.arange(50_000) % 7)
    rows = strads.dvector(np.full(50_000, 11))
    stats = async_for(range(100, 50_000), body, rows, values, strategy="independent")
    assert stats.strategy == "independent"
