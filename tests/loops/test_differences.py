"""Indices that are the difference of two numbers, as `before[w - weight]`: what is proved of them is true."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from launching import in_its_own_process
from serial import run_or_refuse

import strads
from strads.loops.argument_kinds import bind_arguments
from strads.loops.indices import LoopIndices
from strads.loops.program import LoopProgram

ROWS = 40
LARGEST = np.iinfo(np.int64).max


def knapsack(k, V, U, x):
    for w in range(len(x)):
        if w >= V[k] and x[w - V[k]] + k > x[w]:
            x[w] = x[w - V[k]] + k


def from_the_other(k, V, U, x):
    for w in range(V[k], len(x)):
        x[w] = (x[w - V[k]] + x[w] + k) % 1000


def backwards(k, V, U, x):
    for w in range(len(x) - 1, V[k], -1):
        if V[k] <= w:
            x[w] += x[w - V[k]]


def filtered(k, V, U, x):
    for j in range(5):
        if k - j >= 0:
            x[k] += V[k - j]


def in_place(k, V, U, x):
    i = len(x) - 1
    i -= V[k]
    if i >= 0:
        x[i] += 1


def of_two_contents(k, V, U, x):
    large, small = V[k], U[k]
    if small < large and large < len(x):
        x[large - small] += 1


PROVED = [knapsack, from_the_other, backwards, filtered, in_place, of_two_contents]


def the_wrong_way(k, V, U, x):
    for w in range(len(x)):
        if w <= V[k]:
            x[w - V[k]] += 1


def not_compared(k, V, U, x):
    for w in range(2, len(x)):
        x[w - V[k]] += 1


def of_another(k, V, U, x):
    for w in range(U[k], len(x)):
        x[w - V[k]] += 1


def moved_since(k, V, U, x):
    low = V[k]
    for w in range(low, len(x)):
        low += 2
        x[w - low] += 1


def compared_before(k, V, U, x):
    small = V[k]
    for w in range(len(x)):
        if w >= small:
            small += U[k]
            x[w - small] += 1


def different(k, V, U, x):
    w = k
    if w != V[k] and w < len(x):
        x[w - V[k]] += 1


DOUBTFUL = [the_wrong_way, not_compared, of_another, moved_since, compared_before, different]
_numbers = st.integers(-2, ROWS + 2) | st.sampled_from([0, 1, LARGEST, -(1 << 60)])
_calls = st.lists(
    st.tuples(
        st.lists(st.integers(0, ROWS), min_size=ROWS, max_size=ROWS), st.dictionaries(st.integers(0, 39), _numbers)
    ),
    min_size=1,
    max_size=3,
)


@pytest.mark.few(4)
@pytest.mark.parametrize("order", ["any", "sequential"])
@pytest.mark.parametrize("body", [*PROVED, *DOUBTFUL])
@in_its_own_process(120)
def test_differences(body, order):
    @settings(max_examples=25)
    @given(_calls, _calls)
    def check(calls, others):
        V, U, x = (strads.dvector.zeros(ROWS, "i8") for _ in range(3))
        with np.errstate(over="ignore"):
            for (numbers, odd), (more, _) in zip(calls, others, strict=False):
                V[:], U[:], x[:] = np.array(numbers), np.array(more), np.arange(ROWS)
                for place, number in odd.items():
                    V[place] = number
                error = run_or_refuse(ROWS, body, V, U, x, order=order)
                assert error is None or isinstance(error, strads.BodyIndexError)

    check()


def is_proved(body, values, others=(0,)):
    V, U = (strads.dvector(np.resize(np.array(each, "i8"), ROWS)) for each in (values, others))
    bound = bind_arguments(body, (V, U, strads.dvector.zeros(ROWS, "i8")))
    bound = replace(bound, has_values=True, indices=LoopIndices.of(ROWS))
    return LoopProgram(body, bound, fastmath=True).is_proved(bound)


def test_what_is_proved():
    for body in PROVED:
        assert is_proved(body, [3, 1, 0]), body.__name__
        assert body is filtered or not is_proved(body, [3, -1, 0], [-1]), body.__name__
    for body in DOUBTFUL:
        assert not is_proved(body, [3, 1, 0]), body.__name__


def is_nonnegative(body):
    V, U, x = (strads.dvector.zeros(ROWS, "i8") for _ in range(3))
    facts = LoopProgram(body, bind_arguments(body, (V, U, x)), fastmath=True).facts
    return [given for (_, name), given in facts.nonnegative.items() if "sub" in name or name == "i"]


def test_proved_differences_are_unsigned_if_their_operands_are():
    assert {("content", 0, None)} in is_nonnegative(knapsack)
    assert is_nonnegative(filtered) == [frozenset()]
    assert not is_nonnegative(the_wrong_way)


def of_unsigned_numbers(k, U, x):
    difference = U[k] - U[k + 1]
    if difference >= 0:  # always: it wraps
        x[difference] += 1


def of_unsigned_numbers_in_order(k, U, x):
    if U[k] >= U[k + 1]:
        x[U[k] - U[k + 1]] += 1


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4"])
@in_its_own_process(120)
def test_differences_of_unsigned_numbers_wrap(dtype):
    U = np.zeros(2001, dtype)
    U[-1] = 3
    for body, is_refused in ((of_unsigned_numbers, True), (of_unsigned_numbers_in_order, False)):
        x = strads.dvector.zeros(100, "i8")
        error = run_or_refuse(2000, body, strads.dvector(U), x, order="sequential")
        assert (error is not None) == is_refused
