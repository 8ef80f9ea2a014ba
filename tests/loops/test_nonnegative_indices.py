"""Code that relies on indices not being negative runs only where they are not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from launching import in_its_own_process
from serial import refuse, run_or_refuse

import strads
from strads.bodies.analysis.values import LOOP_INDEX, SMALL
from strads.loops.arguments import bind_arguments
from strads.loops.program import LoopProgram

ROWS = 12
RECORD = np.dtype([("to", "i4"), ("by", "f8")])


def gather(k, P, J, T, x):
    for p in range(P[k], P[k + 1]):
        x[k] += T[J[p]]


def scatter(k, P, J, T, x):
    for p in range(P[k], P[k + 1]):
        x[J[p]] += T[p]


def of_two_brackets(k, P, J, T, x):
    i = J[k]
    x[i] += T[J[i]]


def by_arithmetic(k, P, J, T, x):
    x[k] += T[(2 * J[k] + P[k] // 2 + J[k + 1]) % len(T)] + T[J[k] >> 1]


def by_a_helper(k, P, J, T, x):
    x[k] += item(T, item(J, k)) + item(P, item(J, k + 1))


def item(array, place):
    return array[array[place] - array[place] + place]


def in_a_sum_of_chosen(k, P, J, T, x):
    best = 0
    for i in J[k : k + 2]:
        if T[i] > T[best]:
            best = i
    x[best] += 1.0


BODIES = [gather, scatter, of_two_brackets, by_arithmetic, by_a_helper, in_a_sum_of_chosen]
_columns = st.lists(st.integers(-ROWS, ROWS - 1), min_size=2 * ROWS, max_size=2 * ROWS)


def tables_of(columns, dtype="i8"):
    ends = np.arange(0, 2 * ROWS + 1, 2)
    return (
        strads.dvector(ends[: ROWS + 1]),
        strads.dvector(np.array(columns, dtype)),
        strads.dvector(np.arange(2 * ROWS) * 0.5),
        strads.dvector.zeros(ROWS),
    )


@pytest.mark.parametrize("order", ["any", pytest.param("sequential", marks=pytest.mark.slow)])
@pytest.mark.parametrize("body", BODIES)
@in_its_own_process(120)
def test_indices_whose_signs_change_between_calls(body, order):
    @settings(max_examples=15)
    @given(st.lists(_columns, min_size=1, max_size=4), st.sampled_from(["i1", "i4"]))
    def check(calls, dtype):
        P, J, T, x = tables_of(calls[0], dtype)
        for columns in ([*map(abs, calls[0])], *calls):
            J[:] = np.array(columns, dtype).clip(max=ROWS - 1)
            run_or_refuse(ROWS - 1, body, P, J, T, x, order=order)
        run_or_refuse(range(-ROWS + 2, 0), body, P, J, T, x, order=order)

    check()


def from_there(k, A, T, x):
    for p in range(A[k], 3):
        x[k] += T[p]


def along_others(k, A, B, T, x):
    for p in range(A[k], B[k]):
        x[k] += T[p]


@in_its_own_process(120)
def test_ranges_that_begin_below_zero():
    T = strads.dvector(np.arange(20.0))
    for start in (-1, -20, -21, -(1 << 40)):
        A, B, x = strads.dvector(np.full(8, 1)), strads.dvector(np.full(8, 3)), strads.dvector.zeros(8)
        A[5] = start
        for body, arguments in ((from_there, (A, T, x)), (along_others, (A, B, T, x))):
            for options in ({}, {"order": "sequential"}):
                if start >= -20:
                    assert run_or_refuse(8, body, *arguments, **options) is None
                else:
                    refuse(strads.BodyIndexError, 8, body, *arguments, **options)


def of_chosen(k, A, B, T, W, x):
    """Rows that the loop changes choose what it reads: such a loop checks in the run."""
    for p in range(A[k], B[k]):
        if W[int(x[k]), T[p]] > 0.5:
            x[k] += 1.0


@in_its_own_process(120)
def test_ranges_that_begin_below_zero_in_a_loop_that_is_checked_in_the_run():
    T, W = strads.dvector(np.arange(20) % 4), strads.dvector(np.ones((30, 4)))
    for start in (-1, -20, -21, -(1 << 40)):
        A, B, x = strads.dvector(np.full(8, 1)), strads.dvector(np.full(8, 3)), strads.dvector.zeros(8)
        assert run_or_refuse(8, of_chosen, A, B, T, W, x) is None
        A[5] = start
        error = run_or_refuse(8, of_chosen, A, B, T, W, x)
        assert (error is None) == (start >= -20), error


def by_record(k, R, x):
    x[R[k].to] += R[k].by


@pytest.mark.parametrize("place", [np.iinfo("i4").min, -9, -8, 7, 8, np.iinfo("i4").max])
def test_numbers_of_records(place):
    R, x = strads.dvector(np.zeros(8, RECORD)), strads.dvector.zeros(8)
    assert run_or_refuse(8, by_record, R, x) is None
    records = R.to_numpy().copy()
    records["to"][4], records["by"] = place, 1.0
    R = strads.dvector(records)
    assert (run_or_refuse(8, by_record, R, x) is None) == (-8 <= place < 8)


def by_array(k, J, x):
    x[J[k]] += 1.0


def test_arrays_that_are_changed_in_place():
    J, x = np.arange(8), strads.dvector.zeros(8)
    for shift in (0, -3, 0, -8, 0):
        assert run_or_refuse(8, by_array, J + shift if shift else J, x) is None
        J -= 8
        assert run_or_refuse(8, by_array, J, x) is None
        J += 8


def by_scalar(k, n, m, T, x):
    x[k] += T[k * n + m]


@pytest.mark.parametrize("order", ["any", "sequential"])
def test_scalars_whose_signs_change_between_calls(order):
    T, x = strads.dvector(np.arange(64.0)), strads.dvector.zeros(8)
    for n, m in ((8, 0), (-8, -1), (-1, 7), (8, -3), (7, 3)):
        assert run_or_refuse(8, by_scalar, n, m, T, x, order=order) is None
    refuse(strads.BodyIndexError, 8, by_scalar, -9, -2, T, x, order=order)
    refuse(strads.BodyIndexError, 8, by_scalar, 1 << 61, 0, T, x, order=order)  # overflows


def known_of(body, *arguments):
    facts = LoopProgram(body, bind_arguments(body, arguments), fastmath=True).facts
    return {given for needed in facts.nonnegative.values() for given in needed}


def subtract(k, J, T, x):
    x[k - J[k]] += T[J[k] - 1]


def from_a_product(k, J, T, x):
    for p in range(J[k] * J[k], J[k + 1]):
        x[k] += T[p]


def test_a_product_may_overflow():
    P, J, T, x = tables_of(range(2 * ROWS))
    facts = LoopProgram(from_a_product, bind_arguments(from_a_product, (J, T, x)), fastmath=True).facts
    assert 1 not in facts.rows_fit, "that J * J does not overflow is not looked up"
    facts = LoopProgram(gather, bind_arguments(gather, (P, J, T, x)), fastmath=True).facts
    assert 1 in facts.rows_fit


def test_what_is_known():
    P, J, T, x = tables_of(range(2 * ROWS))
    assert known_of(gather, P, J, T, x) == {LOOP_INDEX, ("content", 0, None), ("content", 1, None)}
    assert known_of(by_scalar, 1, 0, T, x) >= {LOOP_INDEX, ("argument", 0), ("argument", 1)}
    program = LoopProgram(subtract, bind_arguments(subtract, (J, T, x)), fastmath=True)
    assert {name for _, name in program.facts.nonnegative if not name.startswith("$")} == {"k"}
    variables = [needed for (_, name), needed in program.facts.nonnegative.items() if name.startswith("$")]
    assert variables
    assert all(needed == {("content", 0, None)} for needed in variables), "differences may be negative"
    assert SMALL**2 * 2 <= 1 << 63
