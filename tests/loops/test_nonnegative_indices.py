"""Code that relies on indices not being negative runs only where they are not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from launching import in_its_own_process
from serial import refuse, run_or_refuse

import strads
from strads.bodies.analysis.values import LOOP_INDEX
from strads.loops.argument_kinds import bind_arguments
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
    x[k] += T[item(J, k)] + item(P, item(J, k + 1))


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


@pytest.mark.few(1)
@pytest.mark.parametrize("order", ["any", pytest.param("sequential", marks=pytest.mark.slow)])
@pytest.mark.parametrize("body", BODIES)
@in_its_own_process(120)
def test_indices_whose_signs_change_between_calls(body, order):
    @settings(max_examples=10)
    @given(st.lists(_columns, min_size=1, max_size=4), st.sampled_from(["i1", "i4"]))
    def check(calls, dtype):
        P, J, T, x = tables_of(calls[0], dtype)
        J[:] = np.abs(J.to_numpy()).clip(max=ROWS - 1)
        assert run_or_refuse(ROWS - 1, body, P, J, T, x, order=order) is None
        for columns in calls:
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


@pytest.mark.slow
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
    assert any(index.fits is None for index in facts.row_indices[1]), "that J * J does not overflow is not looked up"
    facts = LoopProgram(gather, bind_arguments(gather, (P, J, T, x)), fastmath=True).facts
    assert all(index.fits is not None for index in facts.row_indices[1])


def test_what_is_known():
    P, J, T, x = tables_of(range(2 * ROWS))
    assert known_of(gather, P, J, T, x) == {LOOP_INDEX, ("content", 0, None), ("content", 1, None)}
    assert known_of(by_scalar, 1, 0, T, x) >= {LOOP_INDEX, ("argument", 0), ("argument", 1)}
    assert known_of(subtract, J, T, x) == {LOOP_INDEX}, "differences may be negative"
    assert known_of(by_offset, J, T, x) == {LOOP_INDEX, ("content", 0, None)}, "its condition limits p"
    assert known_of(by_place, J, T, x) == {LOOP_INDEX, ("content", 0, None), ("axis", 0, 0)}


def by_offset(k, J, T, x):
    p = J[k]
    while p < J[k + 1]:
        x[k] += T[p]
        p += 1


def by_place(k, J, T, x):
    best = 0
    for i, j in enumerate(J):
        for _ in range(2):
            if T[j] > T[i + best]:
                best = j
    x[k] += T[best]


# Compiled integers wrap around, as NumPy's do.


def linear_congruential(k, J, T, x):
    x[(J[k] * 6364136223846793005 + 1442695040888963407) % len(x)] += T[k]


def hashed_index(k, J, T, x):
    h = k * 6364136223846793005 + 1442695040888963407
    x[h % len(x)] += T[h >> 61]


def hashed_text(k, J, T, x):
    h = 0
    for p in range(len(J)):
        h = h * 1000003 + J[p]
    if h < 0:
        h = -(h + 1)
    x[(h + k) % len(x)] += T[h % len(T)]


def of_small_type(k, J, T, x):
    x[k] += T[np.add(J[k], J[k])]


def added_before_multiplied(k, J, T, x):
    h = (J[k] + 2147483647 + 2147483647) * (J[k] + 2147483647 + 2147483647)
    x[k] += T[h % len(T)]


def added_in_a_loop(k, J, T, x):
    total = 0
    for _ in range(1000):
        total += 2147483647
    x[k] += T[(total * (J[k] + 2147483640) * 3) % len(T)]


def long_range(k, J, T, x):
    for i in range(0, 1 << 62, 1 << 61):
        x[k] += T[(i * 7) % len(T)]


def counted_too_far(k, J, T, x):
    i = J[k] * 0 + 3
    for _ in range(479615345916448342):  # which takes no time: 1000 * that is 26 * 2 ** 64 - 16
        i += 1000
    if i < 0:
        x[k] += T[i]


def picked_from_a_tuple(k, J, T, x):
    x[k] += (1, 2.5, 3)[PLACES[1]] + T[PLACES[1]]


PLACES = 0, 1
_OVERFLOWING = [
    linear_congruential,
    hashed_index,
    hashed_text,
    added_before_multiplied,
    added_in_a_loop,
    long_range,
    counted_too_far,
]
_WRAPPED = {long_range: -(1 << 61) % 101, counted_too_far: -13}


@pytest.mark.few(4)
@pytest.mark.parametrize("body", [*_OVERFLOWING, picked_from_a_tuple])
def test_overflow_is_not_taken_to_be_impossible(body):
    J, T, expected = np.arange(40) * 12345 % 1000, np.arange(101.0), np.zeros(40)
    with np.errstate(over="ignore"):
        for k in range(39):
            if body in _WRAPPED:  # Python's own integers do not overflow
                expected[k] = T[_WRAPPED[body]]
            else:
                body(np.int64(k), J, T, expected)
    for order in ("sequential", "any"):
        x = strads.dvector(np.zeros(40))
        strads.async_for(39, body, strads.dvector(J), strads.dvector(T), x, order=order)
        np.testing.assert_array_equal(x.to_numpy(), expected)


def test_numbers_of_small_types_wrap_around():
    J, T = strads.dvector(np.arange(88, 128, dtype="i1")), strads.dvector(np.arange(1009.0))
    assert run_or_refuse(40, of_small_type, J, T, strads.dvector.zeros(40)) is None


def of_two_tables(k, A, B, T, x):
    x[k] += T[B[k * 1]] + T[A[k * 1]]


def test_one_table_as_two_arguments_says_nothing_about_two():
    for rest in (np.arange(8), np.arange(8) - 8):  # compiled for A, A first, with a cache on disk
        A, B, T = strads.dvector(np.arange(8)), strads.dvector(rest), strads.dvector(np.arange(8.0))
        for second in (A, B):
            assert run_or_refuse(8, of_two_tables, A, second, T, strads.dvector.zeros(8), order="sequential") is None


def body_calling(inner):
    def body(k, T, x):
        inner(k - 3, T, x)
        x[0] += T[k]

    return body


def leaf(k, T, x):
    x[1] += 1.0


def test_a_function_that_calls_another_one_of_the_same_code():
    body = body_calling(body_calling(leaf))
    assert run_or_refuse(50, body, strads.dvector(np.arange(101.0)), strads.dvector.zeros(2)) is None


def by_tuple(k, J, x):
    place = (J[k],)
    x[place] += 1.0


def test_a_tuple_of_one_index():
    J = strads.dvector(np.arange(20) % 7 - 3)
    assert run_or_refuse(20, by_tuple, J, strads.dvector(np.zeros(7))) is None
