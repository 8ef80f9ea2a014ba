"""Indices that exist because of conditions of the body: what is proved is true, and what is not is checked."""

import math
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

ROWS, WIDTH = 8, 5
LARGEST = np.iinfo(np.int64).max


def between(k, V, n, G, x):
    i = V[k] + x[k]
    if 0 <= i < G.shape[1]:
        x[k] += G[k, i]


def skipped(k, V, n, G, x):
    i = x[k]
    if i < 0 or i >= n:
        return
    x[k] += G[k, i]


def neighbours(k, V, n, G, x):
    for j in range(G.shape[1]):
        best = j
        if j > 0 and G[k, j - 1] < x[k]:
            best = j - 1
        if j + 1 < G.shape[1] and G[k, j + 1] < x[k]:
            best = j + 1
        x[k] += G[k, best]


def clamped(k, V, n, G, x):
    i = max(0, min(x[k], G.shape[1] - 1))
    for j in range(max(0, i - 2), min(G.shape[1], i + 3)):
        x[k] += G[k, j]


def largest_of_a_row(k, V, n, G, x):
    best = 0
    for j in range(1, G.shape[1]):
        if G[k, j] > G[k, best] + x[k]:
            best = j
    x[k] += best
    G[k, best] += 1


def in_a_while_loop(k, V, n, G, x):
    i = 0
    while i < G.shape[1] and G[k, i] != x[k]:
        i += 1
    if i < G.shape[1]:
        x[k] += G[k, i]


def down_to_zero(k, V, n, G, x):
    i = G.shape[1] - 1
    while i >= 0:
        x[k] += G[k, i]
        i -= 1 + (x[k] & 1)


def too_far(k, V, n, G, x):
    i = x[k]
    if 0 <= i <= G.shape[1]:
        x[k] += G[k, i]


def of_another_axis(k, V, n, G, x):
    i = x[k]
    if 0 <= i < len(V):
        x[k] += G[k, i]


def of_an_overflowing_sum(k, V, n, G, x):
    i = x[k]
    if i >= 0 and i + 1 < G.shape[1]:
        x[k] += G[k, i]


def of_an_underflowing_difference(k, V, n, G, x):
    i, j = V[k], x[k]
    if i < G.shape[1] and 0 <= j < i - 1:
        x[k] += G[k, j]


def changed_since(k, V, n, G, x):
    i = x[k]
    if 0 <= i < G.shape[1]:
        i += V[k]
        x[k] += G[k, i]


def read_again(k, V, n, G, x):
    if 0 <= x[k] < G.shape[1]:
        x[k] += V[k]
        x[k] += G[k, x[k]]


def changed_in_a_loop(k, V, n, G, x):
    i = x[k]
    if 0 <= i < G.shape[1]:
        for _ in range(2):
            x[k] += G[k, i]
            i += V[k]


def either(k, V, n, G, x):
    i = x[k]
    if i >= 0 or i < G.shape[1]:
        x[k] += G[k, i]


def not_equal(k, V, n, G, x):
    for j in range(G.shape[1]):
        if j != x[k]:
            x[k] += G[k, j - 1]


def after_the_loop(k, V, n, G, x):
    j = 0
    while j < G.shape[1]:
        if x[k] == j:
            break
        j += 1
    x[k] += G[k, j]


def one_too_many(k, V, n, G, x):
    for j in range(G.shape[1] + (x[k] & 1)):
        x[k] += G[k, j]


def steps(k, V, n, G, x):
    step = 2 - (x[k] & 3)
    for j in range(0, G.shape[1], step if step != 0 else 1):
        x[k] += G[k, j]


def of_a_scalar(k, V, n, G, x):
    i = x[k]
    if i >= 0 and i < n - 1:
        x[k] += G[k, i + 1]


def inner(row, i):
    if i < 0 or i > len(row) - 1:
        return 0
    return row[i]


def in_a_helper(k, V, n, G, x):
    x[k] += inner(G[k], x[k]) + inner(V, x[k] - 1)


def rows_too(k, V, n, G, x):
    i = x[k]
    if i > 0 and i < len(G):
        x[k] += G[i - 1, 0]
        V[i] += 1


def of_a_local(k, V, n, G, x):
    counts = np.zeros(WIDTH, np.int64)
    i = x[k]
    if 0 <= i < len(counts):
        counts[i] += 1
        if i != 0:
            counts[i - 1] += 2
    x[k] += counts[0] + counts[WIDTH - 1]


