"""Rows of tables that may not exist are checked in the body, index by index, where a run checks them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from launching import in_its_own_process
from serial import run_or_refuse

import strads
from strads.engine.views.roles import Checking, Role
from strads.loops.argument_kinds import bind_arguments
from strads.loops.program import LoopProgram

ROWS, WIDTH = 6, 4


def scattered(k, J, W, R, x, y):
    y[int(x[k])] += 1.0


def followed(k, J, W, R, x, y):
    i = J[k]
    while J[i] != i:
        J[i] = J[J[i]]
        i = J[i]
    J[k] = i
    y[i] += x[k]


def of_two_axes(k, J, W, R, x, y):
    y[k] += W[int(x[k]), J[k] % WIDTH]
    W[int(x[k]), 1] += 2.0


def of_rows(k, J, W, R, x, y):
    row = W[int(x[k])]
    row[2] += row[1]
    y[k] += W[J[k]].sum()


def of_slices(k, J, W, R, x, y):
    y[k] += J[int(x[k]) : int(x[k]) + 2].sum() + J[-1]


def of_an_array(k, J, W, R, x, y):
    places = np.zeros(2, np.int64)
    places[1] = int(x[k])
    y[k] += J[places].sum()


def of_ragged_rows(k, J, W, R, x, y):
    row = R[int(x[k])]
    y[k] += row[0] + len(R[J[k]])


def item(table, place):
    return table[place]


def by_a_helper(k, J, W, R, x, y):
    y[int(x[k])] += item(J, int(x[k])) + item(W, k)[0] + item((1, 2), J[k] % 2)


def recursive(table, place):
    return table[place] if place > -100 else recursive(table, -place)


def by_a_function_of_its_own(k, J, W, R, x, y):
    y[k] += recursive(W, int(x[k]))[0]


def with_a_comprehension(k, J, W, R, x, y):
    y[int(x[k])] += sum([J[int(x[k])] * i for i in range(3)])


def guarded_by_the_user(k, J, W, R, x, y):
    i = int(x[k])
    if 0 <= i < len(y):
        y[i] += 1.0
        if i > 0:
            y[i - 1] += y[i]


def by_unsigned(k, J, W, R, x, y):
    y[np.uint64(int(x[k]))] += 1.0


def by_literal(k, J, W, R, x, y):
    y[5] += J[-6] + W[-1, -1]
    if x[k] > WIDTH - 1:
        y[6] += 1.0


BODIES = [scattered, followed, of_two_axes, of_rows, of_slices, of_an_array, of_ragged_rows, by_a_helper]
BODIES += [by_a_function_of_its_own, with_a_comprehension, guarded_by_the_user, by_unsigned, by_literal]
_numbers = st.lists(
    st.integers(-ROWS, ROWS - 1) | st.sampled_from([ROWS, -ROWS - 1, 1 << 40]), min_size=ROWS, max_size=ROWS
)


@pytest.mark.few(1)
@pytest.mark.parametrize("order", ["any", "sequential"])
@pytest.mark.parametrize("body", BODIES)
@in_its_own_process(120)
def test_rows_that_may_not_exist(body, order):
    rng = np.random.default_rng(0)

    @settings(max_examples=25)
    @given(st.lists(st.tuples(_numbers, _numbers), min_size=1, max_size=3))
    def check(calls):
        J = strads.dvector(rng.integers(0, ROWS, ROWS))
        W = strads.dvector(rng.integers(0, 3, (ROWS, WIDTH)).astype(float))
        R = strads.dvector([np.arange(1 + n % 3) for n in range(ROWS)])
        x, y = strads.dvector.zeros(ROWS), strads.dvector.zeros(ROWS)
        for numbers, places in (([2] * ROWS, range(ROWS)), *calls):
            x[:] = np.array(numbers, float)
            J[:] = np.array(places)
            error = run_or_refuse(ROWS, body, J, W, R, x, y, order=order)
            assert error is None or isinstance(error, strads.BodyIndexError)
            assert error is None or (numbers, places) in calls

    check()


def checked(body, *arguments, checking):
    bound = bind_arguments(body, arguments)
    program = LoopProgram(body, bound, fastmath=True)
    variables = program.index_checks(bound, checking).variables
    names = None if variables is None else {name.split(".")[0] for _, name in variables}
    return names, program.live_roles(bound, checking)


def one_of_many(k, J, table):
    bad = J[k] + table[0]
    for i in range(len(table)):
        table[i] += 1
    table[bad] += 1


def test_only_rows_that_may_not_exist_are_checked():
    J, table = strads.dvector(np.arange(ROWS)), strads.dvector.zeros(ROWS, "i8")
    names, roles = checked(one_of_many, J, table, checking=Checking.BOUNDS)
    assert names == {"bad"}
    assert roles[1] is Role.WRITTEN
    names, roles = checked(one_of_many, J, table, checking=Checking.ALL)
    assert names == {"k", "bad"}
    assert roles == (Role.READ, Role.WRITTEN)
    names, roles = checked(one_of_many, J, table, checking=Checking.OWNERS)
    assert roles[1] is Role.GUARDED, "that a job owns the row is a matter of its view"


def test_what_cannot_be_checked_alone_keeps_its_view():
    J, W, y = strads.dvector(np.arange(ROWS)), strads.dvector.zeros((ROWS, WIDTH)), strads.dvector.zeros(ROWS)
    for body in (of_an_array, by_a_function_of_its_own):
        names, roles = checked(body, J, W, W, y, y, checking=Checking.ALL)
        assert names is None or roles[0] is Role.CHECKED
