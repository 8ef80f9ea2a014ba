"""Rows that depend on how control flows: on branches, early returns, breaks, lengths, and the ends of loops."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from launching import in_its_own_process
from serial import refuse, run_or_refuse

import strads
from strads import async_for

MANY = 500_000  # tasks, for two threads to meet in one row
ALONE = 1.5  # more parallelism than tasks can have that all write one row

full, zeros = strads.dvector.full, strads.dvector.zeros


def pick(x, k):
    if x > 2:
        return 0
    return k


def by_early_return(k, X, W):
    X[k] += 1
    W[pick(X[k], k)] += 1


def by_unpacking(k, X, W):
    X[k] += 1
    a, b = (0, 1) if X[k] > 2 else (k, 2)
    W[a] += b


def by_conditional_expression(k, X, W):
    X[k] += 1
    W[0 if X[k] > 2 else k] += 1


def by_loop_variable(k, X, W):
    X[k] += 1
    for t in range(k + 1):  # noqa: B007
        if X[k] > 2:
            break
    W[t] += 1


def by_else_of_a_loop(k, X, W):
    X[k] += 1
    row = 0
    for t in range(2):
        if t + X[k] < 3:
            break
    else:
        row = -k
    W[row + k] += 1


def by_length_of_a_list(k, X, W):
    X[k] += 1
    items = [0]
    if X[k] > 2:
        items.append(1)
    W[(2 - len(items)) * k] += 1


def by_continue(k, X, W):
    X[k] += 1
    row = k
    for _ in range(2):
        if X[k] <= 2:
            continue
        row = 0
    W[row] += 1


def by_while(k, X, W):
    X[k] += 1
    row = k
    while row > 0 and X[k] > 2:
        row = 0
    W[row] += 1


BODIES = [
    by_early_return,
    by_unpacking,
    by_conditional_expression,
    by_loop_variable,
    by_else_of_a_loop,
    by_length_of_a_list,
    by_continue,
    by_while,
]
ONCE_WRONG = [by_early_return, by_length_of_a_list]


@pytest.mark.parametrize(
    "body", [body if body in ONCE_WRONG else pytest.param(body, marks=pytest.mark.slow) for body in BODIES]
)
def test_a_row_chosen_by_a_changing_condition_loses_no_update(body):
    X, W = full(MANY, 2, "i8"), zeros(MANY, "f8")  # integers would be counted in copies
    for call in range(1, 4):
        X[:] = 2
        try:
            statistics = async_for(MANY, body, X, W)
        except strads.AccessPatternError:
            assert call == 1
            assert (X.to_numpy() == 2).all()
            assert not W.to_numpy().any()
            return
        assert statistics.parallelism < ALONE
        assert (X.to_numpy() == 3).all()
        assert W[0] == call * MANY  # every task chose row 0
        assert not W[1:].any()


@pytest.mark.few(2)
@pytest.mark.parametrize("body", BODIES)
def test_the_same_where_tasks_choose_differently(body):
    X, W = strads.dvector(np.random.default_rng(0).integers(0, 4, 3000)), zeros(3000, "i8")
    for _ in range(3):
        run_or_refuse(3000, body, X, W)


def by_length_of_a_slice(k, X, W):
    X[k, 0] += 1
    W[(len(X[k, : int(X[k, 0])]) - 2) * k] += 1


def by_length_of_part_of_a_row(k, X, W):
    X[k, 0] += 1
    row = X[k]
    part = row[: int(row[0])]
    W[(part.shape[0] - 2) * k] += 1


@pytest.mark.parametrize(
    "body", [by_length_of_a_slice, pytest.param(by_length_of_part_of_a_row, marks=pytest.mark.slow)]
)
def test_the_length_of_a_slice_with_a_changing_bound(body):
    X, W = full((MANY, 4), 2, "i1"), zeros(MANY, "f8")
    async_for(MANY, body, X, W)
    assert (W.to_numpy() == 1).all()
    for call in range(1, 4):
        X[:] = 1
        assert async_for(MANY, body, X, W).parallelism < ALONE
        assert W[0] == 1 + call * MANY
        assert (W[1:] == 1).all()


def far(x, k):
    if x > 2:
        return 1 << 40
    return k


def by_far_row(k, X, W):
    X[k] += 1
    W[far(X[k], k)] += 1


@in_its_own_process(60)
def test_a_row_far_outside_after_an_early_return():
    refuse(strads.StradsError, 1000, by_far_row, full(1000, 2, "i8"), zeros(1000, "i8"))


def by_data(k, D, W):
    W[pick(D[k], k)] += 1


def test_data_that_decide_an_early_return_may_change_between_calls():
    D, W = zeros(MANY, "i8"), zeros(MANY, "f8")
    async_for(MANY, by_data, D, W)
    D[:] = 5
    for call in range(1, 4):
        assert async_for(MANY, by_data, D, W).parallelism < ALONE
        assert W[0] == 1 + call * MANY
    assert (W[1:] == 1).all()


def up_to(k, s, W):
    for t in range(1 << 30):
        if t >= s:
            break
    W[t] += 1


@in_its_own_process(60)
def test_where_a_loop_was_left_may_change_between_calls():
    W = zeros(10, "i8")
    assert run_or_refuse(4, up_to, 3, W) is None
    refuse(strads.StradsError, 4, up_to, 50_000_000, W)
    assert W.to_list() == [0, 0, 0, 4, 0, 0, 0, 0, 0, 0]


def done(x):
    if x > 5:  # noqa: SIM103
        return True
    return False


def until_done(k, W):
    while not done(W[k]):
        W[k] += 1


@in_its_own_process(60)
def test_a_loop_that_a_helper_ends():
    W = strads.dvector(np.arange(1000) % 10)
    assert run_or_refuse(1000, until_done, W) is None


def counting_up(k, W):
    while W[k] < 5:
        W[k] += 1


def halving(k, W, V):
    while True:
        W[k] = W[k] // 2
        V[k] += 1
        if W[k] == 0:
            return


@in_its_own_process(60)
def test_loops_that_changing_values_end():
    W, V = strads.dvector(np.arange(1000) % 7), zeros(1000, "i8")
    run_or_refuse(1000, counting_up, W)
    run_or_refuse(1000, halving, W, V)


def never_ending(k, W, V):
    while W[k] < 1:
        V[k] += 1


def never_ending_by_helper(k, W, V):
    while not done(W[k]):
        V[k] += 1


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["never_ending", "never_ending_by_helper"])
@in_its_own_process(60)
def test_an_interrupt_stops_what_never_ends(name):
    body = globals()[name]
    came: list[float] = []

    def interrupt() -> None:
        came.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    W, V = full(4, 9, "i8"), zeros(4, "f8")
    async_for(4, body, W, V)  # ends, and is compiled
    W[:] = 0
    threading.Timer(0.2, interrupt).start()  # before 2³⁰ iterations are over, which are refused
    with pytest.raises(KeyboardInterrupt):
        async_for(4, body, W, V)
    assert time.monotonic() - came[0] < 10
    async_for(4, by_early_return, full(4, 9, "i8"), V)  # the threads are free again