def read_twice(k, V, n, G, x):
    if 0 <= V[k] < G.shape[1] and V[V[k]] >= 0 and V[V[k]] + 2 < len(x):
        x[k] += G[k, V[k]] + V[V[V[k]] + 2]


def written_between(k, V, n, G, x):
    if 0 <= V[k] < G.shape[1]:
        V[k] += x[k]
        x[k] += G[k, V[k]]


def of_a_local_that_changes(k, V, n, G, x):
    place = np.zeros(1, np.int64)
    place[0] = V[k]
    if 0 <= place[0] < G.shape[1]:
        place[0] += n
        x[k] += G[k, place[0]]


def moved_on(k, V, n, G, x):
    i = 0
    for _ in range(3):
        if 0 <= V[i] < G.shape[1]:
            i = (i + 1) % len(V)
        x[k] += G[k, V[i]]


def by_a_scalar(k, V, n, G, x):
    x[k] += G[k, n - 1] + V[n]
    if x[k] > 0:
        x[k] += G[n + 2, n]


def of_the_next(k, V, n, G, x):
    x[k] += G[V[k] + 1, 0]


PROVED = [
    between,
    neighbours,
    clamped,
    largest_of_a_row,
    in_a_while_loop,
    down_to_zero,
    in_a_helper,
    rows_too,
    of_a_local,
]
DOUBTFUL = [skipped, too_far, of_another_axis, of_an_overflowing_sum, changed_since, read_again]
DOUBTFUL += [of_an_underflowing_difference, written_between, of_a_local_that_changes, moved_on]
DOUBTFUL += [changed_in_a_loop, either, not_equal, after_the_loop, one_too_many, steps, of_a_scalar]
PROVED_IN_PART = [read_twice]  # in the rest, sums that overflow are out of range
_scalars = st.sampled_from([WIDTH, 0, 2, 1, -1, -LARGEST])
_numbers = st.lists(
    st.integers(-WIDTH - 2, WIDTH + 2) | st.sampled_from([LARGEST, -LARGEST - 1]), min_size=ROWS, max_size=ROWS
)


@pytest.mark.few(4)
@pytest.mark.parametrize("order", ["any", "sequential"])
@pytest.mark.parametrize("body", [*PROVED, *PROVED_IN_PART, *DOUBTFUL, by_a_scalar, of_the_next])
@in_its_own_process(120)
def test_guarded_indices(body, order):
    rng = np.random.default_rng(0)

    @settings(max_examples=25)
    @given(st.lists(st.tuples(_numbers, _numbers, _scalars), min_size=1, max_size=3))
    def check(calls):
        G = strads.dvector(rng.integers(0, 3, (ROWS, WIDTH)))
        V, x = strads.dvector.zeros(ROWS, "i8"), strads.dvector.zeros(ROWS, "i8")
        with np.errstate(over="ignore"):
            for added, numbers, n in calls:
                V[:], x[:] = np.array(added), np.array(numbers)
                error = run_or_refuse(ROWS, body, V, n, G, x, order=order)
                assert error is None or isinstance(error, strads.BodyIndexError)
                assert error is None or body not in PROVED

    check()


def unproved(body, n=WIDTH, *, rows=False):
    """Return the variables that a run checks within rows; or of rows, too."""
    G = strads.dvector.zeros((ROWS, WIDTH), "i8")
    V, x = strads.dvector.zeros(ROWS, "i8"), strads.dvector.zeros(ROWS, "i8")
    bound = bind_arguments(body, (V, n, G, x))
    program = LoopProgram(body, bound, fastmath=True)
    if rows:
        return program.index_checks(replace(bound, indices=LoopIndices.of(ROWS)), Checking.ALL)
    return program.part_checks(bound, Checking.ALL)


def test_what_is_proved():
    for body in PROVED + PROVED_IN_PART:
        assert not unproved(body), body.__name__
    assert not unproved(skipped)
    assert unproved(skipped, WIDTH + 1)
    assert not unproved(of_a_scalar)
    assert unproved(of_a_scalar, -LARGEST - 1)


@pytest.mark.parametrize(("n", "is_proved"), [(1, True), (4, True), (0, False), (5, False), (7, False), (-1, False)])
def test_a_scalar_proves_an_index(n, is_proved):
    assert (not unproved(by_a_scalar, n, rows=True)) == is_proved


