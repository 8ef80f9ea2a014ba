"""Indices read from tables that the loop itself writes: proved if what it writes is as small, checked otherwise."""

import gc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from launching import in_its_own_process
from serial import run_or_refuse

import strads
from strads.engine.views.roles import Checking
from strads.loops.argument_kinds import bind_arguments
from strads.loops.indices import LoopIndices
from strads.loops.program import LoopProgram

ROWS = 8


def union(k, V, P, x):
    a = V[k]
    while P[a] != a:
        P[a] = P[P[a]]
        a = P[a]
    b = k
    while P[b] != b:
        b = P[b]
    P[max(a, b)] = min(a, b)
    x[a] += 1


def reversed_list(k, V, P, x):
    other = P[V[k]]
    P[V[k]] = k
    x[other] += 1


def with_a_sentinel(k, V, P, x):
    i = P[k]
    if i >= 0:
        x[i] += 1
        P[k] = -1
    else:
        P[k] = V[k]


def grows(k, V, P, x):
    x[P[k]] += 1
    P[k] += 1


def doubles(k, V, P, x):
    x[P[k]] += 1
    P[k] = 2 * P[k]


def stores_a_length(k, V, P, x):
    x[P[k]] += 1
    P[k] = len(x)


def stores_anything(k, V, P, x):
    x[P[k]] += 1
    if x[k] > 1:
        P[k] = V[k] - 1


def of_a_row(k, V, P, x):
    if k == 0:
        P[:4] += 1
    x[P[k]] += 1


def shift(row):
    row[0] = -9


def by_a_helper(k, V, P, x):
    x[P[k]] += 1
    if V[k] == 3:
        shift(P)


LASTING = [union, reversed_list, with_a_sentinel]
OTHERS = [grows, doubles, stores_a_length, stores_anything, of_a_row, by_a_helper]
_places = st.lists(st.integers(-1, ROWS), min_size=ROWS, max_size=ROWS)
_orders = st.sampled_from(["any", "sequential"])
_valid = st.lists(st.integers(0, ROWS - 1), min_size=ROWS, max_size=ROWS)


@pytest.mark.few(2)
@pytest.mark.parametrize("dtype", ["i8", "i4", "u4", "i1"])
@pytest.mark.parametrize("body", [*LASTING, *OTHERS])
@in_its_own_process(120)
def test_contents_that_the_loop_changes(body, dtype):
    @settings(max_examples=30)
    @given(st.lists(st.tuples(_valid, _valid | _places, _orders), min_size=1, max_size=4))
    def check(calls):
        V, P = strads.dvector.zeros(ROWS, "i8"), strads.dvector.zeros(ROWS, dtype)
        x = strads.dvector.zeros(ROWS, "i8")
        for targets, places, order in calls:
            V[:] = np.array(targets)
            kept = places if body is not union else np.minimum(places, np.arange(ROWS))
            if np.dtype(dtype).kind == "u" or body is union:
                kept = np.maximum(kept, 0)
            for _ in range(2):  # the second call starts with what the first one has left
                error = run_or_refuse(ROWS, body, V, P, x, order=order)
                assert error is None or isinstance(error, strads.BodyIndexError)
            P[:] = np.array(kept)
            error = run_or_refuse(ROWS, body, V, P, x, order=order)
            assert error is None or isinstance(error, strads.BodyIndexError)

    check()


def test_what_lasts():
    for body in LASTING:
        V, x = strads.dvector(np.arange(ROWS)), strads.dvector.zeros(ROWS, "i8")
        P = strads.dvector(np.arange(ROWS))
        bound = replace(bind_arguments(body, (V, P, x)), has_values=True, indices=LoopIndices.of(ROWS))
        program = LoopProgram(body, bound, fastmath=True)

        def checked(program=program, bound=bound):
            return {name.split(".")[0] for _, name in program.index_checks(bound, Checking.ALL).variables}

        assert not checked(), body.__name__
        P[3] = ROWS
        assert checked(), body.__name__
        P[3] = 0
        V[2] = ROWS + 1
        assert checked(), "what it stores is no longer as small"


def test_what_does_not():
    for body in OTHERS:
        V, x = strads.dvector(np.arange(ROWS)), strads.dvector.zeros(ROWS, "i8")
        bound = bind_arguments(body, (V, strads.dvector(np.arange(ROWS)), x))
        facts = LoopProgram(body, bound, fastmath=True).facts
        assert any(index.fits is None for index in facts.row_indices[2]), body.__name__


def large(k, V, P, x):
    x[P[k]] += 1
    P[k] = (V[k] * 199) % len(x)


def test_narrow_integers_may_not_hold_what_is_stored():
    V = strads.dvector(np.arange(ROWS))
    for dtype in ("i1", "u1", "i2"):
        P, x, expected = strads.dvector.zeros(ROWS, dtype), strads.dvector.zeros(200, "i8"), np.zeros(200, "i8")
        for _ in range(3):
            np.add.at(expected, P.to_numpy().astype(int), 1)
            strads.async_for(ROWS, large, V, P, x)
            np.testing.assert_array_equal(P.to_numpy(), (np.arange(ROWS) * 199 % 200).astype(dtype))
        np.testing.assert_array_equal(x.to_numpy(), expected)


def test_sums_of_replicas_are_not_what_was_stored():
    V, x = strads.dvector(np.full(ROWS, ROWS - 1)), strads.dvector.zeros(ROWS, "i8")
    P = strads.dvector(np.zeros(ROWS, "i8"))
    bound = bind_arguments(reversed_list, (V, strads.relaxed(P), x))
    facts = LoopProgram(reversed_list, bound, fastmath=True).facts
    assert any(index.fits is None for index in facts.row_indices[2])


def test_a_range_that_a_loop_left_is_used_until_the_table_changes():
    V, x = strads.dvector(np.arange(ROWS)), strads.dvector.zeros(ROWS, "i8")
    P = strads.dvector(np.arange(ROWS))
    for _ in range(3):
        assert run_or_refuse(ROWS, reversed_list, V, P, x) is None
    P[5] = ROWS
    assert isinstance(run_or_refuse(ROWS, reversed_list, V, P, x), strads.BodyIndexError)
    P[5] = 0
    errors = [run_or_refuse(ROWS, grows, V, P, x) for _ in range(ROWS + 1)]
    assert errors[0] is None
    assert isinstance(errors[-1], strads.BodyIndexError)


def test_an_array_of_the_caller_is_looked_at_again():
    a = np.arange(ROWS)
    view = a.view()
    V, P, x = strads.dvector(np.arange(ROWS)), strads.dvector(a, copy=False), strads.dvector.zeros(ROWS, "i8")
    for _ in range(3):
        assert run_or_refuse(ROWS, reversed_list, V, P, x, order="sequential") is None
    view[3] = 50  # against the rules
    assert isinstance(run_or_refuse(ROWS, reversed_list, V, P, x, order="sequential"), strads.BodyIndexError)


@pytest.mark.parametrize("rows", [ROWS, 3 << 18])
def test_a_call_leaves_no_references_behind(rows):
    V, P, x = strads.dvector(np.arange(rows)), strads.dvector(np.arange(rows)), strads.dvector.zeros(rows, "i8")
    gc.disable()  # which would find cycles
    try:
        for _ in range(3):
            strads.async_for(range(ROWS - 1), reversed_list, V, P, x, order="sequential")
        assert not any(table._content.is_shared() for table in (V, P, x))
    finally:
        gc.enable()