@pytest.mark.parametrize(("largest", "is_proved"), [(ROWS - 2, True), (ROWS - 1, False)])
def test_contents_prove_the_index_after(largest, is_proved):
    V, x = strads.dvector(np.array([largest, 0])), strads.dvector.zeros(2, "i8")
    bound = bind_arguments(of_the_next, (V, 0, strads.dvector.zeros((ROWS, 1), "i8"), x))
    bound = replace(bound, has_values=True, indices=LoopIndices.of(2))
    assert (not LoopProgram(of_the_next, bound, fastmath=True).index_checks(bound, Checking.ALL)) == is_proved


def test_what_is_not_proved():
    for body in DOUBTFUL:
        assert unproved(body) or body in (skipped, of_a_scalar, not_equal), body.__name__


def nan(k, V, x):
    if not V[k] > 3.0 and not V[k] < 0.0:
        x[k] += x[int(V[k])]


def test_no_comparison_with_nan_holds():
    V, x = strads.dvector(np.array([1.0, np.nan, 2.0, 0.0])), strads.dvector.zeros(4)
    bound = bind_arguments(nan, (V, x))
    assert LoopProgram(nan, bound, fastmath=True).facts.volatile_row_indices[1] == frozenset()
    assert any(index.fits is None for index in LoopProgram(nan, bound, fastmath=True).facts.row_indices[1])


def of_a_segment(k, P, J, x):
    for p in range(P[k], P[k + 1]):
        for q in range(P[k], p):
            x[J[q]] += 1
    first, end = P[k], P[k + 1]
    for p in range(first, end):
        i = J[p]
        for q in range(3):
            x[i] += q


def test_the_next_row_exists_for_all_but_the_last_one():
    P, J = strads.dvector(np.arange(ROWS + 1)), strads.dvector(np.arange(ROWS))
    x = strads.dvector.zeros(ROWS, "i8")
    bound = replace(bind_arguments(of_a_segment, (P, J, x)), has_values=True)
    program = LoopProgram(of_a_segment, bound, fastmath=True)
    for indices, is_proved in ((ROWS, True), (range(1, ROWS), True), (ROWS + 1, False), ([-1, 2], False), ([], True)):
        assert program.is_proved(replace(bound, indices=LoopIndices.of(indices))) == is_proved
        error = run_or_refuse(indices, of_a_segment, P, J, x, threads=1, order="sequential")
        assert (error is None) == (is_proved or indices == [-1, 2])
    J[3] = ROWS
    assert not program.is_proved(replace(bound, indices=LoopIndices.of(ROWS)))
    assert run_or_refuse(ROWS, of_a_segment, P, J, x, threads=1, order="sequential") is not None


# -- what is no integer ------------------------------------------------------------------------------------------


def of_a_root(k, V, F, X, G, x):
    V[k] += 0
    f, i = np.sqrt(V[k]), X[k]
    if i >= 0 and not (i > f) and not (f >= G.shape[1]):
        x[k] += G[k, i]


def of_a_hypotenuse(k, V, F, X, G, x):
    f = math.hypot(x[k], 1)
    for i in range(G.shape[1]):
        if i < f and f < G.shape[1]:
            x[k] += G[k, i + 1]


def of_a_sine(k, V, F, X, G, x):
    i = X[k]
    V[k] = V[k]
    f = np.sin(V[k])
    if i < G.shape[1] and f > -1 and i > f:
        x[k] += G[k, i - 1]


def of_a_remainder(k, V, F, X, G, x):
    f, i = F[k] % 3, X[k]
    F[k] = f
    if 0 <= i < f:
        x[k] += G[k, i + 1]


def of_a_rounded_sum(k, V, F, X, G, x):
    f, i = F[k], X[k]
    F[k] = f
    if i >= 0 and i < 100 and f < 100 and f + 1 <= G.shape[1] and i < f:
        x[k] += G[k, i + 1]


def of_another_rounded_sum(k, V, F, X, G, x):
    f, i = F[k], X[k]
    F[k] = f
    if i < G.shape[1] and f < 100 and f + 1 >= 1 and i > f:
        x[k] += G[k, i - 1]


def of_a_true_quotient(k, V, F, X, G, x):
    i, f = X[k], V[k] / 2
    V[k] = V[k]
    if 0 <= i < f and f < G.shape[1]:
        x[k] += G[k, i + 1]


OF_FLOATS = [of_a_root, of_a_hypotenuse, of_a_sine, of_a_remainder, of_a_rounded_sum, of_another_rounded_sum]
_reals = st.sampled_from([2.5, -1e-20, np.nextafter(3.0, 4.0), np.nan, 1.0, -8.0, 4.0])
_places = st.sampled_from([0, 1, 2, 3, 4, 200, -1, -8])


@pytest.mark.few(1)
@pytest.mark.parametrize("body", [*OF_FLOATS, of_a_true_quotient])
@in_its_own_process(120)
def test_floats_prove_nothing(body):
    every = st.lists(st.tuples(_places, _reals, _places, _places), min_size=4, max_size=4)

    @settings(max_examples=60)
    @given(every)
    def check(rows):
        V, F, X, x = (strads.dvector(np.array(column)) for column in zip(*rows, strict=True))
        G = strads.dvector(np.arange(12).reshape(4, 3))
        with np.errstate(invalid="ignore"):
            error = run_or_refuse(4, body, V, F, X, G, x, order="sequential")
        assert error is None or isinstance(error, strads.BodyIndexError)

    check()


def perhaps_unassigned(k, V, n, G, x):
    if V[k] >= 0:
        i = x[k]
    if i + 1 < len(x) and i >= 0:
        x[i + 1] += 1


def test_a_variable_that_may_not_exist():
    G = strads.dvector.zeros((ROWS, WIDTH), "i8")
    assert (
        run_or_refuse(ROWS, perhaps_unassigned, strads.dvector(np.arange(ROWS)), 0, G, strads.dvector(np.arange(ROWS)))
        is None
    )


def from_a_scalar(k, W, H, x):
    if H >= 2:
        for j in range(H, W, 3):
            x[k * W + j] += 1


def test_of_unsigned_scalars_nothing_is_proved():
    x = strads.dvector.zeros(ROWS, "i8")
    for H, is_proved in (
        (3, True),
        (np.int32(3), True),
        (np.uint32(3), False),
        (np.uint64(3), False),
        ((1 << 64) - 3, False),
    ):
        bound = replace(bind_arguments(from_a_scalar, (5, H, x)), has_values=True, indices=LoopIndices.of(1))
        assert (LoopProgram(from_a_scalar, bound, fastmath=True).facts.proof is not None) == is_proved


def of_a_wrapped_difference(k, U, V, out, x):
    d = U[k] - V[k]
    if d > 0 and d - 1 < len(x):  # unsigned: the difference wraps, and the index does not
        out[k] = x[d - 1]


def of_a_large_product(k, U, V, out, x):
    p = U[k] * V[k]
    if k <= p:
        t = p - k
        if t < len(x):
            out[k] = x[t]


@pytest.mark.parametrize(("body", "dtype"), [(of_a_wrapped_difference, "u4"), (of_a_large_product, "u4")])
@in_its_own_process(60)
def test_results_of_unsigned_numbers_prove_nothing(body, dtype):
    U, V = np.full(ROWS, 4_000_000_000, dtype), np.full(ROWS, 4_000_000_000, dtype)
    U[:-1] = 5 if body is of_a_wrapped_difference else U[:-1]
    arguments = strads.dvector(U), strads.dvector(V), strads.dvector.zeros(ROWS, "i8"), strads.dvector(np.arange(9))
    with pytest.raises(strads.BodyIndexError):
        strads.async_for(ROWS, body, *arguments, threads=1)
    for own, proved in (("i4", True), ("u4", False)):
        tables = (strads.dvector.zeros(ROWS, own) for _ in range(2))
        bound = replace(bind_arguments(body, (*tables, *arguments[2:])), has_values=True, indices=LoopIndices.of(ROWS))
        facts = LoopProgram(body, bound, fastmath=True).facts
        assert any(index.fits is None for index in facts.row_indices[3]) != proved


def in_part_of_a_row(k, n, M, T):
    i = k * k - 5
    if 0 <= i < M:
        T[k, i] = 7


def of_changed_counts(k, n, counts, T):
    i = k * k - 5
    if 0 <= i < counts[k]:
        T[k, i] = 7
        counts[k] = 3


def test_what_proves_an_index_is_asked_for_again_when_it_changes():
    T, counts = strads.dvector.zeros((5, 8), "i8"), strads.dvector(np.full(5, 3))
    for most in (3, 2, 4, 5, 16):
        error = run_or_refuse(5, in_part_of_a_row, 0, most, T)
        assert isinstance(error, strads.BodyIndexError) == (most == 16)
        counts[:] = most
        error = run_or_refuse(5, of_changed_counts, 0, counts, T)
        assert isinstance(error, strads.BodyIndexError) == (most == 16)
